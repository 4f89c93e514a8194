/*-------------------------------------------------------------------------
 *
 * walk.h
 *	  Walking leases over a partition: the common case, in line.
 *
 * Touches, per allocation: the read-mostly lines of PgSweepShared and of the
 * partition, the caller's own slot, and the descriptors looked at.  The hand's
 * line only when the lease is used up, or nearly a lap old.
 *
 * An allocation takes about 15 ns, of which one compare-and-swap is half.  It
 * waits for all stores before it to reach the cache, and nothing after it is
 * loaded before it is done; so every instruction of the rest counts, four to a
 * cycle.  That is why arguments keep their places from one function to the
 * next, and why counters are derived from each other where they can be.
 *
 * extension/sweep/walk.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_WALK_H
#define PGSWEEP_WALK_H

#include "sweep/strategy.h"
#include "sweep/victim.h"

/*
 * Which partition shall this process' next lease be taken from?  pinned_run is
 * the number of buffers that its present walk has found pinned since it last
 * found any other.
 */
typedef PgSweepPartition *(*PgSweepChoosePartition) (PgSweepSlot *slot,
													 uint32 pinned_run);

/* walk.c */
extern BufferDesc *pgsweep_walk_on(PgSweepSlot *slot, uint32 *buf_state, uint64 active,
								   PgSweepChoosePartition choose);

/*
 * How many descriptors ahead a lease's next ones are fetched, for writing: the
 * line of a descriptor was last written by the process that had the buffer
 * before, and a compare-and-swap has to wait for it.  With two processes on two
 * cores, and three looks an allocation, 4 ahead saves 15 to 20 % of the time, 2
 * the same, 8 nothing any more (bench/alloc; usage 2, two processes).
 */
#define PGSWEEP_PREFETCH_AHEAD	4

/*
 * Never beyond the lease: what comes after it belongs to another backend's.
 */
static inline void
pgsweep_prefetch_descriptor(const BufferDesc *buf, uint32 left)
{
	if (left > PGSWEEP_PREFETCH_AHEAD)
		pgsweep_prefetch_for_write((const BufferDescPadded *) buf + PGSWEEP_PREFETCH_AHEAD);
}

/*
 * GetBufferDescriptor(), by a copy of the array's address that is this
 * library's own: one load less on that chain.
 */
static inline BufferDesc *
pgsweep_descriptor(uint32 id)
{
	return &pgsweep_descriptors[id].bufferdesc;
}

/*
 * Find a victim for a strategy's get_victim, whose contract is in strategy.h; id is
 * the strategy's own.  part is the partition of the lease, if that has tickets
 * left, else anything.
 *
 * Most often the lease is good and its next buffer is a victim.  That case is
 * done here, in one look.  All others are left to pgsweep_walk_on(), with
 * nothing changed but a lost race.
 */
static inline BufferDesc *
pgsweep_walk(PgSweepSlot *slot, uint32 *buf_state, uint64 active,
			 PgSweepStrategyId id, const PgSweepPartition *part,
			 PgSweepChoosePartition choose)
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

		if (pgsweep_state_is_free(state))
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
	return pgsweep_walk_on(slot, buf_state, active, choose);
}

#endif							/* PGSWEEP_WALK_H */
