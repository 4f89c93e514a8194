/*-------------------------------------------------------------------------
 *
 * extension/sweep/views_clock2q.c
 *	  The SQL function that shows strategies with probation.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "feature.h"
#include "funcapi.h"
#include "sql.h"
#include "storage/bufmgr.h"
#include "sweep/probation.h"

PG_FUNCTION_INFO_V1(pg_sweep_get_clock2q);

/*
 * Sums over what a strategy divides the pool into.
 */
typedef struct Sums
{
	uint32		length;
	uint32		least;
	uint32		most;
	uint32		slots;			/* between the hands */
	uint32		window;
	bool		first_lap;
} Sums;

static void
add_probation(PgSweepProbation *p, Sums *sums)
{
	PgSweepClock2q *c = &p->c2q;

	/* in this order: the filling hand, which is ahead, moves on meanwhile */
	uint64		judge = pgsweep_read_u64(&c->judge);
	uint64		fill = pgsweep_read_u64(&c->fill);

	sums->length += pg_atomic_read_u32(&c->length);
	sums->least += c->least;
	sums->most += c->most;
	sums->slots += Min(fill > judge ? fill - judge : 0, c->num_buffers);
	sums->window += c->window;
	sums->first_lap |= pgsweep_first_lap(p);
}

static void
put_strategy(PgSweepRow *row, PgSweepStrategyId id, const PgSweepC2qCounters *count)
{
	const PgSweepClock2q *whole = &PgSweepPool->whole_probation.c2q;
	Sums		sums = {0};

	if (id == PGSWEEP_CLOCK2Q)
		add_probation(&PgSweepPool->whole_probation, &sums);
	else
		for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
			add_probation(&PgSweepPool->probation[i], &sums);

	put_text(row, pgsweep_strategy_name(id));
	put(row, Int32GetDatum(sums.length));
	put(row, Int32GetDatum(sums.least));
	put(row, Int32GetDatum(sums.most));
	put(row, Int32GetDatum(sums.slots));
	put(row, Int32GetDatum(sums.window));
	put(row, Int32GetDatum(whole->num_sets * PGSWEEP_C2Q_WAYS));
	put(row, BoolGetDatum(sums.first_lap));
	put_int8(row, count->entered);
	put_int8(row, count->windows);
	put_int8(row, count->judged);
	put_int8(row, count->stayed);
	put_int8(row, count->victims[PGSWEEP_C2Q_PROBATION]);
	put_int8(row, count->victims[PGSWEEP_C2Q_MAIN]);
	put_int8(row, count->returned[PGSWEEP_C2Q_PROBATION]);
	put_int8(row, count->returned_soon[PGSWEEP_C2Q_PROBATION]);
	put_int8(row, count->returned[PGSWEEP_C2Q_MAIN]);
	put_int8(row, count->returned_soon[PGSWEEP_C2Q_MAIN]);
}

/*
 * Behind view pg_sweep_clock2q: one row for each of the two strategies, none if
 * pg_sweep cannot work on this server.
 */
Datum
pg_sweep_get_clock2q(PG_FUNCTION_ARGS)
{
	static const PgSweepStrategyId ids[] = {PGSWEEP_CLOCK2Q, PGSWEEP_CLOCK2Q_PARTITIONED};

	InitMaterializedSRF(fcinfo, 0);
	if (pgsweep_state() != PGSWEEP_STATE_OK)
		return (Datum) 0;

	for (int i = 0; i < lengthof(ids); i++)
	{
		PgSweepRow	row = {0};
		int			kind = pgsweep_c2q_kind(ids[i]);
		PgSweepC2qCounters count;
		const uint64 *base = (const uint64 *) &PgSweepPool->c2q_base[kind];

		LWLockAcquire(PgSweep->lock, LW_SHARED);
		pgsweep_sum_clock2q(kind, &count);
		for (int k = 0; k < PGSWEEP_NUM_C2Q_COUNTERS; k++)
			((uint64 *) &count)[k] -= base[k];
		LWLockRelease(PgSweep->lock);

		put_strategy(&row, ids[i], &count);
		pgsweep_store_row(fcinfo, &row);
	}
	return (Datum) 0;
}
