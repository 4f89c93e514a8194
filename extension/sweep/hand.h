/*-------------------------------------------------------------------------
 *
 * extension/sweep/hand.h
 *	  The clock hand: a 64-bit ticket counter, alone on its cache line.
 *
 * Buffer = ticket mod n, pass = ticket div n, for a partition of n buffers.
 * The counter never wraps: at 10^9 tickets per second it lasts 584 years.  So
 * one read gives position and pass, and they always agree.  Core's 32-bit
 * hand (freelist.c, ClockSweepTick) needs a spinlock and a compare-and-swap
 * for each wrap-around instead.
 *
 * Nothing else shares the line.  Core's allocation counter is beside its hand
 * and is written at every allocation, so batches would remove only half of
 * the traffic.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_HAND_H
#define PGSWEEP_HAND_H

#include "port/atomics.h"
#include "port/pg_bitutils.h"

typedef union PgSweepHand
{
	pg_atomic_uint64 ticket;	/* next ticket to be given out */
	char		pad[PG_CACHE_LINE_SIZE];
} PgSweepHand;

/*
 * How often the position of the hand is published in one lap; see lease.h.
 * More often costs more; less often, and leases that are nearly a lap old
 * look at the hand more, and partitions get further apart (laps.h).  With 16, a
 * lease does so only in the last two sixteenths of its lap, and one publication
 * comes per NBuffers / 16 buffers.
 */
#define PGSWEEP_EPOCHS_PER_LAP	16

/*
 * A partition: a range of the pool with a hand of its own.  "partitioned" has
 * several; for "batched", the whole pool is one.
 *
 * The second line is written at each new epoch and otherwise only read, by
 * every backend at every allocation.
 */
typedef struct PgSweepPartition
{
	PgSweepHand hand;

	/*
	 * The newest published ticket, shifted right by epoch_shift;
	 * pgsweep_lease_take() writes it and explains how far it can be trusted.
	 */
	pg_atomic_uint64 epoch;
	uint32		epoch_shift;	/* constant after start */
	uint32		first_buffer;	/* constant after start */
	uint32		num_buffers;	/* constant after start; > 0 */
	uint32		node;			/* home of this node's backends (index in
								 * pgsweep_numa_topology); constant after
								 * start */
	char		pad[PG_CACHE_LINE_SIZE - sizeof(pg_atomic_uint64) - 4 * sizeof(uint32)];
} PgSweepPartition;

StaticAssertDecl(sizeof(PgSweepPartition) == 2 * PG_CACHE_LINE_SIZE,
				 "a partition's hand must not share its cache line");

/*
 * Read without barrier semantics, in one piece.  An aligned 64-bit load is
 * that on every 64-bit machine; pg_atomic_read_u64() uses it only on some,
 * and a compare-and-swap elsewhere (riscv64, s390x), which must not happen at
 * each allocation.  (compat.h refuses 32-bit machines.)
 */
static inline uint64
pgsweep_read_u64(const pg_atomic_uint64 *ptr)
{
	return *(const volatile uint64 *) &ptr->value;
}

static inline void
pgsweep_partition_init(PgSweepPartition *part, uint32 first_buffer, uint32 num_buffers)
{
	uint32		epoch_size = Max(num_buffers / PGSWEEP_EPOCHS_PER_LAP, 1);

	pg_atomic_init_u64(&part->hand.ticket, 0);
	pg_atomic_init_u64(&part->epoch, 0);
	part->epoch_shift = pg_leftmost_one_pos32(epoch_size);
	part->first_buffer = first_buffer;
	part->num_buffers = num_buffers;
}

/*
 * Tickets that one lease may have: an eighth of a lap less an epoch.  So a
 * partition that is found not ahead is at most a quarter ahead after it: an
 * eighth, an epoch that is not published, and the lease (laps.h).
 */
static inline uint32
pgsweep_longest_lease(const PgSweepPartition *part)
{
	int32		tickets = (int32) (part->num_buffers / 8) - (1 << part->epoch_shift);

	return (uint32) Max(tickets, 1);
}

/*
 * Position of the hand.  No barrier semantics.  Never smaller than an earlier
 * read in program order returned, because it only grows and reads of one
 * location are coherent.  The same holds for (pass, buffer).
 */
static inline uint64
pgsweep_hand_read(PgSweepPartition *part)
{
	return pgsweep_read_u64(&part->hand.ticket);
}

/*
 * The same as the id of the buffer that the hand points to, and the number of
 * complete passes.  Both come from one read.
 */
static inline void
pgsweep_hand_position(PgSweepPartition *part, int *buffer, uint64 *passes)
{
	uint64		ticket = pgsweep_hand_read(part);

	*buffer = (int) (part->first_buffer + ticket % part->num_buffers);
	*passes = ticket / part->num_buffers;
}

#endif							/* PGSWEEP_HAND_H */
