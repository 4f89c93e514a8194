/*-------------------------------------------------------------------------
 *
 * extension/sweep/homes.h
 *	  Which of a node's partitions is the home of which of its CPUs.
 *
 * Knows nothing but a PgSweepNumaTopology: test/sweep/test_sweep drives it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_HOMES_H
#define PGSWEEP_HOMES_H

#include "numa/topology.h"

#pragma GCC visibility push(hidden)

/*
 * Cores that share a hand.  On 44 cores per node, four hands per node took the
 * scans of 64 clients from 2.8 to 4.1 times stock's throughput (Vondra,
 * "Adding basic NUMA awareness", 2025-08-04, 176 cores without second
 * threads): 11 cores per hand.  Those hands moved by one buffer at a time.
 * With leases a line moves less often, so this is rather too many hands than
 * too few.
 *
 * Cores and not CPUs: a hand's line moves between cores.  Threads of one have
 * it in the same first-level cache.
 */
#define PGSWEEP_CORES_PER_PARTITION	12

/*
 * The partitions first .. first + span - 1, which are divided among the
 * processes that run there.
 */
typedef struct PgSweepHomes
{
	uint8		first;
	uint8		span;
} PgSweepHomes;

/*
 * The number of partitions that suits the caches of a node; at least 1.
 */
extern uint32 pgsweep_homes_wanted(const PgSweepNumaTopology *t, uint32 node);

/*
 * Divide a node's partitions among its CPUs: sets homes[] of these.
 */
extern void pgsweep_homes_divide(const PgSweepNumaTopology *t, uint32 node,
								 PgSweepHomes parts, PgSweepHomes *homes);

#pragma GCC visibility pop

#endif							/* PGSWEEP_HOMES_H */
