/*-------------------------------------------------------------------------
 *
 * extension/lwlock/policy_spin.c
 *	  Waiting policy "spin": spin, then queue as core does.
 *
 * For locks held for a shorter time than sleeping and waking up takes.
 * Spinning processes take the lock from sleeping ones.  So an exclusive
 * waiter that wakes and loses the lock again moves to the front of the queue,
 * not to its end as in core.  After pg_sweep.lwlock_handoff_after the lock is
 * reserved for it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lwlock/lwlock.h"

static LWLockWaitStep
spin_acquire(LWLock *lock, LWLockMode mode, bool woken, bool overdue)
{
	if (!overdue && pgsweep_lwlock_try_for_a_while(lock, mode))
		return LW_STEP_DONE;
	if (pgsweep_lwlock_waitmode(mode, woken, overdue) & LW_WAIT_FRONT)
		return pgsweep_lwlock_acquire_or_queue(lock, mode, mode | LW_WAIT_FRONT, overdue);
	return LW_STEP_CORE;
}

static LWLockWaitStep
spin_acquire_or_wait(LWLock *lock, LWLockMode mode)
{
	return pgsweep_lwlock_try_for_a_while(lock, mode) ? LW_STEP_DONE : LW_STEP_CORE;
}

static LWLockWaitStep
spin_wait_for_var(LWLock *lock, pg_atomic_uint64 *valptr, uint64 oldval)
{
	return pgsweep_lwlock_watch_for_a_while(lock, valptr, oldval) ? LW_STEP_DONE : LW_STEP_CORE;
}

const PgSweepLwlockPolicy pgsweep_lwlock_spin_policy = {
	.acquire = spin_acquire,
	.acquire_or_wait = spin_acquire_or_wait,
	.wait_for_var = spin_wait_for_var,
};
