/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/test_sweep_layout.c
 *	  Property tests of the number of partitions, their shares and their
 *	  boundaries.
 *
 * layout_mutants.h		the code under test, and broken variants of it
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "sweep/layout.h"

#include "layout_mutants.h"
#include "property.h"

PG_MODULE_MAGIC_EXT(
					.name = "test_sweep_layout",
					.version = "1.0"
);

PG_FUNCTION_INFO_V1(test_sweep_layout);
PG_FUNCTION_INFO_V1(test_sweep_layout_codes);

#define MIN_BUFFERS		16
#define MAX_BUFFERS		PG_INT32_MAX
#define MAX_NODES		64
#define MAX_PER_NODE	64

/* What was exercised; int64 each, as the SQL function's columns */
typedef struct LayoutCounts
{
	int64		cases;
	int64		fewer_than_nodes;	/* the pool has no room for one per node */
	int64		reduced;		/* fewer than wished for */
	int64		rounded_up;		/* more than asked for, because of the nodes */
	int64		automatic;
	int64		single;			/* one partition */
	int64		most;			/* 64 */
	int64		off_grid;		/* too small for the grid */
	int64		with_head;		/* the grid does not begin with the pool */
	int64		uneven;			/* sizes differ by less than a unit */
	int64		limited;		/* some share is less than others */
	int64		full;			/* there is not room for all */
	int64		no_room;		/* there is none at all */
	int64		weighted;		/* weights differ */
	int64		minimum;		/* some share is the minimum, by its weight */
} LayoutCounts;

static LayoutCounts counts;

/* Each order of magnitude as often as the others */
static uint32
random_magnitude(uint32 low, uint32 high)
{
	double		number = low * pow((double) high / low, pg_prng_double(&prng));

	return (uint32) Min(Max(number, low), high);
}

/* ---- how many ---- */

/*
 * From the definition, by trying all numbers that the pool has room for: the
 * smallest multiple of the nodes that is at least the wish.  If there is none, the
 * largest multiple of the nodes; if there is none, either, the largest number.
 */
static uint32
expected_number(uint32 wish, uint32 limit, uint32 nnodes)
{
	uint32		best = 0;

	for (uint32 n = 1; n <= limit; n++)
	{
		if (n % nnodes != 0)
			continue;
		best = n;
		if (n >= wish)
			break;
	}
	return best > 0 ? best : limit;
}

static bool
check_number(const LayoutCode *code, uint32 configured, uint32 nbuffers,
			 uint32 nnodes, uint32 parts_per_node, uint32 *number)
{
	uint32		room = nbuffers / (configured > 0 ? 16 : 128);
	uint32		limit = Max(Min(room, 64), 1);
	uint32		wish = configured;
	uint32		n = code->number(configured, nbuffers, nnodes, parts_per_node);

	*number = n;
	if (n < 1 || n > 64)
		return violated("there are %u partitions", n);
	if (n > 1 && n > room)
		return violated("%u partitions of %u buffers", n, nbuffers);
	if (n % nnodes != 0 && n > nnodes)
		return violated("%u partitions do not go into %u nodes", n, nnodes);

	if (configured == 0)
	{
		wish = Max(nnodes * parts_per_node, 4);
		counts.automatic++;
	}
	if (n != expected_number(wish, limit, nnodes))
		return violated("%u partitions, %u wished for, %u nodes, room for %u",
						n, wish, nnodes, limit);

	counts.fewer_than_nodes += n < nnodes;
	counts.reduced += n < wish;
	counts.rounded_up += configured > 0 && n > configured;
	counts.single += n == 1;
	counts.most += n == 64;
	return true;
}

/* ---- their shares ---- */

/*
 * Room as nodes of all kinds of memory have it: enough; for half of them; too
 * little for all; anything; none at all.
 */
