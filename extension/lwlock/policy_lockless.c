/*-------------------------------------------------------------------------
 *
 * extension/lwlock/policy_lockless.c
 *	  Waiting policy "lockless": queue by one compare-and-swap.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lwlock/lwlock.h"

static LWLockWaitStep
lockless_acquire(LWLock *lock, LWLockMode mode, bool woken, bool overdue)
{
	return pgsweep_lwlock_acquire_or_queue(lock, mode,
										   pgsweep_lwlock_waitmode(mode, woken, overdue),
										   overdue);
}

static LWLockWaitStep
lockless_acquire_or_wait(LWLock *lock, LWLockMode mode)
{
	return pgsweep_lwlock_acquire_or_queue(lock, mode, LW_WAIT_UNTIL_FREE, false);
}

const PgSweepLwlockPolicy pgsweep_lwlock_lockless_policy = {
	.acquire = lockless_acquire,
	.acquire_or_wait = lockless_acquire_or_wait,
	.wake = pgsweep_lwlock_lock_list_or_leave,
};
