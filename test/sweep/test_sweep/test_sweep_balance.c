/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/test_sweep_balance.c
 *	  Property tests of pg_sweep's balancer.
 *
 * balance_cases.h		machines and loads
 * balance_lp.h			the linear program that plans are compared with
 * balance_mutants.h	the code under test, and broken variants of it
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "portability/instr_time.h"

/* The code itself: mutants replace parts of it */
#include "sweep/balance.c"
#include "sweep/transport.c"

#include "balance_cases.h"
#include "balance_lp.h"
#include "balance_mutants.h"
#include "property.h"

PG_MODULE_MAGIC_EXT(
					.name = "test_sweep_balance",
					.version = "1.0"
);

PG_FUNCTION_INFO_V1(test_sweep_balance);
PG_FUNCTION_INFO_V1(test_sweep_balance_cycles);
PG_FUNCTION_INFO_V1(test_sweep_balance_codes);
PG_FUNCTION_INFO_V1(test_sweep_balance_usec);

/*
 * Weights are whole numbers of units.  A weight in a row is less than a unit
 * off, and what is sent beyond any point of a row is at most half a unit off.
 * All rows together are no more than all requests, so the same holds for sums.
 */
#define UNIT			(1.0 / PGSWEEP_FLOW_UNIT)

/* For floating point on both sides, and for the balancer's whole numbers */
#define SLACK			1e-8

/* What the cases exercised; int64 each, as the SQL function's columns */
typedef struct BalanceCounts
{
	int64		cases;
	int64		idle;			/* no requests at all */
	int64		even;			/* requests, but an identity */
	int64		local;			/* flows, but none between nodes */
	int64		remote;			/* flows between nodes */
	int64		pivots;			/* of the oracle */
	int64		targets;		/* in all rows */
} BalanceCounts;

static BalanceCounts counts;
static double worst_remote;		/* more than the oracle's, in parts of all */
static double worst_distance;

static double
row_weight(const PgSweepFlowRow *row, uint32 i)
{
	return (row->upto[i] - (i > 0 ? row->upto[i - 1] : 0)) * UNIT;
}

static bool
is_identity(const PgSweepFlowRow *row, uint32 me)
{
	return row->n == 1 && row->target[0] == me;
}

static bool
all_identity(const PgSweepFlowRow *rows, uint32 n)
{
	for (uint32 p = 0; p < n; p++)
		if (!is_identity(&rows[p], p))
			return false;
	return true;
}

static int
cost_between(const BalanceCase *bc, uint32 from, uint32 to)
{
	uint32		a = bc->node[from];
	uint32		b = bc->node[to];

	return a == b ? 0 : LP_REMOTE_COST + bc->distance[a * bc->in.stride + b];
}

/* ---- what must be true of each row, whatever the load ---- */

static bool
check_row(const BalanceCase *bc, uint32 me, const PgSweepFlowRow *row)
{
	bool		seen[PGSWEEP_MAX_PARTITIONS] = {0};

	if (row->n == 0)
		return violated("row %u is empty", me);
	if (row->n > bc->in.nparts)
		return violated("row %u has %u targets", me, row->n);
	for (uint32 i = 0; i < row->n; i++)
	{
		uint32		to = row->target[i];

		if (to >= bc->in.nparts || seen[to])
			return violated("row %u has %u, or has it twice", me, to);
		seen[to] = true;
		if (row->upto[i] <= (i > 0 ? row->upto[i - 1] : 0))
			return violated("row %u has a weight of zero", me);
		if (to == me && i > 0)
			return violated("row %u does not begin with itself", me);
		if (i > 0 && row->target[i - 1] != me &&
			cost_between(bc, me, to) < cost_between(bc, me, row->target[i - 1]))
			return violated("row %u has a nearer one after a farther", me);
	}
	if (row->upto[row->n - 1] != PGSWEEP_FLOW_UNIT)
		return violated("row %u sums to %u", me, row->upto[row->n - 1]);
	return true;
}