static void
random_room(uint32 nbuffers, uint32 n, double *room)
{
	double		share = (double) nbuffers / n;
	uint32		kind = random_in(0, 4);

	for (uint32 i = 0; i < n; i++)
	{
		double		some = share * 4 * pg_prng_double(&prng);

		if (kind == 0)
			some += share;
		else if (kind == 1)
			some = random_in(0, 1) == 0 ? nbuffers : some / 4;
		else if (kind == 2)
			some /= 4;
		room[i] = kind == 4 ? 0 : some;
	}
}

/*
 * Weights as partitions have them: the same for all, cores of 1 to 4, anything.
 */
static void
random_weights(uint32 n, double *weight)
{
	uint32		kind = random_in(0, 2);

	for (uint32 i = 0; i < n; i++)
		weight[i] = kind == 0 ? 1 : kind == 1 ? random_in(1, 4) / 2.5 :
			0.01 + pg_prng_double(&prng);
}

#define NEARLY(a, b)	(fabs((a) - (b)) <= 1e-6 * Max(fabs(a), fabs(b)))

static bool
check_shares(const LayoutCode *code, uint32 nbuffers, uint32 n, double *share)
{
	double		weight[PGSWEEP_MAX_PARTITIONS];
	double		room[PGSWEEP_MAX_PARTITIONS];
	double		all_room = 0;
	double		sum = 0;
	double		all_weights = 0;
	double		level_from = 0; /* buffers for a weight of 1 */
	double		level_to = HUGE_VAL;
	bool		enough = true;
	bool		none = true;
	bool		differ = false;
	bool		all;

	random_weights(n, weight);
	random_room(nbuffers, n, room);
	code->shares(nbuffers, n, weight, room, share);

	for (uint32 i = 0; i < n; i++)
	{
		all_weights += weight[i];
		none = none && room[i] == 0;
	}
	counts.no_room += none;
	for (uint32 i = 0; i < n; i++)
	{
		double		fair = nbuffers * weight[i] / all_weights;

		if (none)				/* which is as if there were enough */
			room[i] = nbuffers;
		enough = enough && room[i] >= fair && fair >= 16;
		differ = differ || weight[i] != weight[0];
		room[i] = Max(room[i], 16);
		all_room += room[i];
		sum += share[i];
		if (share[i] > 16.001)
			level_from = Max(level_from, share[i] / weight[i]);
		if (share[i] < room[i] && !NEARLY(share[i], room[i]))
			level_to = Min(level_to, share[i] / weight[i]);
		counts.minimum += i > 0 && fair < 16 && weight[i] < weight[0];
	}
	counts.weighted += differ;
	all = all_room > nbuffers;
	if (!NEARLY(sum, nbuffers))
		return violated("shares of %u buffers add up to %f", nbuffers, sum);
	for (uint32 i = 0; i < n; i++)
	{
		if (share[i] < 15.999 && n > 1)
			return violated("share %u of %u is %f", i, n, share[i]);
		if (enough && !NEARLY(share[i], nbuffers * weight[i] / all_weights))
			return violated("share %u of %u is %f, weight %f of %f, with room for all", i, n,
							share[i], weight[i], all_weights);
		if (!all && !NEARLY(share[i] / room[i], nbuffers / all_room))
			return violated("share %u of %u is %f, room for %f, %f for all of %u", i, n,
							share[i], room[i], all_room, nbuffers);
		if (all && share[i] > room[i] && !NEARLY(share[i], room[i]))
			return violated("share %u of %u is %f, room for %f", i, n, share[i], room[i]);
		counts.limited += i == 0 && all && !enough;
		counts.full += i == 0 && !all;
	}

	/* less than by weight is for lack of room only, more is the minimum only */
	if (all && level_from > level_to * (1 + 1e-6))
		return violated("%f buffers for a weight of 1 here, and %f there, where room is", level_from,
						level_to);
	return true;
}

/* ---- where they end ---- */

