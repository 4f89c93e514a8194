/*-------------------------------------------------------------------------
 *
 * test/sweep/measure_sweep/measure_sweep.c
 *	  Allocates buffer victims in a loop inside the server.
 *
 * A test-only extension that measures the cost of one call of StrategyGetBuffer().
 * It uses only core's own functions, so the same source measures any PostgreSQL
 * 18, patched or not.
 *
 * What a loop turn does, and why it is harmless
 * ---------------------------------------------
 * StrategyGetBuffer() returns an unpinned buffer with its header locked and a
 * usage count of 0.  A real caller would pin it, write it out if dirty, and
 * give it to another page.  The loop only gives it back: it writes the state word
 * that it got, with another usage count, which releases the header lock.
 *
 * - The buffer is never pinned, so no private reference count, no resource
 *	 owner and no abort handling is involved.
 * - Tag and flags (valid, dirty, ...) stay as they were.  If the buffer holds a
 *	 page, the page stays there, findable and intact; if it is dirty it stays
 *	 dirty, to be written by the same processes as before.  Only its usage
 *	 count differs, which is a hint.
 * - While the header is locked no process may change the state (buf_internals.h),
 *	 so the word is still the current one when it is written.
 * - No error can be raised between the call and the unlocking.
 *
 * A buffer taken from core's freelist does not go back there.  It is as if it
 * had been used and invalidated without being freed: the sweep
 * finds it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/latch.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "measure_sweep.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

PG_MODULE_MAGIC_EXT(
					.name = "measure_sweep",
					.version = "1.0"
);

/*
 * Allocations between two looks at the clock.  A look costs about 25 ns, which is
 * 0.006 ns per allocation.  At 200 ns per allocation, the loop still stops within a
 * millisecond of its time.
 */
#define ALLOCATIONS_PER_CLOCK_CHECK 4096

/* The wait for start_at sleeps until this long before it, then spins. */
#define SPIN_BEFORE_START_MS 5

/*
 * Limit for holding the spinlock: far below the minute after which a process that
 * wants it reports it as stuck and ends the server.
 */
#define MAX_HOLD_MS 5000

/* A start_at further away than this is an error. */
#define MAX_START_WAIT_MS 60000

PG_FUNCTION_INFO_V1(measure_sweep_run);
PG_FUNCTION_INFO_V1(measure_sweep_exact);
PG_FUNCTION_INFO_V1(measure_sweep_preset);
PG_FUNCTION_INFO_V1(measure_sweep_drain_freelist);
PG_FUNCTION_INFO_V1(measure_sweep_hold_freelist_lock);

/*
 * Wait until start_at.  Returns the delay in nanoseconds.
 */
static int64
wait_for_start(TimestampTz start_at)
{
	long		wait_ms;

	wait_ms = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), start_at);
	if (wait_ms > MAX_START_WAIT_MS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("start_at is more than %d seconds in the future",
						MAX_START_WAIT_MS / 1000)));

	while (wait_ms > SPIN_BEFORE_START_MS)
	{
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 wait_ms - SPIN_BEFORE_START_MS,
						 PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		wait_ms = TimestampDifferenceMilliseconds(GetCurrentTimestamp(),
												  start_at);
	}

	for (;;)
	{
		TimestampTz now = GetCurrentTimestamp();

		if (now >= start_at)
			return (now - start_at) * 1000;
	}
}

/*
 * measure_sweep_run - allocate for a number of allocations or a time, measured
 */
Datum
measure_sweep_run(PG_FUNCTION_ARGS)
{
	uint32		usage_bits;
	int64		max_allocations = PG_INT64_MAX;
	int64		max_ns = PG_INT64_MAX;
	int64		late_ns = 0;
	int64		done = 0;
	instr_time	start;
	instr_time	elapsed;
	TupleDesc	tupdesc;
	Datum		values[3];
	bool		nulls[3] = {0};

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("usage must not be null")));
	usage_bits = usage_to_bits(PG_GETARG_INT32(0));

	if (PG_ARGISNULL(1) && PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("either max_allocations or duration_ms must be given")));
	if (!PG_ARGISNULL(1))
		max_allocations = PG_GETARG_INT64(1);
	if (!PG_ARGISNULL(2))
		max_ns = (int64) PG_GETARG_INT32(2) * 1000000;
	if (max_allocations <= 0 || max_ns <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("max_allocations and duration_ms must be greater than zero")));

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	if (!PG_ARGISNULL(3))
		late_ns = wait_for_start(PG_GETARG_TIMESTAMPTZ(3));

	INSTR_TIME_SET_CURRENT(start);
	for (;;)
	{
		int64		turn = Min(max_allocations - done,
							   ALLOCATIONS_PER_CLOCK_CHECK);

		cycle_victims(turn, usage_bits);
		done += turn;

		INSTR_TIME_SET_CURRENT(elapsed);
		INSTR_TIME_SUBTRACT(elapsed, start);
		if (done >= max_allocations ||
			INSTR_TIME_GET_NANOSEC(elapsed) >= max_ns)
			break;

		CHECK_FOR_INTERRUPTS();
	}

	values[0] = Int64GetDatum(done);
	values[1] = Int64GetDatum(INSTR_TIME_GET_NANOSEC(elapsed));
	values[2] = Int64GetDatum(late_ns);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, nulls)));
}

