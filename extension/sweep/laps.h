/*-------------------------------------------------------------------------
 *
 * extension/sweep/laps.h
 *	  Which partitions are ahead: the balance of "partitioned".
 *
 * Backends request buffers where they run, not where there is room.  If each
 * took buffers only from its own partition, one busy backend would have a
 * fraction of the pool.  One clock guarantees that no buffer is passed more
 * often than another.  Here that is said directly: no partition's hand may be
 * more than PGSWEEP_LAPS_AHEAD of a lap further than the slowest one's.
 * (Vondra's adaptive balancing, "Adding basic NUMA awareness", pgsql-hackers
 * 2025, sends on allocations instead.)
 *
 * A lap is counted in ticks of the hand, not in victims.  So a partition whose
 * pages are used often serves as little as one clock would take from it.
 *
 * Positions are those that leases publish 16 times a lap or more often
 * (lease.h).  The process that publishes one finds out which partitions are
 * ahead now, if that can have changed, and stores them as the bits of one
 * word.  So a lease reads one more line, which is seldom written.  Two
 * processes that do so at the same time may store an older answer last; the
 * next look mends it, and there is one in each cycle of the background writer.
 *
 * Nothing here knows processes or shared memory: test/sweep/test_sweep drives
 * it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_LAPS_H
#define PGSWEEP_LAPS_H

#include <float.h>

#include "sweep/hand.h"

/* The bits of a word */
#define PGSWEEP_MAX_PARTITIONS	64

/*
 * How much further than the slowest a hand may go, in laps.  With what is not
 * published yet and a lease (hand.h), hands are at most a quarter apart.  Each
 * process that chooses at the same moment can add a lease: with 128 processes
 * of one home and partitions of 256 buffers, that was a lap.
 *
 * Less would hit partitions that are equally busy: allocations come in bursts.
 * With a sixteenth, 15 % of an even load went to other nodes (128 MB, four
 * nodes, 8000 allocations per second).
 */
#define PGSWEEP_LAPS_AHEAD		0.125

/*
 * How much further than the slowest a partition may be to serve the processes
 * of another node.  Less than the above: otherwise its own processes would
 * have to go to other nodes for them.  Not 0: several should share the load.
 */
#define PGSWEEP_LAPS_BEHIND		(PGSWEEP_LAPS_AHEAD / 2)

/*
 * If all buffers of some partitions are pinned, requests go on to others, ahead
 * or not.  If that has brought the hands further apart than this, in laps, the
 * background writer counts laps anew: otherwise the slowest would serve all
 * requests for laps when the pins are gone.  Twice what balance itself allows.
 */
#define PGSWEEP_LAPS_LOST		0.5

/*
 * The partitions in the order in which one home's processes try them: home,
 * the others of its node, those of other nodes by distance.
 */
typedef struct PgSweepOrder
{
	uint8		near;			/* of the home's node, with home; >= 1 */
	uint8		part[PGSWEEP_MAX_PARTITIONS];
} PgSweepOrder;

typedef struct PgSweepLaps
{
	/* Bit i: partition i is ahead.  Each lease reads it. */
	pg_atomic_uint64 ahead;
	char		pad1[PG_CACHE_LINE_SIZE - sizeof(pg_atomic_uint64)];

	/*
	 * Bit i: partition i is behind.  Read if home is ahead, and only right if
	 * some partition is.
	 */
	pg_atomic_uint64 behind;
	char		pad2[PG_CACHE_LINE_SIZE - sizeof(pg_atomic_uint64)];

	/* Where the slowest is, or was before: in laps, a double's bits */
	pg_atomic_uint64 slowest;
	char		pad3[PG_CACHE_LINE_SIZE - sizeof(pg_atomic_uint64)];

	/*
	 * Published positions, in laps, as doubles' bits.  Not read from the
	 * partitions: a look would fetch the line of each.
	 */
	pg_atomic_uint64 done[PGSWEEP_MAX_PARTITIONS];

	/* Laps are counted from here; written by the background writer */
	uint64		base[PGSWEEP_MAX_PARTITIONS];	/* tickets */
	bool		balanced;		/* pg_sweep.balance, as it has that */
	bool		passed_on;		/* a walk has found only pins and gone on, since
								 * its last cycle; written by all */
} PgSweepLaps;

/*
 * Laps that partition i has done at a ticket.  0 if that is from before the
 * base: a published position can be.
 */
static inline double
pgsweep_laps_done(const PgSweepLaps *laps, uint32 i, const PgSweepPartition *part,
				  uint64 ticket)
{
	uint64		base = *(const volatile uint64 *) &laps->base[i];	/* once */

	return ticket > base ? (double) (ticket - base) / part->num_buffers : 0;
}

/* Store what has changed only: others have the line in their caches */
static inline void
pgsweep_laps_store(pg_atomic_uint64 *to, uint64 value)
{
	if (pgsweep_read_u64(to) != value)
		pg_atomic_write_u64(to, value);
}

static inline double
pgsweep_laps_read(const pg_atomic_uint64 *from)
{
	uint64		bits = pgsweep_read_u64(from);
	double		laps;

	memcpy(&laps, &bits, sizeof(laps));
	return laps;
}

