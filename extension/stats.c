/*-------------------------------------------------------------------------
 *
 * stats.c
 *	  Adding up what the slots have counted, and resetting it.
 *
 * IDENTIFICATION
 *	  extension/stats.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_sweep.h"
#include "stats.h"
#include "sweep/sweep.h"
#include "utils/timestamp.h"

/*
 * Those beyond are zeroes.  A process that has just come may be missed.
 */
static inline uint32
slots_used(void)
{
	return *(volatile uint32 *) &PgSweep->slots_used;
}

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
 * Sums over all slots, of all processes that ever had them, for each
 * strategy.  Slots go on being written meanwhile, so the sums of two counters
 * need not fit to the last event.
 */
void
pgsweep_sum_counters(PgSweepCounters *totals)
{
	memset(totals, 0, PGSWEEP_NUM_STRATEGIES * sizeof(PgSweepCounters));

	for (uint32 i = 0; i < slots_used(); i++)
		for (int s = 0; s < PGSWEEP_NUM_STRATEGIES; s++)
			pgsweep_add_counters(&totals[s], &PgSweep->slots[i].slot.counters[s], 1);
}

/*
 * What a slot's present lease has given, and has not been noted.
 *
 * Whatever its owner does meanwhile, no difference is negative: what is
 * subtracted is read first, and both only grow.  A failed allocation is counted
 * as an allocation first, and so read last.
 */
static void
add_present_lease(PgSweepPartCounters *totals, const PgSweepSlot *slot)
{
	const volatile PgSweepItinerary *it = &slot->itinerary;
	const volatile PgSweepCounters *count = &slot->counters[PGSWEEP_PARTITIONED];
	uint32		home = it->home;
	uint32		target = it->target;
	uint64		allocations = it->noted_allocations;
	uint64		failed = it->noted_failed;
	uint64		evictions = it->noted_evictions;
	uint64		found;

	pg_read_barrier();			/* against reading ahead; pairs with nothing */
	failed = count->failed - failed;
	evictions = count->evictions - evictions;
	pg_read_barrier();			/* the same */
	allocations = count->allocations - allocations;
	found = allocations - Min(failed, allocations);

	totals[home].requests += allocations;
	totals[target].allocations += found;
	totals[target].evictions += Min(evictions, found);
	if (home != target)
	{
		totals[home].redirected_out += found;
		totals[target].redirected_in += found;
	}
	if (PgSweep->parts[home].node == PgSweep->parts[target].node)
		totals[target].local += found;
}

/*
 * A slot's counters of partitions.  The counters first, then how far they go:
 * what its owner notes in between is missed, a lease at most, and not counted
 * twice.
 */
static void
add_partitions(PgSweepPartCounters *totals, const PgSweepSlot *slot)
{
	const volatile PgSweepPartCounters *parts = pgsweep_part_counters(slot);

	if (!*(const volatile bool *) &slot->itinerary.noting)
		return;					/* has never had a lease of a partition */

	for (uint32 i = 0; i < PgSweep->num_partitions; i++)
	{
		totals[i].requests += parts[i].requests;
		totals[i].redirected_out += parts[i].redirected_out;
		totals[i].allocations += parts[i].allocations;
		totals[i].redirected_in += parts[i].redirected_in;
		totals[i].local += parts[i].local;
		totals[i].evictions += parts[i].evictions;
	}
	pg_read_barrier();			/* pairs with pgsweep_note_lease() */
	add_present_lease(totals, slot);
}

/*
 * Sums over all slots, for each partition; since the server started.
 */
void
pgsweep_sum_partitions(PgSweepPartCounters *totals)
{
	memset(totals, 0, PgSweep->num_partitions * sizeof(PgSweepPartCounters));

	for (uint32 i = 0; i < slots_used(); i++)
		add_partitions(totals, &PgSweep->slots[i].slot);
}

/*
 * Allocations made by strategies of ours since the server started.  Those of
 * "stock" are left out: core counts them itself.  Never decreases.
 */
uint64
pgsweep_allocations_total(void)
{
	uint64		total = 0;

	for (uint32 i = 0; i < slots_used(); i++)
		for (int s = 0; s < PGSWEEP_NUM_STRATEGIES; s++)
			if (s != PGSWEEP_STOCK)
				total += *(volatile uint64 *) &PgSweep->slots[i].slot.counters[s].allocations;
	return total;
}

/*
 * Count from zero again, as far as views show it.  The counters themselves are
 * their owners' and go on growing; what is remembered is where they were.
 * Returns the time of the reset before.
 */
TimestampTz
pgsweep_reset(void)
{
	TimestampTz before;

	LWLockAcquire(PgSweep->lock, LW_EXCLUSIVE);

	before = PgSweep->stats_reset;
	PgSweep->stats_reset = GetCurrentTimestamp();
	memset(PgSweep->base, 0, sizeof(PgSweep->base));
	for (uint32 i = 0; i < slots_used(); i++)
	{
		PgSweepSlot *slot = &PgSweep->slots[i].slot;

		memcpy(slot->base, slot->counters, sizeof(slot->base));

		/* the sum of the slots' bases, so that the views agree */
		for (int s = 0; s < PGSWEEP_NUM_STRATEGIES; s++)
			pgsweep_add_counters(&PgSweep->base[s], &slot->base[s], 1);
	}
	pgsweep_sum_partitions(PgSweep->part_base);
	PgSweep->core_ticks_base = pgsweep_core_ticks();
	memset(PgSweep->switches, 0, sizeof(PgSweep->switches));
	memset(PgSweep->active_usec, 0, sizeof(PgSweep->active_usec));

	LWLockRelease(PgSweep->lock);
	return before;
}

/*
 * What the views show of one strategy.  The caller holds PgSweepShared->lock
 * and has the totals of pgsweep_sum_counters().
 */
void
pgsweep_strategy_stats(PgSweepStrategyId id, const PgSweepCounters *totals,
					   PgSweepStrategyStats *stats)
{
	PgSweepStrategyId active = PGSWEEP_ACTIVE_ID(pgsweep_read_u64(&PgSweep->active));

	stats->counters = totals[id];
	pgsweep_add_counters(&stats->counters, &PgSweep->base[id], -1);
	pgsweep_strategies[id]->position(&stats->hand, &stats->passes);
	stats->switches = PgSweep->switches[id];
	stats->active_usec = PgSweep->active_usec[id];
	if (id == active)
		stats->active_usec += GetCurrentTimestamp() -
			Max(PgSweep->active_since, PgSweep->stats_reset);

	if (id == PGSWEEP_STOCK)
	{
		/*
		 * Core moves its hand by one fetch-add a tick, and counts each
		 * allocation by another one.
		 */
		stats->looked_at = pgsweep_core_ticks() - PgSweep->core_ticks_base;
		stats->shared_atomics = stats->looked_at + stats->counters.allocations;
	}
	else
	{
		stats->looked_at = pgsweep_looked_at(&stats->counters);
		stats->shared_atomics = stats->counters.leases;
	}
}
