/*-------------------------------------------------------------------------
 *
 * partitions.h
 *	  The partitions of the pool, and which of them a process is at home in.
 *
 * extension/sweep/partitions.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_PARTITIONS_H
#define PGSWEEP_PARTITIONS_H

#include "storage/procnumber.h"
#include "sweep/sweep.h"

#pragma GCC visibility push(hidden)

/*
 * partitions.c: made once, when shared memory is; the topology is known.
 */
extern uint32 pgsweep_count_partitions(void);
extern void pgsweep_init_partitions(void);

/*
 * The partition that a process is at home in, by the CPU that it runs on now;
 * with emulated nodes, by its ProcNumber.
 */
extern uint32 pgsweep_home(ProcNumber procno);

/*
 * The n-th nearest partition of home: itself (n = 0), those of its node, the
 * others by distance.  n < num_partitions.
 */
extern uint32 pgsweep_nth_nearest(uint32 home, uint32 n);

/* plan.c: the background writer's part in the balance */
extern void pgsweep_init_plan(void);
extern void pgsweep_make_plan(void);
extern double pgsweep_life_expectancy(uint32 partition, uint64 evictions, TimestampTz now);
extern uint32 pgsweep_recent_allocations(uint32 partition);

/* strategy_partitioned.c */
extern void pgsweep_note_lease(PgSweepSlot *slot, uint64 allocations);

#pragma GCC visibility pop

#endif							/* PGSWEEP_PARTITIONS_H */
