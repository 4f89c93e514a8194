/*-------------------------------------------------------------------------
 *
 * extension/sweep/laps.c
 *	  The background writer's part in the balance of partitions: counting what
 *	  each has served, and a cycle of laps.h.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sweep/partitions.h"

/* Allocations of each partition in this cycle */
static uint32 recent_allocations[PGSWEEP_MAX_PARTITIONS];

/*
 * Called when shared memory is created.
 */
void
pgsweep_init_laps(void)
{
	pg_atomic_init_u64(&PgSweepPool->laps.ahead, 0);
	pg_atomic_init_u64(&PgSweepPool->laps.behind, 0);
	pg_atomic_init_u64(&PgSweepPool->laps.slowest, 0);
	for (uint32 i = 0; i < PGSWEEP_MAX_PARTITIONS; i++)
		pg_atomic_init_u64(&PgSweepPool->laps.done[i], 0);
	PgSweepPool->laps.balanced = pgsweep_balance;
}

/*
 * One cycle.  A new background writer starts from the present counts: those
 * that its predecessor has not seen are not the load of one cycle.
 */
void
pgsweep_partitions_cycle(void)
{
	static PgSweepPartCounters last[PGSWEEP_MAX_PARTITIONS];
	static bool first = true;
	PgSweepPartCounters totals[PGSWEEP_MAX_PARTITIONS];

	pgsweep_sum_partitions(totals);
	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
		recent_allocations[i] = first ? 0 :
			(uint32) (totals[i].allocations - last[i].allocations);
	memcpy(last, totals, sizeof(last));
	first = false;

	pgsweep_laps_cycle(&PgSweepPool->laps, PgSweepPool->parts, PgSweepPool->num_partitions,
					   pgsweep_balance);
}

/*
 * Allocations of a partition in the cycle that pgsweep_partitions_cycle() began.
 */
uint32
pgsweep_recent_allocations(uint32 partition)
{
	return recent_allocations[partition];
}
