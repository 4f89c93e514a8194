/*-------------------------------------------------------------------------
 *
 * extension/sweep/partitions.h
 *	  The partitions of the pool, and the home of a process.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_PARTITIONS_H
#define PGSWEEP_PARTITIONS_H

#include "storage/procnumber.h"
#include "sweep/sweep.h"

#pragma GCC visibility push(hidden)

/*
 * partitions.c: called once, when shared memory is created and the topology
 * is known.
 */
extern uint32 pgsweep_count_partitions(void);
extern void pgsweep_init_partitions(void);

/*
 * The home of a process: by the CPU that it runs on now, or on emulated nodes
 * by its ProcNumber.
 */
extern uint32 pgsweep_home(ProcNumber procno);

extern const PgSweepOrder *pgsweep_order(uint32 home);
extern uint32 pgsweep_partition_of(int buffer);

/* laps.c: the background writer's part in the balance */
extern void pgsweep_init_laps(void);
extern void pgsweep_partitions_cycle(void);
extern uint32 pgsweep_recent_allocations(uint32 partition);

/* strategy_partitioned.c */
extern void pgsweep_note_lease(PgSweepSlot *slot, uint32 in_progress);
extern PgSweepPartition *pgsweep_choose_partition(PgSweepSlot *slot, uint32 pinned_run);
extern void pgsweep_partitions_position(int *hand, uint64 *passes);

#pragma GCC visibility pop

#endif							/* PGSWEEP_PARTITIONS_H */