static bool
check_sizes(const LayoutCode *code, uint32 nbuffers, uint32 n, const double *share,
			uint32 wanted_unit, uint32 start)
{
	uint32		unit = code->unit(n, share, wanted_unit);
	uint32		head;
	uint32		size[PGSWEEP_MAX_PARTITIONS + 1] = {0};
	uint32		smallest = PG_UINT32_MAX;
	uint32		largest = 0;
	double		least = nbuffers;
	double		most = 0;
	uint64		end = 0;

	for (uint32 i = 0; i < n; i++)
	{
		least = Min(least, share[i]);
		most = Max(most, share[i]);
	}

	/* The grid is used unless a partition would be of very few units */
	if (unit != (least >= Max(4.0 * wanted_unit, 16.0 + wanted_unit) ? wanted_unit : 1))
		return violated("a grid of %u instead of %u, smallest share %f", unit, wanted_unit, least);

	size[n] = 4711;
	head = start % unit;
	code->sizes(nbuffers, n, unit, head, share, size);
	if (size[n] != 4711)
		return violated("wrote beyond the last of %u partitions", n);

	/* Partitions are consecutive; what remains is where each ends */
	for (uint32 i = 0; i < n; i++)
	{
		if (size[i] < 16)
			return violated("partition %u of %u has %u buffers", i, n, size[i]);
		if (fabs(size[i] - share[i]) > unit)
			return violated("partition %u of %u has %u buffers, share %f, unit %u", i, n,
							size[i], share[i], unit);
		end += size[i];
		if (i < n - 1 && (end < head || (end - head) % unit != 0))
			return violated("partition %u of %u ends at %llu, off a grid of %u from %u", i, n,
							(unsigned long long) end, unit, head);
		smallest = Min(smallest, size[i]);
		largest = Max(largest, size[i]);
	}
	if (end != nbuffers)
		return violated("%u partitions cover %llu of %u buffers", n, (unsigned long long) end,
						nbuffers);
	if (least == most && largest - smallest > unit)
		return violated("%u partitions of %u to %u buffers, unit %u", n, smallest, largest, unit);

	counts.off_grid += unit != wanted_unit;
	counts.with_head += head > 0;
	counts.uneven += least == most && largest > smallest;
	return true;
}

static bool
check_case(const void *entry)
{
	const LayoutCode *code = entry;

	/*
	 * descriptors in pages of 4 and 64 kB, blocks in pages of 16 and 64 kB, 2
	 * MB, 1 GB
	 */
	static const uint32 units[] = {1, 2, 8, 64, 256, 1024, 131072};
	uint32		nbuffers = random_magnitude(MIN_BUFFERS, MAX_BUFFERS);
	uint32		nnodes = random_magnitude(1, MAX_NODES);
	uint32		configured = random_in(0, 2) == 0 ? 0 : random_in(1, 64);
	uint32		unit = units[random_in(0, lengthof(units) - 1)];
	uint32		start = random_in(0, 1) == 0 ? 0 : random_in(0, unit - 1);
	uint32		number;
	double		share[PGSWEEP_MAX_PARTITIONS];

	/* most pools have a whole number of megabytes */
	if (random_in(0, 1) == 0 && nbuffers >= 128)
		nbuffers -= nbuffers % 128;
	/* the ends of the range break first */
	if (random_in(0, 99) == 0)
		nbuffers = MAX_BUFFERS - random_in(0, 64);
	if (random_in(0, 99) == 0)
		nbuffers = MIN_BUFFERS + random_in(0, 64);

	if (!check_number(code, configured, nbuffers, nnodes, random_magnitude(1, MAX_PER_NODE),
					  &number) ||
		!check_shares(code, nbuffers, number, share))
		return false;
	return check_sizes(code, nbuffers, number, share, unit, start);
}

/*
 * test_sweep_layout(seed, cases, code)
 */
Datum
test_sweep_layout(PG_FUNCTION_ARGS)
{
	return run_cases(fcinfo, check_case, FIND_CODE(layout_codes, 2), &counts.cases, sizeof(counts));
}

Datum
test_sweep_layout_codes(PG_FUNCTION_ARGS)
{
	return code_names(fcinfo, layout_codes, sizeof(layout_codes[0]), lengthof(layout_codes));
}
