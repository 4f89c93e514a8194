/*-------------------------------------------------------------------------
 *
 * strategy_partitioned.c
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
 * - until there is a new plan, a partition that has given out many more buffers
 *	 than another since the last one lets that go first: a burst between two
 *	 cycles, or one busy backend while the background writer sleeps, gets the
 *	 whole pool, too;
 * - a walk that finds nothing but pins goes on to the next nearest partition,
 *	 and so on, lease by lease.
 *
 * IDENTIFICATION
 *	  extension/sweep/strategy_partitioned.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/bufmgr.h"
#include "storage/proc.h"
#include "sweep/partitions.h"
#include "sweep/walk.h"
#include "utils/timestamp.h"

/*
 * How many allocations more than another one a partition may make between two
 * plans: its number of buffers divided by this.  That much of it may be replaced
 * before its turn; so one backend that reads a table of nearly nine tenths of an
 * empty pool keeps all of it, whatever the background writer does.  Less would
 * hit partitions that are equally busy: their allocations come in bursts (a
 * query reads many pages), and each correction is a lease from afar.  With a
 * sixteenth, 15 % of an even load went to other nodes (128 MB, four nodes, 8000
 * allocations a second).
 */
#define PGSWEEP_AHEAD_DIVISOR	8

/*
 * Or if that is more, this part of all that it has given out, while the plan is
 * no older than this.  Where the pool goes round many times between two plans, an
 * eighth of a lap is nothing: partitions that are equally busy are as far apart
 * at any moment because one CPU has paused.  Twice what passes for an even load
 * (balance.h), and five times the usual bgwriter_delay: with an older plan, the
 * background writer sleeps, and nobody else corrects anything.
 */
#define PGSWEEP_AHEAD_PART		(2 * PGSWEEP_BALANCE_TOLERANCE)
#define PGSWEEP_FRESH_PLAN_MS	1000

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
 * stores.  A reader in between would miss the lease or count it twice, and a
 * reset would remember that; so it looks at the version, and tries once more.
 *
 * What would break it: a reader (read_slot() in stats.c) sees something of ours,
 * and the same even version before and after.  Before: then our last version
 * is visible to it, and so is all that we wrote before that.  After: then
 * none of what it has read was written after our first version, or that would
 * be visible, too.
 */
