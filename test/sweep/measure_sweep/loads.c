/*-------------------------------------------------------------------------
 *
 * test/sweep/measure_sweep/loads.c
 *	  Allocates victims in a loop, and loads a page into each.
 *
 * For strategies that want to know of loads, and for others beside them.  A turn
 * of the loop is what replacement sees of a miss: a victim, the tag and the usage
 * count that its buffer gets, and the call that tells of the load.  It is neither
 * the mapping table nor its locks, pins, nor a read.  All of these would cost the
 * same with any strategy, and hide what differs.
 *
 * The pages are made up.  They are in no tablespace, have no contents, and are
 * not in the mapping table.  A process that evicts one of them by core's way
 * fails, as it does not find it there.  So none is in the pool while another
 * process may allocate:
 *
 * - The loops of all sessions begin when the last one has come, and has evicted
 *	 the real pages.
 * - A real page that comes nevertheless is left alone, as in measure_sweep_run().
 * - When the last session has left its loop, it frees all buffers that have
 *	 made-up pages.  The others wait for that.
 *
 * Other sessions must be idle meanwhile, and autovacuum must be off.
 *
 * Returns of pages
 * ----------------
 * Three of four pages are new.  The fourth is one that has left, as many
 * allocations ago as an eighth of the pool has buffers: within what "clock2q"
 * remembers, which is a half of the pool.  Of the misses of two recorded loads (a
 * pool of a tenth of the pages), 36 and 14 % are of pages that it remembers
 * (bench/policies/player.c prints that).  A strategy that does not look at tags
 * does not see this.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/dsm_registry.h"
#include "storage/ipc.h"
#include "storage/spin.h"
#if __has_include("storage/sweep_hooks.h")
#include "storage/sweep_hooks.h"
#define HAVE_SWEEP_HOOKS
#endif
#include "measure_sweep.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(measure_sweep_loads);

/* Of these pages, one has been in the pool before; a power of 2 */
#define LOADS_PER_RETURN	4

/* A page returns after this part of the pool's number of allocations */
#define RETURN_PART			8

/* As in measure_sweep_run(); a shorter turn while the pool is warmed */
#define TURN				4096
#define WARM_TURN			64

/* How long sessions wait for each other */
#define MAX_WAIT_MS			60000
#define LOOK_AGAIN_US		50

/*
 * Sessions that run their loops together.  In shared memory, and zero at first.
 */
typedef struct Meeting
{
	slock_t		mutex;
	int			processes;		/* of whom it is, as the first one says */
	int			arrived;
	bool		begun;			/* all have */
	int			warm;			/* have done their warm-up */
	TimestampTz start_at;		/* 0: not all have */
	int			left;
	uint32		over;			/* meetings that are over */
} Meeting;

/* What one session does in its loop */
typedef struct Loop
{
	uint32		usage_bits;
	bool		tell;
	uint32	   *gone;			/* the last victims' pages, a ring */
	uint32		num_gone;
	uint32		at;				/* the oldest of them */
	uint32		next;			/* new page */
	int64		loads;
} Loop;

/* A number that no page has */
#define NO_PAGE				PG_UINT32_MAX

static const RelFileLocator nowhere = {InvalidOid, InvalidOid, InvalidOid};

static inline bool
is_made_up(const BufferDesc *buf, uint32 state)
{
	return (state & BM_TAG_VALID) && buf->tag.spcOid == InvalidOid;
}

/* ---- the loop ---- */

static pg_noinline void
tell_load(BufferDesc *buf)
{
#ifdef HAVE_SWEEP_HOOKS
	GetBufferReplacement()->loaded(buf, NULL);
#endif
}

/*
 * Which page is loaded, after this one has left: the oldest of those that we
 * remember, or a new one.
 */
static inline uint32
next_page(Loop *loop, uint32 left)
{
	uint32		page = NO_PAGE;

	if (loop->at % LOADS_PER_RETURN == 0)
		page = loop->gone[loop->at];
	loop->gone[loop->at] = left;
	if (++loop->at == loop->num_gone)
		loop->at = 0;
	return page != NO_PAGE ? page : loop->next++;
}

/*
 * The victim is not pinned while its load is told of, as core's is.  A pin would
 * be two atomic operations more for any strategy.  Another process could take the
 * buffer meanwhile, and change its tag: that page's hash would be a wrong one.
 */