static inline void
pgsweep_laps_write(pg_atomic_uint64 *to, double laps)
{
	uint64		bits;

	memcpy(&bits, &laps, sizeof(bits));
	pgsweep_laps_store(to, bits);
}

/*
 * Partition i has a new epoch.
 */
static inline void
pgsweep_laps_publish(PgSweepLaps *laps, uint32 i, const PgSweepPartition *part)
{
	pgsweep_laps_write(&laps->done[i],
					   pgsweep_laps_done(laps, i, part,
										 pgsweep_read_u64(&part->epoch) << part->epoch_shift));
}

/*
 * Find out which of n partitions are ahead and behind.
 */
static inline void
pgsweep_laps_look(PgSweepLaps *laps, uint32 n)
{
	double		lap[PGSWEEP_MAX_PARTITIONS];
	double		slowest = DBL_MAX;
	uint64		ahead = 0;
	uint64		behind = 0;

	for (uint32 i = 0; i < n; i++)
	{
		lap[i] = pgsweep_laps_read(&laps->done[i]);
		slowest = Min(slowest, lap[i]);
	}
	for (uint32 i = 0; i < n; i++)
	{
		if (lap[i] > slowest + PGSWEEP_LAPS_AHEAD)
			ahead |= UINT64CONST(1) << i;
		if (lap[i] <= slowest + PGSWEEP_LAPS_BEHIND)
			behind |= UINT64CONST(1) << i;
	}
	pgsweep_laps_write(&laps->slowest, slowest);
	if (ahead != 0)
		pgsweep_laps_store(&laps->behind, behind);
	pgsweep_laps_store(&laps->ahead, ahead);
}

/*
 * Partition i has published a new epoch: can that change the words?  It can if
 * i is now ahead.  While some are ahead, it also can if i is behind no longer:
 * the slowest is one of those that were behind.  The slowest only goes on, so a
 * position that it had before makes for a look too many, never too few.  One
 * case is left: laps are counted anew between the reads of a look and its
 * stores, which then are too large, and no process looks.  The look in the
 * background writer's next cycle mends it.
 *
 * So an even load needs some eight looks per lap, not 16 per partition.  A look
 * reads eight lines with 64 partitions, which all of them write.
 */
static inline bool
pgsweep_laps_changing(const PgSweepLaps *laps, uint32 i)
{
	double		lap = pgsweep_laps_read(&laps->done[i]);
	uint64		ahead = pgsweep_read_u64(&laps->ahead);
	double		slowest = pgsweep_laps_read(&laps->slowest);

	if ((ahead >> i & 1) == 0 && lap > slowest + PGSWEEP_LAPS_AHEAD)
		return true;
	return ahead != 0 && (pgsweep_read_u64(&laps->behind) >> i & 1) != 0 &&
		lap > slowest + PGSWEEP_LAPS_BEHIND;
}

/*
 * The partition of n that serves a process: the first of its own node that is
 * not ahead, most often home; then the first of another node that is behind.
 */
static inline uint32
pgsweep_laps_serving(const PgSweepLaps *laps, const PgSweepOrder *order, uint32 n)
{
	uint64		ahead = pgsweep_read_u64(&laps->ahead);
	uint64		behind;

	if (likely((ahead >> order->part[0] & 1) == 0))
		return order->part[0];
	for (uint32 i = 1; i < order->near; i++)
		if ((ahead >> order->part[i] & 1) == 0)
			return order->part[i];
	behind = pgsweep_read_u64(&laps->behind);
	for (uint32 i = order->near; i < n; i++)
		if (behind >> order->part[i] & 1)
			return order->part[i];
	return order->part[0];		/* both words are just being written */
}

/* How far apart the hands are, in laps */
static inline double
pgsweep_laps_spread(const PgSweepLaps *laps, PgSweepPartition *parts, uint32 n)
{
	double		least = DBL_MAX;
	double		most = 0;

	for (uint32 i = 0; i < n; i++)
	{
		double		done = pgsweep_laps_done(laps, i, &parts[i], pgsweep_hand_read(&parts[i]));

		least = Min(least, done);
		most = Max(most, done);
	}
	return most - least;
}

/*
 * The background writer's part, once in each of its cycles: balance from now
 * on, or no longer, and mend what processes may have stored late.
 *
 * When balancing begins, laps are counted anew: otherwise a partition that was
 * behind without balance would serve all for laps.
 */
static inline void
pgsweep_laps_cycle(PgSweepLaps *laps, PgSweepPartition *parts, uint32 n, bool balance)
{
	bool		anew = balance != laps->balanced;

	if (laps->passed_on)
	{
		laps->passed_on = false;
		if (balance && pgsweep_laps_spread(laps, parts, n) > PGSWEEP_LAPS_LOST)
			anew = true;
	}
	if (anew)
		for (uint32 i = 0; i < n; i++)
			laps->base[i] = pgsweep_hand_read(&parts[i]);
	laps->balanced = balance;

	for (uint32 i = 0; i < n; i++)
		pgsweep_laps_publish(laps, i, &parts[i]);
	if (balance)
		pgsweep_laps_look(laps, n);
	else
		pgsweep_laps_store(&laps->ahead, 0);
}

#endif							/* PGSWEEP_LAPS_H */
