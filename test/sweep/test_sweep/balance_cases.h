/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/balance_cases.h
 *	  Machines and loads for the balancer's test, chosen by a seed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BALANCE_CASES_H
#define BALANCE_CASES_H

#include "common/pg_prng.h"

#define CASE_MAX_NODES	64

typedef struct BalanceCase
{
	PgSweepBalanceInput in;
	uint32		size[PGSWEEP_MAX_PARTITIONS];
	uint8		node[PGSWEEP_MAX_PARTITIONS];
	uint8		distance[CASE_MAX_NODES * CASE_MAX_NODES];
	double		requests[PGSWEEP_MAX_PARTITIONS];
	double		fair[PGSWEEP_MAX_PARTITIONS];	/* by definition */
	double		total;			/* of requests */
	int			sizes;			/* kinds, for messages */
	int			distances;
	int			load;
} BalanceCase;

static pg_prng_state case_prng;

static uint32
pick(uint32 n)
{
	return (uint32) pg_prng_uint64_range(&case_prng, 0, n - 1);
}

static double
pick_double(void)
{
	return pg_prng_double(&case_prng);
}

/* ---- nodes ---- */

static const char *const distance_kinds[] = {
	"all alike", "two sockets", "a ring", "a line", "random", "random, two ways",
	"random, few values",
};

static uint8
pick_distance(int kind, uint32 a, uint32 b, uint32 n)
{
	uint32		apart = a < b ? b - a : a - b;

	switch (kind)
	{
		case 0:
			return 20;
		case 1:
			return a / ((n + 1) / 2) == b / ((n + 1) / 2) ? 12 : 21;
		case 2:
			return Min(10 + 6 * Min(apart, n - apart), 254);
		case 3:
			return Min(10 + 11 * apart, 254);
		case 6:
			return 11 + pick(4);
		default:
			return 11 + pick(244);
	}
}

static void
pick_nodes(BalanceCase *bc, uint32 nparts)
{
	static const uint32 usual[] = {1, 2, 2, 4, 4, 6, 8, 16};
	uint32		n = usual[pick(lengthof(usual))];
	bool		mixed = pick(4) == 0;

	if (pick(4) == 0)
		n = 1 + pick(pick(4) == 0 ? CASE_MAX_NODES : 16);
	bc->in.nnodes = n;
	bc->in.stride = pick(2) == 0 ? CASE_MAX_NODES : n;

	/* Entries that must not be read look tempting */
	memset(bc->distance, 1, sizeof(bc->distance));
	bc->distances = pick(lengthof(distance_kinds));
	for (uint32 a = 0; a < n; a++)
	{
		for (uint32 b = 0; b < n; b++)
		{
			uint8	   *d = &bc->distance[a * bc->in.stride + b];

			if (a == b)
				*d = 10;
			else if (bc->distances == 4 && b < a)
				*d = bc->distance[b * bc->in.stride + a];
			else
				*d = pick_distance(bc->distances, a, b, n);
		}
	}
	for (uint32 p = 0; p < nparts; p++)
		bc->node[p] = mixed ? pick(n) : p * n / nparts;
}

/* ---- partitions ---- */

static const char *const size_kinds[] = {
	"equal", "one unit apart", "random", "a large one", "tiny ones", "whole terabytes",
};

static void
pick_sizes(BalanceCase *bc, uint32 nparts)
{
	uint32		large = pick(nparts);

	bc->sizes = pick(lengthof(size_kinds));
	for (uint32 p = 0; p < nparts; p++)
	{
		switch (bc->sizes)
		{
			case 0:
				bc->size[p] = 16384;
				break;
			case 1:
				bc->size[p] = 512 * (4 + pick(2));
				break;
			case 2:
				bc->size[p] = 16 + pick(100000);
				break;
			case 3:
				bc->size[p] = p == large ? 1000000 : 100;
				break;
			case 4:
				bc->size[p] = 1 + pick(3);
				break;
			default:
				bc->size[p] = PG_INT32_MAX / 64 - pick(512);
				break;
		}
	}
}