static inline void
allocate_and_load(Loop *loop)
{
	uint32		state;
	bool		from_ring;
	BufferDesc *buf = StrategyGetBuffer(NULL, &state, &from_ring);
	bool		made_up = is_made_up(buf, state);

	if (unlikely((state & BM_TAG_VALID) && !made_up))
	{
		UnlockBufHdr(buf, state | loop->usage_bits);
		return;
	}
	InitBufferTag(&buf->tag, &nowhere, MAIN_FORKNUM,
				  next_page(loop, made_up ? buf->tag.blockNum : NO_PAGE));
	UnlockBufHdr(buf, state | BM_TAG_VALID | loop->usage_bits);
	if (loop->tell)
		tell_load(buf);
	loop->loads++;
}

static inline void
run_loop(Loop *loop, int64 turns)
{
	for (int64 i = 0; i < turns; i++)
		allocate_and_load(loop);
}

/* ---- the meeting ---- */

static void
make_meeting(void *memory)
{
	memset(memory, 0, sizeof(Meeting));
	SpinLockInit(&((Meeting *) memory)->mutex);
}

/*
 * Free the buffers that have made-up pages.  As core does it, but for the mapping
 * table and the freelist.
 */
static void
free_made_up(void)
{
	for (int i = 0; i < NBuffers; i++)
	{
		BufferDesc *buf = GetBufferDescriptor(i);
		uint32		state = LockBufHdr(buf);

		if (is_made_up(buf, state))
		{
			ClearBufferTag(&buf->tag);
			state &= ~(BUF_FLAG_MASK | BUF_USAGECOUNT_MASK);
		}
		UnlockBufHdr(buf, state);
	}
}

/*
 * Come to the meeting, if it is one of so many sessions.  Returns whether all have
 * come.
 */
static bool
arrive(Meeting *meeting, int processes)
{
	int			number;
	int			wanted;

	SpinLockAcquire(&meeting->mutex);
	if (meeting->arrived == 0)
		meeting->processes = processes;
	wanted = meeting->processes;
	number = meeting->arrived + 1;
	if (wanted == processes && number <= processes)
		meeting->arrived = number;
	SpinLockRelease(&meeting->mutex);
	if (wanted != processes)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("this session is one of %d, another one of %d", processes, wanted)));
	if (number > processes)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("this is session %d of %d", number, processes)));
	return number == processes;
}

/*
 * Wait until all have come.  The last one empties the pool before the others go on.
 */
static void
wait_for_others(Meeting *meeting, bool last)
{
	TimestampTz give_up = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), MAX_WAIT_MS);
	bool		begun = last;

	if (last)
	{
		int32		evicted;
		int32		flushed;
		int32		skipped;

		EvictAllUnpinnedBuffers(&evicted, &flushed, &skipped);
		SpinLockAcquire(&meeting->mutex);
		meeting->begun = true;
		SpinLockRelease(&meeting->mutex);
	}
	while (!begun)
	{
		CHECK_FOR_INTERRUPTS();
		if (GetCurrentTimestamp() > give_up)
			ereport(ERROR,
					(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
					 errmsg("another session did not come")));
		pg_usleep(LOOK_AGAIN_US);
		SpinLockAcquire(&meeting->mutex);
		begun = meeting->begun;
		SpinLockRelease(&meeting->mutex);
	}
}

/*
 * When did the measurement begin?  0: not all have warmed the pool.
 */
static TimestampTz
started(Meeting *meeting, bool now_warm)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz start_at;

	SpinLockAcquire(&meeting->mutex);
	meeting->warm += now_warm;
	if (meeting->start_at == 0 && meeting->warm >= meeting->arrived - meeting->left)
		meeting->start_at = now;
	start_at = meeting->start_at;
	SpinLockRelease(&meeting->mutex);
	return start_at;
}

/*
 * Returns the number of the meeting that is left: when it is over, no made-up page
 * is in the pool.  The last one frees them.  By an error, a session may leave
 * before the start: then another one may come instead.
 */
static uint32
leave(Meeting *meeting)
{
	uint32		number;
	bool		last = false;

	SpinLockAcquire(&meeting->mutex);
	number = meeting->over;
	if (!meeting->begun)
		meeting->arrived--;
	else
		last = ++meeting->left == meeting->arrived;
	SpinLockRelease(&meeting->mutex);
	if (!last)
		return number;

	free_made_up();
	SpinLockAcquire(&meeting->mutex);
	meeting->arrived = meeting->warm = meeting->left = 0;
	meeting->begun = false;
	meeting->start_at = 0;
	meeting->over++;
	SpinLockRelease(&meeting->mutex);
	return number;
}

static void
leave_by_error(int code, Datum arg)
{
	(void) leave((Meeting *) DatumGetPointer(arg));
}

