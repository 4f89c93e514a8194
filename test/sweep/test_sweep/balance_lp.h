/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/balance_lp.h
 *	  The oracle of the balancer's test: the linear program itself.
 *
 * Each partition's requests are supply, each partition's fair share is demand.
 * Any partition may send to any other.  The cost is the flow between nodes, and
 * among solutions of equal cost the distance.  The balancer reaches the same end by
 * other means, which are unknown here: it levels nodes first, keeps requests at
 * home, and has whole numbers.
 *
 * Solved by the simplex method for transportation problems (Dantzig 1951): a basis
 * is a tree of cells, prices follow from the tree, and a cell that is cheaper than
 * its prices enters.  When there is none, the prices prove that no solution is
 * cheaper.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BALANCE_LP_H
#define BALANCE_LP_H

#define LP_MAX			64		/* rows, and columns */

/*
 * Flow between nodes has priority: this is more than the sum of distances along
 * all cells of a basis can be.
 */
#define LP_REMOTE_COST	100000

/*
 * Each supply is increased by about this, a little more for each.  Then no cell of a
 * basis is zero, and the method cannot cycle.
 */
#define LP_PERTURBATION	1e-11

typedef struct Lp
{
	int			n;
	double		supply[LP_MAX];
	double		demand[LP_MAX];
	int			cost[LP_MAX][LP_MAX];

	/* The basis */
	int			ncells;
	int			row[2 * LP_MAX];
	int			col[2 * LP_MAX];
	double		amount[2 * LP_MAX];

	/* The tree of it: rows are 0 .. n - 1, columns n .. 2n - 1 */
	int			parent[2 * LP_MAX];
	int			parent_cell[2 * LP_MAX];
	int			depth[2 * LP_MAX];
	int			price[2 * LP_MAX];

	/* The result */
	double		remote;			/* sum of flows between nodes */
	double		distance;		/* sum of that times distance */
	int			pivots;
} Lp;

/*
 * A first solution: cheap cells first.  Each cell uses up one row or one column,
 * until both end together.
 */
static void
lp_start(Lp *lp)
{
	double		supply[LP_MAX];
	double		demand[LP_MAX];
	bool		row_done[LP_MAX] = {0};
	bool		col_done[LP_MAX] = {0};
	int			rows = lp->n;
	int			cols = lp->n;

	memcpy(supply, lp->supply, sizeof(supply));
	memcpy(demand, lp->demand, sizeof(demand));
	lp->ncells = 0;

	for (int pass = 0; pass < 2; pass++)
	{
		for (int i = 0; i < lp->n; i++)
		{
			for (int j = 0; j < lp->n; j++)
			{
				int			c = lp->ncells;

				if (row_done[i] || col_done[j] || (pass == 0 && lp->cost[i][j] > 0))
					continue;
				lp->row[c] = i;
				lp->col[c] = j;
				lp->ncells++;
				if ((supply[i] < demand[j] && rows > 1) || cols == 1)
				{
					lp->amount[c] = supply[i];
					demand[j] -= supply[i];
					row_done[i] = true;
					rows--;
				}
				else
				{
					lp->amount[c] = demand[j];
					supply[i] -= demand[j];
					col_done[j] = true;
					cols--;
				}
			}
		}
	}
}

/*
 * Make row 0 the root of the tree.  Set the prices: each cell of the basis costs the
 * sum of its row's and its column's price.
 */
static void
lp_hang_up(Lp *lp)
{
	int			first[2 * LP_MAX];
	int			next[4 * LP_MAX];
	int			queue[2 * LP_MAX];
	int			queued = 1;

	memset(first, -1, sizeof(first));
	for (int c = 0; c < lp->ncells; c++)
	{
		next[2 * c] = first[lp->row[c]];
		first[lp->row[c]] = 2 * c;
		next[2 * c + 1] = first[lp->n + lp->col[c]];
		first[lp->n + lp->col[c]] = 2 * c + 1;
	}

	queue[0] = 0;
	lp->parent[0] = lp->parent_cell[0] = -1;
	lp->depth[0] = lp->price[0] = 0;
	for (int q = 0; q < queued; q++)
	{
		int			node = queue[q];

		for (int end = first[node]; end >= 0; end = next[end])
		{
			int			c = end / 2;
			int			other = end % 2 == 0 ? lp->n + lp->col[c] : lp->row[c];

			if (c == lp->parent_cell[node])
				continue;
			lp->parent[other] = node;
			lp->parent_cell[other] = c;
			lp->depth[other] = lp->depth[node] + 1;
			lp->price[other] = lp->cost[lp->row[c]][lp->col[c]] - lp->price[node];
			queue[queued++] = other;
		}
	}
	if (queued != 2 * lp->n)
		elog(ERROR, "the oracle's basis is not a tree");
}

