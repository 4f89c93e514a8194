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
 * ahead now, and stores them as the bits of one word, if they have changed.
 * So a lease reads one more line, which is seldom written.  Two processes that
 * do so at the same time may store an older answer last; the next publication
 * by any partition that serves mends it.
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
 * How much further than the slowest a hand may go, in laps.  Positions are
 * known to a sixteenth, so it is three of these and what leases take
 * meanwhile: less than a quarter.  Less would hit partitions that are equally
 * busy: allocations come in bursts.  With a sixteenth, 15 % of an even load
 * went to other nodes (128 MB, four nodes, 8000 allocations per second).
 */
#define PGSWEEP_LAPS_AHEAD		0.125

/*
 * How much further than the slowest a partition may be to serve the processes
 * of one that is ahead.  Less than the above: otherwise its own processes
 * would have to go elsewhere for them.
 */
#define PGSWEEP_LAPS_BEHIND		(PGSWEEP_LAPS_AHEAD / 2)

typedef struct PgSweepLaps
{
	/*
	 * Bit i: partition i is ahead, or behind.  At least one is behind, and
	 * none is both.  None is ahead without balance.
	 */
	pg_atomic_uint64 ahead;
	pg_atomic_uint64 behind;
	char		pad[PG_CACHE_LINE_SIZE - 2 * sizeof(pg_atomic_uint64)];

	/* Laps are counted from here; written when balancing begins */
	uint64		base[PGSWEEP_MAX_PARTITIONS];	/* tickets */
} PgSweepLaps;

/*
 * Find out which of n partitions are ahead and behind, and tell if that is
 * new.
 */
static inline void
pgsweep_laps_look(PgSweepLaps *laps, PgSweepPartition *parts, uint32 n)
{
	double		lap[PGSWEEP_MAX_PARTITIONS];
	double		slowest = DBL_MAX;
	uint64		ahead = 0;
	uint64		behind = 0;

	for (uint32 i = 0; i < n; i++)
	{
		uint64		ticket = pgsweep_read_u64(&parts[i].epoch) << parts[i].epoch_shift;

		/* what has been published may be from before the base */
		lap[i] = ticket > laps->base[i] ?
			(double) (ticket - laps->base[i]) / parts[i].num_buffers : 0;
		slowest = Min(slowest, lap[i]);
	}
	for (uint32 i = 0; i < n; i++)
	{
		if (lap[i] > slowest + PGSWEEP_LAPS_AHEAD)
			ahead |= UINT64CONST(1) << i;
		if (lap[i] <= slowest + PGSWEEP_LAPS_BEHIND)
			behind |= UINT64CONST(1) << i;
	}
	if (behind != pgsweep_read_u64(&laps->behind))
		pg_atomic_write_u64(&laps->behind, behind);
	if (ahead != pgsweep_read_u64(&laps->ahead))
		pg_atomic_write_u64(&laps->ahead, ahead);
}

/*
 * The partition that serves a process: home, unless that is ahead; then the
 * first in "order" that is behind.  "order" has all n, home first.
 */
static inline uint32
pgsweep_laps_serving(const PgSweepLaps *laps, const uint8 *order, uint32 n)
{
	uint64		behind;

	if (likely((pgsweep_read_u64(&laps->ahead) >> order[0] & 1) == 0))
		return order[0];
	behind = pgsweep_read_u64(&laps->behind);
	for (uint32 i = 1; i < n; i++)
		if (behind >> order[i] & 1)
			return order[i];
	return order[0];			/* both words are just being written */
}

#endif							/* PGSWEEP_LAPS_H */
