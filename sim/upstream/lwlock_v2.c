/*-------------------------------------------------------------------------
 *
 * sim/upstream/lwlock_v2.c
 *	  "Lockless queue of waiters in LWLock", second version (Borisov, Korotkov;
 *	  pgsql-hackers, November 2022), written from what the thread says of it.
 *
 * What it has in common with the library's policy "lockless", and what not:
 *
 * - One compare-and-swap takes the lock or, if it is taken, puts the process into
 *	 the queue whose newest member the state word names.  So there is one chance
 *	 to get the lock without sleeping ("the lockless queue patch seems to give
 *	 only one chance").  The library's comes after core's own attempt.
 * - Every release is a compare-and-swap ("now every lock release uses a
 *	 compare-exchange").  It claims the queue in the same step if a process has to
 *	 be woken.  One process at a time goes through the queue, after the lock is
 *	 free, which is new in the second version.
 * - The newest are woken first ("I've been using LIFO wake queue"): one exclusive
 *	 waiter, or all shared ones.  After a spurious wakeup, a process queues again
 *	 like any other.  The lock is handed to no process.
 *
 * As in core, no process is woken until the last one that was woken has tried again
 * (RELEASE_OK); the thread does not say that this was changed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "upstream/lwlock_v2.h"
#include "storage/proc.h"
#include "utils/wait_event.h"

#define V2_QUEUE_CLAIMED	((uint64) 1 << 31)
#define V2_RELEASE_OK		((uint64) 1 << 30)
#define V2_EXCLUSIVE		((uint64) MAX_BACKENDS + 1)
#define V2_SHARED			((uint64) 1)
#define V2_HELD				(V2_EXCLUSIVE | MAX_BACKENDS)
#define V2_NEWEST_SHIFT		32

static inline ProcNumber
newest(uint64 state)
{
	return (ProcNumber) (state >> V2_NEWEST_SHIFT) - 1;
}

static inline uint64
with_newest(uint64 state, ProcNumber procno)
{
	return (state & (((uint64) 1 << V2_NEWEST_SHIFT) - 1)) |
		(uint64) ((uint32) procno + 1) << V2_NEWEST_SHIFT;
}

static inline uint64
value(LWLockMode mode)
{
	return mode == LW_EXCLUSIVE ? V2_EXCLUSIVE : V2_SHARED;
}

static inline bool
is_free(uint64 state, LWLockMode mode)
{
	return (state & (mode == LW_EXCLUSIVE ? V2_HELD : V2_EXCLUSIVE)) == 0;
}

void
v2_init(V2Lock *lock)
{
	pg_atomic_init_u64(&lock->state, V2_RELEASE_OK);
}

/*
 * Returns true if it was acquired, else this process is in the queue.
 */
static bool
acquire_or_queue(V2Lock *lock, LWLockMode mode)
{
	uint64		state = pg_atomic_read_u64(&lock->state);

	for (;;)
	{
		bool		lock_free = is_free(state, mode);
		uint64		wanted = state + value(mode);

		if (!lock_free)
		{
			MyProc->lwWaiting = LW_WS_WAITING;
			MyProc->lwWaitMode = mode;
			MyProc->lwWaitLink.next = newest(state);
			wanted = with_newest(state, MyProcNumber);
		}
		if (pg_atomic_compare_exchange_u64(&lock->state, &state, wanted))
			return lock_free;
		if (!lock_free)
			MyProc->lwWaiting = LW_WS_NOT_WAITING;
	}
}

void
v2_acquire(V2Lock *lock, LWLockMode mode)
{
	int			extra_waits = 0;

	while (!acquire_or_queue(lock, mode))
	{
		pgstat_report_wait_start(PG_WAIT_LWLOCK);
		for (;;)
		{
			PGSemaphoreLock(MyProc->sem);
			if (MyProc->lwWaiting == LW_WS_NOT_WAITING)
				break;
			extra_waits++;
		}
		pg_atomic_fetch_or_u64(&lock->state, V2_RELEASE_OK);
		pgstat_report_wait_end();
	}
	while (extra_waits-- > 0)
		PGSemaphoreUnlock(MyProc->sem);
}