static void
wait_for_end(Meeting *meeting, uint32 number)
{
	uint32		over;

	for (;;)
	{
		SpinLockAcquire(&meeting->mutex);
		over = meeting->over;
		SpinLockRelease(&meeting->mutex);
		if (over != number)
			return;
		pg_usleep(LOOK_AGAIN_US);
	}
}

/* ---- the function ---- */

static void
prepare(Loop *loop, int processes)
{
	loop->num_gone = Max(NBuffers / RETURN_PART / processes, LOADS_PER_RETURN);
	loop->gone = palloc(loop->num_gone * sizeof(uint32));
	memset(loop->gone, 0xff, loop->num_gone * sizeof(uint32));
	Assert(loop->gone[0] == NO_PAGE);

	/* another session's pages are others, and so are those of a former run */
	loop->next = pg_prng_uint32(&pg_global_prng_state);
}

/*
 * Allocate and load for so many laps of the pool, all sessions together, and until
 * the last one has done its part.  Returns the delay since then.
 */
static int64
warm_up(Loop *loop, Meeting *meeting, int32 laps, int processes)
{
	int64		wanted = (int64) laps * NBuffers / processes;
	TimestampTz start_at;

	for (int64 done = 0; done < wanted; done += TURN)
	{
		run_loop(loop, TURN);
		CHECK_FOR_INTERRUPTS();
	}
	start_at = started(meeting, true);
	while (start_at == 0)
	{
		run_loop(loop, WARM_TURN);
		CHECK_FOR_INTERRUPTS();
		start_at = started(meeting, false);
	}
	return (GetCurrentTimestamp() - start_at) * 1000;
}

/*
 * Allocate and load for a number of allocations or a time.
 */
static void
measure(Loop *loop, int64 max_allocations, int64 max_ns, Datum *values)
{
	int64		done = 0;
	instr_time	start;
	instr_time	elapsed;

	loop->loads = 0;
	INSTR_TIME_SET_CURRENT(start);
	for (;;)
	{
		int64		turn = Min(max_allocations - done, TURN);

		run_loop(loop, turn);
		done += turn;

		INSTR_TIME_SET_CURRENT(elapsed);
		INSTR_TIME_SUBTRACT(elapsed, start);
		if (done >= max_allocations || INSTR_TIME_GET_NANOSEC(elapsed) >= max_ns)
			break;
		CHECK_FOR_INTERRUPTS();
	}
	values[0] = Int64GetDatum(done);
	values[1] = Int64GetDatum(loop->loads);
	values[2] = Int64GetDatum(INSTR_TIME_GET_NANOSEC(elapsed));
}

/*
 * measure_sweep_loads - allocate and load, together with other sessions
 */
Datum
measure_sweep_loads(PG_FUNCTION_ARGS)
{
	Loop		loop = {.usage_bits = usage_to_bits(PG_GETARG_INT32(0)),.tell = PG_GETARG_BOOL(1)};
	int32		processes = PG_GETARG_INT32(2);
	int64		max_allocations = PG_GETARG_INT64(3);
	int32		max_ms = PG_GETARG_INT32(4);
	int32		warm_laps = PG_GETARG_INT32(5);
	Meeting    *meeting;
	uint32		number;
	bool		found;
	bool		last;
	TupleDesc	tupdesc;
	Datum		values[4];
	bool		nulls[4] = {0};

	if (processes <= 0 || max_allocations <= 0 || warm_laps < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("processes and max_allocations must be greater than zero, and warm_laps at least zero")));
	if (max_ms <= 0 || max_ms > MAX_WAIT_MS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a loop may last for 1 to %d ms", MAX_WAIT_MS)));
#ifdef HAVE_SWEEP_HOOKS
	if (loop.tell && GetBufferReplacement() == NULL)
#else
	if (loop.tell)
#endif
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("there is no replacement routine to tell of loads")));
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	tupdesc = BlessTupleDesc(tupdesc);

	prepare(&loop, processes);
	meeting = GetNamedDSMSegment("measure_sweep", sizeof(Meeting), make_meeting, &found);
	last = arrive(meeting, processes);
	PG_ENSURE_ERROR_CLEANUP(leave_by_error, PointerGetDatum(meeting));
	{
		wait_for_others(meeting, last);
		values[3] = Int64GetDatum(warm_up(&loop, meeting, warm_laps, processes));
		measure(&loop, max_allocations, (int64) max_ms * 1000000, values);
	}
	PG_END_ENSURE_ERROR_CLEANUP(leave_by_error, PointerGetDatum(meeting));
	number = leave(meeting);
	wait_for_end(meeting, number);

	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}
