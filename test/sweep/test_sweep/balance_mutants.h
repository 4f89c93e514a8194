/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/balance_mutants.h
 *	  pg_sweep's balancer, and broken variants of it.
 *
 * Each mutant has one mistake: seen in other patches for the same purpose, or a
 * simpler method that seems as good.  t/sweep/balance.pl demands that each is
 * caught.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BALANCE_MUTANTS_H
#define BALANCE_MUTANTS_H

/* The parts of a plan, as pgsweep_plan_flows() puts them together */
typedef struct BalanceCode
{
	const char *name;
	bool		(*even) (const PgSweepBalanceInput *in, const double *sizes);
	void		(*start) (FlowPlan *plan, const PgSweepBalanceInput *in, const double *sizes);
	void		(*inside) (FlowPlan *plan);
	void		(*between) (FlowPlan *plan);
	void		(*row) (FlowPlan *plan, uint32 me, PgSweepFlowRow *row);
	void		(*identity) (uint32 me, PgSweepFlowRow *row);
	void		(*damp) (double *smoothed, const uint64 *recent, uint32 nparts);
} BalanceCode;

static void
mutant_plan_flows(const BalanceCode *code, const PgSweepBalanceInput *in, PgSweepFlowRow *rows)
{
	double		sizes[PGSWEEP_MAX_PARTITIONS] = {0};
	FlowPlan	plan;

	for (uint32 i = 0; i < in->nparts; i++)
		sizes[i] = in->size[i];
	if (code->even(in, sizes))
	{
		for (uint32 i = 0; i < in->nparts; i++)
			code->identity(i, &rows[i]);
		return;
	}
	code->start(&plan, in, sizes);
	code->inside(&plan);
	code->between(&plan);
	for (uint32 i = 0; i < in->nparts; i++)
		code->row(&plan, i, &rows[i]);
}

/* ---- even loads ---- */

static bool
even_within(const PgSweepBalanceInput *in, const double *sizes, double part, double roots)
{
	double		requests = sum_of(in->requests, in->nparts);
	double		buffers = sum_of(sizes, in->nparts);

	for (uint32 i = 0; i < in->nparts && requests > 0; i++)
	{
		double		fair = requests * (sizes[i] / buffers);

		if (fabs(in->requests[i] - fair) > part * fair + roots * sqrt(fair))
			return false;
	}
	return true;
}

static bool
even_never(const PgSweepBalanceInput *in, const double *sizes)
{
	return !(sum_of(in->requests, in->nparts) > 0);
}

static bool
even_ten_percent(const PgSweepBalanceInput *in, const double *sizes)
{
	return even_within(in, sizes, 0.1, 0);
}

/* Takes noise for a load */
static bool
even_without_noise(const PgSweepBalanceInput *in, const double *sizes)
{
	return even_within(in, sizes, 0.02, 0);
}

static bool
even_on_average(const PgSweepBalanceInput *in, const double *sizes)
{
	double		requests = sum_of(in->requests, in->nparts);
	double		buffers = sum_of(sizes, in->nparts);
	double		off = 0;

	for (uint32 i = 0; i < in->nparts && requests > 0; i++)
		off += fabs(in->requests[i] - requests * (sizes[i] / buffers));
	return off / in->nparts <= pgsweep_balance_tolerance(requests / in->nparts);
}

/* ---- shares ---- */

static void
start_without_sizes(FlowPlan *plan, const PgSweepBalanceInput *in, const double *sizes)
{
	double		same[PGSWEEP_MAX_PARTITIONS];

	for (uint32 i = 0; i < in->nparts; i++)
		same[i] = 1;
	start_plan(plan, in, same);
}

/* A partition exactly at its share gives half of it away */
static void
start_halves_at_share(FlowPlan *plan, const PgSweepBalanceInput *in, const double *sizes)
{
	start_plan(plan, in, sizes);
	for (uint32 i = 0; i < in->nparts; i++)
	{
		if (plan->excess[i] == 0 && plan->room[i] <= 1 && in->nparts > 1)
		{
			plan->flow[i][(i + 1) % in->nparts] = plan->keep[i] / 2;
			plan->keep[i] -= plan->keep[i] / 2;
		}
	}
}

/* Keeps less than its share, and has others' requests instead */
static void
start_swaps(FlowPlan *plan, const PgSweepBalanceInput *in, const double *sizes)
{
	start_plan(plan, in, sizes);
	for (uint32 i = 0; i + 1 < in->nparts; i++)
	{
		int64		half = Min(plan->keep[i], plan->keep[i + 1]) / 2;

		plan->keep[i] -= half;
		plan->keep[i + 1] -= half;
		plan->flow[i][i + 1] += half;
		plan->flow[i + 1][i] += half;
	}
}

