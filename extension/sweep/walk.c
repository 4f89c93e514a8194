/*-------------------------------------------------------------------------
 *
 * extension/sweep/walk.c
 *	  Walks leases until it finds a victim.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/bufmgr.h"
#include "sweep/batch.h"
#include "sweep/partitions.h"
#include "sweep/walk.h"

/*
 * The walk has examined as many buffers as the pool has, and found only pins
 * and probation.  That does not mean that all are pinned: other backends may have
 * taken the tickets of every unpinned buffer, partitions may have been visited
 * more than once, and one on probation will do now.  So examine each buffer of the
 * pool once, outside the common order and under the header lock, before giving
 * up.  Start where the walk is, because processes that come here together
 * should lock different buffers.
 *
 * Returns a victim, or NULL if it took a usage count: then walking on makes
 * sense.
 */
static pg_noinline BufferDesc *
last_round(uint32 start, PgSweepCounters *count, uint32 *buf_state)
{
	bool		took_usage = false;

	for (uint32 i = 0; i < (uint32) NBuffers; i++)
	{
		BufferDesc *buf = pgsweep_descriptor((start + i) % NBuffers);

		switch (pgsweep_look_locked(buf, buf_state))
		{
			case PGSWEEP_LOOK_VICTIM:
				return buf;
			case PGSWEEP_LOOK_USED:
				count->usage_taken++;
				took_usage = true;
				break;
			case PGSWEEP_LOOK_PINNED:
			case PGSWEEP_LOOK_RACED:
			case PGSWEEP_LOOK_NONE:
				count->pinned++;
				break;
		}
	}

	if (!took_usage)
	{
		count->failed++;
		elog(ERROR, "no unpinned buffers available");	/* core's words */
	}
	return NULL;
}

/*
 * Take a lease of at most an eighth of the partition.  (The leases of several
 * backends with one home can be more than that together; those that are
 * lapped expire.)
 */
static inline void
take_lease(PgSweepLease *lease, PgSweepPartition *part, uint64 active, uint32 batch)
{
	uint64		epoch = pgsweep_read_u64(&part->epoch);

	pgsweep_lease_take(lease, part, active,
					   Min(batch, pgsweep_longest_lease(part)));

	/* a new epoch, most often by this lease */
	if (unlikely(pgsweep_read_u64(&part->epoch) != epoch) &&
		part != &PgSweepPool->whole && PgSweepPool->laps.balanced)
	{
		PgSweepLaps *laps = &PgSweepPool->laps;
		uint32		i = part - PgSweepPool->parts;

		pgsweep_laps_publish(laps, i, part);
		if (pgsweep_laps_changing(laps, i))
			pgsweep_laps_look(laps, PgSweepPool->num_partitions);
	}
}

/*
 * The whole walk: drop the lease if it is out of date, take another one when
 * it is used up, examine one buffer after the other.
 *
 * Works on a copy of the lease: the compiler must store everything in shared
 * memory before each atomic operation, and load it again after.
 */
static pg_attribute_always_inline BufferDesc *
walk_on(PgSweepSlot *slot, uint32 *buf_state, uint64 active,
		PgSweepChoosePartition choose, const PgSweepClock2q *passing)
{
	PgSweepCounters *count = &slot->counters[PGSWEEP_ACTIVE_ID(active)];
	PgSweepLease lease = slot->lease;
	uint32		batch = pg_atomic_read_u32(&PgSweepPool->batch);
	uint32		expired = pgsweep_lease_expire(&lease, active, batch);
	uint32		pinned_run = 0;
	uint32		passed_run = 0; /* among them */
	BufferDesc *buf;

	if (unlikely(expired > 0))
	{
		PgSweepCounters *former = &slot->counters[PGSWEEP_ACTIVE_ID(slot->lease.active)];

		former->leases_expired++;
		former->buffers_expired += expired;
	}

	for (;;)
	{
		PgSweepLook look;
		bool		passed;

		if (unlikely(lease.left == 0))
		{
			/* the former one may be of before a switch */
			if (slot->itinerary.noting)
				pgsweep_note_lease(slot, pgsweep_has_partitions(PGSWEEP_ACTIVE_ID(active)));
			take_lease(&lease, choose(slot, pinned_run - passed_run), active, batch);
			count->leases++;
		}

		buf = pgsweep_descriptor(pgsweep_lease_peek(&lease));
		passed = passing != NULL && pgsweep_c2q_passes(passing, pgsweep_lease_peek(&lease));
		pgsweep_prefetch_descriptor(buf, lease.left);
		(void) pgsweep_lease_tick(&lease);
		look = passed ? PGSWEEP_LOOK_NONE : pgsweep_look(buf, buf_state);
		if (likely(look == PGSWEEP_LOOK_VICTIM))
			break;

		if (look == PGSWEEP_LOOK_USED)
		{
			count->usage_taken++;
			pinned_run = passed_run = 0;
		}
		else if (look == PGSWEEP_LOOK_RACED)
		{
			count->lost_races++;
			pinned_run = passed_run = 0;
		}
		else
		{
			/* others on probation are no victims either */
			if (passed)
				passed_run++;
			else
				count->pinned++;
			if (unlikely(++pinned_run >= (uint32) NBuffers))
			{
				slot->lease = lease;	/* the next may raise an error */
				buf = last_round(lease.next_buffer, count, buf_state);
				if (buf != NULL)
					break;
				pinned_run = passed_run = 0;
			}
		}
	}

	count->evictions += pgsweep_state_has_page(*buf_state);
	slot->lease = lease;
	return buf;
}

BufferDesc *
pgsweep_walk_on(PgSweepSlot *slot, uint32 *buf_state, uint64 active,
				PgSweepChoosePartition choose)
{
	return walk_on(slot, buf_state, active, choose, NULL);
}

/*
 * The same, passing over buffers on probation.  A function of its own: the other
 * one must not look for them.
 *
 * A buffer may come to probation between the look at its place and the look at
 * its header: what that means is in clock2q.h.
 */
BufferDesc *
pgsweep_walk_on_passing(PgSweepSlot *slot, uint32 *buf_state, uint64 active,
						PgSweepChoosePartition choose, const PgSweepClock2q *passing)
{
	return walk_on(slot, buf_state, active, choose, passing);
}
