/*-------------------------------------------------------------------------
 *
 * views_ring.c
 *	  The SQL function about rings that are written out.
 *
 * It returns no rows where pg_sweep can do nothing, or the server lacks the
 * patch by which rings can be written out.
 *
 * IDENTIFICATION
 *	  extension/ring/views.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "pg_sweep.h"
#include "ring/ring.h"
#include "sql.h"

PG_FUNCTION_INFO_V1(pg_sweep_get_ring);

/*
 * Behind view pg_sweep_ring; a row for each kind of ring.
 */
Datum
pg_sweep_get_ring(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	PgSweepRingCounts counts[PGSWEEP_RING_NUM_KINDS];

	InitMaterializedSRF(fcinfo, 0);
	if (pgsweep_state() != PGSWEEP_STATE_OK || !pgsweep_has_ring_flush())
		return (Datum) 0;

	LWLockAcquire(PgSweep->lock, LW_SHARED);
	for (int kind = 0; kind < PGSWEEP_RING_NUM_KINDS; kind++)
		pgsweep_ring_get_counts(kind, counts[kind]);
	LWLockRelease(PgSweep->lock);

	for (int kind = 0; kind < PGSWEEP_RING_NUM_KINDS; kind++)
	{
		Row			row = {0};

		put_text(&row, pgsweep_ring_name(kind));
		for (int i = 0; i < PGSWEEP_RING_NANOSECONDS; i++)
			put_int8(&row, counts[kind][i]);
		put(&row, Float8GetDatum(counts[kind][PGSWEEP_RING_NANOSECONDS] / 1e6));

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, row.values, row.nulls);
	}
	return (Datum) 0;
}
