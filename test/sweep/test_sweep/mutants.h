/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/mutants.h
 *	  pg_sweep's lease code, and broken variants of it.
 *
 * Each mutant has one mistake: seen in other patches for the same purpose, or one
 * edit away from lease.h.  t/sweep/properties.pl demands that each is caught.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MUTANTS_H
#define MUTANTS_H

#include "sim.h"

/* State of the mutants that count passes apart from the hand */
static uint64 mutant_passes;
static uint64 mutant_claims;

/* ---- leases that do not expire as they should ---- */

static uint32
expire_never(PgSweepLease *lease, uint64 active, uint32 batch)
{
	return 0;
}

/* Keeps its tickets over a switch of strategy */
static uint32
expire_not_switched(PgSweepLease *lease, uint64 active, uint32 batch)
{
	return pgsweep_lease_expire(lease, lease->active, batch);
}

/* Compares the strategy without the generation: there and back again */
static uint32
expire_strategy_only(PgSweepLease *lease, uint64 active, uint32 batch)
{
	if ((lease->active & 0xFF) == (active & 0xFF))
		active = lease->active;
	return pgsweep_lease_expire(lease, active, batch);
}

static uint32
expire_with_lap(PgSweepLease *lease, uint64 active, uint32 batch, int64 slack)
{
	PgSweepPartition *part = lease->part;
	uint32		dropped = 0;

	if (lease->left == 0)
		return 0;
	if (lease->active != active ||
		(int64) (pgsweep_hand_read(part) - pgsweep_lease_next_ticket(lease) - part->num_buffers) > slack)
	{
		dropped = lease->left;
		lease->size = dropped;
	}
	else if (lease->left > batch)
		dropped = lease->left - batch;
	lease->left -= dropped;
	lease->end_ticket -= dropped;
	lease->size -= dropped;
	return dropped;
}

/* Looks at the hand each time */
static uint32
expire_by_hand(PgSweepLease *lease, uint64 active, uint32 batch)
{
	if (lease->left > 0)
		(void) sim_hand_read(lease->part);
	return pgsweep_lease_expire(lease, active, batch);
}

/* Takes a whole batch again after having been out of date */
static uint32
expire_keeps_size(PgSweepLease *lease, uint64 active, uint32 batch)
{
	uint32		size = lease->size;
	uint32		dropped = pgsweep_lease_expire(lease, active, batch);

	if (lease->left == 0)
		lease->size = size;
	return dropped;
}

/* Counts what was cut off its lease as used */
static uint32
expire_trim_keeps_size(PgSweepLease *lease, uint64 active, uint32 batch)
{
	uint32		size = lease->size;
	uint32		dropped = pgsweep_lease_expire(lease, active, batch);

	if (lease->left > 0)
		lease->size = size;
	return dropped;
}

static uint32
expire_not_lapped(PgSweepLease *lease, uint64 active, uint32 batch)
{
	return expire_with_lap(lease, active, batch, PG_INT64_MAX);
}

static uint32
expire_one_early(PgSweepLease *lease, uint64 active, uint32 batch)
{
	return expire_with_lap(lease, active, batch, -1);
}

static uint32
expire_one_late(PgSweepLease *lease, uint64 active, uint32 batch)
{
	return expire_with_lap(lease, active, batch, 1);
}

static uint32
expire_lap_late(PgSweepLease *lease, uint64 active, uint32 batch)
{
	return expire_with_lap(lease, active, batch, sim->n);
}

/* Relies on the published epoch alone */
static uint32
expire_by_epoch(PgSweepLease *lease, uint64 active, uint32 batch)
{
	PgSweepPartition *part = lease->part;

	if (lease->left > 0 && sim_read_u64(&part->epoch) > lease->safe_epoch)
		active = lease->active + 1;
	return pgsweep_lease_expire(lease, active, batch);
}

