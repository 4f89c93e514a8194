/*-------------------------------------------------------------------------
 *
 * extension/sweep/advice.c
 *	  The feature "advice": what a larger pool would read.
 *
 * advice.h has the rule.  Here is what it is told, and when: each page that core
 * says has been loaded, under any strategy, while pg_sweep.size_advice is on.
 *
 * A load of a page that is not sampled, into a buffer that had none, reads one
 * word of four bytes for its buffer, and writes nothing.  One of the others adds
 * to three shared counters at most.  In pools of 32 MB and less all loads are
 * such ones, in a pool of 16 GB it is one in 512.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "feature.h"
#include "fmgr.h"
#include "funcapi.h"
#include "shared.h"
#include "sql.h"
#include "storage/bufmgr.h"
#include "storage/shmem.h"
#include "sweep/advice.h"
#include "sweep/strategy.h"
#include "sweep/tag_hash.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(pg_sweep_get_size_advice);

/*
 * Sampled reads without which nothing is said.  The error of a ratio of 0.5 is
 * then 0.1, if they are of as many pages.
 */
#define LEAST_READS		100

/*
 * By how much of itself an expected number may be off although the sample is
 * right: what nine of ten runs of the traces in docs/design/0021 keep within, up to
 * twice the pool.  A strategy that learns from loads does so better in a larger pool:
 * it may read less than expected by the second number.
 */
#define MODEL_ERROR		0.07
#define MODEL_ERROR_LEARNING	0.12

/* The sizes that are shown, as multiples of the pool */
static const double sizes[] = {0.5, 1, 1.25, 1.5, 1.75, 2, 3};

typedef struct PgSweepAdviceShared
{
	/* Protected by PgSweep->lock */
	PgSweepAdviceCounts base;	/* at the last reset, or when it began */
	uint64		left_at_start;	/* when ghosts began to be kept */

	/*
	 * When the first page has left since, or 0.  Reads do not count before:
	 * the pool is not full.  Set once, by the process whose load that was.
	 */
	pg_atomic_uint64 began;

	PgSweepAdvice advice;
} PgSweepAdviceShared;

static PgSweepAdviceShared *shared = NULL;

/* pg_sweep.size_advice */
static bool size_advice = false;

/*
 * A sampled page has come, or left, or both.
 */
static pg_noinline void
tell_sampled(BufferDesc *buf, uint32 came, uint32 went)
{
	bool		count = pg_atomic_read_u64(&shared->began) != 0;

	/*
	 * Core has zeroed the pages of an extension before it tells them.  The
	 * buffer of one that will be read has what was in it.
	 */
	if (came != 0)
		pgsweep_advice_came(&shared->advice, came,
							count && !PageIsNew((Page) BufferGetBlock(BufferDescriptorGetBuffer(buf))));

	if (went != 0)
	{
		if (unlikely(!count))
		{
			uint64		zero = 0;

			pg_atomic_compare_exchange_u64(&shared->began, &zero, GetCurrentTimestamp());
		}
		pgsweep_advice_went(&shared->advice, went);
	}
}

/*
 * A page has been loaded.  One for a ring leaves the pool again at once: it is
 * not counted, and no ghost.  What it replaces has left.
 */
void
pgsweep_advice_tell(BufferDesc *buf, uint32 hash, bool ring)
{
	uint32	   *page = &shared->advice.page[buf->buf_id];
	uint32		came = ring ? 0 : pgsweep_advice_print(&shared->advice, hash);
	uint32		went = *page;

	if (likely((came | went) == 0))
		return;
	*page = came;
	tell_sampled(buf, came, went);
}

/*
 * Which pages are in the pool already?  Tags are read without the header lock:
 * one that changes meanwhile is a wrong print, and may become a wrong ghost.
 */
static void
look_at_pool(PgSweepAdvice *a)
{
	for (int i = 0; i < NBuffers; i++)
	{
		BufferDesc *buf = GetBufferDescriptor(i);
		BufferTag	tag = buf->tag;

		if (pg_atomic_read_u32(&buf->state) & BM_TAG_VALID)
			a->page[i] = pgsweep_advice_print(a, (uint32) pgsweep_hash_tag(&tag));
	}
}

/*
 * Learn, or stop.  The caller holds PgSweep->lock exclusively, or is the
 * postmaster.  What was counted before is not shown any longer.
 */
static void
turn(bool on)
{
	if (on)
	{
		pgsweep_advice_forget(&shared->advice);
		look_at_pool(&shared->advice);
		memset(&shared->base, 0, sizeof(shared->base));
		pgsweep_advice_add(&shared->base, &shared->advice);
		shared->left_at_start = shared->base.left;
		pg_atomic_write_u64(&shared->began, 0);
	}
	PgSweepPool->advise = on;
	pgsweep_activate(PGSWEEP_ACTIVE_ID(pgsweep_read_u64(&PgSweepPool->active)));
}

static Size
advice_shmem_size(void)
{
	return add_size(sizeof(PgSweepAdviceShared), mul_size(NBuffers, sizeof(uint32)));
}

static void
advice_shmem_init(void)
{
	bool		found;

	shared = ShmemInitStruct("pg_sweep size advice", advice_shmem_size(), &found);
	if (found)
		return;
	memset(shared, 0, sizeof(PgSweepAdviceShared));
	pg_atomic_init_u64(&shared->began, 0);
	pgsweep_advice_init(&shared->advice, NBuffers, (uint32 *) (shared + 1));
	PgSweepPool->advise = size_advice;
	pgsweep_activate(PGSWEEP_ACTIVE_ID(pgsweep_read_u64(&PgSweepPool->active)));
}