/* ---- and of all together ---- */

/*
 * Is the load even?  1 yes, 0 no, -1 too near the tolerance to say.
 */
static int
expect_identity(const BalanceCase *bc)
{
	int			result = 1;

	if (bc->total <= 0)
		return 1;
	for (uint32 p = 0; p < bc->in.nparts; p++)
	{
		double		off = fabs(bc->requests[p] - bc->fair[p]);
		double		allowed = 0.05 * bc->fair[p] + 4 * sqrt(bc->fair[p]);

		if (off > allowed * (1 + 1e-9) + bc->total * 1e-12)
			return 0;
		if (off > allowed * (1 - 1e-9) - bc->total * 1e-12)
			result = -1;
	}
	return result;
}

/* Each partition keeps its share; one without requests has the identity */
static bool
check_kept(const BalanceCase *bc, const PgSweepFlowRow *rows)
{
	for (uint32 p = 0; p < bc->in.nparts; p++)
	{
		double		requests = bc->requests[p] / bc->total;
		double		fair = bc->fair[p] / bc->total;
		double		kept = 0;

		if (rows[p].target[0] == p)
			kept = row_weight(&rows[p], 0) * requests;
		if (fabs(kept - Min(requests, fair)) > requests * UNIT + SLACK)
			return violated("%u keeps %g of %g, its share is %g", p, kept, requests, fair);
		if (requests == 0 && !is_identity(&rows[p], p))
			return violated("row %u is not the identity, though nothing is asked for", p);
	}
	return true;
}

static bool
check_shares(const BalanceCase *bc, const PgSweepFlowRow *rows)
{
	double		gets[PGSWEEP_MAX_PARTITIONS] = {0};

	for (uint32 p = 0; p < bc->in.nparts; p++)
		for (uint32 i = 0; i < rows[p].n; i++)
			gets[rows[p].target[i]] += bc->requests[p] / bc->total * row_weight(&rows[p], i);
	for (uint32 p = 0; p < bc->in.nparts; p++)
	{
		double		fair = bc->fair[p] / bc->total;

		if (fabs(gets[p] - fair) > UNIT + SLACK)
			return violated("%u gets %g, its share is %g", p, gets[p], fair);
		if (gets[p] == 0 && fair > 2 * UNIT)
			return violated("nothing reaches %u, its share is %g", p, fair);
	}
	return true;
}

/*
 * Compare with the oracle.  Rows are sorted nearest first, so all flow between
 * nodes is beyond one point of the row.  The distance is a sum of steps at such
 * points, together no more than the farthest.
 */
static bool
check_optimal(const BalanceCase *bc, const PgSweepFlowRow *rows)
{
	static Lp	lp;
	double		remote = 0;
	double		distance = 0;
	double		slack = UNIT / 2 + SLACK;
	uint32		targets = 0;

	lp.n = bc->in.nparts;
	for (uint32 p = 0; p < bc->in.nparts; p++)
	{
		lp.supply[p] = bc->requests[p];
		lp.demand[p] = bc->size[p];
		for (uint32 to = 0; to < bc->in.nparts; to++)
			lp.cost[p][to] = cost_between(bc, p, to);
		for (uint32 i = 0; i < rows[p].n; i++)
		{
			double		flow = bc->requests[p] / bc->total * row_weight(&rows[p], i);
			int			cost = cost_between(bc, p, rows[p].target[i]);

			if (cost > 0)
			{
				remote += flow;
				distance += flow * (cost - LP_REMOTE_COST);
			}
			targets++;
		}
	}
	lp_solve(&lp);
	counts.targets += targets;
	counts.pivots += lp.pivots;
	if (lp.remote > UNIT)
		counts.remote++;
	else
		counts.local++;

	worst_remote = Max(worst_remote, remote - lp.remote);
	worst_distance = Max(worst_distance, distance - lp.distance);
	if (remote > lp.remote * (1 + SLACK) + slack)
		return violated("%g goes to other nodes, %g would do", remote, lp.remote);
	if (remote < lp.remote * (1 - SLACK) - slack)
		return violated("%g goes to other nodes, the oracle says %g", remote, lp.remote);
	if (distance > lp.distance * (1 + SLACK) + 255 * slack)
		return violated("%g goes to other nodes, which costs %g; it could cost %g",
						remote, distance, lp.distance);

	/* A simplex has 2n - 1, except for ties; a row must not name all */
	if (targets > 3 * bc->in.nparts)
		return violated("%u targets in %u rows", targets, bc->in.nparts);
	return true;
}