/* Leases keep the size that they had when there were fewer backends */
static uint32
expire_not_trimmed(PgSweepLease *lease, uint64 active, uint32 batch)
{
	return pgsweep_lease_expire(lease, active, PGSWEEP_BATCH_MAX);
}

static uint32
expire_trimmed_to_nothing(PgSweepLease *lease, uint64 active, uint32 batch)
{
	if (lease->left > batch)
		active = lease->active + 1;
	return pgsweep_lease_expire(lease, active, batch);
}

/* Says what it has dropped, and keeps it */
static uint32
expire_not_cleared(PgSweepLease *lease, uint64 active, uint32 batch)
{
	uint32		left = lease->left;
	uint32		dropped = pgsweep_lease_expire(lease, active, batch);

	lease->left = left;
	return dropped;
}

/* ---- leases that are good only seemingly, or good and not recognized ---- */

static bool
good_switched(const PgSweepLease *lease, const PgSweepPartition *part,
			  uint64 active, uint32 batch)
{
	return pgsweep_lease_good(lease, part, lease->active, batch);
}

static bool
good_lapped(const PgSweepLease *lease, const PgSweepPartition *part,
			  uint64 active, uint32 batch)
{
	return lease->left > 0 && lease->left <= batch && lease->active == active;
}

static bool
good_too_long(const PgSweepLease *lease, const PgSweepPartition *part,
			  uint64 active, uint32 batch)
{
	return pgsweep_lease_good(lease, part, active, PGSWEEP_BATCH_MAX);
}

static bool
good_nothing(const PgSweepLease *lease, const PgSweepPartition *part,
			  uint64 active, uint32 batch)
{
	return lease->left <= batch && lease->active == active && lease->part != NULL &&
		sim_read_u64(&part->epoch) <= lease->safe_epoch;
}

static bool
good_never(const PgSweepLease *lease, const PgSweepPartition *part,
			  uint64 active, uint32 batch)
{
	return false;
}

/* Not lapped before the next lap's epoch is over, instead of begins */
static void
take_safe_too_long(PgSweepLease *lease, PgSweepPartition *part, uint64 active, uint32 batch)
{
	pgsweep_lease_take(lease, part, active, batch);
	lease->safe_epoch++;
}

/* ---- leases taken wrongly ---- */

/* Publishes how far the first ticket is, the floor of what was claimed */
static void
take_floor(PgSweepLease *lease, PgSweepPartition *part, uint64 active, uint32 batch)
{
	uint64		published = pgsweep_read_u64(&part->epoch);

	pgsweep_lease_take(lease, part, active, batch);
	published = Max(published, pgsweep_lease_next_ticket(lease) >> part->epoch_shift);
	pg_atomic_write_u64(&part->epoch, published);
}

static void
take_unpublished(PgSweepLease *lease, PgSweepPartition *part, uint64 active, uint32 batch)
{
	uint64		published = pgsweep_read_u64(&part->epoch);

	pgsweep_lease_take(lease, part, active, batch);
	pg_atomic_write_u64(&part->epoch, published);
}

static void
take_ahead(PgSweepLease *lease, PgSweepPartition *part, uint64 active, uint32 batch)
{
	pgsweep_lease_take(lease, part, active, batch);
	pg_atomic_write_u64(&part->epoch, pgsweep_read_u64(&part->epoch) + 1);
}

/* The first lease is a whole batch, too */
static void
take_whole(PgSweepLease *lease, PgSweepPartition *part, uint64 active, uint32 batch)
{
	lease->size = batch;
	pgsweep_lease_take(lease, part, active, batch);
}

static void
take_one(PgSweepLease *lease, PgSweepPartition *part, uint64 active, uint32 batch)
{
	lease->size = 0;
	pgsweep_lease_take(lease, part, active, batch);
}

