/*-------------------------------------------------------------------------
 *
 * extension/sweep/balance.c
 *	  Plans which partition serves which requests of another.
 *
 * A partition with more requests than its fair share has an excess, one with
 * fewer has room, and both sums are equal.  The excess is sent to the room in
 * two stages:
 *
 * 1. Inside each node, until the node has only excess or only room left.  The
 *	 order makes no difference: the rest of a node is the sum over its
 *	 partitions.
 *
 * 2. Between nodes, as a transportation problem (transport.c).
 *
 * Amounts are whole numbers: sums are exact, "nothing left" is a comparison
 * with zero, and the second stage ends.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sweep/balance.h"
#include "sweep/transport.h"

/* All requests; a power of two well above PGSWEEP_FLOW_UNIT */
#define WHOLE		(INT64CONST(1) << 40)

typedef struct FlowPlan
{
	const PgSweepBalanceInput *in;
	int64		keep[PGSWEEP_MAX_PARTITIONS];	/* requests that stay */
	int64		excess[PGSWEEP_MAX_PARTITIONS]; /* to be sent on yet */
	int64		room[PGSWEEP_MAX_PARTITIONS];	/* to be filled yet */
	int64		flow[PGSWEEP_MAX_PARTITIONS][PGSWEEP_MAX_PARTITIONS];	/* from, to */
} FlowPlan;

static double
sum_of(const double *amounts, uint32 n)
{
	double		sum = 0;

	for (uint32 i = 0; i < n; i++)
		sum += amounts[i];
	return sum;
}

/*
 * Turn amounts into whole numbers in proportion to them, of which the sum is
 * WHOLE.  Rounding the running sum keeps each within one of the exact value.
 */
static void
make_whole(const double *amounts, uint32 n, int64 *whole)
{
	double		sum = sum_of(amounts, n);
	double		running = 0;
	int64		given = 0;

	for (uint32 i = 0; i < n; i++)
	{
		int64		upto;

		running += amounts[i];
		upto = (int64) (running / sum * WHOLE);
		whole[i] = upto - given;
		given = upto;
	}
	Assert(given == WHOLE);
}

static bool
load_is_even(const PgSweepBalanceInput *in, const double *sizes)
{
	double		requests = sum_of(in->requests, in->nparts);
	double		buffers = sum_of(sizes, in->nparts);

	/* No requests, or NaN, count as even */
	if (!(requests > 0) || isinf(requests))
		return true;

	for (uint32 i = 0; i < in->nparts; i++)
	{
		double		fair = requests * (sizes[i] / buffers);

		if (fabs(in->requests[i] - fair) > pgsweep_balance_tolerance(fair))
			return false;
	}
	return true;
}

static void
start_plan(FlowPlan *plan, const PgSweepBalanceInput *in, const double *sizes)
{
	int64		asked[PGSWEEP_MAX_PARTITIONS];
	int64		fair[PGSWEEP_MAX_PARTITIONS];

	plan->in = in;
	memset(plan->flow, 0, sizeof(plan->flow));
	make_whole(in->requests, in->nparts, asked);
	make_whole(sizes, in->nparts, fair);

	for (uint32 i = 0; i < in->nparts; i++)
	{
		plan->keep[i] = Min(asked[i], fair[i]);
		plan->excess[i] = asked[i] - plan->keep[i];
		plan->room[i] = fair[i] - plan->keep[i];
	}
}

/*
 * Send an amount from one node to another, limited by excess and room.  Each
 * step uses up an excess, a room or the amount, so rows stay short.
 */
static void
send_between(FlowPlan *plan, uint8 from_node, uint8 to_node, int64 amount)
{
	const PgSweepBalanceInput *in = plan->in;

	for (uint32 i = 0; i < in->nparts; i++)
	{
		if (in->node[i] != from_node || plan->excess[i] == 0)
			continue;
		for (uint32 j = 0; j < in->nparts; j++)
		{
			int64		step;

			if (in->node[j] != to_node)
				continue;
			step = Min(Min(plan->excess[i], plan->room[j]), amount);
			plan->flow[i][j] += step;
			plan->excess[i] -= step;
			plan->room[j] -= step;
			amount -= step;
		}
	}
}

static void
send_inside_nodes(FlowPlan *plan)
{
	for (uint32 node = 0; node < plan->in->nnodes; node++)
		send_between(plan, node, node, WHOLE);
}

/*
 * Make the transportation problem from the rest of each node.  Node numbers
 * go into source[] and sink[].
 */
