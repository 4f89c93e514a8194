/*-------------------------------------------------------------------------
 *
 * queue.c
 *	  Into the wait queue of a lock without locking it, and who wakes.
 *
 * Core queues in three steps: lock the wait list, push, look again whether the
 * lock is still taken, and leave the queue if it is not.  Here it is one: the
 * compare-and-swap that pushes succeeds only if the state has not changed since
 * it was seen to be taken.  So nobody is in the queue who need not be, nobody
 * leaves it but by being woken, and nobody waits for a process that has lost
 * its CPU while it held the wait list.
 *
 * Phases of an acquisition, with the pairs of barriers:
 *
 *	1. read the state; if the lock is to be had, swap it in and be done;
 *	2. otherwise link to the newest waiter and swap oneself in as the newest
 *	   (LWLockTryQueue(); full barrier, pairs with the read barriers in
 *	   LWLockLinkWaiters() and LWLockUnlinkWaiter()); if that fails, go to 1;
 *	3. sleep until woken (core); the waker's write barrier before lwWaiting is
 *	   cleared (LWLockWakeup()) pairs with the setting of LW_FLAG_RELEASE_OK in
 *	   LWLockAcquire(), a full barrier, after which LW_WAIT_GRANTED is read;
 *	4. core has set LW_FLAG_RELEASE_OK, and tries once unless it was given the
 *	   lock; having failed, 1 again, now perhaps to the front of the queue
 *	   (pgsweep_lwlock_waitmode()).
 *
 * Why no wake-up is lost: step 2 proves that somebody held the lock, or that it
 * was reserved, when we were in the queue.  His release is the next change of
 * the lock's bits to zero, and reads the queue in the same operation.  It wakes
 * unless LW_FLAG_RELEASE_OK is not set, that is, unless one who was woken has
 * not tried yet; he sets the flag before he tries, so whoever makes him fail
 * releases after that.
 *
 * A wake-up needs the wait list locked.  If it is, the holder of the list is
 * told to do it (LW_FLAG_WAKE_WANTED, in the same word as the list's lock), so a
 * releaser waits for nobody.
 *
 * The idea of one word for lock and queue, with the link written before the
 * swap: Windows' SRW locks, the queue-based RwLock of Rust's standard library,
 * and the page locks of OrioleDB.  The seed of it for LWLocks: "Lockless queue
 * of waiters in LWLock" (Borisov, Korotkov, 2022); its separate tail, and with it
 * the gap that a waker had to spin on, is what is left out here.
 *
 * IDENTIFICATION
 *	  extension/lwlock/queue.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lwlock/lwlock.h"

/*
 * How to queue for an acquisition: who was woken in vain goes to the front.  Not
 * so in shared mode, unless it is overdue: one wake-up wakes all shared waiters
 * wherever they are, and exclusive ones would always find others before them.
 */
uint8
pgsweep_lwlock_waitmode(LWLockMode mode, bool woken, bool overdue)
{
	return overdue || (woken && mode == LW_EXCLUSIVE) ? mode | LW_WAIT_FRONT : mode;
}

/*
 * Acquire the lock in "mode", or queue in "waitmode".  If "reserve", have it handed
 * over at the next release instead of being free for all; that is for those
 * with LW_WAIT_FRONT only.
 */
LWLockWaitStep
pgsweep_lwlock_acquire_or_queue(LWLock *lock, LWLockMode mode, uint8 waitmode, bool reserve)
{
	const uint64 taken = mode == LW_EXCLUSIVE ?
		LW_LOCK_MASK | LW_FLAG_RESERVED :
		LW_VAL_EXCLUSIVE | LW_FLAG_RESERVED;
	uint64		state = pg_atomic_read_u64(LWLockState(lock));

	for (;;)
	{
		if ((state & taken) == 0)
		{
			if (pg_atomic_compare_exchange_u64(LWLockState(lock), &state,
											   state + (mode == LW_EXCLUSIVE ?
														LW_VAL_EXCLUSIVE : LW_VAL_SHARED)))
			{
#ifdef LOCK_DEBUG
				if (mode == LW_EXCLUSIVE)
					lock->owner = MyProc;
#endif
				return LW_STEP_DONE;
			}
		}

		/*
		 * The release of an exclusive holder is what hands a reserved lock
		 * over.  Shared ones may acquire it once more, or wait for somebody
		 * who does: they must not meet a reservation.
		 */
		else if (LWLockTryQueue(lock, &state, waitmode,
								reserve && (state & LW_VAL_EXCLUSIVE) ? LW_FLAG_RESERVED : 0))
			return LW_STEP_QUEUED;
	}
}

/*
 * Queue to be told when the lock's exclusive holder releases it or changes the
 * variable.  The variable is not part of the state, so the caller has to look
 * at it again (core does).
 */
LWLockWaitStep
pgsweep_lwlock_queue_for_var(LWLock *lock)
{
	uint64		state;

	/*
	 * Pairs with the write barrier in LWLockWakeup(): who last woke us has
	 * done with our links.  Acquisitions have tried the lock since, which is
	 * a barrier, too.
	 */
	pg_read_barrier();

	state = pg_atomic_read_u64(LWLockState(lock));
	while (state & LW_VAL_EXCLUSIVE)
		if (LWLockTryQueue(lock, &state, LW_WAIT_UNTIL_FREE, 0))
			return LW_STEP_QUEUED;
	return LW_STEP_DONE;
}

/*
 * Lock the wait list in order to wake, or leave that to who has it locked.
 */
LWLockWakeStep
pgsweep_lwlock_lock_list_or_leave(LWLock *lock)
{
	uint64		state = pg_atomic_read_u64(LWLockState(lock));

	for (;;)
	{
		bool		left = (state & LW_FLAG_LOCKED) != 0;

		if (pg_atomic_compare_exchange_u64(LWLockState(lock), &state,
										   state | (left ? LW_FLAG_WAKE_WANTED : LW_FLAG_LOCKED)))
			return left ? LW_WAKE_LEFT : LW_WAKE_LOCKED;
	}
}
