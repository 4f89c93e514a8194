/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/oracle.h
 *	  Properties of leases, from their definitions and not from the formulas of
 *	  lease.h and batch.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef ORACLE_H
#define ORACLE_H

#include "sim.h"

/*
 * Tickets were given out: the next ones in order of buffers, with the first after
 * the last.
 */
static void
sim_given(uint64 first, uint32 count)
{
	SimBackend *b = sim->current;

	if (first != sim->hand)
		violation("the hand gave out ticket " UINT64_FORMAT ", expected " UINT64_FORMAT,
				  first, sim->hand);
	if (count == 0 || count > PGSWEEP_BATCH_MAX)
	{
		violation("a lease of %u tickets", count);
		return;
	}
	if (b->left != 0)
		violation("a lease was taken while %u tickets of the former one were left", b->left);

	if (sim->next_buffer + count > sim->n)
		sim->counts.straddling++;

	b->ticket = first;
	b->head = 0;
	b->left = count;
	for (uint32 i = 0; i < count; i++)
	{
		b->tickets[i].buffer = sim->next_buffer;
		b->tickets[i].nth = ++sim->given[sim->next_buffer];
		sim->hand++;
		if (++sim->next_buffer == sim->n)
		{
			sim->next_buffer = 0;
			sim->next_pass++;
			sim->counts.passes++;
		}
	}
	sim->counts.tickets += count;
}

/* Has this ticket's buffer been given out again since? */
static bool
ticket_lapped(const SimTicket *ticket)
{
	return sim->given[ticket->buffer] != ticket->nth;
}

static bool
any_lapped(const SimBackend *b)
{
	for (uint32 i = 0; i < b->left; i++)
		if (ticket_lapped(&b->tickets[b->head + i]))
			return true;
	return false;
}

/*
 * How many of the backend's tickets are out of date: all of them if the strategy
 * was switched or one of their buffers was given out again, else those beyond the
 * present size of a lease.
 */
static uint32
out_of_date(const SimBackend *b, uint64 active, uint32 batch)
{
	if (b->taken_under != active || any_lapped(b))
		return b->left;
	return b->left > batch ? b->left - batch : 0;
}

/*
 * The usable tickets of all backends are at most an eighth of the pool, or one per
 * backend if there are more backends than that.
 */
static void
check_outstanding(void)
{
	uint64		usable = 0;

	for (uint32 i = 0; i < sim->max_backends; i++)
	{
		SimBackend *b = &sim->backends[i];

		if (!b->present && b->left > 0)
			violation("backend %u is gone and still has %u tickets", i, b->left);
		usable += b->left - out_of_date(b, sim->active, sim->batch);
	}
	sim->counts.outstanding = Max(sim->counts.outstanding, (int64) usable);
	if (sim->nbackends * 8 > sim->n)
		sim->counts.singles++;
	if (usable * 8 > sim->n && usable > sim->nbackends)
		violation("%u backends have " UINT64_FORMAT " usable tickets of a pool of %u",
				  sim->nbackends, usable, sim->n);
}

/*
 * Is what is published the epoch of the newest ticket?
 */
static bool
published_exact(void)
{
	uint64		epoch = pgsweep_read_u64(&sim->part->epoch);
	uint32		shift = sim->part->epoch_shift;

	if (sim->hand == 0)
		return epoch == 0;
	return epoch << shift < sim->hand && sim->hand <= (epoch + 1) << shift;
}

/*
 * The published epoch is never ahead of the hand.  It is behind from the moment
 * when a lease in a new epoch is taken until its backend, or another one, has
 * published that.  A backend that is stopped in between may write an older epoch
 * over a newer one, until the next lease is taken.  So it is exact after a backend
 * took a lease without being stopped.
 */
static void
check_published(bool exact)
{
	uint64		epoch = pgsweep_read_u64(&sim->part->epoch);

	if (published_exact())
		return;
	sim->counts.stale++;
	if (exact || epoch << sim->part->epoch_shift >= sim->hand)
		violation("epoch " UINT64_FORMAT " of %u tickets is published when the hand is at " UINT64_FORMAT,
				  epoch, 1u << sim->part->epoch_shift, sim->hand);
}

static bool
earlier(uint64 pass_a, int buffer_a, uint64 pass_b, int buffer_b)
{
	return pass_a < pass_b || (pass_a == pass_b && buffer_a < buffer_b);
}

/*
 * One backend asks where the hand is.
 */
static void
check_position(SimBackend *b)
{
	uint64		pass_before = sim->next_pass;
	int			buffer_before = sim->part->first_buffer + sim->next_buffer;
	uint64		pass;
	int			buffer;

	sim->code->position(sim->part, &buffer, &pass);

	if (earlier(pass, buffer, pass_before, buffer_before) ||
		earlier(sim->next_pass, sim->part->first_buffer + sim->next_buffer, pass, buffer))
		violation("position (" UINT64_FORMAT ", %d) when the hand was between (" UINT64_FORMAT ", %d) and (" UINT64_FORMAT ", %u)",
				  pass, buffer, pass_before, buffer_before,
				  sim->next_pass, sim->part->first_buffer + sim->next_buffer);
	if (earlier(pass, buffer, b->seen_passes, b->seen_buffer))
		violation("position (" UINT64_FORMAT ", %d) after (" UINT64_FORMAT ", %d) was seen: it went backwards",
				  pass, buffer, b->seen_passes, b->seen_buffer);
	b->seen_passes = pass;
	b->seen_buffer = buffer;
}

/*
 * Does the code take the fast path?  It must not if any ticket is out of date,
 * except in the documented window.  It must not be too careful, either, or the fast
 * path would never be taken.
 */
