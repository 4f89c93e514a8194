/*-------------------------------------------------------------------------
 *
 * extension/ring/counts.c
 *	  Counters of laps through rings.
 *
 * A lap counts privately, and adds to the shared counters at its end.  That
 * is a dozen atomic operations on shared lines, next to at least one write
 * and mostly hundreds.  A table per process would cost memory for each
 * backend, and save nothing measurable.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "ring/ring.h"
#include "storage/shmem.h"

typedef struct PgSweepRingShared
{
	/* only grow */
	pg_atomic_uint64 counts[PGSWEEP_RING_NUM_KINDS][PGSWEEP_RING_NUM_COUNTS];

	/* their values at the last reset; protected by PgSweep->lock */
	PgSweepRingCounts base[PGSWEEP_RING_NUM_KINDS];
} PgSweepRingShared;

static PgSweepRingShared *shared = NULL;

Size
pgsweep_ring_shmem_size(void)
{
	return sizeof(PgSweepRingShared);
}

void
pgsweep_ring_shmem_init(void)
{
	bool		found;

	shared = ShmemInitStruct("pg_sweep ring", pgsweep_ring_shmem_size(), &found);
	if (found)
		return;
	memset(shared, 0, sizeof(PgSweepRingShared));
	for (int kind = 0; kind < PGSWEEP_RING_NUM_KINDS; kind++)
		for (int i = 0; i < PGSWEEP_RING_NUM_COUNTS; i++)
			pg_atomic_init_u64(&shared->counts[kind][i], 0);
}

void
pgsweep_ring_add_counts(PgSweepRingKind kind, const PgSweepRingCounts counts)
{
	for (int i = 0; i < PGSWEEP_RING_NUM_COUNTS; i++)
		if (counts[i] != 0)
			pg_atomic_fetch_add_u64(&shared->counts[kind][i], counts[i]);
}

/*
 * Counts since the last reset.  The caller holds PgSweep->lock.
 */
void
pgsweep_ring_get_counts(PgSweepRingKind kind, PgSweepRingCounts counts)
{
	for (int i = 0; i < PGSWEEP_RING_NUM_COUNTS; i++)
		counts[i] = pg_atomic_read_u64(&shared->counts[kind][i]) - shared->base[kind][i];
}

/*
 * Reset the counters.  The caller holds PgSweep->lock exclusively.
 */
void
pgsweep_ring_reset_counts(void)
{
	for (int kind = 0; kind < PGSWEEP_RING_NUM_KINDS; kind++)
		for (int i = 0; i < PGSWEEP_RING_NUM_COUNTS; i++)
			shared->base[kind][i] = pg_atomic_read_u64(&shared->counts[kind][i]);
}
