/*-------------------------------------------------------------------------
 *
 * test/lwlock/test_lwlock/hammer.c
 *	  All ways of acquiring and releasing LWLocks, at random, as fast as possible.
 *
 * An exclusive holder adds one to a plain counter: two holders at once would lose
 * a count.  A shared holder must see the counter unchanged.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"

#include "test_lwlock.h"

/* One hold in this many gives up its CPU: others really must wait */
#define NAP_ONE_IN		100
#define NAP_US			50

PG_FUNCTION_INFO_V1(test_lwlock_hammer);
PG_FUNCTION_INFO_V1(test_lwlock_hammered);

static uint32
random_below(uint32 n)
{
	return (uint32) pg_prng_uint64_range(&pg_global_prng_state, 0, n - 1);
}

static void
hold_for_a_while(void)
{
	if (random_below(NAP_ONE_IN) == 0)
		pg_usleep(NAP_US);
}

/*
 * With the lock held exclusively: count, and perhaps wake the waiters for the
 * variable.
 */
static void
add_one(int number)
{
	volatile uint64 *counter = &test_shared->counters[number];
	uint64		before = *counter;

	hold_for_a_while();
	if (random_below(4) == 0)
		LWLockUpdateVar(&test_shared->locks[number].lock, &test_shared->vars[number],
						before + 1);
	*counter = before + 1;
	pg_atomic_fetch_add_u64(&test_shared->total, 1);
}

static bool
stands_still(int number)
{
	volatile uint64 *counter = &test_shared->counters[number];
	uint64		before = *counter;

	hold_for_a_while();
	return *counter == before;
}

static void
release_somehow(LWLock *lock, LWLockMode mode)
{
	if (random_below(4) == 0)
	{
		LWLockDisown(lock);
		LWLockReleaseDisowned(lock, mode);
	}
	else
		LWLockRelease(lock);
}

/*
 * Returns false if the counter changed under a shared lock.
 */
static bool
strike(int number)
{
	LWLock	   *lock = &test_shared->locks[number].lock;
	pg_atomic_uint64 *var = &test_shared->vars[number];
	uint64		value;
	bool		still;

	switch (random_below(10))
	{
		case 0:
			if (LWLockConditionalAcquire(lock, LW_EXCLUSIVE))
			{
				add_one(number);
				release_somehow(lock, LW_EXCLUSIVE);
			}
			return true;
		case 1:
			if (LWLockAcquireOrWait(lock, LW_EXCLUSIVE))
			{
				add_one(number);
				release_somehow(lock, LW_EXCLUSIVE);
			}
			return true;
		case 2:
			(void) LWLockWaitForVar(lock, var, pg_atomic_read_u64(var), &value);
			return true;
		case 3:
			LWLockAcquire(lock, LW_EXCLUSIVE);
			add_one(number);
			LWLockReleaseClearVar(lock, var, 0);
			return true;
		case 4:
		case 5:
		case 6:
			LWLockAcquire(lock, LW_SHARED);
			still = stands_still(number);
			release_somehow(lock, LW_SHARED);
			return still;
		default:
			LWLockAcquire(lock, LW_EXCLUSIVE);
			add_one(number);
			release_somehow(lock, LW_EXCLUSIVE);
			return true;
	}
}

Datum
test_lwlock_hammer(PG_FUNCTION_ARGS)
{
	test_require_shared();
	for (int i = 0; i < PG_GETARG_INT32(0); i++)
	{
		int			number = random_below(TEST_NUM_LOCKS);

		CHECK_FOR_INTERRUPTS();
		if (!strike(number))
			elog(ERROR, "lock %d was held shared and exclusively at once", number);
	}
	PG_RETURN_VOID();
}

Datum
test_lwlock_hammered(PG_FUNCTION_ARGS)
{
	Datum		values[2];
	uint64		sum = 0;

	test_require_shared();

	/* the lock also orders our read after the last write */
	for (int i = 0; i < TEST_NUM_LOCKS; i++)
	{
		LWLockAcquire(&test_shared->locks[i].lock, LW_SHARED);
		sum += test_shared->counters[i];
		LWLockRelease(&test_shared->locks[i].lock);
	}
	values[0] = Int64GetDatum(sum);
	values[1] = Int64GetDatum(pg_atomic_read_u64(&test_shared->total));
	return test_return_row(fcinfo, values);
}
