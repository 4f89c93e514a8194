/*-------------------------------------------------------------------------
 *
 * extension/sweep/counts.c
 *	  Adds up the counters of the slots, and resets the sums.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sweep/counts.h"
#include "sweep/strategy.h"
#include "utils/timestamp.h"

/*
 * totals += sign * counters, for one strategy
 */
void
pgsweep_add_counters(PgSweepCounters *totals, const PgSweepCounters *counters, int sign)
{
	uint64	   *to = (uint64 *) totals;
	const volatile uint64 *from = (const volatile uint64 *) counters;

	for (int i = 0; i < PGSWEEP_NUM_COUNTERS; i++)
		to[i] += sign * from[i];
}

/*
 * Sums over all slots and all their owners so far, for each strategy.  Slots
 * are written meanwhile, so the sums of two counters may differ by some
 * events.  Under "stock" no process counts in its slot.
 */
static void
sum_slots(PgSweepCounters *totals)
{
	memset(totals, 0, PGSWEEP_NUM_STRATEGIES * sizeof(PgSweepCounters));

	for (uint32 i = 0; i < PgSweep->num_slots; i++)
		for (int s = 0; s < PGSWEEP_NUM_STRATEGIES; s++)
			pgsweep_add_counters(&totals[s], &PgSweepPool->slots[i].slot.counters[s], 1);
}

/*
 * Sums over all slots, for each partition, since the server started.  Each
 * process adds what a lease has given when the lease ends
 * (pgsweep_note_lease).  No sum ever decreases.
 */
void
pgsweep_sum_partitions(PgSweepPartCounters *totals)
{
	memset(totals, 0, PgSweepPool->num_partitions * sizeof(PgSweepPartCounters));

	for (uint32 i = 0; i < PgSweep->num_slots; i++)
	{
		const PgSweepSlot *slot = &PgSweepPool->slots[i].slot;
		const volatile PgSweepPartCounters *parts = pgsweep_part_counters(slot);

		/* most slots have never had a lease of a partition */
		if (*(const volatile uint64 *) &slot->itinerary.noted_allocations == 0)
			continue;
		for (uint32 p = 0; p < PgSweepPool->num_partitions; p++)
		{
			totals[p].requests += parts[p].requests;
			totals[p].redirected_out += parts[p].redirected_out;
			totals[p].allocations += parts[p].allocations;
			totals[p].redirected_in += parts[p].redirected_in;
			totals[p].local += parts[p].local;
			totals[p].evictions += parts[p].evictions;
		}
	}
}

/*
 * Sums of what only "clock2q" counts, or the same with partitions, over all slots,
 * since the server started.  No sum ever decreases.
 */
void
pgsweep_sum_clock2q(int kind, PgSweepC2qCounters *totals)
{
	uint64	   *to = (uint64 *) totals;

	memset(totals, 0, sizeof(*totals));
	for (uint32 i = 0; i < PgSweep->num_slots; i++)
	{
		const volatile uint64 *from =
			(const volatile uint64 *) &PgSweepPool->slots[i].slot.c2q.counters[kind];

		for (int k = 0; k < PGSWEEP_NUM_C2Q_COUNTERS; k++)
			to[k] += from[k];
	}
}

/*
 * Allocations since the server started, by any strategy.  Never decreases.
 */
uint64
pgsweep_allocations_total(void)
{
	uint64		total = pg_atomic_read_u64(&PgSweepPool->core_allocations);

	for (uint32 i = 0; i < PgSweep->num_slots; i++)
		for (int s = 0; s < PGSWEEP_NUM_STRATEGIES; s++)
			total += *(volatile uint64 *) &PgSweepPool->slots[i].slot.counters[s].allocations;
	return total;
}

/*
 * Reset the counters of strategies and partitions, as views show them.  The
 * caller holds PgSweep->lock exclusively.
 */
void
pgsweep_reset_counters(void)
{
	PgSweepCounters *base = PgSweepPool->base;

	memset(base, 0, sizeof(PgSweepPool->base));
	for (uint32 i = 0; i < PgSweep->num_slots; i++)
	{
		PgSweepSlot *slot = &PgSweepPool->slots[i].slot;
		PgSweepCounters sum = {0};

		for (int s = 0; s < PGSWEEP_NUM_STRATEGIES; s++)
		{
			PgSweepCounters now = {0};

			/* read once, because the views must agree */
			pgsweep_add_counters(&now, &slot->counters[s], 1);
			pgsweep_add_counters(&base[s], &now, 1);
			pgsweep_add_counters(&sum, &now, 1);
		}
		slot->base = sum;
	}
	pgsweep_core_counts(&PgSweepPool->core_passes_base, &PgSweepPool->core_hand_base,
						&base[PGSWEEP_STOCK].allocations);

	for (int kind = 0; kind < 2; kind++)
		pgsweep_sum_clock2q(kind, &PgSweepPool->c2q_base[kind]);
	pgsweep_sum_partitions(PgSweepPool->part_base);
	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
		for (uint32 k = 0; k < PgSweepPool->num_partitions; k++)
			PgSweepPool->flow_base[i][k] = pg_atomic_read_u64(&PgSweepPool->flow[i][k]);
	memset(PgSweepPool->switches, 0, sizeof(PgSweepPool->switches));
	memset(PgSweepPool->active_usec, 0, sizeof(PgSweepPool->active_usec));
}

/*
 * How long a strategy has been active since the last reset, in microseconds.
 * The caller holds PgSweep->lock.
 */
int64
pgsweep_active_usec(PgSweepStrategyId id)
{
	int64		usec = PgSweepPool->active_usec[id];

	if (id == PGSWEEP_ACTIVE_ID(pgsweep_read_u64(&PgSweepPool->active)))
		usec += GetCurrentTimestamp() - Max(PgSweepPool->active_since, PgSweep->stats_reset);
	return usec;
}

/*
 * The counters of all strategies for views.  The caller holds PgSweep->lock.
 */
void
pgsweep_get_strategy_stats(PgSweepStrategyStats *stats)
{
	PgSweepCounters totals[PGSWEEP_NUM_STRATEGIES];
	uint32		passes;
	int			hand;

	sum_slots(totals);
	pgsweep_core_counts(&passes, &hand, &totals[PGSWEEP_STOCK].allocations);

	for (int i = 0; i < PGSWEEP_NUM_STRATEGIES; i++)
	{
		PgSweepCounters *counters = &stats[i].counters;

		*counters = totals[i];
		pgsweep_add_counters(counters, &PgSweepPool->base[i], -1);
		pgsweep_strategies[i]->position(&stats[i].hand, &stats[i].passes);
		stats[i].looked_at = pgsweep_looked_at(counters);
		stats[i].switches = PgSweepPool->switches[i];
		stats[i].active_usec = pgsweep_active_usec(i);
	}

	/*
	 * Core moves its hand by one for each buffer that it looks at.  Its 32
	 * bits of passes wrap around; their difference is right all the same.
	 */
	passes -= PgSweepPool->core_passes_base;
	stats[PGSWEEP_STOCK].looked_at = (uint64) passes * NBuffers +
		hand - PgSweepPool->core_hand_base;
}
