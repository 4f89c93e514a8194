/*-------------------------------------------------------------------------
 *
 * lease.h
 *	  A lease: consecutive tickets of a hand that one backend walks privately.
 *
 * One fetch-add on the hand takes the whole batch, so the hand's cache line
 * moves between CPUs once a batch instead of once a buffer (the idea of the
 * batched clock sweep: Mlodgenski and Burd, pgsql-hackers 2026).  That thread's
 * patch lets a backend keep its batch for ever; an idle one then replays it
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
 * An expired lease is dropped, not replayed.  Its buffers are skipped in that
 * pass and looked at in the next one, as are those of a backend that exits.
 *
 * Lapped or not can be read off the hand, but reading the hand at every
 * allocation would bring back the traffic that the batch saves.  The pass
 * number is published instead, in a line that changes once a pass; only while
 * the published pass differs from the lease's does the holder look at the
 * hand itself.
 *
 * What remains is the race that every clock sweep has: a backend that loses its
 * CPU between its check and its look at the buffer, for a whole lap of the
 * hand, takes usage counts in the wrong pass: one from each buffer that it
 * looks at before it has its victim, the rest of the lease at most.  Core has
 * it between its fetch-add and its header lock.  It is harmless: whoever takes
 * a victim checks its state in the same atomic step that locks it.
 *
 * Nothing here knows of processes or shared memory beyond the partition, so
 * that test/modules/test_pg_sweep can drive any interleaving of it.
 *
 * extension/sweep/lease.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_LEASE_H
#define PGSWEEP_LEASE_H

#include "sweep/hand.h"

/*
 * Written by its owner only; others may read it, torn, for a view.
 */
typedef struct PgSweepLease
{
	PgSweepPartition *part;		/* whose tickets; pointer of the owner's
								 * process */
	uint64		active;			/* strategy and generation it was taken under */
	uint64		pass;			/* pass of its first ticket */
	uint64		next_ticket;	/* first ticket not used yet */
	uint32		next_offset;	/* that ticket's buffer, from the partition's
								 * first */
	uint32		left;			/* tickets not used yet; 0 = no lease */
} PgSweepLease;

/*
 * Take a lease of batch tickets; the caller has used up or dropped the former
 * one.  0 < batch <= part->num_buffers.
 *
 * The fetch-add is a full barrier, but nothing relies on that.
 */
static inline void
pgsweep_lease_take(PgSweepLease *lease, PgSweepPartition *part,
				   uint64 active, uint32 batch)
{
	uint64		ticket = pg_atomic_fetch_add_u64(&part->hand.ticket, batch);
	uint64		pass = ticket / part->num_buffers;
	uint64		last_pass;

	lease->part = part;
	lease->active = active;
	lease->pass = pass;
	lease->next_ticket = ticket;
	lease->next_offset = (uint32) (ticket - pass * part->num_buffers);
	lease->left = batch;

	/*
	 * Publish the pass of the last ticket if we are the first to reach it.  A
	 * plain store: two backends that were first in successive passes may
	 * store in the wrong order, if one lost its CPU here for a whole pass;
	 * then the next lease repairs it.  Until then, a lease lapped just now
	 * may pass for valid: the harmless case in the header comment.  A
	 * compare-and-swap would close that window, at one more atomic operation
	 * a pass, and leave the one between check and use.
	 */
	last_pass = pass + (lease->next_offset + batch > part->num_buffers);
	if (unlikely(pg_atomic_read_u64(&part->pass) < last_pass))
		pg_atomic_write_u64(&part->pass, last_pass);
}

/*
 * Has the hand lapped what is left of the lease?  Ticket t is lapped once
 * ticket t + n has been given out, that is, once the hand is beyond t + n.
 *
 * While the published pass is that of the lease's first ticket, no ticket of
 * a later pass has been given out, so the hand is at most at the end of that
 * pass, hence not beyond t + n.  Otherwise look at the hand.
 */
static inline bool
pgsweep_lease_lapped(const PgSweepLease *lease)
{
	PgSweepPartition *part = lease->part;

	if (likely(pg_atomic_read_u64(&part->pass) == lease->pass))
		return false;
	return pgsweep_hand_read(part) > lease->next_ticket + part->num_buffers;
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
		lease->left = 0;
	}
	else if (unlikely(lease->left > batch))
	{
		dropped = lease->left - batch;
		lease->left = batch;
	}
	return dropped;
}

/*
 * Use one ticket; returns the id of its buffer.  lease->left > 0.
 */
static inline int
pgsweep_lease_tick(PgSweepLease *lease)
{
	uint32		offset = lease->next_offset;

	lease->left--;
	lease->next_ticket++;
	if (unlikely(++lease->next_offset == lease->part->num_buffers))
		lease->next_offset = 0;

	return (int) (lease->part->first_buffer + offset);
}

#endif							/* PGSWEEP_LEASE_H */