/* Believes that the hand is never a lap ahead */
static void
take_near(PgSweepLease *lease, PgSweepPartition *part, uint64 active, uint32 batch)
{
	uint32		buffer = lease->next_buffer;
	uint64		ticket = pgsweep_lease_next_ticket(lease);

	pgsweep_lease_take(lease, part, active, batch);
	if (ticket > 0 && pgsweep_lease_next_ticket(lease) - ticket >= part->num_buffers)
		lease->next_buffer = buffer == part->first_buffer ? buffer + 1 : buffer - 1;
}

/* A ticket of 32 bits: 71 minutes at a million a second */
static void
take_hand32(PgSweepLease *lease, PgSweepPartition *part, uint64 active, uint32 batch)
{
	pgsweep_lease_take(lease, part, active, batch);
	lease->end_ticket = (uint32) lease->end_ticket;
	lease->next_buffer = part->first_buffer + pgsweep_lease_next_ticket(lease) % part->num_buffers;
	lease->safe_epoch = ((pgsweep_lease_next_ticket(lease) + part->num_buffers) >> part->epoch_shift) - 1;
}

static void
position_hand32(PgSweepPartition *part, int *buffer, uint64 *passes)
{
	uint32		ticket = (uint32) pgsweep_hand_read(part);

	*buffer = (int) (part->first_buffer + ticket % part->num_buffers);
	*passes = ticket / part->num_buffers;
}

/* The backend that goes over the end counts the pass, after moving the hand */
static void
take_counting(PgSweepLease *lease, PgSweepPartition *part, uint64 active, uint32 batch)
{
	pgsweep_lease_take(lease, part, active, batch);
	mutant_claims++;
	if (lease->next_buffer + lease->left >= lease->end_buffer)
		mutant_passes++;
}

static void
position_counted(PgSweepPartition *part, int *buffer, uint64 *passes)
{
	pgsweep_hand_position(part, buffer, passes);
	*passes = mutant_passes;
}

/* Passes as claims times the size of one now, divided by the pool */
static void
position_claims(PgSweepPartition *part, int *buffer, uint64 *passes)
{
	pgsweep_hand_position(part, buffer, passes);
	*passes = mutant_claims * sim->batch / part->num_buffers;
}

/* ---- tickets used wrongly ---- */

static int
tick_not_wrapped(PgSweepLease *lease)
{
	lease->left--;
	return (int) lease->next_buffer++;
}

/* The same buffer twice at the end of a pass */
static int
tick_wrapped_late(PgSweepLease *lease)
{
	int			buffer = pgsweep_lease_peek(lease);

	(void) pgsweep_lease_tick(lease);
	if (lease->next_buffer < (uint32) buffer && lease->left % 2 == 1)
		lease->next_buffer = buffer;
	return buffer;
}

static int
tick_not_counted(PgSweepLease *lease)
{
	int			buffer = pgsweep_lease_tick(lease);

	lease->left++;
	return buffer;
}

/* Counts its tickets, but not which one is the next: laps come too late */
static int
tick_ticket_stays(PgSweepLease *lease)
{
	int			buffer = pgsweep_lease_tick(lease);

	lease->end_ticket--;
	return buffer;
}

/* ---- leases too large ---- */

/* Each backend may take what all of them together may */
static uint32
batch_not_shared(uint32 wish, uint32 nbuffers, uint32 nbackends)
{
	return pgsweep_batch_size_for(wish, nbuffers, 1);
}

static uint32
batch_no_limit(uint32 wish, uint32 nbuffers, uint32 nbackends)
{
	return Min(wish, nbuffers);
}

/* A share rounded up: more than the limit together */
static uint32
batch_rounded_up(uint32 wish, uint32 nbuffers, uint32 nbackends)
{
	nbackends = Max(nbackends, 1);
	return Max(1, Min(wish, (pgsweep_lease_limit(nbuffers) + nbackends - 1) / nbackends));
}

/* Nothing left to take where there are more backends than the limit */
static uint32
batch_zero(uint32 wish, uint32 nbuffers, uint32 nbackends)
{
	return Min(wish, pgsweep_lease_limit(nbuffers) / Max(nbackends, 1));
}

