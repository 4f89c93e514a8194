/*-------------------------------------------------------------------------
 *
 * extension/shared.h
 *	  What all features share: a lock, the number of slots, and which process
 *	  has a slot.
 *
 * What one feature needs for itself in shared memory is in its own folder.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_SHARED_H
#define PGSWEEP_SHARED_H

#include "datatype/timestamp.h"
#include "storage/lwlock.h"

/*
 * All of this is between the files of one library: a reference that need not
 * look for a definition elsewhere saves a load at each use.
 */
#pragma GCC visibility push(hidden)

/*
 * Slot i belongs to the process with ProcNumber i, in each feature that has
 * slots.  A process takes its slot at its first allocation of a buffer, but not
 * while core allocates (strategy "stock").
 */
typedef struct PgSweepShared
{
	/* Constant after start */
	LWLock	   *lock;			/* serializes switches, resets and views of
								 * all features */
	uint32		num_slots;		/* one for each process that can allocate a
								 * buffer */

	/* Protected by lock */
	TimestampTz stats_reset;

	/*
	 * The pid of the process that has the slot, or 0.  Written by that
	 * process, read without a lock.
	 */
	int			owner[FLEXIBLE_ARRAY_MEMBER];
} PgSweepShared;

/* NULL unless preloaded into a server that has the patches */
extern PgSweepShared *PgSweep;

/* slot.c */
extern uint32 pgsweep_num_slots(void);
extern Size pgsweep_shared_size(void);
extern void pgsweep_shared_init(void);
extern bool pgsweep_may_have_slot(void);
extern bool pgsweep_take_slot(void);

#pragma GCC visibility pop

#endif							/* PGSWEEP_SHARED_H */