static void
plan_with(const BalanceCode *code, const PgSweepBalanceInput *in, PgSweepFlowRow *rows)
{
	/* The real code is called as the server calls it */
	if (code == &balance_codes[0])
		pgsweep_plan_flows(in, rows);
	else
		mutant_plan_flows(code, in, rows);
}

static bool
check_case(const BalanceCode *code, const BalanceCase *bc)
{
	static PgSweepFlowRow rows[PGSWEEP_MAX_PARTITIONS];
	int			expected = expect_identity(bc);

	plan_with(code, &bc->in, rows);
	counts.cases++;
	for (uint32 p = 0; p < bc->in.nparts; p++)
		if (!check_row(bc, p, &rows[p]))
			return false;
	if (all_identity(rows, bc->in.nparts) && expected != 0)
	{
		if (bc->total <= 0)
			counts.idle++;
		else
			counts.even++;
		return true;
	}
	if (expected == 1)
		return violated("the load is even, the plan is not the identity");
	return check_kept(bc, rows) && check_shares(bc, rows) && check_optimal(bc, rows);
}

/* ---- the plans of several cycles ---- */

#define CYCLES_TO_BALANCE	5
#define CYCLES_TO_IDENTITY	10
#define CYCLES_OF_NOISE		200

/* The load of one cycle: all have base, but the first */
static bool
one_cycle(const BalanceCode *code, BalanceCase *bc, double first, double base,
		  bool noise, PgSweepFlowRow *rows)
{
	uint64		recent[PGSWEEP_MAX_PARTITIONS];

	for (uint32 p = 0; p < bc->in.nparts; p++)
	{
		double		n = p == 0 ? first : base;

		/* Many backends at random times: the deviation is the square root */
		if (noise)
			n += sqrt(n) * pg_prng_double_normal(&case_prng);
		recent[p] = (uint64) rint(n);
	}
	code->damp(bc->requests, recent, bc->in.nparts);
	plan_with(code, &bc->in, rows);
	for (uint32 p = 0; p < bc->in.nparts; p++)
		if (!check_row(bc, p, &rows[p]))
			return false;
	return true;
}

/* Does each get its share when nine of ten requests are for the first? */
static bool
check_nearly_fair(const BalanceCase *bc, double first, double base,
				  const PgSweepFlowRow *rows)
{
	double		gets[PGSWEEP_MAX_PARTITIONS] = {0};
	double		fair = (first + base * (bc->in.nparts - 1)) / bc->in.nparts;

	for (uint32 p = 0; p < bc->in.nparts; p++)
		for (uint32 i = 0; i < rows[p].n; i++)
			gets[rows[p].target[i]] += (p == 0 ? first : base) * row_weight(&rows[p], i);
	for (uint32 p = 0; p < bc->in.nparts; p++)
		if (fabs(gets[p] - fair) > 0.1 * fair)
			return violated("after %d cycles of 90:10, %u of %u gets %g for %g",
							CYCLES_TO_BALANCE, p, bc->in.nparts, gets[p], fair);
	return true;
}

/*
 * 900k requests here and 100k there, then 500k each; with more partitions, in
 * the same proportion.  Then an even load with noise, and no flows.
 */
