/*-------------------------------------------------------------------------
 *
 * test/lwlock/test_lwlock/tranches.c
 *	  LWLocks to be waited for, each in a tranche of its own.
 *
 * Core's own return values say whether and how often a process has slept, not
 * the counters of pg_sweep.  The locks are in dynamic shared memory: this part
 * needs no preloading.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/dsm_registry.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "test_lwlock.h"

#define NUM_LOCKS		1200

/* Locks that one process may hold at once; core has room for 200 */
#define MOST_HELD		150

#define MAX_WAIT_MS		60000

typedef struct TestLocks
{
	int			first_tranche;
	bool		all_held;		/* by test_lwlock_hand_over() */
	bool		let_go;			/* they may be released now */
	pg_atomic_uint32 taken;		/* by test_lwlock_take() */
	LWLockPadded locks[NUM_LOCKS];
} TestLocks;

PG_FUNCTION_INFO_V1(test_lwlock_hand_over);
PG_FUNCTION_INFO_V1(test_lwlock_held);
PG_FUNCTION_INFO_V1(test_lwlock_let_go);
PG_FUNCTION_INFO_V1(test_lwlock_take);
PG_FUNCTION_INFO_V1(test_lwlock_new_tranche);

static void
init_locks(void *address)
{
	TestLocks  *test = address;

	test->all_held = test->let_go = false;
	pg_atomic_init_u32(&test->taken, 0);
	for (int i = 0; i < NUM_LOCKS; i++)
	{
		int			tranche = LWLockNewTrancheId();

		/* consecutive, unless another library asks for one at this moment */
		if (i == 0)
			test->first_tranche = tranche;
		else if (tranche != test->first_tranche + i)
			elog(ERROR, "tranches are not consecutive");
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
	test = GetNamedDSMSegment("test_lwlock_tranches", sizeof(TestLocks), init_locks, &found);
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
 * Wait until a process is in the queue of a lock that we hold; if "told", also
 * until test_lwlock_let_go() is called.  "taken" is NULL or an earlier value of
 * the counter: if that has changed, the waiter has had the lock, and the result
 * is false.
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
			elog(ERROR, "no process has come for a lock, or it was not let go");
		}
		pg_usleep(100);
	}
	return true;
}

Datum
test_lwlock_hand_over(PG_FUNCTION_ARGS)
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

			/* before the woken process is on a CPU */
			if (tries == 0 || !LWLockConditionalAcquire(lock, LW_EXCLUSIVE))
				break;
		}
	}
	test->all_held = false;
	PG_RETURN_INT32(overtook);
}

Datum
test_lwlock_held(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(*(volatile bool *) &attach()->all_held);
}

Datum
test_lwlock_let_go(PG_FUNCTION_ARGS)
{
	attach()->let_go = true;
	PG_RETURN_VOID();
}

Datum
test_lwlock_take(PG_FUNCTION_ARGS)
{
	static const char *const modes[] = {
		[LW_EXCLUSIVE] = "exclusive",
		[LW_SHARED] = "shared",
		[LW_WAIT_UNTIL_FREE] = "wait until free",
	};
	int			first = PG_GETARG_INT32(0);
	int			last = PG_GETARG_INT32(1);
	LWLockMode	mode = test_find_name(modes, lengthof(modes), PG_GETARG_TEXT_PP(2), "mode");
	int			times = PG_GETARG_INT32(3);
	TestLocks  *test = attach();
	volatile int work = 0;
	int64		slept = 0;

	check_range(first, last);

	for (int t = 0; t < times; t++)
	{
		CHECK_FOR_INTERRUPTS();
		for (int i = first; i <= last; i++)
		{
			LWLock	   *lock = &test->locks[i].lock;
			bool		held = true;

			if (mode == LW_WAIT_UNTIL_FREE)
			{
				held = LWLockAcquireOrWait(lock, LW_EXCLUSIVE);
				slept += !held;
			}
			else
				slept += !LWLockAcquire(lock, mode);

			/* long enough for others to find it taken */
			for (int k = 0; k < 100; k++)
				work = work + k;
			pg_atomic_fetch_add_u32(&test->taken, 1);
			if (held)
				LWLockRelease(lock);
		}
	}
	PG_RETURN_INT64(slept);
}

Datum
test_lwlock_new_tranche(PG_FUNCTION_ARGS)
{
	int			tranche = LWLockNewTrancheId();

	LWLockRegisterTranche(tranche,
						  MemoryContextStrdup(TopMemoryContext,
											  text_to_cstring(PG_GETARG_TEXT_PP(0))));
	PG_RETURN_INT32(tranche);
}
