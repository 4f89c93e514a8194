/*-------------------------------------------------------------------------
 *
 * extension/lwlock/policy_lockless.c
 *	  Waiting policy "lockless": queue by one compare-and-swap.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lwlock/lwlock.h"

const PgSweepLwlockPolicy pgsweep_lwlock_lockless_policy = {
	.acquire = pgsweep_lwlock_acquire_or_queue,
	.acquire_or_wait = pgsweep_lwlock_acquire_or_wait,
	.wake = pgsweep_lwlock_lock_list_or_leave,
};
