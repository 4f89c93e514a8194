/*-------------------------------------------------------------------------
 *
 * extension/sweep/advice.h
 *	  How much less would a larger pool read?
 *
 * Of all pages, those are sampled whose hash says so: the same ones each time.
 * A sampled page that leaves the pool becomes a ghost, with the number of those
 * that left before.  If it is read again, the difference is its distance: as many
 * sampled pages have left since.  Distances are counted.
 *
 * A pool with more buffers would still have the ghosts that are youngest.  A
 * ghost ages by one for each page that leaves, but makes no room for one that
 * has returned.  With S(a), the share of pages that have not returned at age a,
 * the sum of S up to age T is the number of ghosts that are not older than T.
 * So from T, where this sum is the number of buffers more, pages would have left
 * the larger pool.  All that returned at a smaller distance would have been found.
 * That is exact for LRU and a load that does not change.  docs/design/0021 has
 * how far it is right for other strategies, and for real loads.
 *
 * Nothing is known of smaller pools: hits have no hook.
 *
 * Races only cost precision: two processes may want the same place for a ghost,
 * and one is lost.  Nothing here knows buffer headers or SQL.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_ADVICE_H
#define PGSWEEP_ADVICE_H

#include <math.h>

#include "port/atomics.h"
#include "port/pg_bitutils.h"

/*
 * Sampled pages of the pool, at most; at least half as many in a larger pool.
 * More would be nearer (the error of the answer says how near), and more loads
 * would write shared cache lines.
 */
#define PGSWEEP_ADVICE_SAMPLE	4096

/*
 * Ghosts: sets of two cache lines.  Those of twice the sample, for a pool of
 * three times the size, fill half of the places, so few sets overflow.
 */
#define PGSWEEP_ADVICE_SET_BITS	10
#define PGSWEEP_ADVICE_SETS		(1 << PGSWEEP_ADVICE_SET_BITS)
#define PGSWEEP_ADVICE_WAYS		16

/*
 * Pages are in groups, by their hash.  What the groups differ by says how far
 * the whole sample may be off.
 */
#define PGSWEEP_ADVICE_GROUP_BITS	3
#define PGSWEEP_ADVICE_GROUPS	(1 << PGSWEEP_ADVICE_GROUP_BITS)

/* Student's t for a sample of 8 groups: 95 of 100 cases */
#define PGSWEEP_ADVICE_STUDENT	2.365

/*
 * Classes of distances: exact below 16, then 16 in each power of two.  Those of
 * nearly 2^24 and more are in the last one.
 */
#define PGSWEEP_ADVICE_STEP_BITS	4
#define PGSWEEP_ADVICE_STEPS	(1 << PGSWEEP_ADVICE_STEP_BITS)
#define PGSWEEP_ADVICE_CLASSES	(PGSWEEP_ADVICE_STEPS * (24 - PGSWEEP_ADVICE_STEP_BITS + 1))

/*
 * What is counted, from the start or from a reset on.
 */
typedef struct PgSweepAdviceCounts
{
	uint64		left;			/* sampled pages that left: the time */
	uint64		reads[PGSWEEP_ADVICE_GROUPS];
	uint64		returned[PGSWEEP_ADVICE_GROUPS][PGSWEEP_ADVICE_CLASSES];	/* of reads */
} PgSweepAdviceCounts;

typedef struct PgSweepAdvice
{
	/* Constant after start */
	uint32		num_buffers;
	uint32		shift;			/* one of 2^shift pages is sampled */

	/*
	 * The print of the sampled page in each buffer, 0 if it is none.  Read
	 * and written by the process that loads a page into the buffer, which has
	 * it pinned.
	 */
	uint32	   *page;

	/* The rest is written at each sampled load, with atomic operations */
	char		pad1[PG_CACHE_LINE_SIZE];
	pg_atomic_uint64 left;
	char		pad2[PG_CACHE_LINE_SIZE];
	pg_atomic_uint64 reads[PGSWEEP_ADVICE_GROUPS];
	pg_atomic_uint64 returned[PGSWEEP_ADVICE_GROUPS][PGSWEEP_ADVICE_CLASSES];

	/* The print in the upper half, the time when it left in the lower; or 0 */
	pg_atomic_uint64 ghost[PGSWEEP_ADVICE_SETS][PGSWEEP_ADVICE_WAYS];
} PgSweepAdvice;

/* How the reads of a larger pool compare */
typedef struct PgSweepAdviceAnswer
{
	double		ratio;			/* to those of this pool */
	double		error;			/* by which the sample may be off, 95 % */
	bool		at_most;		/* counted too short to see all that return */
} PgSweepAdviceAnswer;

static inline uint32
pgsweep_advice_shift(uint32 num_buffers)
{
	uint32		shift = 0;

	while (num_buffers >> shift > PGSWEEP_ADVICE_SAMPLE)
		shift++;
	return shift;
}

/*
 * Forget all pages and ghosts.  What is counted stays.  No process may be in one
 * of the functions below, or a ghost of before may be left.
 */
