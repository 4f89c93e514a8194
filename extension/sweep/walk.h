/*-------------------------------------------------------------------------
 *
 * extension/sweep/walk.h
 *	  Walks leases over a partition: the common case, inlined.
 *
 * An allocation touches the read-mostly lines of PgSweepShared and of the
 * partition, the caller's own slot, and the descriptors that it examines.  It
 * touches the hand's line only if the lease is used up or nearly a lap old.
 *
 * An allocation takes about 15 ns, and one compare-and-swap is half of that.
 * It waits until all earlier stores have reached the cache, and later loads
 * wait for it.  So every other instruction counts, four per cycle.  For that
 * reason arguments keep their registers from one function to the next, and
 * counters are derived from each other where possible.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_WALK_H
#define PGSWEEP_WALK_H

#include "sweep/strategy.h"
#include "sweep/victim.h"

/*
 * Choose the partition of this process' next lease. pinned_run is the number
 * of buffers that its present walk has found pinned in a row.
 */
typedef PgSweepPartition *(*PgSweepChoosePartition) (PgSweepSlot *slot,
													 uint32 pinned_run);

/* walk.c */
extern BufferDesc *pgsweep_walk_on(PgSweepSlot *slot, uint32 *buf_state, uint64 active,
								   PgSweepChoosePartition choose);
extern BufferDesc *pgsweep_walk_on_passing(PgSweepSlot *slot, uint32 *buf_state, uint64 active,
										   PgSweepChoosePartition choose,
										   const PgSweepClock2q *passing);

/*
 * How many descriptors ahead are prefetched for writing.  The line of a
 * descriptor was last written by another process, and the compare-and-swap
 * has to wait for it.  With two processes on two cores and three looks per
 * allocation, 4 or 2 ahead save 15 to 20 % of the time, 8 nothing (bench
 * alloc; usage 2).
 */
#define PGSWEEP_PREFETCH_AHEAD	4

/*
 * Never beyond the lease: the next descriptors belong to another backend's.
 */
static inline void
pgsweep_prefetch_descriptor(const BufferDesc *buf, uint32 left)
{
	if (left > PGSWEEP_PREFETCH_AHEAD)
		pgsweep_prefetch_for_write((const BufferDescPadded *) buf + PGSWEEP_PREFETCH_AHEAD);
}

/*
 * GetBufferDescriptor() with this library's own copy of the array's address,
 * which saves one load.
 */
static inline BufferDesc *
pgsweep_descriptor(uint32 id)
{
	return &pgsweep_descriptors[id].bufferdesc;
}

/*
 * Find a victim for a strategy's get_victim, whose contract is in strategy.h;
 * id is the strategy's own.  part is the partition of the lease if that has
 * tickets left, and otherwise ignored.  Buffers on probation are passed over;
 * passing is NULL if there are none, known when this is compiled.
 *
 * Mostly the lease is good and its next buffer is a victim.  That case is
 * done here, in one look.  All others are left to pgsweep_walk_on(), with
 * nothing changed but a count of lost races.
 */
static inline BufferDesc *
pgsweep_walk(PgSweepSlot *slot, uint32 *buf_state, uint64 active,
			 PgSweepStrategyId id, const PgSweepPartition *part,
			 PgSweepChoosePartition choose, const PgSweepClock2q *passing)
{
	PgSweepLease *lease = &slot->lease;
	PgSweepCounters *count = &slot->counters[id];

	Assert(id == PGSWEEP_ACTIVE_ID(active));
	count->allocations++;

	if (likely(pgsweep_lease_good(lease, part, active,
								  pg_atomic_read_u32(&PgSweepPool->batch))))
	{
		BufferDesc *buf = pgsweep_descriptor(pgsweep_lease_peek(lease));
		uint32		state = pg_atomic_read_u32(&buf->state);

		if (pgsweep_state_is_free(state) &&
			(passing == NULL || !pgsweep_c2q_passes(passing, buf->buf_id)))
		{
			pgsweep_prefetch_descriptor(buf, lease->left);
			(void) pgsweep_lease_tick(lease);
			if (likely(pgsweep_lock_victim(buf, state, buf_state)))
			{
				count->evictions += pgsweep_state_has_page(state);
				return buf;
			}
			count->lost_races++;
		}
	}
	if (passing != NULL)
		return pgsweep_walk_on_passing(slot, buf_state, active, choose, passing);
	return pgsweep_walk_on(slot, buf_state, active, choose);
}

#endif							/* PGSWEEP_WALK_H */
