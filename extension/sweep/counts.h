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
	int			hand;			/* buffer id, not since the reset; -1 = none */
	uint64		passes;			/* since the server started */
	uint64		switches;
	int64		active_usec;
} PgSweepStrategyStats;

extern void pgsweep_add_counters(PgSweepCounters *totals,
								 const PgSweepCounters *counters, int sign);
extern void pgsweep_get_strategy_stats(PgSweepStrategyStats *stats);

#pragma GCC visibility pop

#endif							/* PGSWEEP_COUNTS_H */