bool
v2_conditional_acquire(V2Lock *lock, LWLockMode mode)
{
	uint64		state = pg_atomic_read_u64(&lock->state);

	while (is_free(state, mode))
		if (pg_atomic_compare_exchange_u64(&lock->state, &state, state + value(mode)))
			return true;
	return false;
}

/*
 * Take those to be woken out of a queue that begins with first; returns the
 * first of what is left.
 */
static ProcNumber
choose(ProcNumber first, ProcNumber *woken)
{
	ProcNumber	kept = INVALID_PROC_NUMBER;
	ProcNumber *kept_link = &kept;
	ProcNumber *woken_link = woken;

	for (ProcNumber cur = first; cur != INVALID_PROC_NUMBER;)
	{
		PGPROC	   *waiter = GetPGProcByNumber(cur);
		ProcNumber	next = waiter->lwWaitLink.next;
		bool		exclusive = waiter->lwWaitMode == LW_EXCLUSIVE;

		if (exclusive && woken_link != woken)
		{
			*kept_link = cur;
			kept_link = &waiter->lwWaitLink.next;
		}
		else
		{
			*woken_link = cur;
			woken_link = &waiter->lwWaitLink.next;
			if (exclusive)
			{
				*kept_link = next;
				kept_link = NULL;
				break;
			}
		}
		cur = next;
	}
	*woken_link = INVALID_PROC_NUMBER;
	if (kept_link != NULL)
		*kept_link = INVALID_PROC_NUMBER;
	return kept;
}

/*
 * The queue is ours: others can only put themselves before those that we see.
 */
static void
wake(V2Lock *lock)
{
	uint64		state = pg_atomic_read_u64(&lock->state);
	uint64		wanted;
	ProcNumber	first = newest(state);
	ProcNumber	woken;
	ProcNumber	kept = choose(first, &woken);

	do
	{
		wanted = state & ~(V2_QUEUE_CLAIMED | V2_RELEASE_OK);
		if (woken == INVALID_PROC_NUMBER)
			wanted |= V2_RELEASE_OK;
		if (newest(state) == first)
			wanted = with_newest(wanted, kept);
		else
		{
			PGPROC	   *last = GetPGProcByNumber(newest(state));

			while (last->lwWaitLink.next != first && last->lwWaitLink.next != kept)
				last = GetPGProcByNumber(last->lwWaitLink.next);
			last->lwWaitLink.next = kept;
		}
	} while (!pg_atomic_compare_exchange_u64(&lock->state, &state, wanted));

	while (woken != INVALID_PROC_NUMBER)
	{
		PGPROC	   *waiter = GetPGProcByNumber(woken);

		woken = waiter->lwWaitLink.next;
		pg_write_barrier();		/* our read of its link first; pairs with the
								 * compare-and-swap by which it queues again */
		waiter->lwWaiting = LW_WS_NOT_WAITING;
		PGSemaphoreUnlock(waiter->sem);
	}
}

void
v2_release(V2Lock *lock, LWLockMode mode)
{
	uint64		state = pg_atomic_read_u64(&lock->state);
	uint64		wanted;
	bool		claim;

	do
	{
		wanted = state - value(mode);
		claim = (wanted & V2_HELD) == 0 && newest(wanted) != INVALID_PROC_NUMBER &&
			(wanted & V2_RELEASE_OK) && !(wanted & V2_QUEUE_CLAIMED);
		if (claim)
			wanted |= V2_QUEUE_CLAIMED;
	} while (!pg_atomic_compare_exchange_u64(&lock->state, &state, wanted));

	if (claim)
		wake(lock);
}
