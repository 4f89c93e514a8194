/*-------------------------------------------------------------------------
 *
 * extension/lwlock/policy_lockless_spin.c
 *	  Waiting policy "lockless_spin": spin, then queue by one compare-and-swap.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lwlock/lwlock.h"

static LWLockWaitStep
lockless_spin_acquire(LWLock *lock, LWLockMode mode, bool woken, bool overdue)
{
	if (!overdue && pgsweep_lwlock_try_for_a_while(lock, mode))
		return LW_STEP_DONE;
	return pgsweep_lwlock_acquire_or_queue(lock, mode, woken, overdue);
}

static LWLockWaitStep
lockless_spin_acquire_or_wait(LWLock *lock, LWLockMode mode)
{
	if (pgsweep_lwlock_try_for_a_while(lock, mode))
		return LW_STEP_DONE;
	return pgsweep_lwlock_acquire_or_wait(lock, mode);
}

const PgSweepLwlockPolicy pgsweep_lwlock_lockless_spin_policy = {
	.acquire = lockless_spin_acquire,
	.acquire_or_wait = lockless_spin_acquire_or_wait,
	.wait_for_var = pgsweep_lwlock_watch_for_a_while,
	.wake = pgsweep_lwlock_lock_list_or_leave,
};