void
pgsweep_note_lease(PgSweepSlot *slot, uint64 allocations)
{
	PgSweepItinerary *it = &slot->itinerary;
	PgSweepCounters *count = &slot->counters[PGSWEEP_PARTITIONED];
	uint64		requests = allocations - it->noted_allocations;
	uint64		found = requests - (count->failed - it->noted_failed);
	uint64		evictions = count->evictions - it->noted_evictions;

	it->version++;
	pg_write_barrier();			/* pairs with the second one in read_slot() */

	it->noted_allocations = allocations;
	it->noted_failed = count->failed;
	it->noted_evictions = count->evictions;
	if (it->noting)
	{
		PgSweepPartCounters *parts = pgsweep_part_counters(slot);
		PgSweepPartCounters *home = &parts[it->home];
		PgSweepPartCounters *target = &parts[it->target];

		home->requests += requests;
		target->allocations += found;
		target->evictions += evictions;
		if (it->home != it->target)
		{
			home->redirected_out += found;
			target->redirected_in += found;
		}
		if (PgSweepPool->parts[it->home].node == PgSweepPool->parts[it->target].node)
			target->local += found;
	}

	pg_write_barrier();			/* pairs with the first one in read_slot() */
	it->version++;
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
 * How much of a partition has been given out since the last plan, by the way of
 * its hand.  1 is as many allocations as it has buffers.  (The difference is
 * signed because there may be a new plan between the two reads.)
 *
 * Allocations and not ticks: where pages are used much, the hand goes further
 * for each victim, and should.
 */
static inline double
given_out(uint32 partition)
{
	PgSweepPartition *part = &PgSweepPool->parts[partition];
	int64		ticks = (int64) (pgsweep_hand_read(part) -
								 PgSweepPool->plan.base_ticket[partition]);

	return ticks / ((double) PgSweepPool->plan.ticks_per_victim[partition] * part->num_buffers);
}

/*
 * Has the hand moved on by at least an epoch since the last plan?  Until then it
 * is not far ahead, and nobody needs to look at another's hand.  Reads nothing
 * but lines that are seldom written.
 */
static inline bool
far_since_plan(uint32 partition)
{
	PgSweepPartition *part = &PgSweepPool->parts[partition];

	return pgsweep_read_u64(&part->epoch) >
		PgSweepPool->plan.base_ticket[partition] >> part->epoch_shift;
}

/*
 * Compare a partition with one other, another one each time, and take the lease
 * from that if this one has given out more.  One look at each of two is enough
 * to keep all of them together (the power of two choices), and is one line read
 * a lease, of those that the hand's owners write.
 */
static pg_noinline uint32
hold_back(PgSweepItinerary *it, uint32 partition)
{
	uint32		other = it->look_round++ % PgSweepPool->num_partitions;
	double		given = given_out(partition);
	double		ahead = given - given_out(other);

	if (likely(ahead <= 1.0 / PGSWEEP_AHEAD_DIVISOR))
		return partition;
	if (ahead <= given * PGSWEEP_AHEAD_PART &&
		!TimestampDifferenceExceeds(PgSweepPool->plan.made_at, GetCurrentTimestamp(),
									PGSWEEP_FRESH_PLAN_MS))
		return partition;
	return other;
}

/*
 * Which partition to take the next lease from.  pinned_run is the number of
 * pinned buffers that the present walk has just found in a row.
 */
static PgSweepPartition *
partitioned_choose(PgSweepSlot *slot, uint32 pinned_run)
{
	PgSweepItinerary *it = &slot->itinerary;
	const PgSweepPlan *plan = &PgSweepPool->plan;
	uint32		home = pgsweep_home(MyProcNumber);
	uint32		target;

	/* the allocation under way belongs to the lease to be taken */
	pgsweep_note_lease(slot, slot->counters[PGSWEEP_PARTITIONED].allocations - 1);

	target = follow_plan(it, &plan->rows[home]);
	if (unlikely(far_since_plan(target)) && plan->balanced)
		target = hold_back(it, target);
	if (likely(pinned_run < PGSWEEP_PINNED_RUN))
		it->hops = 0;
	else
		target = pgsweep_nth_nearest(home, ++it->hops % PgSweepPool->num_partitions);

	it->home = home;
	it->target = target;
	it->noting = true;
	return &PgSweepPool->parts[target];
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

	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
		ticks += pgsweep_hand_read(&PgSweepPool->parts[i]);
	*hand = (int) (ticks % NBuffers);
	*passes = ticks / NBuffers;
}

/*
 * One scan a partition.  They share the pages that may be written: equal parts
 * first, then what others have left over, so that a partition full of dirty
 * pages neither takes all nor is kept from using it.  Who begins changes, for the
 * last few pages.  What was allocated is counted by partition; the sum that the caller
 * knows includes other strategies' allocations of before a switch.
 */
static bool
partitioned_lru_scan(struct WritebackContext *wb_context, bool fresh,
					 uint32 recent_alloc, int max_pages, int *wrote)
{
	static PgSweepLruState lru[PGSWEEP_MAX_PARTITIONS];
	static bool initialized = false;
	static uint32 begin = 0;
	uint32		wanting[PGSWEEP_MAX_PARTITIONS];
	uint32		n = PgSweepPool->num_partitions;
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

	for (uint32 i = 0; i < n; i++)
	{
		pgsweep_lru_begin(&lru[i], &PgSweepPool->parts[i], pgsweep_recent_allocations(i));
		wanting[i] = (begin + i) % n;
	}
	begin++;

	/* rounds, until nobody wants more or the pages are used up */
	for (uint32 left = n; left > 0 && *wrote < max_pages;)
	{
		int			share = Max((max_pages - *wrote) / (int) left, 1);
		uint32		still = 0;

		for (uint32 i = 0; i < left; i++)
		{
			uint32		p = wanting[i];
			int			limit = Min(*wrote + share, max_pages);

			if (pgsweep_lru_clean(&lru[p], &PgSweepPool->parts[p], wb_context, limit, wrote))
				wanting[still++] = p;
		}
		left = still;
	}

	for (uint32 i = 0; i < n; i++)
		if (!pgsweep_lru_end(&lru[i], &PgSweepPool->parts[i]))
			can_hibernate = false;
	return can_hibernate && recent_alloc == 0;
}

const PgSweepStrategyRoutine pgsweep_partitioned_strategy = {
	.position = partitioned_position,
	.get_victim = partitioned_get_victim,
	.cycle = pgsweep_make_plan,
	.lru_scan = partitioned_lru_scan,
};
