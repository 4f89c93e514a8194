/*-------------------------------------------------------------------------
 *
 * extension/sweep/laps.c
 *	  The background writer's part in the balance of partitions: counting what
 *	  each has served, beginning to count laps, and a look at all hands.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sweep/partitions.h"

/* Allocations of each partition in this cycle */
static uint32 recent_allocations[PGSWEEP_MAX_PARTITIONS];

/*
 * Balance from now on, or no longer.  Laps are counted anew: otherwise a
 * partition that was behind without balance would serve all for laps.
 */
static void
begin_laps(bool balanced)
{
	PgSweepLaps *laps = &PgSweepPool->laps;

	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
	{
		laps->base[i] = pgsweep_hand_read(&PgSweepPool->parts[i]);
		pgsweep_laps_publish(laps, i, &PgSweepPool->parts[i]);
	}
	pg_atomic_write_u64(&laps->slowest, 0);
	pg_atomic_write_u64(&laps->ahead, 0);
	PgSweepPool->balanced = balanced;
}

/* How far apart the hands are, in laps */
static double
spread_of_hands(void)
{
	double		least = DBL_MAX;
	double		most = 0;

	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
	{
		PgSweepPartition *part = &PgSweepPool->parts[i];
		double		done = pgsweep_laps_done(&PgSweepPool->laps, i, part, pgsweep_hand_read(part));

		least = Min(least, done);
		most = Max(most, done);
	}
	return most - least;
}

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
	PgSweepPool->balanced = pgsweep_balance;
}

/*
 * One cycle.  A new background writer starts from the present counts: those
 * that its predecessor has not seen are not the load of one cycle.
 */
void
pgsweep_laps_cycle(void)
{
	static PgSweepPartCounters last[PGSWEEP_MAX_PARTITIONS];
	static bool first = true;
	PgSweepPartCounters totals[PGSWEEP_MAX_PARTITIONS];
	PgSweepLaps *laps = &PgSweepPool->laps;

	pgsweep_sum_partitions(totals);
	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
		recent_allocations[i] = first ? 0 :
			(uint32) (totals[i].allocations - last[i].allocations);
	memcpy(last, totals, sizeof(last));
	first = false;

	if (PgSweepPool->balanced != pgsweep_balance)
		begin_laps(pgsweep_balance);
	else if (PgSweepPool->passed_on)
	{
		PgSweepPool->passed_on = false;
		if (PgSweepPool->balanced && spread_of_hands() > PGSWEEP_LAPS_LOST)
			begin_laps(true);
	}

	/* mend what a process may have stored late, by the laps of before */
	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
		pgsweep_laps_publish(laps, i, &PgSweepPool->parts[i]);
	if (PgSweepPool->balanced)
		pgsweep_laps_look(laps, PgSweepPool->num_partitions);
	else
		pgsweep_laps_store(&laps->ahead, 0);
}

/*
 * Allocations of a partition in the cycle that pgsweep_laps_cycle() began.
 */
uint32
pgsweep_recent_allocations(uint32 partition)
{
	return recent_allocations[partition];
}