static bool
good_checked(SimBackend *b, uint64 active, uint32 batch)
{
	uint64		stops = sim->stops;
	bool		exact = published_exact();
	uint64		ahead = sim->hand - b->ticket;
	uint32		bad = out_of_date(b, active, batch);
	bool		good = sim->code->good(&b->lease, sim->part, active, batch);

	if (good && b->left == 0)
		violation("a lease of no tickets was taken for good");
	if (good && bad > 0 &&
		(b->taken_under != active || b->left > batch || (exact && stops == sim->stops)))
		violation("a lease of %u tickets was taken for good, %u are out of date", b->left, bad);
	if (!good && b->left > 0 && bad == 0 && ahead * 4 <= (uint64) sim->n * 3 &&
		stops == sim->stops)
		violation("a lease was not taken for good with the hand only " UINT64_FORMAT " tickets ahead",
				  ahead);
	return good && b->left > 0;
}

/*
 * Let the code drop what is out of date, and compare.
 */
static void
expire_checked(SimBackend *b, uint64 active, uint32 batch)
{
	uint64		stops = sim->stops;
	uint64		hand_reads = sim_hand_reads;
	uint64		hand = sim->hand;
	bool		exact = published_exact();
	bool		was_lapped = any_lapped(b);
	uint32		expected = out_of_date(b, active, batch);
	bool		switched = b->taken_under != active;
	bool		is_lapped;
	uint32		had = b->left;
	uint32		dropped;

	dropped = sim->code->expire(&b->lease, active, batch);
	is_lapped = any_lapped(b);

	if (dropped != expected)
	{
		bool		excused = false;

		/* lapped while it was looking */
		if (stops != sim->stops && !was_lapped && is_lapped && dropped == had)
			excused = true;

		/*
		 * Lapped, but the published epoch did not say so: the window that
		 * lease.h documents.  What is too long must be cut all the same.
		 */
		if (!switched && was_lapped && (!exact || stops != sim->stops) &&
			dropped == (had > batch ? had - batch : 0))
			excused = true;

		if (!excused)
			violation("%u of %u tickets were dropped, %u are out of date (%s%ssize now %u)",
					  dropped, had, expected, switched ? "switched, " : "",
					  was_lapped ? "lapped, " : "", batch);
	}

	if (dropped > b->left)
	{
		violation("%u tickets were dropped of %u", dropped, b->left);
		return;
	}
	b->left -= dropped;
	if (b->lease.left != b->left)
		violation("%u tickets are left after dropping %u of %u", b->lease.left, dropped, had);

	/* The hand is left alone until the lease is three quarters of a lap old */
	if (hand_reads != sim_hand_reads)
	{
		sim->counts.old++;
		if (stops == sim->stops && (hand - b->ticket) * 4 <= (uint64) sim->n * 3)
			violation("a lease looked at the hand that is only " UINT64_FORMAT " tickets ahead of it",
					  hand - b->ticket);
	}

	/* Out of date as a whole: its owner starts over with a small lease */
	if (dropped > 0 && b->left == 0)
		b->used = 0;
	if (dropped > 0)
		b->used_with_batch = 0;

	if (dropped > 0 && switched)
		sim->counts.switched++;
	else if (dropped > 0 && (was_lapped || is_lapped))
		sim->counts.lapped++;
	else if (dropped > 0)
		sim->counts.trimmed++;
}

/*
 * Take a lease.  It is never larger than the batch, nor than one more than its owner
 * has used since it started over; so no backend drops more than it uses.  And it
 * does become as large as the batch.
 */
static void
take_checked(SimBackend *b, uint64 active, uint32 batch)
{
	uint64		stops = sim->stops;

	if (batch != b->last_batch)
		b->used_with_batch = 0;
	b->last_batch = batch;
	b->taken_under = active;
	sim->code->take(&b->lease, sim->part, active, batch);

	if (b->left == 0 || b->left > batch || b->lease.left != b->left)
		violation("got %u tickets of the hand and have %u, the batch is %u",
				  b->left, b->lease.left, batch);
	if (b->left > b->used + 1)
		violation("took %u tickets after having used " UINT64_FORMAT, b->left, b->used);
	if (b->left < batch && b->used_with_batch >= 2 * batch)
		violation("took %u tickets only after having used " UINT64_FORMAT ", the batch is %u",
				  b->left, b->used_with_batch, batch);
	if (b->left == batch && batch > 1)
		sim->counts.whole++;
	check_published(stops == sim->stops);
}

/*
 * Look at one buffer.  stopped: was the backend stopped since it began to check its
 * lease?
 */
static void
tick_checked(SimBackend *b, uint64 active, bool stopped, bool exact)
{
	SimTicket  *ticket = &b->tickets[b->head];
	int			buffer = sim->code->tick(&b->lease);

	if (buffer != (int) (sim->part->first_buffer + ticket->buffer))
		violation("ticket of buffer %u was used for buffer %d",
				  sim->part->first_buffer + ticket->buffer, buffer);
	if (b->taken_under != active)
		violation("a ticket of before a switch was used");
	if (ticket_lapped(ticket))
	{
		sim->counts.late_looks++;
		if (!stopped && exact)
			violation("buffer %d was looked at by a ticket that the hand has lapped", buffer);
	}
	b->head++;
	b->ticket++;
	b->left--;
	b->used++;
	b->used_with_batch++;
	if (b->lease.left != b->left)
		violation("%u tickets are left instead of %u", b->lease.left, b->left);
	sim->counts.looks++;
}

#endif							/* ORACLE_H */
