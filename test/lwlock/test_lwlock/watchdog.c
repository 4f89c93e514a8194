/*-------------------------------------------------------------------------
 *
 * watchdog.c
 *	  A worker that looks for processes that sleep for ever.
 *
 * Where a process sleeps is in its slot (hooks.c), so every LWLock in the
 * server's shared memory is watched, whatever it protects.  A look at a sleeper
 * finds it suspicious if
 *
 *	- it has been taken out of the queue, or been told to go on, and sleeps all
 *	  the same: somebody is to wake it;
 *	- the lock is free: somebody is to wake it, or has woken another;
 *	- the lock is taken, but it is not in the lock's queue: nobody will ever.
 *
 * Each of these is a matter of moments.  It is a hang if so many looks in a row
 * as make up test_lwlock.watch_for find the same sleep suspicious, and the
 * lock's word the same.  Looks are counted instead of time, so that a machine
 * that stood still is no hang.
 *
 * This process waits for nobody: it belongs to no database, and takes no LWLock
 * once it runs.
 *
 * IDENTIFICATION
 *	  test/lwlock/test_lwlock/watchdog.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/wait_event.h"

#include "test_lwlock.h"

#define LOOK_EVERY_MS	50

PGDLLEXPORT void test_lwlock_watchdog_main(Datum arg);

/* What the looks so far have found of a process */
typedef struct Suspicion
{
	int			looks;			/* in a row */
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
 * Is it in the queue that begins with the newest waiter of "state"?  Nobody
 * holds the queue still, so a walk may stray; one that ends elsewhere is no
 * proof, but then the next one will find it.
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
	pg_read_barrier();			/* pairs with test_sleep_start() */
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
	pg_read_barrier();			/* what we follow was linked before it was
								 * published: pairs with LWLockTryQueue() */
	finding = is_in_queue(procno, *state) ? NOT_SUSPICIOUS : NOT_QUEUED;
	return finding;
}

static void
report(ProcNumber procno, Finding finding, LWLock *lock, uint64 state)
{
	pg_atomic_fetch_add_u64(&test_shared->hangs, 1);

	/* a lock in dynamic shared memory cannot be looked at */
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

		/* once a hang */
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

void
test_register_watchdog(void)
{
	BackgroundWorker worker = {
		.bgw_name = "test_lwlock watchdog",
		.bgw_type = "test_lwlock watchdog",
		.bgw_flags = BGWORKER_SHMEM_ACCESS,
		.bgw_start_time = BgWorkerStart_PostmasterStart,
		.bgw_restart_time = 1,
		.bgw_library_name = "test_lwlock",
		.bgw_function_name = "test_lwlock_watchdog_main",
	};

	RegisterBackgroundWorker(&worker);
}