/*
 * measure_sweep_exact - allocate a number of victims, and nothing else
 *
 * The bench of instructions finds this function by its name.
 */
Datum
measure_sweep_exact(PG_FUNCTION_ARGS)
{
	int64		allocations = PG_GETARG_INT64(0);
	uint32		usage_bits = usage_to_bits(PG_GETARG_INT32(1));

	if (allocations < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("allocations must not be negative")));

	cycle_victims(allocations, usage_bits);

	PG_RETURN_VOID();
}

/*
 * measure_sweep_preset - set the usage count of every unpinned buffer
 */
Datum
measure_sweep_preset(PG_FUNCTION_ARGS)
{
	uint32		usage_bits = usage_to_bits(PG_GETARG_INT32(0));
	int64		changed = 0;

	for (int i = 0; i < NBuffers; i++)
	{
		BufferDesc *buf = GetBufferDescriptor(i);
		uint32		buf_state = LockBufHdr(buf);

		if (BUF_STATE_GET_REFCOUNT(buf_state) == 0)
		{
			buf_state &= ~BUF_USAGECOUNT_MASK;
			buf_state |= usage_bits;
			changed++;
		}
		UnlockBufHdr(buf, buf_state);
	}

	PG_RETURN_INT64(changed);
}

/*
 * measure_sweep_drain_freelist - take every buffer off core's freelist
 *
 * While core's freelist has entries, core takes victims from there and not by the
 * sweep; a measurement of the sweep must begin after that.  The list holds at most
 * the pool, so NBuffers allocations empty it.  have_free_buffer() may stay true: for
 * a replacement routine a buffer without a page may be free, and giving it back
 * leaves it so.
 */
Datum
measure_sweep_drain_freelist(PG_FUNCTION_ARGS)
{
	int64		drained = 0;

	while (drained < NBuffers && have_free_buffer())
	{
		cycle_victims(1, 0);
		drained++;
		CHECK_FOR_INTERRUPTS();
	}

	PG_RETURN_INT64(drained);
}

/*
 * measure_sweep_hold_freelist_lock - hold the spinlock of core's freelist
 *
 * A process that allocates meanwhile does not take that lock.  The lock is the first
 * member of "Buffer Strategy Status" in pg_shmem_allocations.  The caller passes the
 * size from that view, because the structure is private to freelist.c.
 *
 * Spinlocks must be held for a few instructions only; this is an exception for
 * tests.  Processes that want the lock sleep between their tries.
 */
Datum
measure_sweep_hold_freelist_lock(PG_FUNCTION_ARGS)
{
	int64		size = PG_GETARG_INT64(0);
	int32		hold_ms = PG_GETARG_INT32(1);
	slock_t    *lock;
	bool		found;
	instr_time	start;
	instr_time	elapsed;

	if (hold_ms < 0 || hold_ms > MAX_HOLD_MS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the lock can be held for 0 to %d ms", MAX_HOLD_MS)));

	/* an error if the size differs */
	lock = ShmemInitStruct("Buffer Strategy Status", size, &found);
	if (!found)
		elog(ERROR, "the freelist's structure was not found");

	SpinLockAcquire(lock);
	INSTR_TIME_SET_CURRENT(start);
	do
	{
		pg_usleep(1000);
		INSTR_TIME_SET_CURRENT(elapsed);
		INSTR_TIME_SUBTRACT(elapsed, start);
	} while (INSTR_TIME_GET_MILLISEC(elapsed) < hold_ms);
	SpinLockRelease(lock);

	PG_RETURN_VOID();
}
