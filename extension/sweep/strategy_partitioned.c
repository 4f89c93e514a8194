/*-------------------------------------------------------------------------
 *
 * extension/sweep/strategy_partitioned.c
 *	  Strategy "partitioned": a hand for each part of the pool, taken in leases.
 *
 * After Vondra, "Adding basic NUMA awareness" (pgsql-hackers, 2025-26):
 * partitions follow the NUMA nodes, and requests are sent on from busy ones
 * to idle ones.  Differences: partitions are walked in leases, the CPU is
 * looked up once per lease, and what is balanced is the way of the hands
 * (laps.h).
 *
 * Two rules choose the partition of a lease:
 *
 * - it is home, unless home is ahead of the slowest partition; then another
 *	 of the node that is not ahead; then the nearest of those behind;
 * - a walk that finds only pins goes on to the next nearest partition, lease
 *	 by lease.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/bufmgr.h"
#include "storage/proc.h"
#include "sweep/counts.h"
#include "sweep/partitions.h"
#include "sweep/walk.h"

/*
 * After this many pinned buffers in a row, the next lease is taken elsewhere.
 * Few enough not to cost much, and more than the pins of one backend that has
 * just read ahead (io_combine_limit is 16 by default).
 */
#define PGSWEEP_PINNED_RUN		32

/*
 * A lease of a partition ends: add what it has given to the counters of
 * partitions.  Once per lease, because per allocation it would cost several
 * stores.  in_progress allocations of the process belong to its next lease.  The
 * lease may have been by either strategy with partitions.
 */
void
pgsweep_note_lease(PgSweepSlot *slot, uint32 in_progress)
{
	PgSweepItinerary *it = &slot->itinerary;
	PgSweepCounters count = slot->counters[PGSWEEP_PARTITIONED];
	uint64		requests;
	uint64		found;
	PgSweepPartCounters *parts = pgsweep_part_counters(slot);
	PgSweepPartCounters *home = &parts[it->home];
	PgSweepPartCounters *target = &parts[it->target];

	Assert(it->noting);
	pgsweep_add_counters(&count, &slot->counters[PGSWEEP_CLOCK2Q_PARTITIONED], 1);
	requests = count.allocations - in_progress - it->noted_allocations;
	found = requests - (count.failed - it->noted_failed);
	home->requests += requests;
	target->allocations += found;
	target->evictions += count.evictions - it->noted_evictions;
	if (it->home != it->target)
	{
		home->redirected_out += found;
		target->redirected_in += found;
		pg_atomic_fetch_add_u64(&PgSweepPool->flow[it->home][it->target], found);
	}
	if (PgSweepPool->parts[it->home].node == PgSweepPool->parts[it->target].node)
		target->local += found;

	it->noted_allocations += requests;
	it->noted_failed = count.failed;
	it->noted_evictions = count.evictions;
	it->noting = false;
}

/*
 * Choose the partition of the next lease. pinned_run is the number of pinned
 * buffers that the present walk has found in a row.
 */
PgSweepPartition *
pgsweep_choose_partition(PgSweepSlot *slot, uint32 pinned_run)
{
	PgSweepItinerary *it = &slot->itinerary;
	uint32		home = pgsweep_home(MyProcNumber);
	const PgSweepOrder *order = pgsweep_order(home);
	uint32		target = pgsweep_laps_serving(&PgSweepPool->laps, order,
											 PgSweepPool->num_partitions);

	if (likely(pinned_run < PGSWEEP_PINNED_RUN))
		it->hops = 0;
	else
	{
		target = order->part[++it->hops % PgSweepPool->num_partitions];

		/* read first: with many pins, many processes come here */
		if (!PgSweepPool->laps.passed_on)
			PgSweepPool->laps.passed_on = true;
	}

	it->home = home;
	it->target = target;
	it->noting = true;
	return &PgSweepPool->parts[target];
}

static BufferDesc *
partitioned_get_victim(PgSweepSlot *slot, uint32 *buf_state, uint64 active)
{
	return pgsweep_walk(slot, buf_state, active, PGSWEEP_PARTITIONED,
						slot->lease.part, pgsweep_choose_partition, NULL);
}

/*
 * The sum of all hands points to no buffer, but counts passes over the pool.
 */
void
pgsweep_partitions_position(int *hand, uint64 *passes)
{
	uint64		ticks = 0;

	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
		ticks += pgsweep_hand_read(&PgSweepPool->parts[i]);
	*hand = -1;
	*passes = ticks / NBuffers;
}

/*
 * One scan per partition.  Allocations are counted by partition: recent_alloc
 * includes other strategies' allocations from before a switch.
 */
static bool
partitioned_lru_scan(struct WritebackContext *wb_context, bool fresh,
					 uint32 recent_alloc, int max_pages, int *wrote)
{
	static PgSweepLruState lru[PGSWEEP_MAX_PARTITIONS];
	uint32		n = PgSweepPool->num_partitions;

	for (uint32 i = 0; i < n; i++)
	{
		PgSweepPartition *part = &PgSweepPool->parts[i];

		pgsweep_lru_begin(&lru[i], fresh, pgsweep_lru_buffer, part, pgsweep_hand_read(part),
						  part->num_buffers, pgsweep_recent_allocations(i));
	}
	return pgsweep_lru_clean(lru, n, wb_context, max_pages, wrote) && recent_alloc == 0;
}

const PgSweepStrategyRoutine pgsweep_partitioned_strategy = {
	.position = pgsweep_partitions_position,
	.get_victim = partitioned_get_victim,
	.cycle = pgsweep_partitions_cycle,
	.lru_scan = partitioned_lru_scan,
};