static bool
check_cycles(const BalanceCode *code, uint32 nparts, double total)
{
	static BalanceCase bc;
	static PgSweepFlowRow rows[PGSWEEP_MAX_PARTITIONS];
	double		first = 0.9 * total;
	double		base = 0.1 * total / (nparts - 1);
	uint32		cycle;

	bc.in.nparts = nparts;
	bc.in.size = bc.size;
	bc.in.node = bc.node;
	bc.in.distance = bc.distance;
	bc.in.requests = bc.requests;
	bc.in.nnodes = bc.in.stride = 2;
	bc.distance[0] = bc.distance[3] = 10;
	bc.distance[1] = bc.distance[2] = 21;
	for (uint32 p = 0; p < nparts; p++)
	{
		bc.size[p] = 16384;
		bc.node[p] = p * 2 / nparts;
		bc.requests[p] = rint(total / nparts);
	}

	for (cycle = 0; cycle < CYCLES_TO_BALANCE; cycle++)
		if (!one_cycle(code, &bc, first, base, false, rows))
			return false;
	if (!check_nearly_fair(&bc, first, base, rows))
		return false;

	/* How long the load lasted must not make a difference */
	for (cycle = 0; cycle < 20; cycle++)
		if (!one_cycle(code, &bc, first, base, false, rows))
			return false;
	for (cycle = 0; cycle < CYCLES_TO_IDENTITY; cycle++)
		if (!one_cycle(code, &bc, total / nparts, total / nparts, false, rows))
			return false;
	if (!all_identity(rows, nparts))
		return violated("no identity %d cycles after the load became even", CYCLES_TO_IDENTITY);

	/* Nor how heavy it was */
	for (cycle = 0; cycle < 20; cycle++)
		if (!one_cycle(code, &bc, first * 1000, base * 1000, false, rows))
			return false;
	for (cycle = 0; cycle < CYCLES_TO_IDENTITY; cycle++)
		if (!one_cycle(code, &bc, total / nparts, total / nparts, false, rows))
			return false;
	if (!all_identity(rows, nparts))
		return violated("no identity %d cycles after a heavy load became light and even",
						CYCLES_TO_IDENTITY);

	for (cycle = 0; cycle < CYCLES_OF_NOISE; cycle++)
	{
		if (!one_cycle(code, &bc, total / nparts, total / nparts, true, rows))
			return false;
		if (!all_identity(rows, nparts))
			return violated("noise made flows in cycle %u", cycle);
	}
	return true;
}

/*
 * By definition: the mean of the former distribution and the present one, of as
 * many requests as there are now.
 */
static bool
check_damping(const BalanceCode *code)
{
	for (int i = 0; i < 1000; i++)
	{
		double		magnitude = pow(10, pick(12));
		double		was[2] = {pick_double() * magnitude, pick_double() * magnitude};
		uint64		recent[2] = {pick(1000000), 1 + pick(1000000)};
		double		sum = (double) recent[0] + recent[1];
		double		smoothed[2] = {was[0], was[1]};

		if (i == 0)
			was[0] = was[1] = smoothed[0] = smoothed[1] = 0;
		code->damp(smoothed, recent, 2);
		for (int p = 0; p < 2; p++)
		{
			double		share = recent[p] / sum;

			if (i > 0)
				share = (was[p] / (was[0] + was[1]) + share) / 2;
			if (fabs(smoothed[p] - share * sum) > 1e-9 * sum)
				return violated("%g of %g, then " UINT64_FORMAT " of %g, is damped to %g",
								was[p], was[0] + was[1], recent[p], sum, smoothed[p]);
		}
	}
	return true;
}

/* ---- SQL functions ---- */

/*
 * test_sweep_balance(seed, first, cases, code)
 */
