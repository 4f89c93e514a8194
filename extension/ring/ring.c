/*-------------------------------------------------------------------------
 *
 * extension/ring/ring.c
 *	  The feature "ring": writing out the dirty buffers of a ring early.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "feature.h"
#include "ring/ring.h"
#include "sql.h"

static const char *
ring_conflict(void)
{
	if (RingFlush == NULL || RingFlush == &pgsweep_ring_flush_routine)
		return NULL;
	return "another library writes out rings already";
}

static void
ring_install(void)
{
	RingFlush = &pgsweep_ring_flush_routine;
}

static void
ring_put_status(PgSweepRow *row)
{
	if (pgsweep_feature_works(&pgsweep_ring_feature))
		put(row, BoolGetDatum(pgsweep_ring_eager_flush));
	else
		put_null(row);
}

const PgSweepFeature pgsweep_ring_feature = {
	.patch = "ring-flush-hooks",
	.symbol = &RingFlush,
	.define_gucs = pgsweep_ring_define_gucs,
	.shmem_size = pgsweep_ring_shmem_size,
	.shmem_init = pgsweep_ring_shmem_init,
	.conflict = ring_conflict,
	.install = ring_install,
	.reset = pgsweep_ring_reset_counts,
	.put_status = ring_put_status,
};
