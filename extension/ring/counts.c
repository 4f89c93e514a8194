/*-------------------------------------------------------------------------
 *
 * counts.c
 *	  What is counted of laps through rings.
 *
 * A lap counts by itself, and adds to what is shared when it is over.  That is a
 * dozen atomic operations on lines that all share, but beside at least one
 * write, and mostly hundreds: a table of each process' own would cost memory for
 * every backend, and save nothing that could be measured.
 *
 * IDENTIFICATION
 *	  extension/ring/counts.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "ring/ring.h"
#include "storage/shmem.h"

typedef struct PgSweepRingShared
{
	/* which only grow */
	pg_atomic_uint64 counts[PGSWEEP_RING_NUM_KINDS][PGSWEEP_RING_NUM_COUNTS];

	/* where they were at the last reset; under PgSweep->lock */
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
 * Since the last reset.  The caller has PgSweep->lock.
 */
void
pgsweep_ring_get_counts(PgSweepRingKind kind, PgSweepRingCounts counts)
{
	for (int i = 0; i < PGSWEEP_RING_NUM_COUNTS; i++)
		counts[i] = pg_atomic_read_u64(&shared->counts[kind][i]) - shared->base[kind][i];
}

/*
 * The caller has PgSweep->lock exclusively.
 */
void
pgsweep_ring_reset_counts(void)
{
	for (int kind = 0; kind < PGSWEEP_RING_NUM_KINDS; kind++)
		for (int i = 0; i < PGSWEEP_RING_NUM_COUNTS; i++)
			shared->base[kind][i] = pg_atomic_read_u64(&shared->counts[kind][i]);
}
