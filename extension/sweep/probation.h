/*-------------------------------------------------------------------------
 *
 * extension/sweep/probation.h
 *	  What strategies with probation have in common: "clock2q", of the whole
 *	  pool, and "clock2q_partitioned", of each partition.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_PROBATION_H
#define PGSWEEP_PROBATION_H

#include "sweep/strategy.h"

#pragma GCC visibility push(hidden)

/* first_lap.c */
extern void pgsweep_first_lap_init(PgSweepProbation *p);
extern bool pgsweep_first_lap_goes_on(PgSweepProbation *p, uint64 lap_end);
extern void pgsweep_first_lap_found(PgSweepProbation *p);
extern void pgsweep_first_lap_freed(PgSweepProbation *p, bool given_up);
extern void pgsweep_first_lap_activated(PgSweepProbation *p);

/*
 * May there be free buffers?
 */
static inline bool
pgsweep_first_lap(PgSweepProbation *p)
{
	uint64		lap_end = pgsweep_read_u64(&p->lap_end);

	return unlikely(lap_end != 0) && pgsweep_first_lap_goes_on(p, lap_end);
}

/* strategy_clock2q.c */
extern void pgsweep_c2q_leave(PgSweepSlot *slot);

#pragma GCC visibility pop

#endif							/* PGSWEEP_PROBATION_H */
