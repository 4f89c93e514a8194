/*-------------------------------------------------------------------------
 *
 * pattern.h
 *	  What the patterns have in common: three processes, two locks, a
 *	  variable, and data that the locks protect.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PATTERN_H
#define PATTERN_H

template<typename T>
struct Pattern : rl::test_suite<T, NUM_PROCS>
{
	PGPROC		procs_[NUM_PROCS];
	LWLock		a,
				b;
	pg_atomic_uint64 var;
	Plain<int>	data,
				other_data;

	void before()
	{
		procs = procs_;
		for (int i = 0; i < NUM_PROCS; i++)
		{
			PGPROC	   *proc = &procs_[i];

			proc->lwWaiting = LW_WS_NOT_WAITING;
			proc->lwWaitMode = 0;
			proc->lwWaitLink.next = proc->lwWaitLink.prev = 0;
			proc->sem.data = rl::ctx().sema_ctor(false, 0, 100);
			proc->sem.strays = 0;
			backends[i].routine = NULL;
			backends[i].num_held = 0;
		}
		for (LWLock *lock : {&a, &b})
		{
			lock->state.v($).store(LW_FLAG_RELEASE_OK, rl::mo_relaxed);
			lock->oldest = INVALID_PROC_NUMBER;
		}
		var.v($).store(0, rl::mo_relaxed);
		data = other_data = 0;
		static_cast<T *>(this)->prepare();
	}

	/* The process holds the lock from the start. */
	void hold(LWLock *lock, int proc)
	{
		lock->state.v($).fetch_add(LW_VAL_EXCLUSIVE, rl::mo_relaxed);
		backends[proc].held[backends[proc].num_held].lock = lock;
		backends[proc].held[backends[proc].num_held++].mode = LW_EXCLUSIVE;
	}

	/* At the end all locks are free and nothing is left in their words. */
	void after()
	{
		RL_ASSERT(pg_atomic_read_u64(&a.state) == LW_FLAG_RELEASE_OK);
		RL_ASSERT(pg_atomic_read_u64(&b.state) == LW_FLAG_RELEASE_OK);
		clean_up();
	}

	void clean_up()
	{
		for (int i = 0; i < NUM_PROCS; i++)
			rl::ctx().sema_dtor(procs_[i].sem.data);
	}
};

/* Ways of waiting, see extension/lwlock/policy_lockless.c */

static LWLockWaitStep
lockless_acquire(LWLock *lock, LWLockMode mode, bool woken)
{
	return pgsweep_lwlock_acquire_or_queue(lock, mode, false, false);
}

static LWLockWaitStep
lockless_acquire_or_wait(LWLock *lock, LWLockMode mode)
{
	return pgsweep_lwlock_acquire_or_wait(lock, mode);
}

/* as one that has waited for long, and is handed the lock */
static LWLockWaitStep
overdue_acquire(LWLock *lock, LWLockMode mode, bool woken)
{
	return pgsweep_lwlock_acquire_or_queue(lock, mode, true, true);
}

static bool
no_wait_for_var(LWLock *lock, pg_atomic_uint64 *valptr, uint64 oldval)
{
	return false;
}

static const LWLockWaitRoutine lockless = {
	.acquire = lockless_acquire,
	.acquire_or_wait = lockless_acquire_or_wait,
	.wait_for_var = no_wait_for_var,
	.wake = pgsweep_lwlock_lock_list_or_leave,
};

static const LWLockWaitRoutine overdue = {
	.acquire = overdue_acquire,
	.acquire_or_wait = lockless_acquire_or_wait,
	.wait_for_var = no_wait_for_var,
	.wake = pgsweep_lwlock_lock_list_or_leave,
};

#endif							/* PATTERN_H */