/* Room is what a partition has, not what it has left */
static void
start_room_is_size(FlowPlan *plan, const PgSweepBalanceInput *in, const double *sizes)
{
	int64		left = 0;

	start_plan(plan, in, sizes);
	for (uint32 i = 0; i < in->nparts; i++)
		left += plan->room[i];
	for (uint32 i = 0; i < in->nparts; i++)
	{
		if (plan->room[i] > 0)
			plan->room[i] = Min(plan->room[i] + plan->keep[i], left);
		left -= plan->room[i];
	}
}

/* ---- inside and between nodes ---- */

static void
inside_others_first(FlowPlan *plan)
{
	for (uint32 a = 0; a < plan->in->nnodes; a++)
		for (uint32 b = 0; b < plan->in->nnodes; b++)
			if (a != b)
				send_between(plan, a, b, WHOLE);
	send_inside_nodes(plan);
}

/* To the partitions in their order, whatever node they are on */
static void
inside_by_number(FlowPlan *plan)
{
	for (uint32 i = 0; i < plan->in->nparts; i++)
	{
		for (uint32 j = 0; j < plan->in->nparts; j++)
		{
			int64		step = Min(plan->excess[i], plan->room[j]);

			plan->flow[i][j] += step;
			plan->excess[i] -= step;
			plan->room[j] -= step;
		}
	}
}

/* To all with room, by their room */
static void
inside_proportional(FlowPlan *plan)
{
	int64		left = 0;

	for (uint32 j = 0; j < plan->in->nparts; j++)
		left += plan->room[j];
	for (uint32 i = 0; i < plan->in->nparts; i++)
	{
		int64		excess = plan->excess[i];
		int64		of = left;

		for (uint32 j = 0; j < plan->in->nparts && of > 0; j++)
		{
			int64		step = (int64) ((double) excess * plan->room[j] / of);

			step = Min(Min(step, excess), plan->room[j]);
			of -= plan->room[j];
			plan->flow[i][j] += step;
			plan->room[j] -= step;
			plan->excess[i] -= step;
			excess -= step;
			left -= step;
		}
	}
	inside_by_number(plan);
}

static void
between_by_number(FlowPlan *plan)
{
	inside_by_number(plan);
}

static void
between_nothing(FlowPlan *plan)
{
}

/* Send between the pair of nodes that is the nearest, again and again */
static bool
send_nearest(FlowPlan *plan, uint32 first, uint32 last, bool swapped, uint32 stride)
{
	const PgSweepBalanceInput *in = plan->in;
	int			nearest = INT_MAX;
	uint32		from = 0;
	uint32		to = 0;

	for (uint32 i = 0; i < in->nparts; i++)
	{
		for (uint32 j = 0; j < in->nparts; j++)
		{
			uint32		a = in->node[i];
			uint32		b = in->node[j];
			uint32		at = swapped ? b * stride + a : a * stride + b;

			if (a < first || a > last || plan->excess[i] == 0 || plan->room[j] == 0)
				continue;
			if (in->distance[at] < nearest)
			{
				nearest = in->distance[at];
				from = a;
				to = b;
			}
		}
	}
	if (nearest == INT_MAX)
		return false;
	send_between(plan, from, to, WHOLE);
	return true;
}

/* Each node in turn takes the nearest room */
static void
between_each_its_nearest(FlowPlan *plan)
{
	for (uint32 a = 0; a < plan->in->nnodes; a++)
		while (send_nearest(plan, a, a, false, plan->in->stride))
			;
}

/* The nearest pair of all first, without second thoughts */
static void
between_nearest_pair(FlowPlan *plan)
{
	while (send_nearest(plan, 0, UINT_MAX, false, plan->in->stride))
		;
}

/* Solves another problem: distances changed before */
static void
between_with(FlowPlan *plan, const uint8 *distance, uint32 stride)
{
	PgSweepBalanceInput other = *plan->in;
	const PgSweepBalanceInput *in = plan->in;

	other.distance = distance;
	other.stride = stride;
	plan->in = &other;
	send_between_nodes(plan);
	plan->in = in;
}

static void
between_swapped(FlowPlan *plan)
{
	const PgSweepBalanceInput *in = plan->in;
	uint8		distance[CASE_MAX_NODES * CASE_MAX_NODES];

	for (uint32 a = 0; a < in->nnodes; a++)
		for (uint32 b = 0; b < in->nnodes; b++)
			distance[a * in->nnodes + b] = in->distance[b * in->stride + a];
	between_with(plan, distance, in->nnodes);
}

