/*-------------------------------------------------------------------------
 *
 * extension/lwlock/queue.c
 *	  Queueing for a lock without locking its wait list, and waking.
 *
 * Core queues in three steps: lock the wait list, push, and check again
 * whether the lock is still taken; if not, leave the queue.  Here it is one
 * step: the compare-and-swap that pushes succeeds only if the state is
 * unchanged since the lock was seen to be taken.  So a process that queues in
 * this way must wait, and leaves the queue only by being woken.  It never
 * waits for a process that lost its CPU while it held the wait list; but its
 * wake-up may be left to that one.
 *
 * Phases of an acquisition, with the pairs of barriers:
 *
 *	1. Read the state.  If the lock is available, acquire it and stop.
 *	2. Otherwise link to the newest waiter, and swap this process in as the
 *	   newest (LWLockTryQueue(), a full barrier, pairs with the read barriers
 *	   in LWLockLinkWaiters() and LWLockWithoutNewest()).  On failure, go to 1.
 *	3. Sleep until woken (core).
 *	4. Core sets LW_FLAG_RELEASE_OK, a full barrier that pairs with the
 *	   waker's compare-and-swap in LWLockUnlockAfterTaking(), and reads
 *	   LW_WAIT_GRANTED.  It retries once unless the lock was handed over.  If
 *	   that fails, go to 1, now perhaps for the front of the queue.
 *
 * Why no wake-up is lost: step 2 proves that the lock was held or reserved
 * when this process was in the queue.  If it was held, the holder's release
 * is the next change of the lock's bits to zero, and reads the queue in the
 * same operation.  It wakes waiters if LW_FLAG_RELEASE_OK or
 * LW_FLAG_RESERVED is set.  If not, a woken process has not retried yet.
 * That process sets the flag before it retries, so a holder that makes it
 * fail releases the lock after that.  If it was reserved and free, a wake-up
 * was on its way to hand it over, and the new holder's release is next.
 *
 * A wake-up needs the wait list locked.  If another process has it locked,
 * the releaser leaves the wake-up to that process (LW_FLAG_WAKE_WANTED, in
 * the same word as the list's lock), and does not wait.
 *
 * The idea of one word for lock and queue, with the link written before the
 * swap, is from Windows' SRW locks, the queue-based RwLock of Rust's standard
 * library, and the page locks of OrioleDB.  For LWLocks it was proposed in
 * "Lockless queue of waiters in LWLock" (Borisov, Korotkov, 2022).  That
 * version had a separate tail, and a gap that a waker had to spin on; this
 * one has not.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lwlock/lwlock.h"

/*
 * Acquire the lock, or queue.  "woken" and "overdue" are those of
 * PgSweepLwlockPolicy.acquire.
 *
 * A process that was woken but lost the lock again goes to the front, if it
 * wants the lock exclusively.  One wake-up wakes all shared waiters anywhere
 * in the queue; in front, they would always be ahead of exclusive ones.  An
 * overdue process, in either mode, reserves the lock, unless it has shared
 * holders: one of these may acquire it again, or wait for a process that does,
 * and must not meet a reservation.
 *
 * The bound: a process that has reserved the lock gets it by that reservation,
 * after those that reserved it before, unless the lock was acquired in shared
 * mode meanwhile (see the notes in core's lwlock.c).
 *
 * A process that goes to the front because of shared holders was overtaken by
 * newer readers.  The readers that wait behind it must not be overtaken by
 * them as well, so they are woken: the present phase is theirs, too.
 */
LWLockWaitStep
pgsweep_lwlock_acquire_or_queue(LWLock *lock, LWLockMode mode, bool woken, bool overdue)
{
	uint64		state = LWLockReadState(lock);
	uint8		waitmode;

	do
	{
		if (LWLockTryAcquire(lock, mode, &state))
			return LW_STEP_DONE;
		waitmode = mode;
		if (overdue && (state & (LW_VAL_EXCLUSIVE | LW_FLAG_RESERVED)))
			waitmode |= LW_WAIT_RESERVED;
		else if (woken && mode == LW_EXCLUSIVE)
			waitmode |= LW_WAIT_FRONT;
	} while (!LWLockTryQueue(lock, &state, waitmode));

	return waitmode == (LW_EXCLUSIVE | LW_WAIT_FRONT) && (state & LW_SHARED_MASK) ?
		LW_STEP_QUEUED_ADMIT : LW_STEP_QUEUED;
}

/*
 * The same for LWLockAcquireOrWait().
 */
LWLockWaitStep
pgsweep_lwlock_acquire_or_wait(LWLock *lock, LWLockMode mode)
{
	uint64		state = LWLockReadState(lock);

	do
	{
		if (LWLockTryAcquire(lock, mode, &state))
			return LW_STEP_DONE;
	} while (!LWLockTryQueue(lock, &state, LW_WAIT_UNTIL_FREE));

	return LW_STEP_QUEUED;
}

/*
 * Lock the wait list to wake waiters, or leave that to the process that has
 * it locked.
 */
LWLockWakeStep
pgsweep_lwlock_lock_list_or_leave(LWLock *lock, uint64 *state)
{
	uint64		desired_state;
	bool		left;

	*state = LWLockReadState(lock);
	do
	{
		left = (*state & LW_FLAG_LOCKED) != 0;
		desired_state = *state | (left ? LW_FLAG_WAKE_WANTED : LW_FLAG_LOCKED);
	} while (!pg_atomic_compare_exchange_u64(LWLockState(lock), state, desired_state));

	*state = desired_state;
	return left ? LW_WAKE_LEFT : LW_WAKE_LOCKED;
}
