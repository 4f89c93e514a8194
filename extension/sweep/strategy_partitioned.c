/*-------------------------------------------------------------------------
 *
 * extension/sweep/strategy_partitioned.c
 *	  Strategy "partitioned": a hand for each part of the pool, taken in leases.
 *
 * After Vondra, "Adding basic NUMA awareness" (pgsql-hackers, 2025-26):
 * partitions follow the NUMA nodes, and requests are sent on from busy ones
 * to idle ones.  Differences: partitions are walked in leases; a request is
 * an allocation, not a tick; the CPU is looked up once per lease; and the
 * plan of flows depends only on the load (balance.h).
 *
 * Three rules choose the partition of a lease, each for another time scale:
 *
 * - the plan, made by the background writer from the requests of the last
 *	 cycles: most leases come from home, the rest go where there is room;
 * - until the next plan, a partition that has given out many more buffers
 *	 than another lets that one go first: so a burst between two cycles, or
 *	 one busy backend while the background writer sleeps, still gets the whole
 *	 pool;
 * - a walk that finds only pins goes on to the next nearest partition, lease
 *	 by lease.
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
 * plans: its number of buffers divided by this.  That part of it may be
 * replaced before its turn.  So one backend that reads a table of nearly nine
 * tenths of an empty pool keeps all of it, also while the background writer
 * sleeps.  A smaller part would hit partitions that are equally busy: their
 * allocations come in bursts (a query reads many pages), and each correction
 * is a remote lease.  With a sixteenth, 15 % of an even load went to other
 * nodes (128 MB, four nodes, 8000 allocations per second).
 */
#define PGSWEEP_AHEAD_DIVISOR	8

/*
 * Or, if that is more and the plan is fresh, this part of all its allocations
 * since the plan.  If the pool goes round many times between two plans, an
 * eighth of a lap is nothing: equally busy partitions differ by as much
 * whenever a CPU pauses.  The part is twice the tolerance of an even load
 * (balance.h).  A plan is fresh for five times the default bgwriter_delay: if
 * it is older, the background writer sleeps, and only this rule corrects
 * anything.
 */
#define PGSWEEP_AHEAD_PART		(2 * PGSWEEP_BALANCE_TOLERANCE)
#define PGSWEEP_FRESH_PLAN_MS	1000

/*
 * After this many pinned buffers in a row, the next lease is taken elsewhere.
 * Few enough not to cost much, and more than the pins of one backend that has
 * just read ahead (io_combine_limit is 16 by default).
 */
#define PGSWEEP_PINNED_RUN		32

/*
 * A lease of a partition ends: add what it has given to the counters of
 * partitions.  Once per lease, because per allocation it would cost several
 * stores.  in_progress allocations of the process belong to its next lease.
 */
void
pgsweep_note_lease(PgSweepSlot *slot, uint32 in_progress)
{
	PgSweepItinerary *it = &slot->itinerary;
	const PgSweepCounters *count = &slot->counters[PGSWEEP_PARTITIONED];
	uint64		requests = count->allocations - in_progress - it->noted_allocations;
	uint64		found = requests - (count->failed - it->noted_failed);
	PgSweepPartCounters *parts = pgsweep_part_counters(slot);
	PgSweepPartCounters *home = &parts[it->home];
	PgSweepPartCounters *target = &parts[it->target];

	Assert(it->noting);
	home->requests += requests;
	target->allocations += found;
	target->evictions += count->evictions - it->noted_evictions;
	if (it->home != it->target)
	{
		home->redirected_out += found;
		target->redirected_in += found;
	}
	if (PgSweepPool->parts[it->home].node == PgSweepPool->parts[it->target].node)
		target->local += found;

	it->noted_allocations += requests;
	it->noted_failed = count->failed;
	it->noted_evictions = count->evictions;
	it->noting = false;
}

/*
 * The partition that the plan chooses for this lease.
 *
 * Numbers are drawn by adding the golden section of the unit.  Any run of
 * them is spread evenly, so even a few leases keep the weights.  Each process
 * has its own sequence.
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
 * Allocations of a partition since the last plan, estimated from its hand,
 * per buffer of the partition.  (The difference is signed because there may
 * be a new plan between the two reads.)
 *
 * Allocations and not ticks: where pages are used often, the hand should go
 * further for each victim.
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
 * Has the hand moved by at least an epoch since the last plan?  If not, it is
 * not far ahead, and no process needs to look at another hand.  Reads only
 * lines that are seldom written.
 */
static inline bool
far_since_plan(uint32 partition)
{
	PgSweepPartition *part = &PgSweepPool->parts[partition];

	return pgsweep_read_u64(&part->epoch) >
		PgSweepPool->plan.base_ticket[partition] >> part->epoch_shift;
}

/*
 * Compare a partition with one other, each time another one, and choose that
 * if this one has given out more.  Comparing two is enough to keep all of
 * them together (the power of two choices), and reads one hand's line per
 * lease.
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
 * Choose the partition of the next lease. pinned_run is the number of pinned
 * buffers that the present walk has found in a row.
 */
static PgSweepPartition *
partitioned_choose(PgSweepSlot *slot, uint32 pinned_run)
{
	PgSweepItinerary *it = &slot->itinerary;
	const PgSweepPlan *plan = &PgSweepPool->plan;
	uint32		home = pgsweep_home(MyProcNumber);
	uint32		target;

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
 * The sum of all hands points to no buffer, but counts passes over the pool.
 */
static void
partitioned_position(int *hand, uint64 *passes)
{
	uint64		ticks = 0;

	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
		ticks += pgsweep_hand_read(&PgSweepPool->parts[i]);
	*hand = -1;
	*passes = ticks / NBuffers;
}

/*
 * One scan per partition.  They share the pages that may be written: equal
 * parts first, then the unused rest of the others.  So a partition full of
 * dirty pages neither takes all nor leaves any unused.  The first partition
 * changes from cycle to cycle, because of the last few pages.  Allocations
 * are counted by partition: recent_alloc includes other strategies'
 * allocations from before a switch.
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
	begin = (begin + 1) % n;	/* a wrap-around would repeat one */

	/* rounds, until no partition wants more or the pages are used up */
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