static void
between_near_or_far(FlowPlan *plan)
{
	const PgSweepBalanceInput *in = plan->in;
	uint8		distance[CASE_MAX_NODES * CASE_MAX_NODES];

	for (uint32 a = 0; a < in->nnodes; a++)
		for (uint32 b = 0; b < in->nnodes; b++)
			distance[a * in->nnodes + b] = in->distance[a * in->stride + b] < 20 ? 10 : 20;
	between_with(plan, distance, in->nnodes);
}

static void
between_stride_forgotten(FlowPlan *plan)
{
	between_with(plan, plan->in->distance, plan->in->nnodes);
}

/* ---- rows ---- */

static int64
row_asked(FlowPlan *plan, uint32 me)
{
	int64		asked = 0;

	plan->flow[me][me] = plan->keep[me];
	for (uint32 to = 0; to < plan->in->nparts; to++)
		asked += plan->flow[me][to];
	return asked;
}

/* Rounds each weight by itself, to so many in a unit */
static void
row_each_rounded(FlowPlan *plan, uint32 me, PgSweepFlowRow *row, int64 unit, int64 up)
{
	uint8		target[PGSWEEP_MAX_PARTITIONS];
	int64		asked = row_asked(plan, me);
	uint32		n = sort_targets(plan, me, target);
	uint32		upto = 0;

	make_identity(me, row);
	if (asked == 0)
		return;
	row->n = 0;
	for (uint32 i = 0; i < n; i++)
	{
		int64		weight = (plan->flow[me][target[i]] * unit + asked * up / 2) / asked;

		if (weight == 0)
			continue;
		upto += weight * (PGSWEEP_FLOW_UNIT / unit);
		row->upto[row->n] = upto;
		row->target[row->n++] = target[i];
	}
}

static void
row_drifts(FlowPlan *plan, uint32 me, PgSweepFlowRow *row)
{
	row_each_rounded(plan, me, row, PGSWEEP_FLOW_UNIT, 1);
}

static void
row_rounded_down(FlowPlan *plan, uint32 me, PgSweepFlowRow *row)
{
	row_each_rounded(plan, me, row, PGSWEEP_FLOW_UNIT, 0);
}

/* Sums to one, but in units too coarse */
static void
row_percent(FlowPlan *plan, uint32 me, PgSweepFlowRow *row)
{
	row_each_rounded(plan, me, row, 64, 1);
	if (row->n == 0)
		make_identity(me, row);
	row->upto[row->n - 1] = PGSWEEP_FLOW_UNIT;
}

/* Rounds each down, and lets the last target have the rest */
static void
row_last_has_rest(FlowPlan *plan, uint32 me, PgSweepFlowRow *row)
{
	row_each_rounded(plan, me, row, PGSWEEP_FLOW_UNIT / 16, 0);
	if (row->n == 0)
		make_identity(me, row);
	row->upto[row->n - 1] = PGSWEEP_FLOW_UNIT;
}

/* Nothing was asked for, so nothing is in the row */
static void
row_all_zero(FlowPlan *plan, uint32 me, PgSweepFlowRow *row)
{
	int64		asked = row_asked(plan, me);

	make_row(plan, me, row);
	if (asked == 0)
		row->n = 0;
}

/* A target more, that gets nothing */
static void
row_zero_weight(FlowPlan *plan, uint32 me, PgSweepFlowRow *row)
{
	make_row(plan, me, row);
	if (row->n > 1 && row->n < plan->in->nparts)
	{
		bool		used[PGSWEEP_MAX_PARTITIONS] = {0};
		uint8		other = 0;

		for (uint32 i = 0; i < row->n; i++)
			used[row->target[i]] = true;
		while (used[other])
			other++;
		row->upto[row->n] = PGSWEEP_FLOW_UNIT;
		row->target[row->n++] = other;
	}
}

static void
row_turned_round(FlowPlan *plan, uint32 me, PgSweepFlowRow *row, uint32 first)
{
	PgSweepFlowRow made;
	uint32		upto;

	make_row(plan, me, &made);
	*row = made;
	first = Min(first, made.n);
	upto = first > 0 ? made.upto[first - 1] : 0;
	for (uint32 i = first; i < made.n; i++)
	{
		uint32		k = made.n - 1 - (i - first);

		upto += made.upto[k] - (k > 0 ? made.upto[k - 1] : 0);
		row->upto[i] = upto;
		row->target[i] = made.target[k];
	}
}

static void
row_self_last(FlowPlan *plan, uint32 me, PgSweepFlowRow *row)
{
	row_turned_round(plan, me, row, 0);
}

static void
row_farthest_first(FlowPlan *plan, uint32 me, PgSweepFlowRow *row)
{
	row_turned_round(plan, me, row, 1);
}