static inline void
pgsweep_advice_forget(PgSweepAdvice *a)
{
	memset(a->page, 0, sizeof(uint32) * a->num_buffers);
	for (int set = 0; set < PGSWEEP_ADVICE_SETS; set++)
		for (int way = 0; way < PGSWEEP_ADVICE_WAYS; way++)
			pg_atomic_write_u64(&a->ghost[set][way], 0);
}

/*
 * Set up.  page is an array of the caller's, for num_buffers.
 */
static inline void
pgsweep_advice_init(PgSweepAdvice *a, uint32 num_buffers, uint32 *page)
{
	a->num_buffers = num_buffers;
	a->shift = pgsweep_advice_shift(num_buffers);
	a->page = page;
	pg_atomic_init_u64(&a->left, 0);
	for (int group = 0; group < PGSWEEP_ADVICE_GROUPS; group++)
	{
		pg_atomic_init_u64(&a->reads[group], 0);
		for (int i = 0; i < PGSWEEP_ADVICE_CLASSES; i++)
			pg_atomic_init_u64(&a->returned[group][i], 0);
	}
	for (int set = 0; set < PGSWEEP_ADVICE_SETS; set++)
		for (int way = 0; way < PGSWEEP_ADVICE_WAYS; way++)
			pg_atomic_init_u64(&a->ghost[set][way], 0);
	memset(page, 0, sizeof(uint32) * num_buffers);
}

/*
 * The print of a page with this hash, or 0 if it is not sampled.  From the top,
 * its bits are those that chose it (all 0), those of the set, and those of the
 * group; a pool of 2^30 buffers leaves one bit more.  Multiplying by an odd
 * number mixes the hash, and keeps different hashes different.
 */
static inline uint32
pgsweep_advice_print(const PgSweepAdvice *a, uint32 hash)
{
	uint32		print = hash * UINT32_C(0x9E3779B1);

	if ((uint64) print >> (32 - a->shift) != 0)
		return 0;
	return print == 0 ? 1 : print;
}

static inline pg_atomic_uint64 *
pgsweep_advice_set(PgSweepAdvice *a, uint32 print)
{
	return a->ghost[(print << a->shift) >> (32 - PGSWEEP_ADVICE_SET_BITS)];
}

static inline uint32
pgsweep_advice_group(const PgSweepAdvice *a, uint32 print)
{
	return (print << (a->shift + PGSWEEP_ADVICE_SET_BITS)) >> (32 - PGSWEEP_ADVICE_GROUP_BITS);
}

/* The class of a distance */
static inline uint32
pgsweep_advice_class(uint32 distance)
{
	uint32		power;

	if (distance < PGSWEEP_ADVICE_STEPS)
		return distance;
	power = pg_leftmost_one_pos32(distance) - PGSWEEP_ADVICE_STEP_BITS;
	return Min((power << PGSWEEP_ADVICE_STEP_BITS) + (distance >> power),
			   PGSWEEP_ADVICE_CLASSES - 1);
}

/* The least distance of a class */
static inline uint32
pgsweep_advice_class_start(uint32 class)
{
	uint32		power;

	if (class < PGSWEEP_ADVICE_STEPS)
		return class;
	power = (class >> PGSWEEP_ADVICE_STEP_BITS) - 1;
	return (PGSWEEP_ADVICE_STEPS + class % PGSWEEP_ADVICE_STEPS) << power;
}

/*
 * A sampled page is loaded.  Its ghost goes, if it has one.  A page is counted if
 * it was read; a new one is not.
 */
static inline void
pgsweep_advice_came(PgSweepAdvice *a, uint32 print, bool read)
{
	pg_atomic_uint64 *set = pgsweep_advice_set(a, print);
	uint32		group = pgsweep_advice_group(a, print);

	if (read)
		pg_atomic_fetch_add_u64(&a->reads[group], 1);

	for (int way = 0; way < PGSWEEP_ADVICE_WAYS; way++)
	{
		uint64		ghost = pg_atomic_read_u64(&set[way]);

		if ((uint32) (ghost >> 32) != print)
			continue;
		/* the exchange lets one process have it */
		if (pg_atomic_compare_exchange_u64(&set[way], &ghost, 0) && read)
		{
			uint32		distance = (uint32) pg_atomic_read_u64(&a->left) - (uint32) ghost - 1;

			pg_atomic_fetch_add_u64(&a->returned[group][pgsweep_advice_class(distance)], 1);
		}
		return;
	}
}

/*
 * A sampled page has left.  Its ghost takes an empty place of the set, or that
 * of the oldest.
 */
