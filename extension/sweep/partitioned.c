/*-------------------------------------------------------------------------
 *
 * partitioned.c
 *	  Strategy "partitioned": a hand for each part of the pool, taken in leases.
 *
 * After Vondra, "Adding basic NUMA awareness" (pgsql-hackers, 2025-26):
 * partitions that follow the NUMA nodes, and requests sent on from busy ones to
 * idle ones.  Different from it: partitions are walked in leases; a request is
 * an allocation, not a tick; the CPU is looked up once a lease; and a plan of
 * flows depends on the load alone (balance.h).
 *
 * Three rules choose the partition that a lease is taken from, each for a
 * different time scale:
 *
 * - the plan, made by the background writer from the requests of the last
 *	 cycles: most leases come from home, the rest go where there is room;
 * - until there is a new plan, no hand runs ahead of the others by more than
 *	 PGSWEEP_AHEAD_FRACTION of a lap: a burst between two cycles, or one busy
 *	 backend while the background writer sleeps, gets the whole pool, too;
 * - a walk that finds nothing but pins goes on to the next nearest partition.
 *
 * IDENTIFICATION
 *	  extension/sweep/partitioned.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/bufmgr.h"
#include "storage/proc.h"
#include "sweep/partitions.h"
#include "sweep/walk.h"

/*
 * How far a hand may get ahead of another one, as a fraction of a lap, counted
 * from the last plan.  That much of its partition may be replaced before its
 * turn.  On the other hand, hands of partitions that are equally busy drift
 * apart by chance, and each correction is a lease from afar; a sixteenth of the
 * smallest useful partition (1024 buffers) is one full lease.
 */
#define PGSWEEP_AHEAD_FRACTION	16

/*
 * So many pinned buffers in a row, and the next lease is taken elsewhere.  Few
 * enough not to matter when it happens, and more than the pins of one backend
 * that has just read ahead (io_combine_limit is 16 by default).
 */
#define PGSWEEP_PINNED_RUN		32

/*
 * Add to the counters of partitions what the lease that ends now has given:
 * allocations is the number that the process has made of all leases.
 *
 * By the lease and not by the allocation, which would cost each of them several
 * stores.  The counters first, then how far they go: a reader in between misses
 * some rather than counting them twice.  Pairs with pgsweep_sum_partitions().
 */
void
pgsweep_note_lease(PgSweepSlot *slot, uint64 allocations)
{
	PgSweepItinerary *it = &slot->itinerary;
	PgSweepCounters *count = &slot->counters[PGSWEEP_PARTITIONED];
	uint64		requests = allocations - it->noted_allocations;
	uint64		found = requests - (count->failed - it->noted_failed);

	if (it->noting)
	{
		PgSweepPartCounters *parts = pgsweep_part_counters(slot);
		PgSweepPartCounters *home = &parts[it->home];
		PgSweepPartCounters *target = &parts[it->target];

		home->requests += requests;
		target->allocations += found;
		target->evictions += count->evictions - it->noted_evictions;
		if (it->home != it->target)
		{
			home->redirected_out += found;
			target->redirected_in += found;
		}
		if (PgSweep->parts[it->home].node == PgSweep->parts[it->target].node)
			target->local += found;
	}

	pg_write_barrier();
	it->noted_allocations = allocations;
	it->noted_failed = count->failed;
	it->noted_evictions = count->evictions;
}

/*
 * The partition that the plan sends this lease to.
 *
 * Numbers are drawn by adding the golden section of the unit: any run of them
 * is spread as evenly as can be, so that the weights are kept even over a few
 * leases.  Nobody shares the sequence.
 */
static inline uint32
follow_plan(PgSweepItinerary *it, const PgSweepFlowRow *row)
{
	uint32		number;
	uint32		n = row->n;

	if (likely(n == 1))
		return row->target[0];

	it->draw += 40503;			/* 65536 * (sqrt(5) - 1) / 2 */
	number = it->draw % PGSWEEP_FLOW_UNIT;
	for (uint32 i = 0; i < n - 1; i++)
		if (number < row->upto[i])
			return row->target[i];
	return row->target[n - 1];
}

/*
 * How far a hand has come since the last plan.  (Signed, because there may be a
 * new plan between the two reads.)
 */
static inline int64
advance(uint32 partition)
{
	return (int64) (pgsweep_hand_read(&PgSweep->parts[partition]) -
					PgSweep->plan.base_ticket[partition]);
}

/*
 * Has the hand moved on by at least an epoch since the last plan?  Until then it
 * is not far ahead, and nobody needs to look at another's hand.  Reads nothing
 * but lines that are seldom written.
 */