/* One neighbour is enough */
static void
row_one_target(FlowPlan *plan, uint32 me, PgSweepFlowRow *row)
{
	make_row(plan, me, row);
	if (row->n > 2)
		row->n = 2;
	row->upto[row->n - 1] = PGSWEEP_FLOW_UNIT;
}

/* Leaves the row alone: the last plan's flows stay */
static void
identity_never_back(uint32 me, PgSweepFlowRow *row)
{
	if (row->n == 0)
		make_identity(me, row);
}

static void
identity_first(uint32 me, PgSweepFlowRow *row)
{
	make_identity(0, row);
}

/* ---- damping ---- */

static void
damp_not(double *smoothed, const uint64 *recent, uint32 nparts)
{
	for (uint32 i = 0; i < nparts; i++)
		smoothed[i] = recent[i];
}

static void
damp_for_ever(double *smoothed, const uint64 *recent, uint32 nparts)
{
	for (uint32 i = 0; i < nparts; i++)
		smoothed[i] += recent[i];
}

static void
damp_slowly(double *smoothed, const uint64 *recent, uint32 nparts)
{
	for (uint32 i = 0; i < nparts; i++)
		smoothed[i] += (recent[i] - smoothed[i]) / 16;
}

/* Follows a rise at once, and a fall slowly */
static void
damp_falls_only(double *smoothed, const uint64 *recent, uint32 nparts)
{
	for (uint32 i = 0; i < nparts; i++)
		smoothed[i] = Max((double) recent[i], (smoothed[i] * 7 + recent[i]) / 8);
}

/* The mean of the counts, which remembers a heavy load for longer */
static void
damp_counts(double *smoothed, const uint64 *recent, uint32 nparts)
{
	for (uint32 i = 0; i < nparts; i++)
		smoothed[i] = (smoothed[i] + recent[i]) / 2;
}

#define REAL_CODE \
	.even = load_is_even, \
	.start = start_plan, \
	.inside = send_inside_nodes, \
	.between = send_between_nodes, \
	.row = make_row, \
	.identity = make_identity, \
	.damp = pgsweep_damp_requests

/* A mutant is the real code with a part replaced, of which compilers warn */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"

static const BalanceCode balance_codes[] = {
	{"pg_sweep", REAL_CODE},
	{"never even", REAL_CODE, .even = even_never},
	{"even within ten per cent", REAL_CODE, .even = even_ten_percent},
	{"noise is not even", REAL_CODE, .even = even_without_noise},
	{"even on average", REAL_CODE, .even = even_on_average},
	{"ignores sizes", REAL_CODE, .start = start_without_sizes},
	{"gives half away at its share", REAL_CODE, .start = start_halves_at_share},
	{"swaps requests", REAL_CODE, .start = start_swaps},
	{"takes size for room", REAL_CODE, .start = start_room_is_size},
	{"remote before local", REAL_CODE, .inside = inside_others_first},
	{"ignores nodes", REAL_CODE, .inside = inside_by_number},
	{"spreads over all", REAL_CODE, .inside = inside_proportional},
	{"ignores distances", REAL_CODE, .between = between_by_number},
	{"confined to the node", REAL_CODE, .between = between_nothing},
	{"each node its nearest room", REAL_CODE, .between = between_each_its_nearest},
	{"nearest pair first", REAL_CODE, .between = between_nearest_pair},
	{"distances there for those back", REAL_CODE, .between = between_swapped},
	{"knows near and far only", REAL_CODE, .between = between_near_or_far},
	{"forgets the stride", REAL_CODE, .between = between_stride_forgotten},
	{"weights drift", REAL_CODE, .row = row_drifts},
	{"weights rounded down", REAL_CODE, .row = row_rounded_down},
	{"weights too coarse", REAL_CODE, .row = row_percent},
	{"rounding adds up", REAL_CODE, .row = row_last_has_rest},
	{"row all zero", REAL_CODE, .row = row_all_zero},
	{"weight of zero", REAL_CODE, .row = row_zero_weight},
	{"itself last", REAL_CODE, .row = row_self_last},
	{"farthest first", REAL_CODE, .row = row_farthest_first},
	{"one neighbour only", REAL_CODE, .row = row_one_target},
	{"never back to the identity", REAL_CODE, .identity = identity_never_back},
	{"identity of another", REAL_CODE, .identity = identity_first},
	{"not damped", REAL_CODE, .damp = damp_not},
	{"damped for ever", REAL_CODE, .damp = damp_for_ever},
	{"damped too slowly", REAL_CODE, .damp = damp_slowly},
	{"damped by counts", REAL_CODE, .damp = damp_counts},
	{"damped one way", REAL_CODE, .damp = damp_falls_only},
};

#pragma GCC diagnostic pop

#endif							/* BALANCE_MUTANTS_H */