static void
start_transport(PgSweepTransport *tp, const FlowPlan *plan, uint8 *source, uint8 *sink)
{
	const PgSweepBalanceInput *in = plan->in;

	tp->nsources = tp->nsinks = 0;
	for (uint32 node = 0; node < in->nnodes; node++)
	{
		int64		excess = 0;
		int64		room = 0;

		for (uint32 i = 0; i < in->nparts; i++)
		{
			if (in->node[i] == node)
			{
				excess += plan->excess[i];
				room += plan->room[i];
			}
		}
		Assert(excess == 0 || room == 0);
		if (excess > 0)
		{
			source[tp->nsources] = node;
			tp->excess[tp->nsources++] = excess;
		}
		else if (room > 0)
		{
			sink[tp->nsinks] = node;
			tp->room[tp->nsinks++] = room;
		}
	}

	for (uint32 s = 0; s < tp->nsources; s++)
		for (uint32 k = 0; k < tp->nsinks; k++)
			tp->distance[s][k] = in->distance[source[s] * in->stride + sink[k]];
}

static void
send_between_nodes(FlowPlan *plan)
{
	PgSweepTransport tp;
	uint8		source[PGSWEEP_MAX_PARTITIONS];
	uint8		sink[PGSWEEP_MAX_PARTITIONS];

	start_transport(&tp, plan, source, sink);
	pgsweep_solve_transport(&tp);
	for (uint32 s = 0; s < tp.nsources; s++)
		for (uint32 k = 0; k < tp.nsinks; k++)
			if (tp.flow[s][k] > 0)
				send_between(plan, source[s], sink[k], tp.flow[s][k]);
}

static void
make_identity(uint32 me, PgSweepFlowRow *row)
{
	row->n = 1;
	row->upto[0] = PGSWEEP_FLOW_UNIT;
	row->target[0] = me;
}

/*
 * For the order of targets: the partition itself, its node, the other nodes.
 */
static int
nearness(const PgSweepBalanceInput *in, uint32 from, uint32 to)
{
	if (to == from)
		return -2;
	if (in->node[to] == in->node[from])
		return -1;
	return in->distance[in->node[from] * in->stride + in->node[to]];
}

/*
 * Collect the partitions that serve requests of one, nearest first.
 */
static uint32
sort_targets(const FlowPlan *plan, uint32 me, uint8 *target)
{
	uint32		n = 0;

	for (uint32 to = 0; to < plan->in->nparts; to++)
	{
		uint32		at = n;

		if (plan->flow[me][to] == 0)
			continue;
		for (; at > 0 && nearness(plan->in, me, target[at - 1]) > nearness(plan->in, me, to); at--)
			target[at] = target[at - 1];
		target[at] = to;
		n++;
	}
	return n;
}

/*
 * Turn one partition's amounts into weights.  As in make_whole(), the running
 * sum is rounded: the last one is exactly one, and errors do not add up.  A
 * target too small for any weight is left out.
 */
static void
make_row(FlowPlan *plan, uint32 me, PgSweepFlowRow *row)
{
	uint8		target[PGSWEEP_MAX_PARTITIONS];
	uint32		ntargets;
	uint32		given = 0;
	int64		asked = 0;
	int64		running = 0;

	plan->flow[me][me] = plan->keep[me];
	for (uint32 to = 0; to < plan->in->nparts; to++)
		asked += plan->flow[me][to];
	if (asked == 0)
	{
		make_identity(me, row);
		return;
	}

	row->n = 0;
	ntargets = sort_targets(plan, me, target);
	for (uint32 i = 0; i < ntargets; i++)
	{
		uint32		upto;

		running += plan->flow[me][target[i]];
		upto = (uint32) ((running * PGSWEEP_FLOW_UNIT + asked / 2) / asked);
		if (upto == given)
			continue;
		row->upto[row->n] = given = upto;
		row->target[row->n++] = target[i];
	}
	Assert(given == PGSWEEP_FLOW_UNIT);
}

void
pgsweep_plan_flows(const PgSweepBalanceInput *in, PgSweepFlowRow *rows)
{
	double		sizes[PGSWEEP_MAX_PARTITIONS] = {0};
	FlowPlan	plan;

	for (uint32 i = 0; i < in->nparts; i++)
		sizes[i] = in->size[i];
	if (load_is_even(in, sizes))
	{
		for (uint32 i = 0; i < in->nparts; i++)
			make_identity(i, &rows[i]);
		return;
	}

	start_plan(&plan, in, sizes);
	send_inside_nodes(&plan);
	send_between_nodes(&plan);
	for (uint32 i = 0; i < in->nparts; i++)
		make_row(&plan, i, &rows[i]);
}

void
pgsweep_damp_requests(double *smoothed, const uint64 *recent, uint32 nparts)
{
	double		was = 0;
	double		is = 0;
	double		scale;

	for (uint32 i = 0; i < nparts; i++)
	{
		was += smoothed[i];
		is += recent[i];
	}
	scale = was > 0 ? is / was : 0;

	for (uint32 i = 0; i < nparts; i++)
		smoothed[i] = (smoothed[i] * scale + recent[i]) / (was > 0 ? 2 : 1);
}