Datum
test_sweep_balance(PG_FUNCTION_ARGS)
{
	static BalanceCase bc;
	int64		seed = PG_GETARG_INT64(0);
	int64		first = PG_GETARG_INT64(1);
	int32		cases = PG_GETARG_INT32(2);
	const BalanceCode *code = FIND_CODE(balance_codes, 3);
	bool		good = true;
	Datum		values[3];

	memset(&counts, 0, sizeof(counts));
	worst_remote = worst_distance = 0;
	for (int64 number = first; number < first + cases && good; number++)
	{
		CHECK_FOR_INTERRUPTS();
		pick_case(&bc, seed, number);
		good = check_case(code, &bc);
		if (!good)
			values[0] = CStringGetTextDatum(psprintf("%s (seed " INT64_FORMAT ", case " INT64_FORMAT
													 ": %u partitions, %u nodes; sizes: %s; distances: %s; load: %s)",
													 violation_text(), seed, number,
													 bc.in.nparts, bc.in.nnodes,
													 size_kinds[bc.sizes],
													 distance_kinds[bc.distances],
													 load_kinds[bc.load]));
	}

	values[1] = Float8GetDatum(worst_remote);
	values[2] = Float8GetDatum(worst_distance);
	return result_row(fcinfo, values, 3, good, &counts, sizeof(counts));
}

/*
 * test_sweep_balance_cycles(partitions, total, code)
 */
Datum
test_sweep_balance_cycles(PG_FUNCTION_ARGS)
{
	int32		nparts = PG_GETARG_INT32(0);
	const BalanceCode *code = FIND_CODE(balance_codes, 2);

	if (nparts < 2 || nparts > PGSWEEP_MAX_PARTITIONS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("partitions must be 2 to %d", PGSWEEP_MAX_PARTITIONS)));
	pg_prng_seed(&case_prng, 1);
	if (check_cycles(code, nparts, (double) PG_GETARG_INT64(1)) && check_damping(code))
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(violation_text()));
}

Datum
test_sweep_balance_codes(PG_FUNCTION_ARGS)
{
	return code_names(fcinfo, balance_codes, sizeof(balance_codes[0]), lengthof(balance_codes));
}

/*
 * test_sweep_balance_usec(partitions, nodes, plans): the average time of a
 * plan for random loads and distances, where each partition differs from its
 * share by another amount.
 */
Datum
test_sweep_balance_usec(PG_FUNCTION_ARGS)
{
	static BalanceCase bc;
	static PgSweepFlowRow rows[PGSWEEP_MAX_PARTITIONS];
	uint32		nparts = PG_GETARG_INT32(0);
	uint32		nnodes = PG_GETARG_INT32(1);
	int32		plans = PG_GETARG_INT32(2);
	double		usec = 0;

	if (nparts < 1 || nparts > PGSWEEP_MAX_PARTITIONS || nnodes < 1 || nnodes > CASE_MAX_NODES ||
		plans < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("partitions and nodes must be 1 to %d", PGSWEEP_MAX_PARTITIONS)));

	pick_case(&bc, 0, 0);
	bc.in.nparts = nparts;
	bc.in.nnodes = bc.in.stride = nnodes;
	for (int32 i = 0; i < plans; i++)
	{
		instr_time	start;
		instr_time	duration;

		CHECK_FOR_INTERRUPTS();
		for (uint32 p = 0; p < nparts; p++)
		{
			bc.size[p] = 16384;
			bc.node[p] = p * nnodes / nparts;
			bc.requests[p] = 1e6 * pick_double();
		}
		for (uint32 a = 0; a < nnodes; a++)
			for (uint32 b = 0; b < nnodes; b++)
				bc.distance[a * nnodes + b] = a == b ? 10 : 11 + pick(244);
		INSTR_TIME_SET_CURRENT(start);
		pgsweep_plan_flows(&bc.in, rows);
		INSTR_TIME_SET_CURRENT(duration);
		INSTR_TIME_SUBTRACT(duration, start);
		usec += INSTR_TIME_GET_DOUBLE(duration) * 1000000.0;
	}
	PG_RETURN_FLOAT8(usec / plans);
}
