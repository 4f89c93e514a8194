/*-------------------------------------------------------------------------
 *
 * test/lwlock/test_lwlock/watchdog.c
 *	  A worker that looks for processes that sleep forever.
 *
 * Each process notes in its slot where it sleeps (hooks.c).  So every LWLock in
 * shared memory is watched, whatever it protects.  A sleeper is suspicious if
 *
 *	- it has been taken out of the queue, or told to go on, and sleeps
 *	  nevertheless: another process is about to wake it;
 *	- the lock is free: another process is about to wake it, or has woken
 *	  another waiter;
 *	- the lock is taken, but the sleeper is not in its queue: no process will
 *	  ever wake it.
 *
 * The first two last only for moments.  It is a hang if consecutive looks, for
 * test_lwlock.watch_for, find the same sleep suspicious with the same word of the
 * lock.  Looks are counted, not time: a machine that stood still is no hang.
 *
 * This process waits for no other: it belongs to no database, and takes no LWLock
 * after its start.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/wait_event.h"

#include "test_lwlock.h"

#define LOOK_EVERY_MS	50

/* What the looks so far have found about a process */
typedef struct Suspicion
{
	int			looks;			/* consecutive */
	uint64		sleeps;			/* which sleep it is */
	uint64		state;			/* of the lock */
} Suspicion;

typedef enum Finding
{
	NOT_SUSPICIOUS,
	NOT_WOKEN,
	LOCK_FREE,
	NOT_QUEUED,
} Finding;

static const char *const finding_names[] = {
	[NOT_SUSPICIOUS] = "nothing",
	[NOT_WOKEN] = "it is out of the queue",
	[LOCK_FREE] = "the lock is free",
	[NOT_QUEUED] = "it is not in the queue of the lock, which is taken",
};

/*
 * Is it in the queue that begins with the newest waiter of "state"?  The queue
 * is not locked, and a walk may stray.  Then the answer may be wrong once, but
 * not in consecutive looks.
 */
static bool
is_in_queue(ProcNumber procno, uint64 state)
{
	ProcNumber	cur = LWLockNewest(state);

	for (uint32 n = 0; n < test_shared->num_slots; n++)
	{
		if (cur == procno)
			return true;
		if (cur < 0 || cur >= (ProcNumber) test_shared->num_slots)
			return false;
		cur = ((volatile PGPROC *) GetPGProcByNumber(cur))->lwWaitLink.next;
	}
	return true;				/* strayed */
}

static Finding
look_at(ProcNumber procno, uint64 *sleeps, LWLock **lock, uint64 *state)
{
	TestSlot   *slot = &test_shared->slots[procno];
	volatile PGPROC *proc = GetPGProcByNumber(procno);
	Finding		finding;

	*lock = (LWLock *) (uintptr_t) pg_atomic_read_u64(&slot->sleeping_on);
	if (*lock == NULL)
		return NOT_SUSPICIOUS;
	pg_read_barrier();			/* pairs with test_sleeping() */
	*sleeps = pg_atomic_read_u64(&slot->sleeps);
	*state = 0;

	if (proc->lwWaiting != LW_WS_WAITING)
		return NOT_WOKEN;

	/* other processes see dynamic shared memory at other addresses */
	if (!ShmemAddrIsValid(*lock))
		return NOT_SUSPICIOUS;

	*state = pg_atomic_read_u64(LWLockState(*lock));
	if ((*state & LW_LOCK_MASK) == 0)
		return LOCK_FREE;
	if (*state & LW_FLAG_LOCKED)
		return NOT_SUSPICIOUS;
	pg_read_barrier();			/* waiters were linked before they were
								 * published: pairs with LWLockTryQueue() */
	finding = is_in_queue(procno, *state) ? NOT_SUSPICIOUS : NOT_QUEUED;
	return finding;
}

static void
report(ProcNumber procno, Finding finding, LWLock *lock, uint64 state)
{
	pg_atomic_fetch_add_u64(&test_shared->hangs, 1);

	/* a lock in dynamic shared memory cannot be read from here */
	ereport(LOG,
			(errmsg("test_lwlock: hang: process %d sleeps on %s, but %s",
					GetPGProcByNumber(procno)->pid,
					ShmemAddrIsValid(lock) ?
					GetLWLockIdentifier(PG_WAIT_LWLOCK, lock->tranche) : "a lock",
					finding_names[finding]),
			 errdetail_log("Lock %p, state %016" PRIx64 ", waiting %d, mode %x.",
						   lock, state,
						   GetPGProcByNumber(procno)->lwWaiting,
						   GetPGProcByNumber(procno)->lwWaitMode)));
}

static void
look_at_all(Suspicion *suspicions)
{
	int			limit = Max(test_watch_for / LOOK_EVERY_MS, 2);

	for (ProcNumber i = 0; i < (ProcNumber) test_shared->num_slots; i++)
	{
		Suspicion  *suspicion = &suspicions[i];
		LWLock	   *lock;
		uint64		sleeps = 0;
		uint64		state = 0;
		Finding		finding = look_at(i, &sleeps, &lock, &state);

		if (lock != NULL)
			pg_atomic_write_u64(&test_shared->looks,
								pg_atomic_read_u64(&test_shared->looks) + 1);
		if (finding == NOT_SUSPICIOUS)
		{
			suspicion->looks = 0;
			continue;
		}
		if (suspicion->sleeps != sleeps || suspicion->state != state)
			suspicion->looks = 0;
		suspicion->sleeps = sleeps;
		suspicion->state = state;

		/* once per hang */
		if (++suspicion->looks == limit)
			report(i, finding, lock, state);
	}
}

void
test_lwlock_watchdog_main(Datum arg)
{
	Suspicion  *suspicions = palloc0_array(Suspicion, test_shared->num_slots);

	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();

	while (!ShutdownRequestPending)
	{
		look_at_all(suspicions);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 LOOK_EVERY_MS, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
	proc_exit(0);
}
