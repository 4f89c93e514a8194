/*-------------------------------------------------------------------------
 *
 * extension/numa/pool.h
 *	  The interface for the room that divides the buffer pool into parts.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_NUMA_POOL_H
#define PGSWEEP_NUMA_POOL_H

#include "datatype/timestamp.h"

#pragma GCC visibility push(hidden)

#define PGSWEEP_NUMA_MAX_PARTS	64

/*
 * A part of the buffer pool, and the node that it is meant for.
 */
typedef struct PgSweepNumaPart
{
	uint32		first_buffer;
	uint32		num_buffers;
	uint32		node;
} PgSweepNumaPart;

/*
 * Bytes of buffers that a node has room for; PG_UINT64_MAX if that is not known,
 * or no part is going to be put on its node.  Called while shared memory is
 * created, after core's part.
 */
extern uint64 pgsweep_numa_room_for_parts(uint32 node);

/*
 * Set the parts, which together are the whole pool.  At start, before any
 * feature is installed.  in_use says, in any process at any time, if processes
 * prefer the parts of their node now.
 */
extern void pgsweep_numa_set_parts(const PgSweepNumaPart *parts, int n, bool (*in_use) (void));

/*
 * Tell of an array with an element for each process, in the order of its
 * ProcNumber.  Elements are put on the nodes of the PGPROCs.  At the same time.
 */
#define PGSWEEP_NUMA_MAX_SLOT_ARRAYS	2

extern void pgsweep_numa_add_slots(void *start, Size element, uint32 n);

/*
 * Buffers that pg_sweep_numa_residence last found on a node.  Returns when
 * that was, or 0 if never.  The caller holds PgSweep->lock.
 */
extern TimestampTz pgsweep_numa_resident_buffers(uint32 node, uint64 *buffers);

#pragma GCC visibility pop

#endif							/* PGSWEEP_NUMA_POOL_H */
