/*-------------------------------------------------------------------------
 *
 * extension/sweep/lease.h
 *	  A lease: consecutive tickets of a hand that one backend walks privately.
 *
 * One fetch-add on the hand takes the whole batch, so the hand's cache line
 * moves between CPUs once per batch instead of once per buffer (the batched
 * clock sweep of Mlodgenski and Burd, pgsql-hackers 2026).  That thread's
 * patch lets a backend keep its batch forever.  An idle one then replays it
 * laps later, and takes usage counts a second time in one pass.  So a lease
 * here expires:
 *
 * - when the strategy was switched since (the generation differs),
 * - when the hand has lapped it: another backend has been handed the same
 *	 buffers again, one pass later,
 * - in part, when leases have become smaller since because there are more
 *	 backends now (batch.h): what exceeds the present size is dropped,
 * - when the backend exits.
 *
 * An expired lease is dropped, not replayed.
 *
 * Nor is it given back: its buffers are passed over until the hand comes by
 * again.  That must not hit the same buffers each time.  Suppose each
 * process' first lease were a whole batch.  Processes that allocate little
 * and exit (a connection for each transaction, parallel workers) would use
 * only the first buffers of each batch.  NBuffers is a multiple of most batch
 * sizes, so these would always be the same buffers, and the rest of the pool
 * would hardly be replaced.  So leases start with one ticket and double up to
 * the batch size: a process never drops more than it has used.  A lease that
 * was out of date starts over, because a process slower than a lap of the
 * hand would waste most of a large one, too.
 *
 * The hand tells whether a lease is lapped, but reading it at every
 * allocation would bring back the traffic that batches save.  Instead its
 * position is published 16 times per lap, in a line that is otherwise only
 * read.  This proves that a lease is not lapped until it is nearly a lap old.
 * Only then its holder looks at the hand itself.
 *
 * One race remains, as in every clock sweep.  A backend may lose its CPU
 * between its check and its look at the buffer, for a whole lap of the hand.
 * It then takes usage counts in the wrong pass: one from each buffer that it
 * examines before it has its victim, at most the rest of the lease.  Core has
 * the same race between its fetch-add and its header lock.  It is harmless,
 * because a victim's state is checked in the same atomic step that locks it.
 *
 * Nothing here knows processes, or shared memory beyond the partition:
 * test/sweep/test_sweep drives any interleaving of it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_LEASE_H
#define PGSWEEP_LEASE_H

#include "sweep/hand.h"

/*
 * Written only by its owner.  Views may read it torn.
 */
typedef struct PgSweepLease
{
	uint64		active;			/* strategy and generation it was taken under */
	uint64		safe_epoch;		/* not lapped while the partition's epoch is
								 * at most this */
	uint32		next_buffer;	/* id of the first unused ticket's buffer;
								 * kept when the lease is used up or dropped */
	uint32		left;			/* tickets not used yet; 0 = no lease */
	uint32		end_buffer;		/* id after the partition's last buffer */
	uint32		size;			/* tickets it was taken with, less what was
								 * cut off since; 0 = start over */
	uint64		end_ticket;		/* the one after its last ticket */
	PgSweepPartition *part;		/* whose tickets; pointer of the owner's
								 * process */
} PgSweepLease;

/*
 * The first ticket not used yet.  Its buffer is next_buffer.
 */
static inline uint64
pgsweep_lease_next_ticket(const PgSweepLease *lease)
{
	return lease->end_ticket - lease->left;
}

/*
 * The buffer of a ticket newer than any of the former lease.  A backend that
 * takes one lease after another is seldom a lap behind itself, and then needs
 * no division (20 to 90 cycles for 64 bits).
 */
static inline uint32
pgsweep_ticket_buffer(const PgSweepLease *lease, const PgSweepPartition *part,
					  uint64 ticket)
{
	uint32		n = part->num_buffers;
	uint64		ahead = ticket - pgsweep_lease_next_ticket(lease);

	if (likely(lease->part == part && ahead < n))
	{
		uint64		buffer = lease->next_buffer + ahead;

		return (uint32) (buffer < lease->end_buffer ? buffer : buffer - n);
	}
	return part->first_buffer + (uint32) (ticket % n);
}

/*
 * Take a lease of at most batch tickets; the caller has used up or dropped the
 * former one.  0 < batch <= part->num_buffers.  A lease that has never been
 * taken is all zeroes.
 *
 * The fetch-add is a full barrier, but nothing relies on that.
 */