/*
 * The cell that is cheapest compared with its prices, in the next row that has any
 */
static bool
lp_entering(Lp *lp, int *row, int *col)
{
	for (int tried = 0; tried < lp->n; tried++)
	{
		int			i = (*row + tried) % lp->n;
		int			best = 0;

		for (int j = 0; j < lp->n; j++)
		{
			int			gain = lp->price[i] + lp->price[lp->n + j] - lp->cost[i][j];

			if (gain > best)
			{
				best = gain;
				*col = j;
			}
		}
		if (best > 0)
		{
			*row = i;
			return true;
		}
	}
	return false;
}

/*
 * A new cell closes a cycle, whose cells lose and gain in turn.  Those that lose are
 * the first, third, ... from both ends.
 */
static void
lp_pivot(Lp *lp, int row, int col)
{
	int			path[2][2 * LP_MAX];
	int			length[2] = {0, 0};
	int			end[2] = {row, lp->n + col};
	int			leaving = -1;
	double		amount;

	while (end[0] != end[1])
	{
		int			side = lp->depth[end[0]] >= lp->depth[end[1]] ? 0 : 1;

		path[side][length[side]++] = lp->parent_cell[end[side]];
		end[side] = lp->parent[end[side]];
	}
	for (int side = 0; side < 2; side++)
		for (int k = 0; k < length[side]; k += 2)
			if (leaving < 0 || lp->amount[path[side][k]] < lp->amount[leaving])
				leaving = path[side][k];

	amount = lp->amount[leaving];
	for (int side = 0; side < 2; side++)
		for (int k = 0; k < length[side]; k++)
			lp->amount[path[side][k]] += k % 2 == 0 ? -amount : amount;
	lp->row[leaving] = row;
	lp->col[leaving] = col;
	lp->amount[leaving] = amount;
}

static void
lp_check(const Lp *lp)
{
	double		primal = 0;
	double		dual = 0;

	for (int c = 0; c < lp->ncells; c++)
	{
		primal += lp->amount[c] * lp->cost[lp->row[c]][lp->col[c]];
		if (lp->amount[c] < -1e-12)
			elog(ERROR, "the oracle sends %g from %d to %d",
				 lp->amount[c], lp->row[c], lp->col[c]);
	}
	for (int i = 0; i < lp->n; i++)
	{
		dual += lp->supply[i] * lp->price[i] + lp->demand[i] * lp->price[lp->n + i];
		for (int j = 0; j < lp->n; j++)
			if (lp->price[i] + lp->price[lp->n + j] > lp->cost[i][j])
				elog(ERROR, "the oracle's prices prove nothing");
	}
	if (fabs(primal - dual) > 1e-12 * LP_REMOTE_COST * lp->n)
		elog(ERROR, "the oracle's solution costs %g, but may cost %g", primal, dual);
}

/*
 * Solve it.  Amounts are relative: supply and demand are scaled to a sum of 1.
 */
static void
lp_solve(Lp *lp)
{
	double		supplied = 0;
	double		demanded = 0;
	double		added = 0;
	int			row = 0;
	int			col = 0;

	for (int i = 0; i < lp->n; i++)
	{
		supplied += lp->supply[i];
		demanded += lp->demand[i];
	}
	for (int i = 0; i < lp->n; i++)
	{
		double		add = LP_PERTURBATION * (1 + i / (double) (7 * lp->n));

		lp->supply[i] = lp->supply[i] / supplied + add;
		lp->demand[i] /= demanded;
		added += add;
	}
	lp->demand[lp->n - 1] += added;

	lp_start(lp);
	lp_hang_up(lp);
	for (lp->pivots = 0; lp_entering(lp, &row, &col); lp->pivots++)
	{
		if (lp->pivots > 100000)
			elog(ERROR, "the oracle finds no end");
		lp_pivot(lp, row, col);
		lp_hang_up(lp);
	}
	lp_check(lp);

	lp->remote = lp->distance = 0;
	for (int c = 0; c < lp->ncells; c++)
	{
		int			cost = lp->cost[lp->row[c]][lp->col[c]];

		if (cost > 0)
		{
			lp->remote += lp->amount[c];
			lp->distance += lp->amount[c] * (cost - LP_REMOTE_COST);
		}
	}
}

#endif							/* BALANCE_LP_H */
