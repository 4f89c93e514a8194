/*-------------------------------------------------------------------------
 *
 * extension/lwlock/hooks.c
 *	  The hooks for waiting: call the policy of the tranche, and count.
 *
 * Each call reads the current policy of its tranche.  Processes already in
 * the queue are not affected: all policies use the same queue in the same
 * way.  So a switch neither stops nor wakes a process.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lwlock/lwlock.h"
#include "portability/instr_time.h"

PgSweepLwlockShared *PgSweepLwlock = NULL;

#define POLICY_ROW(id, name) [PGSWEEP_LWLOCK_##id] = &pgsweep_lwlock_##name##_policy,

const PgSweepLwlockPolicy *const pgsweep_lwlock_policies[] = {
	PGSWEEP_LWLOCK_POLICIES(POLICY_ROW)
};

/*
 * The wait of this process, from the first failure to the acquisition; a
 * process waits for one lock at a time.  The last wait stays here until the
 * next.
 */
static struct
{
	PgSweepLwlockCounts *counts;	/* NULL if it is not counted */
	instr_time	start;			/* if it is counted, or can be overdue */
	uint64		noted_ns;		/* length of the wait as noted; 0 = not noted */
	uint32		vain;			/* spurious wakeups */
}			my_wait;

static inline const PgSweepLwlockPolicy *
policy_of(const LWLock *lock)
{
	const volatile PgSweepLwlockShared *shared = PgSweepLwlock;
	uint8		policy = shared->tranche_policy[lock->tranche];

	if (policy == PGSWEEP_LWLOCK_DEFAULT)
		policy = shared->default_policy;
	return pgsweep_lwlock_policies[policy];
}

static uint64
ns_since(instr_time start)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, start);
	return Max(INSTR_TIME_GET_NANOSEC(now), 1);
}

static void
begin_wait(const LWLock *lock, LWLockMode mode)
{
	my_wait.counts = pgsweep_lwlock_track_waits ?
		pgsweep_lwlock_counts(lock->tranche, mode) : NULL;
	my_wait.noted_ns = 0;
	my_wait.vain = 0;
	if (my_wait.counts)
		pgsweep_lwlock_add(&my_wait.counts->contended, 1);
	if (my_wait.counts || pgsweep_lwlock_handoff_after > 0)
		INSTR_TIME_SET_CURRENT(my_wait.start);
}

/*
 * Count the result of a call.  A call left to core always queues.
 */
static LWLockWaitStep
note_step(LWLockWaitStep step)
{
	if (my_wait.counts == NULL)
		 /* not counted */ ;
	else if (step != LW_STEP_DONE)
		pgsweep_lwlock_add(&my_wait.counts->queued, 1);
	else if (my_wait.noted_ns == 0)
		pgsweep_lwlock_add(&my_wait.counts->spun, 1);
	return step;
}

/*
 * Count a spurious wakeup.  Returns true if the process is overdue.  In a long
 * queue, every process has waited for long when its turn comes.  The lock
 * would then be handed over each time, with a process switch per acquisition
 * (core's comment in LWLockAcquire() says what that costs).  So a process must
 * have been woken several times itself.
 */
static bool
note_overtaken(void)
{
	my_wait.vain++;
	if (my_wait.counts)
	{
		pgsweep_lwlock_add(&my_wait.counts->vain, 1);
		if (my_wait.vain == 1)
			pgsweep_lwlock_add(&my_wait.counts->overtaken, 1);
	}
	return pgsweep_lwlock_handoff_after > 0 &&
		my_wait.vain >= PGSWEEP_LWLOCK_HANDOFF_WAKEUPS &&
		ns_since(my_wait.start) > (uint64) pgsweep_lwlock_handoff_after * NS_PER_MS;
}

static LWLockWaitStep
lwlock_acquire(LWLock *lock, LWLockMode mode, bool woken)
{
	const PgSweepLwlockPolicy *policy = policy_of(lock);
	bool		overdue;

	if (unlikely(MyProc == NULL))
		return LW_STEP_CORE;	/* core reports the error */

	if (!woken)
		begin_wait(lock, mode);
	overdue = woken && note_overtaken();

	if (policy->acquire == NULL)
		return note_step(LW_STEP_CORE);
	return note_step(policy->acquire(lock, mode, woken, overdue));
}

static LWLockWaitStep
lwlock_acquire_or_wait(LWLock *lock, LWLockMode mode)
{
	const PgSweepLwlockPolicy *policy = policy_of(lock);

	if (unlikely(MyProc == NULL))
		return LW_STEP_CORE;

	begin_wait(lock, LW_WAIT_UNTIL_FREE);
	if (policy->acquire_or_wait == NULL)
		return note_step(LW_STEP_CORE);
	return note_step(policy->acquire_or_wait(lock, mode));
}

/*
 * Core calls this again after each sleep.  Each call counts as a wait of its
 * own: only core knows which is the first.
 */
static bool
lwlock_wait_for_var(LWLock *lock, pg_atomic_uint64 *valptr, uint64 oldval)
{
	const PgSweepLwlockPolicy *policy = policy_of(lock);
	bool		done;

	if (unlikely(MyProc == NULL))
		return false;

	begin_wait(lock, LW_WAIT_UNTIL_FREE);
	done = policy->wait_for_var && policy->wait_for_var(lock, valptr, oldval);
	note_step(done ? LW_STEP_DONE : LW_STEP_CORE);
	return done;
}

static LWLockWakeStep
lwlock_wake(LWLock *lock, uint64 *state)
{
	const PgSweepLwlockPolicy *policy = policy_of(lock);

	return policy->wake ? policy->wake(lock, state) : LW_WAKE_CORE;
}

static void
lwlock_sleeping(LWLock *lock, bool begin)
{
	if (my_wait.counts == NULL)
		return;
	if (begin)
		pgsweep_lwlock_add(&my_wait.counts->slept, 1);
	else
	{
		uint64		ns = ns_since(my_wait.start);

		pgsweep_lwlock_note_wait(my_wait.counts, my_wait.noted_ns, ns);
		my_wait.noted_ns = ns;
		if (MyProc->lwWaitMode & LW_WAIT_GRANTED)
			pgsweep_lwlock_add(&my_wait.counts->granted, 1);
	}
}

const LWLockWaitRoutine pgsweep_lwlock_wait_routine = {
	.acquire = lwlock_acquire,
	.acquire_or_wait = lwlock_acquire_or_wait,
	.wait_for_var = lwlock_wait_for_var,
	.wake = lwlock_wake,
	.sleeping = lwlock_sleeping,
};
