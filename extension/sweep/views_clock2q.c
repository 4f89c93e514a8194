/*-------------------------------------------------------------------------
 *
 * extension/sweep/views_clock2q.c
 *	  The SQL function that shows strategy "clock2q".
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
 * Behind view pg_sweep_clock2q: one row, none if pg_sweep cannot work on this
 * server.
 */
Datum
pg_sweep_get_clock2q(PG_FUNCTION_ARGS)
{
	PgSweepRow	row = {0};
	PgSweepClock2q *c;
	PgSweepC2qCounters count;
	const uint64 *base;
	uint64		judge;
	uint64		fill;

	InitMaterializedSRF(fcinfo, 0);
	if (pgsweep_state() != PGSWEEP_STATE_OK)
		return (Datum) 0;

	LWLockAcquire(PgSweep->lock, LW_SHARED);
	pgsweep_sum_clock2q(&count);
	base = (const uint64 *) &PgSweepPool->c2q_base;
	for (int i = 0; i < PGSWEEP_NUM_C2Q_COUNTERS; i++)
		((uint64 *) &count)[i] -= base[i];
	LWLockRelease(PgSweep->lock);

	/* in this order: the filling hand, which is ahead, moves on meanwhile */
	c = &PgSweepPool->whole_probation.c2q;
	judge = pgsweep_read_u64(&c->judge);
	fill = pgsweep_read_u64(&c->fill);

	put(&row, Int32GetDatum(pg_atomic_read_u32(&c->length)));
	put(&row, Int32GetDatum(c->least));
	put(&row, Int32GetDatum(c->most));
	put(&row, Int32GetDatum((int32) Min(fill > judge ? fill - judge : 0, c->num_buffers)));
	put(&row, Int32GetDatum(c->window));
	put(&row, Int32GetDatum(c->num_sets * PGSWEEP_C2Q_WAYS));
	put(&row, BoolGetDatum(pgsweep_first_lap(&PgSweepPool->whole_probation)));
	put_int8(&row, count.entered);
	put_int8(&row, count.windows);
	put_int8(&row, count.judged);
	put_int8(&row, count.stayed);
	put_int8(&row, count.victims[PGSWEEP_C2Q_PROBATION]);
	put_int8(&row, count.victims[PGSWEEP_C2Q_MAIN]);
	put_int8(&row, count.returned[PGSWEEP_C2Q_PROBATION]);
	put_int8(&row, count.returned_soon[PGSWEEP_C2Q_PROBATION]);
	put_int8(&row, count.returned[PGSWEEP_C2Q_MAIN]);
	put_int8(&row, count.returned_soon[PGSWEEP_C2Q_MAIN]);
	pgsweep_store_row(fcinfo, &row);
	return (Datum) 0;
}
