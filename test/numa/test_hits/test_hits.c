/*-------------------------------------------------------------------------
 *
 * test/numa/test_hits/test_hits.c
 *	  Counts all buffer hits of a process, beside a sampler of them.
 *
 * The exact count stands between core and the sampler under test: core calls it
 * at each hit, and it calls the sampler where core would have.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "common/pg_prng.h"
#include "executor/instrument.h"
#include "executor/spi.h"
#include "portability/instr_time.h"
#include "storage/hit_sample.h"
#include "utils/guc.h"

#include "test_module.h"

PG_MODULE_MAGIC_EXT(
					.name = "test_hits",
					.version = "1.0"
);

PG_FUNCTION_INFO_V1(test_hits_count);
PG_FUNCTION_INFO_V1(test_hits_loop);
PG_FUNCTION_INFO_V1(test_hits_of_core);

typedef struct BufferHits
{
	int64		hits;
	instr_time	time;
} BufferHits;

static BufferHits *counted;		/* by buffer id */
static HitSampler sampler;		/* under test */
static uint32 left_to_sampler;
static Buffer last;
static instr_time last_time;

static void
count_time(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	if (last != InvalidBuffer)
		INSTR_TIME_ACCUM_DIFF(counted[last - 1].time, now, last_time);
	last_time = now;
}

static uint32
count_hit(Buffer buffer)
{
	count_time();
	last = buffer;
	counted[buffer - 1].hits++;
	if (sampler != NULL && --left_to_sampler == 0)
		left_to_sampler = sampler(buffer);
	return 1;
}

/*
 * How far core's countdown had come is not known here.  The parameter tells the
 * mean distance.
 */
static uint32
first_distance(void)
{
	const char *every = GetConfigOption("pg_sweep.numa_sample_hits", true, false);
	int			mean = every != NULL ? atoi(every) : 0;

	if (mean == 0)
		return 0;
	return 1 + (uint32) floor(-log(1.0 - pg_prng_double(&pg_global_prng_state)) * mean);
}

Datum
test_hits_count(PG_FUNCTION_ARGS)
{
	char	   *statement = text_to_cstring(PG_GETARG_TEXT_PP(0));
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	int64		of_core;
	int64		sum = 0;
	int			result;

	InitMaterializedSRF(fcinfo, 0);
	counted = palloc0_array(BufferHits, NBuffers);
	last = InvalidBuffer;
	left_to_sampler = first_distance();

	SPI_connect();
	of_core = pgBufferUsage.shared_blks_hit;
	sampler = SampleHits(count_hit);
	PG_TRY();
	{
		result = SPI_execute(statement, false, 0);
		count_time();
	}
	PG_FINALLY();
	{
		SampleHits(sampler);
	}
	PG_END_TRY();
	of_core = pgBufferUsage.shared_blks_hit - of_core;
	if (result < 0)
		elog(ERROR, "SPI_execute: %s", SPI_result_code_string(result));
	SPI_finish();

	for (int i = 0; i < NBuffers; i++)
	{
		Datum		values[3];
		bool		nulls[3] = {0};

		if (counted[i].hits == 0)
			continue;
		sum += counted[i].hits;
		values[0] = Int32GetDatum(i);
		values[1] = Int64GetDatum(counted[i].hits);
		values[2] = Float8GetDatum(INSTR_TIME_GET_DOUBLE(counted[i].time));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	if (sum != of_core)
		elog(ERROR, "sampled %lld of %lld hits", (long long) sum, (long long) of_core);
	pfree(counted);
	return (Datum) 0;
}

static void
read_random_block(Relation rel, BlockNumber blocks)
{
	ReleaseBuffer(ReadBuffer(rel, pg_prng_uint64_range(&pg_global_prng_state, 0, blocks - 1)));
}

Datum
test_hits_loop(PG_FUNCTION_ARGS)
{
	Relation	often_rel = test_open_relation(PG_GETARG_OID(0), AccessShareLock);
	Relation	once_rel = test_open_relation(PG_GETARG_OID(1), AccessShareLock);
	int32		often = PG_GETARG_INT32(2);
	int64		times = PG_GETARG_INT64(3);
	BlockNumber often_blocks = RelationGetNumberOfBlocks(often_rel);
	BlockNumber once_blocks = RelationGetNumberOfBlocks(once_rel);

	for (int64 i = 0; i < times; i++)
	{
		CHECK_FOR_INTERRUPTS();
		for (int32 k = 0; k < often; k++)
			read_random_block(often_rel, often_blocks);
		read_random_block(once_rel, once_blocks);
	}
	relation_close(often_rel, AccessShareLock);
	relation_close(once_rel, AccessShareLock);
	PG_RETURN_VOID();
}

Datum
test_hits_of_core(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(pgBufferUsage.shared_blks_hit);
}
