/*-------------------------------------------------------------------------
 *
 * extension/ring/views.c
 *	  The SQL function about rings.
 *
 * It returns no rows if pg_sweep is not active, or if the server lacks the
 * patch for writing out rings.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "feature.h"
#include "fmgr.h"
#include "funcapi.h"
#include "ring/ring.h"
#include "shared.h"
#include "sql.h"

PG_FUNCTION_INFO_V1(pg_sweep_get_ring);

/* Contexts of pg_stat_io */
static const char *const kind_names[] = {
	[PGSWEEP_RING_BULKWRITE] = "bulkwrite",
	[PGSWEEP_RING_VACUUM] = "vacuum",
};

StaticAssertDecl(lengthof(kind_names) == PGSWEEP_RING_NUM_KINDS, "a kind of ring has no name");

/*
 * Behind view pg_sweep_ring; one row per kind of ring.
 */
Datum
pg_sweep_get_ring(PG_FUNCTION_ARGS)
{
	PgSweepRingCounts counts[PGSWEEP_RING_NUM_KINDS];

	InitMaterializedSRF(fcinfo, 0);
	if (pgsweep_state() != PGSWEEP_STATE_OK || !pgsweep_feature_works(&pgsweep_ring_feature))
		return (Datum) 0;

	LWLockAcquire(PgSweep->lock, LW_SHARED);
	for (int kind = 0; kind < PGSWEEP_RING_NUM_KINDS; kind++)
		pgsweep_ring_get_counts(kind, counts[kind]);
	LWLockRelease(PgSweep->lock);

	for (int kind = 0; kind < PGSWEEP_RING_NUM_KINDS; kind++)
	{
		PgSweepRow	row = {0};

		put_text(&row, kind_names[kind]);
		for (int i = 0; i < PGSWEEP_RING_NANOSECONDS; i++)
			put_int8(&row, counts[kind][i]);
		put(&row, Float8GetDatum(counts[kind][PGSWEEP_RING_NANOSECONDS] / 1e6));

		pgsweep_store_row(fcinfo, &row);
	}
	return (Datum) 0;
}
