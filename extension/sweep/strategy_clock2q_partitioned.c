/*-------------------------------------------------------------------------
 *
 * extension/sweep/strategy_clock2q_partitioned.c
 *	  Strategy "clock2q_partitioned": probation, and a clock for the rest, in each
 *	  partition of the pool.
 *
 * Homes, balance and laps are those of "partitioned", slots and their hands those
 * of "clock2q".  Each partition has slots, a length and a first lap of its own.
 * Ghosts are the pool's, as a page returns to any partition.
 *
 * A process takes leases of slots in the partition that serves it.  That is chosen
 * when its lease of a main part's hand is used up, as by "partitioned", and for
 * slots while it has none.  So as long as probation gives all victims, it follows
 * the process from CPU to CPU.  A page gets a slot of the partition that its
 * buffer is in.
 *
 * What is ahead is decided by the main parts' hands alone: where these stand
 * still, no page is lost that has been used, however many are loaded.  So hands
 * that stand still do not bring processes to free buffers elsewhere: partitions in
 * a first lap come first.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/bufmgr.h"
#include "storage/proc.h"
#include "sweep/partitions.h"
#include "sweep/probation.h"

/*
 * Are there free buffers in other partitions only?
 */
static inline bool
free_elsewhere(const PgSweepItinerary *it)
{
	return unlikely(pgsweep_read_u64(&PgSweepPool->first_laps) != 0) &&
		PgSweepPool->laps.balanced &&
		!pgsweep_first_lap(&PgSweepPool->probation[it->target]);
}

/*
 * The partition of the next lease, of slots or of the hand.
 */
static PgSweepPartition *
clock2q_partitioned_choose(PgSweepSlot *slot, uint32 pinned_run)
{
	PgSweepPartition *part = pgsweep_choose_partition(slot, pinned_run);
	PgSweepItinerary *it = &slot->itinerary;

	if (it->hops > 0 || !free_elsewhere(it))
		return part;
	it->target = pgsweep_first_lap_serving(pgsweep_order(it->target));
	return &PgSweepPool->parts[it->target];
}

/*
 * New slots are wanted: from which partition?  That of the process' lease of a main
 * part's hand, unless its home has changed, or others have free buffers.  Then it
 * gives up a lease that is not of the partition chosen.
 */
static pg_noinline void
choose_slots(PgSweepSlot *slot, uint64 active)
{
	PgSweepLease *lease = &slot->lease;
	PgSweepItinerary *it = &slot->itinerary;
	bool		leased = lease->left > 0 && lease->active == active;
	PgSweepPartition *part;

	if (it->noting)
		pgsweep_note_lease(slot, 0);
	if (leased && pgsweep_home(MyProcNumber) == it->home && !free_elsewhere(it))
	{
		it->noting = true;
		return;
	}

	part = clock2q_partitioned_choose(slot, 0);
	if (leased && lease->part != part)
	{
		PgSweepCounters *count = &slot->counters[PGSWEEP_CLOCK2Q_PARTITIONED];

		/* as if a switch had come */
		count->leases_expired++;
		count->buffers_expired += pgsweep_lease_expire(lease, 0, 0);
	}
}

static BufferDesc *
clock2q_partitioned_get_victim(PgSweepSlot *slot, uint32 *buf_state, uint64 active)
{
	if (unlikely(slot->c2q.active != active || slot->c2q.lease.fill_left == 0))
		choose_slots(slot, active);
	return pgsweep_probation_get_victim(&PgSweepPool->probation[slot->itinerary.target],
										slot, buf_state, active,
										clock2q_partitioned_choose);
}

static void
clock2q_partitioned_loaded(PgSweepSlot *slot, BufferDesc *buf, uint64 hash,
						   BufferAccessStrategy ring, uint64 active)
{
	/* before a switch, it may have been the whole pool's */
	PgSweepProbation *p = likely(slot->c2q.active == active) ?
		slot->c2q.probation : &PgSweepPool->probation[0];

	pgsweep_probation_loaded(pgsweep_probation_with(p, buf->buf_id), slot, buf, hash, ring, active);
}

/*
 * Under "clock2q", any slot may have any buffer.  A partition's hand would pass
 * over one in a slot of another partition until that one fills the slot, and an
 * idle one does not.  Processes that have the new strategy already may write
 * places meanwhile: one that is lost is a page that is not judged.
 */
static void
clock2q_partitioned_activated(void)
{
	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
	{
		PgSweepProbation *p = &PgSweepPool->probation[i];

		pgsweep_c2q_only_own_slots(&p->c2q);
		pgsweep_first_lap_activated(p);
	}
}

static void
clock2q_partitioned_freed(int buffer)
{
	pgsweep_probation_freed(pgsweep_probation_with(&PgSweepPool->probation[0], buffer), buffer);
}

static bool
clock2q_partitioned_may_have_free(void)
{
	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
		if (pgsweep_first_lap(&PgSweepPool->probation[i]))
			return true;
	return false;
}

/*
 * Two scans for each partition.  Its victims are divided among them as those of
 * all partitions are.
 */
static bool
clock2q_partitioned_lru_scan(struct WritebackContext *wb_context, bool fresh,
							 uint32 recent_alloc, int max_pages, int *wrote)
{
	static PgSweepLruState lru[2 * PGSWEEP_MAX_PARTITIONS];
	uint32		n = PgSweepPool->num_partitions;
	uint32		all[2];
	uint32		recent[2];

	pgsweep_probation_recent(pgsweep_c2q_kind(PGSWEEP_CLOCK2Q_PARTITIONED), fresh, all);
	for (uint32 i = 0; i < n; i++)
	{
		uint64		victims = pgsweep_recent_allocations(i);

		recent[PGSWEEP_C2Q_PROBATION] = victims * all[PGSWEEP_C2Q_PROBATION] / Max(all[0] + all[1], 1);
		recent[PGSWEEP_C2Q_MAIN] = victims - recent[PGSWEEP_C2Q_PROBATION];
		pgsweep_probation_begin_lru(&PgSweepPool->probation[i], &lru[2 * i], fresh, recent);
	}
	return pgsweep_lru_clean(lru, 2 * n, wb_context, max_pages, wrote) && recent_alloc == 0;
}

const PgSweepStrategyRoutine pgsweep_clock2q_partitioned_strategy = {
	.position = pgsweep_partitions_position,
	.get_victim = clock2q_partitioned_get_victim,
	.loaded = clock2q_partitioned_loaded,
	.activated = clock2q_partitioned_activated,
	.freed = clock2q_partitioned_freed,
	.may_have_free = clock2q_partitioned_may_have_free,
	.cycle = pgsweep_partitions_cycle,
	.lru_scan = clock2q_partitioned_lru_scan,
};
