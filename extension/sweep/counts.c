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
 * Slots beyond are zeroes.  A process that has just started may be missed.
 */
static inline uint32
slots_used(void)
{
	return *(volatile uint32 *) &PgSweepPool->slots_used;
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
 * Sums over all slots and all their owners so far, for each strategy.  Slots
 * are written meanwhile, so the sums of two counters may differ by some
 * events.
 */
void
pgsweep_sum_counters(PgSweepCounters *totals)
{
	memset(totals, 0, PGSWEEP_NUM_STRATEGIES * sizeof(PgSweepCounters));

	for (uint32 i = 0; i < slots_used(); i++)
		for (int s = 0; s < PGSWEEP_NUM_STRATEGIES; s++)
			pgsweep_add_counters(&totals[s], &PgSweepPool->slots[i].slot.counters[s], 1);
}

/*
 * One slot at one moment: its counters of partitions and of strategies agree.
 */
typedef struct SlotCopy
{
	PgSweepCounters counters[PGSWEEP_NUM_STRATEGIES];
	PgSweepItinerary itinerary;
	PgSweepPartCounters parts[PGSWEEP_MAX_PARTITIONS];
} SlotCopy;

/* memcpy() may read a counter in pieces */
static void
copy_counters(void *to, const void *from, Size size)
{
	for (Size i = 0; i < size / sizeof(uint64); i++)
		((uint64 *) to)[i] = ((const volatile uint64 *) from)[i];
}

/* After this many tries of at most a microsecond each, sleep between tries */
#define COPY_TRIES_AT_ONCE	100

/*
 * After 10 ms, give up on an owner that was stopped in the middle.  Its
 * counters can then be wrong by one lease.
 */
#define COPY_TRIES			110

/*
 * Copy a slot while its owner goes on counting.  If a lease was noted
 * meanwhile, copy again.  Each counter of the present lease may be an event
 * ahead of another.
 */
static void
read_slot(const PgSweepSlot *slot, SlotCopy *copy)
{
	const volatile uint32 *version = &slot->itinerary.version;

	for (int tries = 1;; tries++)
	{
		uint32		before = *version;

		pg_read_barrier();		/* pairs with the last of pgsweep_note_lease() */
		copy_counters(copy->parts, pgsweep_part_counters(slot),
					  PgSweepPool->num_partitions * sizeof(PgSweepPartCounters));
		copy_counters(&copy->itinerary, &slot->itinerary, sizeof(copy->itinerary));
		copy_counters(copy->counters, slot->counters, sizeof(copy->counters));
		pg_read_barrier();		/* pairs with the first of
								 * pgsweep_note_lease() */

		if ((before % 2 == 0 && *version == before) || tries == COPY_TRIES)
			return;
		if (tries > COPY_TRIES_AT_ONCE)
			pg_usleep(1000);
	}
}

static inline uint64
since(uint64 now, uint64 then)
{
	return now > then ? now - then : 0;
}

/*
 * Add a slot's counters of partitions, including its present lease.
 */
static void
add_partitions(PgSweepPartCounters *totals, const SlotCopy *copy)
{
	const PgSweepItinerary *it = &copy->itinerary;
	const PgSweepCounters *count = &copy->counters[PGSWEEP_PARTITIONED];
	uint64		requests = since(count->allocations, it->noted_allocations);
	uint64		found = since(requests, since(count->failed, it->noted_failed));
	uint64		evictions = since(count->evictions, it->noted_evictions);

	if (!it->noting)
		return;

	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
	{
		totals[i].requests += copy->parts[i].requests;
		totals[i].redirected_out += copy->parts[i].redirected_out;
		totals[i].allocations += copy->parts[i].allocations;
		totals[i].redirected_in += copy->parts[i].redirected_in;
		totals[i].local += copy->parts[i].local;
		totals[i].evictions += copy->parts[i].evictions;
	}

	totals[it->home].requests += requests;
	totals[it->target].allocations += found;
	totals[it->target].evictions += evictions;
	if (it->home != it->target)
	{
		totals[it->home].redirected_out += found;
		totals[it->target].redirected_in += found;
	}
	if (PgSweepPool->parts[it->home].node == PgSweepPool->parts[it->target].node)
		totals[it->target].local += found;
}

/*
 * Sums over all slots, for each partition, since the server started.  An
 * allocation in progress counts where its process' last lease was, and moves
 * to where it is served.  So a sum can be slightly below an earlier one.
 */
void
pgsweep_sum_partitions(PgSweepPartCounters *totals)
{
	memset(totals, 0, PgSweepPool->num_partitions * sizeof(PgSweepPartCounters));

	for (uint32 i = 0; i < slots_used(); i++)
	{
		const PgSweepSlot *slot = &PgSweepPool->slots[i].slot;
		SlotCopy	copy;

		if (!*(const volatile bool *) &slot->itinerary.noting)
			continue;			/* has never had a lease of a partition */
		read_slot(slot, &copy);
		add_partitions(totals, &copy);
	}
}

/*
 * Allocations since the server started, except those of "stock", which core
 * counts itself.  Never decreases.
 */
uint64
pgsweep_allocations_total(void)
{
	uint64		total = 0;

	for (uint32 i = 0; i < slots_used(); i++)
		for (int s = 0; s < PGSWEEP_NUM_STRATEGIES; s++)
			if (s != PGSWEEP_STOCK)
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
	memset(PgSweepPool->base, 0, sizeof(PgSweepPool->base));
	memset(PgSweepPool->part_base, 0, sizeof(PgSweepPool->part_base));
	for (uint32 i = 0; i < slots_used(); i++)
	{
		PgSweepSlot *slot = &PgSweepPool->slots[i].slot;
		SlotCopy	copy;

		/* all from one copy of the slot, because the views must agree */
		read_slot(slot, &copy);
		memcpy(slot->base, copy.counters, sizeof(slot->base));
		for (int s = 0; s < PGSWEEP_NUM_STRATEGIES; s++)
			pgsweep_add_counters(&PgSweepPool->base[s], &copy.counters[s], 1);
		add_partitions(PgSweepPool->part_base, &copy);
	}
	PgSweepPool->core_ticks_base = pgsweep_core_ticks();
	memset(PgSweepPool->switches, 0, sizeof(PgSweepPool->switches));
	memset(PgSweepPool->active_usec, 0, sizeof(PgSweepPool->active_usec));
}

/*
 * The counters of one strategy for views.  The caller holds PgSweep->lock and
 * has the totals of pgsweep_sum_counters().
 */
void
pgsweep_strategy_stats(PgSweepStrategyId id, const PgSweepCounters *totals,
					   PgSweepStrategyStats *stats)
{
	PgSweepStrategyId active = PGSWEEP_ACTIVE_ID(pgsweep_read_u64(&PgSweepPool->active));

	stats->counters = totals[id];
	pgsweep_add_counters(&stats->counters, &PgSweepPool->base[id], -1);
	pgsweep_strategies[id]->position(&stats->hand, &stats->passes);
	stats->switches = PgSweepPool->switches[id];
	stats->active_usec = PgSweepPool->active_usec[id];
	if (id == active)
		stats->active_usec += GetCurrentTimestamp() -
			Max(PgSweepPool->active_since, PgSweep->stats_reset);

	if (id == PGSWEEP_STOCK)
	{
		/*
		 * Core moves its hand by one fetch-add per tick, and counts each
		 * allocation by another one.
		 */
		stats->looked_at = pgsweep_core_ticks() - PgSweepPool->core_ticks_base;
		stats->shared_atomics = stats->looked_at + stats->counters.allocations;
	}
	else
	{
		stats->looked_at = pgsweep_looked_at(&stats->counters);
		stats->shared_atomics = stats->counters.leases;
	}
}
