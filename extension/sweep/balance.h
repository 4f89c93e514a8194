/*-------------------------------------------------------------------------
 *
 * extension/sweep/balance.h
 *	  Plans which partition serves which requests of another.
 *
 * Backends request buffers where they run, not where there is room.  If each
 * took buffers only from its own partition, one busy backend would have a
 * fraction of the pool, and partitions without backends would be idle.  So
 * requests beyond a partition's fair share are sent on (after the adaptive
 * balancing of Vondra, "Adding basic NUMA awareness", pgsql-hackers 2025).
 *
 * The plan is a pure function of the load.  Nothing is carried over from one
 * plan to the next, so nothing can drift, oscillate or get stuck.  The load
 * is damped (pgsweep_damp_requests).
 *
 * Nothing here knows processes or shared memory: test/sweep/test_sweep
 * compares plans with a linear-programming oracle.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_BALANCE_H
#define PGSWEEP_BALANCE_H

#include <math.h>

#pragma GCC visibility push(hidden)

#define PGSWEEP_MAX_PARTITIONS	64

/* Weights are fractions of this: fine enough for rounding not to matter */
#define PGSWEEP_FLOW_UNIT		65536

/*
 * Where the requests of one partition go: target[i] takes those whose number,
 * drawn from 0 .. PGSWEEP_FLOW_UNIT - 1, is less than upto[i] and not less than
 * upto[i - 1].  upto[n - 1] is PGSWEEP_FLOW_UNIT, so that the weights always
 * sum to exactly one, and a row is never all zero.  No weight in a row is zero.
 *
 * The partition itself, if it keeps anything, is the first target; the others
 * follow nearest first: those of its node, then by distance.  A target too small
 * for a weight is left out.  n = 1 and target[0] the partition itself is the
 * identity.
 */
typedef struct PgSweepFlowRow
{
	uint32		n;
	uint32		upto[PGSWEEP_MAX_PARTITIONS];
	uint8		target[PGSWEEP_MAX_PARTITIONS];
} PgSweepFlowRow;

typedef struct PgSweepBalanceInput
{
	uint32		nparts;			/* 1 .. PGSWEEP_MAX_PARTITIONS */
	uint32		nnodes;			/* 1 .. stride */
	const uint32 *size;			/* buffers of each partition, > 0 */
	const uint8 *node;			/* node of each partition, < nnodes */
	const uint8 *distance;		/* distance[a * stride + b], 10 = local */
	uint32		stride;
	const double *requests;		/* of each partition, a count, >= 0 */
} PgSweepBalanceInput;

/*
 * Make a plan:
 *
 * - a partition's fair share of the requests is in proportion to its size;
 * - it keeps its own requests up to its fair share;
 * - the rest goes to partitions with fewer requests than theirs, which then
 *	 reach it exactly.  As much as possible stays within the node, and between
 *	 nodes the sum of flow times distance is least;
 * - if every partition is within pgsweep_balance_tolerance() of its fair
 *	 share, or there are no requests, the plan is the identity;
 * - a partition without requests has the identity as its row.
 *
 * Never fails; does not allocate memory.  rows has nparts elements.
 */
extern void pgsweep_plan_flows(const PgSweepBalanceInput *in, PgSweepFlowRow *rows);

/*
 * How far a partition's requests may be from its fair share for the load to
 * count as even.  Five per cent of a partition are not worth a remote access.
 * A count of n random events varies by about sqrt(n), which must not cause
 * flows.  Requests come in bursts, because a query needs many pages: four
 * times that is about the effect of bursts of 30 on the average over cycles.
 */
#define PGSWEEP_BALANCE_TOLERANCE	0.05

static inline double
pgsweep_balance_tolerance(double fair_share)
{
	return PGSWEEP_BALANCE_TOLERANCE * fair_share + 4 * sqrt(fair_share);
}

/*
 * Requests per partition, on average, that are needed for a plan.  Fewer say
 * too little about the load.
 */
#define PGSWEEP_BALANCE_MIN_REQUESTS	256

/*
 * Moving average of the requests of each partition, against noise of single
 * cycles: half of the former, half of the new.  After five cycles of a new
 * load 3 % of the old are left.  The former is scaled to the sum of the new:
 * the distribution is averaged, and a heavy load is not remembered longer
 * when a light one follows.  After one of P partitions had all requests, an
 * even load counts as even after about 6 + log2(P) cycles: ten with 16
 * partitions, twelve with 64.
 */
extern void pgsweep_damp_requests(double *smoothed, const uint64 *recent, uint32 nparts);

#pragma GCC visibility pop

#endif							/* PGSWEEP_BALANCE_H */