static inline bool
far_since_plan(uint32 partition)
{
	PgSweepPartition *part = &PgSweep->parts[partition];

	return pgsweep_read_u64(&part->epoch) >
		PgSweep->plan.base_ticket[partition] >> part->epoch_shift;
}

/*
 * Compare a partition with one other, another one each time, and take the lease
 * from that if this one's hand is ahead of it.  One look at each of two is
 * enough to keep all of them together (the power of two choices), and is one
 * line read a lease, of those that the hand's owners write.
 */
static pg_noinline uint32
hold_back(PgSweepItinerary *it, uint32 partition)
{
	uint32		other = it->look_round++ % PgSweep->num_partitions;
	double		size = PgSweep->parts[partition].num_buffers;
	double		ahead;

	ahead = advance(partition) -
		advance(other) * (size / PgSweep->parts[other].num_buffers);
	return ahead > size / PGSWEEP_AHEAD_FRACTION ? other : partition;
}

/*
 * Which partition to take the next lease from.  pinned_run is the number of
 * pinned buffers that the present walk has just found in a row.
 */
static PgSweepPartition *
partitioned_choose(PgSweepSlot *slot, uint32 pinned_run)
{
	PgSweepItinerary *it = &slot->itinerary;
	const PgSweepPlan *plan = &PgSweep->plan;
	uint32		home = pgsweep_home(MyProcNumber);
	uint32		target;

	/* the allocation under way belongs to the lease to be taken */
	pgsweep_note_lease(slot, slot->counters[PGSWEEP_PARTITIONED].allocations - 1);

	target = follow_plan(it, &plan->rows[home]);
	if (unlikely(far_since_plan(target)) && plan->balanced)
		target = hold_back(it, target);
	if (unlikely(pinned_run >= PGSWEEP_PINNED_RUN))
		target = pgsweep_nth_nearest(home, pinned_run / PGSWEEP_PINNED_RUN %
									 PgSweep->num_partitions);

	it->home = home;
	it->target = target;
	it->noting = true;
	return &PgSweep->parts[target];
}

static BufferDesc *
partitioned_get_victim(PgSweepSlot *slot, uint32 *buf_state, uint64 active)
{
	return pgsweep_walk(slot, buf_state, active, PGSWEEP_PARTITIONED,
						slot->lease.part, partitioned_choose);
}

/*
 * All hands together, as if one had made all their ticks.
 */
static void
partitioned_position(int *hand, uint64 *passes)
{
	uint64		ticks = 0;

	for (uint32 i = 0; i < PgSweep->num_partitions; i++)
		ticks += pgsweep_hand_read(&PgSweep->parts[i]);
	*hand = (int) (ticks % NBuffers);
	*passes = ticks / NBuffers;
}

/*
 * One scan a partition.  Each may write its share of the pages that are left,
 * and who begins changes, so that a partition full of dirty pages does not take
 * all.  What was allocated is counted by partition; the sum that the caller
 * knows includes other strategies' allocations of before a switch.
 */
static bool
partitioned_lru_scan(struct WritebackContext *wb_context, bool fresh,
					 uint32 recent_alloc, int max_pages, int *wrote)
{
	static PgSweepLruState lru[PGSWEEP_MAX_PARTITIONS];
	static bool initialized = false;
	static uint32 begin = 0;
	uint32		n = PgSweep->num_partitions;
	bool		can_hibernate = true;

	if (!initialized || fresh)
	{
		for (uint32 i = 0; i < n; i++)
		{
			if (!initialized)
				lru[i] = (PgSweepLruState) PGSWEEP_LRU_INIT;
			lru[i].valid = false;
		}
		initialized = true;
	}

	begin++;
	for (uint32 i = 0; i < n; i++)
	{
		uint32		p = (begin + i) % n;
		int			left = max_pages - *wrote;
		int			share = (left + (n - i) - 1) / (n - i);

		/* every partition's state follows its hand, even if nothing is left */
		if (!pgsweep_lru_scan_partition(&lru[p], &PgSweep->parts[p], wb_context,
										pgsweep_recent_allocations(p),
										*wrote + share, wrote))
			can_hibernate = false;
	}
	return can_hibernate && recent_alloc == 0;
}

const PgSweepStrategyRoutine pgsweep_partitioned_strategy = {
	.name = "partitioned",
	.position = partitioned_position,
	.get_victim = partitioned_get_victim,
	.cycle = pgsweep_make_plan,
	.lru_scan = partitioned_lru_scan,
};
