/*-------------------------------------------------------------------------
 *
 * balance.h
 *	  Who takes whose requests: a plan of flows between partitions.
 *
 * Backends ask where they run, not where there is room.  If each took buffers
 * from its own partition only, one busy backend would have a fraction of the
 * pool, and partitions without backends would lie idle.  So requests beyond a
 * partition's fair share are sent on (the idea of the adaptive balancing of
 * Vondra, "Adding basic NUMA awareness", pgsql-hackers 2025).
 *
 * The plan is a pure function of the load, so nothing is carried over from one
 * plan to the next that could drift, oscillate or get stuck.  Damping is done
 * on the load (pgsweep_damp_requests).
 *
 * Nothing here knows of processes or shared memory, so that
 * test/sweep/test_sweep can compare plans with a linear-programming
 * oracle.
 *
 * extension/sweep/balance.h
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
 * - a partition's fair share is the sum of requests, by its size;
 * - it keeps what it is asked for, up to its fair share;
 * - the rest goes to partitions asked for less than theirs, which reach it
 *	 exactly: as much as possible within the node, so that the flow between nodes
 *	 is the least possible; and of all ways to send that between nodes, one for
 *	 which the sum of flow times distance is least;
 * - if every partition is within pgsweep_balance_tolerance() of its fair share,
 *	 or nobody asks for anything, the plan is the identity;
 * - a partition that is asked for nothing has the identity as its row.
 *
 * Never fails; does not allocate memory.  rows has nparts elements.
 */
extern void pgsweep_plan_flows(const PgSweepBalanceInput *in, PgSweepFlowRow *rows);

/*
 * How far a partition's requests may be from its fair share for the load to
 * count as even.  Five per cent more or less of a partition are not worth a
 * remote access.  And n events that come at random times come n plus or minus
 * sqrt(n) times, which must not make flows.  Requests come in lumps, as a query
 * needs many pages: four times that is about what lumps of 30 do to the average
 * over cycles.
 */
#define PGSWEEP_BALANCE_TOLERANCE	0.05

static inline double
pgsweep_balance_tolerance(double fair_share)
{
	return PGSWEEP_BALANCE_TOLERANCE * fair_share + 4 * sqrt(fair_share);
}

/*
 * Fewer requests than this, per partition on average, say nothing about the
 * load; wait for more before making another plan.
 */
#define PGSWEEP_BALANCE_MIN_REQUESTS	256

/*
 * Moving average of the requests of each partition, so that one cycle's noise
 * does not move buffers about: half of the former, half of the new.  After five
 * cycles of a new load 3 % of the old are left.  The former is scaled to the sum
 * of the new, so that it is the distribution which is averaged: a heavy load
 * must not be remembered for longer when a light one follows.  So after one of P partitions
 * had all requests, an even load is seen as even after about
 * 6 + log2(P) cycles: within ten up to 16 partitions, twelve with 64.
 */
extern void pgsweep_damp_requests(double *smoothed, const uint64 *recent, uint32 nparts);

#pragma GCC visibility pop

#endif							/* PGSWEEP_BALANCE_H */