static void
advice_define_gucs(void)
{
	DefineCustomBoolVariable("pg_sweep.size_advice",
							 "Learns how much less a larger pool would read, for pg_sweep_size_advice.",
							 "Remembers a sample of the pages that leave the pool. Turning it on looks at each buffer once.",
							 &size_advice,
							 false,
							 PGC_SIGHUP,
							 0,
							 NULL, NULL, NULL);
}

static void
advice_apply_configuration(void)
{
	if (size_advice == PgSweepPool->advise)
		return;
	LWLockAcquire(PgSweep->lock, LW_EXCLUSIVE);
	turn(size_advice);
	LWLockRelease(PgSweep->lock);
}

/*
 * Ghosts stay, so what returns is seen from now on.
 */
static void
advice_reset(void)
{
	memset(&shared->base, 0, sizeof(shared->base));
	pgsweep_advice_add(&shared->base, &shared->advice);
}

/*
 * Since when reads have been counted, or 0.  The caller holds PgSweep->lock.
 */
static TimestampTz
learnt_since(void)
{
	TimestampTz began = (TimestampTz) pg_atomic_read_u64(&shared->began);

	if (!PgSweepPool->advise || began == 0)
		return 0;
	return Max(began, PgSweep->stats_reset);
}

static void
advice_put_status(PgSweepRow *row)
{
	bool		on;
	TimestampTz since;

	LWLockAcquire(PgSweep->lock, LW_SHARED);
	on = PgSweepPool->advise;
	since = learnt_since();
	LWLockRelease(PgSweep->lock);

	put(row, BoolGetDatum(on));
	if (since != 0)
		put(row, TimestampTzGetDatum(since));
	else
		put_null(row);
}

/* Does the active strategy remember what has left? */
static bool
strategy_learns(void)
{
	PgSweepStrategyId id = PGSWEEP_ACTIVE_ID(pgsweep_read_u64(&PgSweepPool->active));

	return pgsweep_strategies[id]->loaded != NULL;
}

/* How far the ratio may be up or down */
static double
bound(double size, const PgSweepAdviceAnswer *answer, double model, int sign)
{
	if (size == 1)
		return answer->ratio;
	return Min(Max(answer->ratio * (1 + model) + sign * answer->error, 0), 1);
}

/*
 * The columns of one size: reads a second, ratio, its bounds, note.
 */
static void
put_answer(PgSweepRow *row, double size, const PgSweepAdviceCounts *c, uint64 before,
		   double seconds)
{
	PgSweepAdviceAnswer answer = {0};
	double		now = (double) pgsweep_advice_reads(c) *
		((uint64) 1 << shared->advice.shift) / seconds;
	const char *note = NULL;

	if (size < 1)
		note = "unknown: hits are not seen";
	else if (pgsweep_advice_reads(c) < LEAST_READS ||
			 !pgsweep_advice_answer(&shared->advice, c, before, (size - 1) * NBuffers, &answer))
		note = psprintf("unknown: only " UINT64_FORMAT " sampled reads", pgsweep_advice_reads(c));

	if (note)
	{
		for (int i = 0; i < 4; i++)
			put_null(row);
		put_text(row, note);
		return;
	}

	put(row, Float8GetDatum(now * answer.ratio));
	put(row, Float8GetDatum(answer.ratio));
	if (answer.at_most)
		put_null(row);
	else
		put(row, Float8GetDatum(bound(size, &answer, strategy_learns() ? -MODEL_ERROR_LEARNING :
									  -MODEL_ERROR, -1)));
	put(row, Float8GetDatum(bound(size, &answer, MODEL_ERROR, 1)));
	put_text(row, answer.at_most ? "at most: has learnt for too short" : NULL);
}

/*
 * Behind view pg_sweep_size_advice: one row per size.
 */
Datum
pg_sweep_get_size_advice(PG_FUNCTION_ARGS)
{
	PgSweepAdviceCounts *c;
	TimestampTz since;
	uint64		before;
	double		seconds;
	const char *note = NULL;

	InitMaterializedSRF(fcinfo, 0);
	if (pgsweep_state() != PGSWEEP_STATE_OK)
		return (Datum) 0;

	c = palloc0(sizeof(PgSweepAdviceCounts));
	LWLockAcquire(PgSweep->lock, LW_SHARED);
	if (!PgSweepPool->advise)
		note = "unknown: pg_sweep.size_advice is off";
	since = learnt_since();
	pgsweep_advice_add(c, &shared->advice);
	pgsweep_advice_subtract(c, &shared->base);
	before = shared->base.left - shared->left_at_start;
	LWLockRelease(PgSweep->lock);

	if (note == NULL && since == 0)
		note = "no page has left the pool yet";
	seconds = Max(GetCurrentTimestamp() - since, 1) / 1e6;

	for (int i = 0; i < lengthof(sizes); i++)
	{
		PgSweepRow	row = {0};
		int64		buffers = (int64) (sizes[i] * NBuffers);

		put(&row, Float8GetDatum(sizes[i]));
		put_int8(&row, buffers);
		put_int8(&row, buffers * BLCKSZ);
		if (note)
		{
			for (int k = 0; k < 4; k++)
				put_null(&row);
			put_text(&row, note);
		}
		else
			put_answer(&row, sizes[i], c, before, seconds);
		pgsweep_store_row(fcinfo, &row);
	}
	return (Datum) 0;
}

const PgSweepFeature pgsweep_advice_feature = {
	.patch = "sweep-replacement-hooks",
	.symbol = (const void *) SetBufferReplacement,
	.define_gucs = advice_define_gucs,
	.shmem_size = advice_shmem_size,
	.shmem_init = advice_shmem_init,
	.apply_configuration = advice_apply_configuration,
	.reset = advice_reset,
	.put_status = advice_put_status,
};