static inline void
pgsweep_advice_went(PgSweepAdvice *a, uint32 print)
{
	pg_atomic_uint64 *set = pgsweep_advice_set(a, print);
	uint32		now = (uint32) pg_atomic_fetch_add_u64(&a->left, 1);
	int			place = 0;
	uint64		there = 0;
	uint32		oldest = 0;

	for (int way = 0; way < PGSWEEP_ADVICE_WAYS; way++)
	{
		uint64		ghost = pg_atomic_read_u64(&set[way]);

		if (ghost == 0 || now - (uint32) ghost >= oldest)
		{
			place = way;
			there = ghost;
			oldest = now - (uint32) ghost;
		}
		if (ghost == 0)
			break;
	}
	pg_atomic_compare_exchange_u64(&set[place], &there, (uint64) print << 32 | now);
}

/*
 * Add what has been counted, or take it away.
 */
static inline void
pgsweep_advice_add(PgSweepAdviceCounts *to, PgSweepAdvice *a)
{
	to->left += pg_atomic_read_u64(&a->left);
	for (int group = 0; group < PGSWEEP_ADVICE_GROUPS; group++)
	{
		to->reads[group] += pg_atomic_read_u64(&a->reads[group]);
		for (int i = 0; i < PGSWEEP_ADVICE_CLASSES; i++)
			to->returned[group][i] += pg_atomic_read_u64(&a->returned[group][i]);
	}
}

static inline void
pgsweep_advice_subtract(PgSweepAdviceCounts *from, const PgSweepAdviceCounts *base)
{
	from->left -= base->left;
	for (int group = 0; group < PGSWEEP_ADVICE_GROUPS; group++)
	{
		from->reads[group] -= base->reads[group];
		for (int i = 0; i < PGSWEEP_ADVICE_CLASSES; i++)
			from->returned[group][i] -= base->returned[group][i];
	}
}

static inline uint64
pgsweep_advice_reads(const PgSweepAdviceCounts *c)
{
	uint64		reads = 0;

	for (int group = 0; group < PGSWEEP_ADVICE_GROUPS; group++)
		reads += c->reads[group];
	return reads;
}

/*
 * The error of a ratio of two sums over the groups (Cochran, Sampling
 * Techniques, 1977, section 6.3; all groups of a kind have been drawn, so there
 * is no correction for that).
 */
static inline double
pgsweep_advice_error(const PgSweepAdviceCounts *c, const double *saved, double ratio)
{
	double		squares = 0;

	for (int group = 0; group < PGSWEEP_ADVICE_GROUPS; group++)
	{
		double		off = c->reads[group] * (1 - ratio) - saved[group];

		squares += off * off;
	}
	return PGSWEEP_ADVICE_STUDENT * sqrt(squares * PGSWEEP_ADVICE_GROUPS / (PGSWEEP_ADVICE_GROUPS - 1)) /
		pgsweep_advice_reads(c);
}

/*
 * What would a pool with this number of buffers more read?  c is what has been
 * counted, and before the number of sampled pages that had left before, while
 * their ghosts were kept already.  Returns false if nothing is known, because
 * nothing was read, or has left.
 *
 * A page that returns at distance d is only seen if its ghost is that old.  In
 * the first pages that left no ghost is.  So of the pages that returned at d, a
 * share was seen, and the count is divided by it.  Where less than half could be
 * seen, the sum ends, and the larger pool reads at most what is said.
 */
static inline bool
pgsweep_advice_answer(const PgSweepAdvice *a, const PgSweepAdviceCounts *c, uint64 before,
					  double buffers, PgSweepAdviceAnswer *answer)
{
	double		room = buffers / ((uint64) 1 << a->shift);
	double		left = c->left;
	double		reads = pgsweep_advice_reads(c);
	double		gone = 1;		/* share of pages that have not returned */
	double		saved[PGSWEEP_ADVICE_GROUPS] = {0};
	double		sum = 0;

	if (reads == 0 || left == 0)
		return false;

	answer->at_most = false;
	for (uint32 class = 0; class < PGSWEEP_ADVICE_CLASSES - 1 && room > 0; class++)
	{
		double		start = pgsweep_advice_class_start(class);
		double		width = pgsweep_advice_class_start(class + 1) - start;
		double		seen = Min((before + left - start - width / 2) / left, 1);
		double		returned = 0;
		double		ghosts;
		double		part;

		if (seen < 0.5)
		{
			answer->at_most = true;
			break;
		}
		for (int group = 0; group < PGSWEEP_ADVICE_GROUPS; group++)
			returned += c->returned[group][class] / seen;

		/* of those that return in this class, half have at its middle */
		ghosts = width * Max(gone - returned / left / 2, 0);
		part = ghosts > room ? room / ghosts : 1;
		room -= ghosts;
		gone -= returned / left;
		for (int group = 0; group < PGSWEEP_ADVICE_GROUPS; group++)
			saved[group] += part * c->returned[group][class] / seen;
	}

	for (int group = 0; group < PGSWEEP_ADVICE_GROUPS; group++)
		sum += saved[group];
	answer->ratio = Max(1 - sum / reads, 0);
	answer->error = pgsweep_advice_error(c, saved, 1 - sum / reads);
	return true;
}

#endif							/* PGSWEEP_ADVICE_H */
