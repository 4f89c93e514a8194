/*-------------------------------------------------------------------------
 *
 * test_sweep_lwlock.c
 *	  LWLocks to be waited for, each in a tranche of its own.
 *
 * Whether and how often a process has slept is told by core's own answers, not
 * by what pg_sweep counts.
 *
 * IDENTIFICATION
 *	  test/sweep/test_sweep/test_sweep_lwlock.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/dsm_registry.h"
#include "storage/lwlock.h"
#include "storage/lwlock_queue.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

PG_MODULE_MAGIC_EXT(
					.name = "test_sweep_lwlock",
					.version = "1.0"
);

#define NUM_LOCKS		1200

/* So many a process may hold at once, with some to spare for others */
#define MOST_HELD		150

#define MAX_WAIT_MS		60000

typedef struct TestLocks
{
	int			first_tranche;
	bool		all_held;		/* by test_sweep_lwlock_hand_over() */
	bool		let_go;			/* it need not hold them any longer */
	pg_atomic_uint32 taken;		/* by test_sweep_lwlock_take() */
	LWLockPadded locks[NUM_LOCKS];
} TestLocks;

PG_FUNCTION_INFO_V1(test_sweep_lwlock_hand_over);
PG_FUNCTION_INFO_V1(test_sweep_lwlock_held);
PG_FUNCTION_INFO_V1(test_sweep_lwlock_let_go);
PG_FUNCTION_INFO_V1(test_sweep_lwlock_take);
PG_FUNCTION_INFO_V1(test_sweep_lwlock_new_tranche);

static void
init_locks(void *address)
{
	TestLocks  *test = address;

	test->all_held = test->let_go = false;
	pg_atomic_init_u32(&test->taken, 0);
	for (int i = 0; i < NUM_LOCKS; i++)
	{
		int			tranche = LWLockNewTrancheId();

		/* in a row, unless another library asks for one at this moment */
		if (i == 0)
			test->first_tranche = tranche;
		else if (tranche != test->first_tranche + i)
			elog(ERROR, "tranches are not in a row");
		LWLockInitialize(&test->locks[i].lock, tranche);
	}
}

static TestLocks *
attach(void)
{
	static TestLocks *test = NULL;
	bool		found;

	if (test != NULL)
		return test;
	test = GetNamedDSMSegment("test_sweep_lwlock", sizeof(TestLocks), init_locks, &found);
	for (int i = 0; i < NUM_LOCKS; i++)
	{
		MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

		LWLockRegisterTranche(test->first_tranche + i, psprintf("test_%04d", i));
		MemoryContextSwitchTo(old);
	}
	return test;
}

static void
check_range(int first, int last)
{
	if (first < 0 || last < first || last >= NUM_LOCKS)
		elog(ERROR, "locks are 0 to %d", NUM_LOCKS - 1);
}

/*
 * Wait until somebody is in the queue of a lock that we hold; if "told", also
 * until we are told to let it go.  Returns false if he has had it meanwhile, if
 * "taken" is not NULL but how often one was taken before.
 */
static bool
wait_for_waiter(TestLocks *test, LWLock *lock, bool told, const uint32 *taken)
{
	TimestampTz begin = GetCurrentTimestamp();

	/* interrupts are held off as long as locks are held */
	while (LWLockNewest(pg_atomic_read_u64(LWLockState(lock))) == INVALID_PROC_NUMBER ||
		   (told && !*(volatile bool *) &test->let_go))
	{
		if (taken && pg_atomic_read_u32(&test->taken) != *taken)
			return false;
		if (TimestampDifferenceExceeds(begin, GetCurrentTimestamp(), MAX_WAIT_MS))
		{
			test->all_held = false;
			elog(ERROR, "nobody has come for a lock, or it was not let go");
		}
		pg_usleep(100);
	}
	return true;
}

/*
 * test_sweep_lwlock_hand_over(first, last, ms, again)
 */
