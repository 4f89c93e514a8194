/*-------------------------------------------------------------------------
 *
 * extension/sweep/counts.h
 *	  What counts.c tells views.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_COUNTS_H
#define PGSWEEP_COUNTS_H

#include "sweep/sweep.h"

#pragma GCC visibility push(hidden)

/* One strategy, since the last reset */
typedef struct PgSweepStrategyStats
{
	PgSweepCounters counters;	/* "stock": allocations only */
	uint64		looked_at;
	uint64		shared_atomics; /* atomic read-modify-writes of lines that
								 * every allocation may write */
	int			hand;			/* buffer id, not since the reset */
	uint64		passes;			/* since the server started */
	uint64		switches;
	int64		active_usec;
} PgSweepStrategyStats;

extern void pgsweep_add_counters(PgSweepCounters *totals,
								 const PgSweepCounters *counters, int sign);
extern void pgsweep_strategy_stats(PgSweepStrategyId id, const PgSweepCounters *totals,
								   PgSweepStrategyStats *stats);

#pragma GCC visibility pop

#endif							/* PGSWEEP_COUNTS_H */