/* Half of what would be allowed: safe, but not what was asked for */
static uint32
batch_timid(uint32 wish, uint32 nbuffers, uint32 nbackends)
{
	return Max(1, pgsweep_batch_size_for(wish, nbuffers, nbackends) / 2);
}

#define REAL_CODE \
	.take = pgsweep_lease_take, \
	.good = pgsweep_lease_good, \
	.expire = pgsweep_lease_expire, \
	.tick = pgsweep_lease_tick, \
	.position = pgsweep_hand_position, \
	.batch_for = pgsweep_batch_size_for

/* A mutant is the real code with a part replaced, of which compilers warn */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"

static const SimCode sim_codes[] = {
	{"pg_sweep", REAL_CODE},
	{"never expires", REAL_CODE, .expire = expire_never},
	{"survives a switch", REAL_CODE, .expire = expire_not_switched},
	{"survives a switch there and back", REAL_CODE, .expire = expire_strategy_only},
	{"survives a lap", REAL_CODE, .expire = expire_not_lapped},
	{"expires one ticket early", REAL_CODE, .expire = expire_one_early},
	{"expires one ticket late", REAL_CODE, .expire = expire_one_late},
	{"expires one lap late", REAL_CODE, .expire = expire_lap_late},
	{"expires with the published epoch", REAL_CODE, .expire = expire_by_epoch},
	{"is not trimmed", REAL_CODE, .expire = expire_not_trimmed},
	{"is trimmed to nothing", REAL_CODE, .expire = expire_trimmed_to_nothing},
	{"is dropped but kept", REAL_CODE, .expire = expire_not_cleared},
	{"keeps its size when out of date", REAL_CODE, .expire = expire_keeps_size},
	{"keeps its size when trimmed", REAL_CODE, .expire = expire_trim_keeps_size},
	{"always looks at the hand", REAL_CODE, .expire = expire_by_hand},
	{"begins with a whole batch", REAL_CODE, .take = take_whole},
	{"never grows", REAL_CODE, .take = take_one},
	{"takes the hand for near", REAL_CODE, .take = take_near},
	{"is good after a switch", REAL_CODE, .good = good_switched},
	{"is good after a lap", REAL_CODE, .good = good_lapped},
	{"is good though too long", REAL_CODE, .good = good_too_long},
	{"is good when used up", REAL_CODE, .good = good_nothing},
	{"is never good", REAL_CODE, .good = good_never},
	{"is safe for an epoch too long", REAL_CODE, .take = take_safe_too_long},
	{"publishes the floor", REAL_CODE, .take = take_floor},
	{"publishes nothing", REAL_CODE, .take = take_unpublished},
	{"publishes ahead", REAL_CODE, .take = take_ahead},
	{"32-bit ticket", REAL_CODE, .take = take_hand32},
	{"32-bit position", REAL_CODE, .position = position_hand32},
	{"passes counted by claims", REAL_CODE, .take = take_counting, .position = position_counted},
	{"passes from claims", REAL_CODE, .take = take_counting, .position = position_claims},
	{"runs over the end", REAL_CODE, .tick = tick_not_wrapped},
	{"stays at the end", REAL_CODE, .tick = tick_wrapped_late},
	{"uses a ticket twice", REAL_CODE, .tick = tick_not_counted},
	{"forgets its ticket", REAL_CODE, .tick = tick_ticket_stays},
	{"limit not shared", REAL_CODE, .batch_for = batch_not_shared},
	{"no limit", REAL_CODE, .batch_for = batch_no_limit},
	{"share rounded up", REAL_CODE, .batch_for = batch_rounded_up},
	{"nothing to take", REAL_CODE, .batch_for = batch_zero},
	{"too timid", REAL_CODE, .batch_for = batch_timid},
};

#pragma GCC diagnostic pop

#endif							/* MUTANTS_H */