/* ---- requests ---- */

static const char *const load_kinds[] = {
	"none", "even", "nearly even", "at the tolerance", "one busy", "one node busy",
	"random", "very different", "some at their share", "some idle", "a handful",
};

/* Fair shares of a total of requests, from the definition */
static void
set_fair_shares(BalanceCase *bc, double total)
{
	uint64		buffers = 0;

	for (uint32 p = 0; p < bc->in.nparts; p++)
		buffers += bc->size[p];
	for (uint32 p = 0; p < bc->in.nparts; p++)
		bc->fair[p] = total * bc->size[p] / buffers;
	bc->total = total;
}

static double
pick_requests(const BalanceCase *bc, uint32 p, uint32 chosen, double scale)
{
	double		fair = bc->fair[p];

	switch (bc->load)
	{
		case 0:
			return 0;
		case 1:
			return fair;
		case 2:
			return fair * (0.99 + 0.02 * pick_double());
		case 3:
			return fair + (p == chosen ? 1 : 0) * (0.95 + 0.1 * pick_double()) *
				(0.05 * fair + 4 * sqrt(fair));
		case 4:
			return p == chosen ? scale : 0;
		case 5:
			return bc->node[p] == bc->node[chosen] ? scale * (1 + pick_double()) : 0;
		case 6:
			return scale * pick_double();
		case 7:
			return scale * pow(10, -6 * pick_double());
		case 8:
			/* pairs that make up for each other, others at their share */
			return fair;
		case 9:
			return pick(2) == 0 ? 0 : scale * pick_double();
		default:
			return pick(4);
	}
}

/* Move requests between pairs of partitions; the others keep fair shares */
static void
unbalance_pairs(BalanceCase *bc)
{
	uint32		n = bc->in.nparts;

	for (uint32 k = 0; n > 1 && k <= n / 4; k++)
	{
		uint32		from = pick(n);
		uint32		to = pick(n);
		double		amount = bc->requests[from] * pick_double();

		bc->requests[from] -= amount;
		bc->requests[to] += amount;
	}
}

static void
pick_load(BalanceCase *bc)
{
	static const uint8 loads[] = {0, 1, 2, 3, 3, 4, 5, 6, 6, 6, 7, 7, 8, 8, 8, 9, 9, 9, 10};
	double		scale = pow(10, 1 + 9 * pick_double());
	uint32		chosen = pick(bc->in.nparts);
	bool		counts = pick(2) == 0;
	double		total = 0;

	/* As much as counters can hold */
	if (pick(50) == 0)
		scale = 1e17;

	bc->load = loads[pick(lengthof(loads))];
	set_fair_shares(bc, scale);
	for (uint32 p = 0; p < bc->in.nparts; p++)
		bc->requests[p] = pick_requests(bc, p, chosen, scale);
	if (bc->load == 8)
		unbalance_pairs(bc);
	for (uint32 p = 0; p < bc->in.nparts; p++)
	{
		if (counts && bc->load != 8)
			bc->requests[p] = floor(bc->requests[p]);
		total += bc->requests[p];
	}
	set_fair_shares(bc, total);
}

/*
 * Case number of a seed.  Most are small, as machines are.
 */
static void
pick_case(BalanceCase *bc, int64 seed, int64 number)
{
	static const uint32 most[] = {2, 4, 8, 8, 16, 16, 32, 32, 64, 64};

	pg_prng_seed(&case_prng, (uint64) (seed * INT64CONST(1000000007) + number));
	bc->in.nparts = 1 + pick(most[pick(lengthof(most))]);
	bc->in.size = bc->size;
	bc->in.node = bc->node;
	bc->in.distance = bc->distance;
	bc->in.requests = bc->requests;
	pick_nodes(bc, bc->in.nparts);
	pick_sizes(bc, bc->in.nparts);
	pick_load(bc);
}

#endif							/* BALANCE_CASES_H */