static inline void
pgsweep_lease_take(PgSweepLease *lease, PgSweepPartition *part,
				   uint64 active, uint32 batch)
{
	uint32		size = Max(Min(lease->size * 2, batch), 1);
	uint64		ticket = pg_atomic_fetch_add_u64(&part->hand.ticket, size);
	uint64		epoch = (ticket + size - 1) >> part->epoch_shift;

	Assert(lease->left == 0);
	Assert(batch > 0 && batch <= part->num_buffers);

	lease->next_buffer = pgsweep_ticket_buffer(lease, part, ticket);
	lease->end_ticket = ticket + size;
	lease->end_buffer = part->first_buffer + part->num_buffers;
	lease->part = part;
	lease->active = active;
	lease->left = size;
	lease->size = size;

	/* the last epoch that ends at or before the first ticket's next lap */
	lease->safe_epoch = ((ticket + part->num_buffers) >> part->epoch_shift) - 1;

	/*
	 * Publish the epoch of the last ticket if this lease is the first to
	 * reach it.  With this plain store, a process that lost its CPU between
	 * the read and the store may set the epoch back.  The next lease of any
	 * process repairs that.  Until then a lapped lease may pass for valid:
	 * the harmless race of the header comment, reached in another way.  It
	 * takes a stop of most of a lap between two instructions, and then a
	 * holder that returns from a longer one before any other backend takes a
	 * lease.  A compare-and-swap would rule it out, at some 20 atomic
	 * operations per lap, but the race between check and use would remain.
	 */
	if (unlikely(pgsweep_read_u64(&part->epoch) < epoch))
		pg_atomic_write_u64(&part->epoch, epoch);
}

/*
 * Has the hand lapped what is left of the lease?  Ticket t is lapped once
 * ticket t + n has been given out, that is, once the hand is beyond t + n.
 *
 * No ticket of a later epoch than the published one has been given out,
 * except by processes between their fetch-add and their store.  So while that
 * epoch ends at or before t + n, the hand is not beyond it.  Otherwise look
 * at the hand.
 */
static inline bool
pgsweep_lease_lapped(const PgSweepLease *lease)
{
	PgSweepPartition *part = lease->part;

	if (likely(pgsweep_read_u64(&part->epoch) <= lease->safe_epoch))
		return false;
	return pgsweep_hand_read(part) >
		pgsweep_lease_next_ticket(lease) + part->num_buffers;
}

/*
 * Does the lease have a ticket, and is nothing of it out of date?  It is from
 * this partition if it was taken under the present strategy.  False may be
 * wrong; pgsweep_lease_expire() decides.
 */
static inline bool
pgsweep_lease_good(const PgSweepLease *lease, const PgSweepPartition *part,
				   uint64 active, uint32 batch)
{
	Assert(lease->left == 0 || lease->active != active || lease->part == part);

	/* left - 1 is large when left is 0 */
	return lease->left - 1 < batch &&
		lease->active == active &&
		pgsweep_read_u64(&part->epoch) <= lease->safe_epoch;
}

/*
 * Drop what is out of date, given the strategy now active and the present
 * size of a lease.  Returns the number of tickets dropped.
 */
static inline uint32
pgsweep_lease_expire(PgSweepLease *lease, uint64 active, uint32 batch)
{
	uint32		dropped = 0;

	if (lease->left == 0)
		return 0;

	if (unlikely(lease->active != active) ||
		unlikely(pgsweep_lease_lapped(lease)))
	{
		dropped = lease->left;
		lease->size = 0;
	}
	else if (unlikely(lease->left > batch))
	{
		dropped = lease->left - batch;
		lease->size -= dropped; /* was never used: do not grow on it */
	}

	lease->left -= dropped;
	lease->end_ticket -= dropped;
	return dropped;
}

/*
 * The id of the next ticket's buffer.  lease->left > 0.
 */
static inline int
pgsweep_lease_peek(const PgSweepLease *lease)
{
	return (int) lease->next_buffer;
}

/*
 * Use one ticket; returns the id of its buffer.  lease->left > 0.
 */
static inline int
pgsweep_lease_tick(PgSweepLease *lease)
{
	uint32		buffer = lease->next_buffer;
	uint32		next = buffer + 1;

	Assert(lease->left > 0);

	if (unlikely(next == lease->end_buffer))
		next = lease->part->first_buffer;
	lease->next_buffer = next;
	lease->left--;

	return (int) buffer;
}

#endif							/* PGSWEEP_LEASE_H */