Datum
test_sweep_lwlock_hand_over(PG_FUNCTION_ARGS)
{
	int			first = PG_GETARG_INT32(0);
	int			last = PG_GETARG_INT32(1);
	int			ms = PG_GETARG_INT32(2);
	int			again = PG_GETARG_INT32(3);
	TestLocks  *test = attach();
	int			overtook = 0;

	check_range(first, last);
	if (last - first >= MOST_HELD)
		elog(ERROR, "at most %d locks at once", MOST_HELD);

	for (int i = first; i <= last; i++)
		LWLockAcquire(&test->locks[i].lock, LW_EXCLUSIVE);
	test->let_go = false;
	test->all_held = true;
	for (int i = first; i <= last; i++)
	{
		LWLock	   *lock = &test->locks[i].lock;
		uint32		taken = 0;

		for (int tries = again;; tries--)
		{
			if (!wait_for_waiter(test, lock, ms < 0, tries < again ? &taken : NULL))
			{
				LWLockRelease(lock);
				break;
			}
			if (tries < again)
				overtook++;
			if (ms > 0)
				pg_usleep(ms * 1000L);
			if (i == last && tries == 0)
				test->all_held = false;
			test->let_go = false;
			taken = pg_atomic_read_u32(&test->taken);
			LWLockRelease(lock);

			/* before who was woken is on a CPU */
			if (tries == 0 || !LWLockConditionalAcquire(lock, LW_EXCLUSIVE))
				break;
		}
	}
	test->all_held = false;
	PG_RETURN_INT32(overtook);
}

/*
 * test_sweep_lwlock_held()
 */
Datum
test_sweep_lwlock_held(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(*(volatile bool *) &attach()->all_held);
}

/*
 * test_sweep_lwlock_let_go()
 */
Datum
test_sweep_lwlock_let_go(PG_FUNCTION_ARGS)
{
	attach()->let_go = true;
	PG_RETURN_VOID();
}

/*
 * test_sweep_lwlock_take(first, last, mode, times)
 */
Datum
test_sweep_lwlock_take(PG_FUNCTION_ARGS)
{
	int			first = PG_GETARG_INT32(0);
	int			last = PG_GETARG_INT32(1);
	char	   *mode = text_to_cstring(PG_GETARG_TEXT_PP(2));
	int			times = PG_GETARG_INT32(3);
	bool		until_free = strcmp(mode, "wait until free") == 0;
	bool		shared = strcmp(mode, "shared") == 0;
	TestLocks  *test = attach();
	volatile int work = 0;
	int64		slept = 0;

	check_range(first, last);
	if (!until_free && !shared && strcmp(mode, "exclusive") != 0)
		elog(ERROR, "there is no mode \"%s\"", mode);

	for (int t = 0; t < times; t++)
	{
		CHECK_FOR_INTERRUPTS();
		for (int i = first; i <= last; i++)
		{
			LWLock	   *lock = &test->locks[i].lock;
			bool		held = true;

			if (until_free)
			{
				held = LWLockAcquireOrWait(lock, LW_EXCLUSIVE);
				slept += !held;
			}
			else
				slept += !LWLockAcquire(lock, shared ? LW_SHARED : LW_EXCLUSIVE);

			/* for others to find it taken */
			for (int k = 0; k < 100; k++)
				work = work + k;
			pg_atomic_fetch_add_u32(&test->taken, 1);
			if (held)
				LWLockRelease(lock);
		}
	}
	PG_RETURN_INT64(slept);
}

/*
 * test_sweep_lwlock_new_tranche(name)
 */
Datum
test_sweep_lwlock_new_tranche(PG_FUNCTION_ARGS)
{
	int			tranche = LWLockNewTrancheId();

	LWLockRegisterTranche(tranche,
						  MemoryContextStrdup(TopMemoryContext,
											  text_to_cstring(PG_GETARG_TEXT_PP(0))));
	PG_RETURN_INT32(tranche);
}
