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
 * Where equal caches would make partitions of which some have less than
 * PGSWEEP_HOMES_EVEN of the cores of others, they should have equally many
 * caches, if they have at least PGSWEEP_CORES_PER_PARTITION_LEAST cores then.
 * EPYC Rome has 16 caches of 4 cores: simulated, 8 partitions of 2 were 1 to
 * 8 % faster than 6 of 2 or 3, the more the less other work there was.  So 2 to
 * 3 is uneven.  3 to 4 and more was not simulated, and stays: with single cores
 * as caches, one core more would change the number by several.
 *
 * The least is two thirds of the above, as for caches of 8 cores (EPYC since
 * Milan), which have a partition each.
 */
#define PGSWEEP_HOMES_EVEN					0.75
#define PGSWEEP_CORES_PER_PARTITION_LEAST	8

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

/*
 * Count the node's usable cores by the partition that is their home: adds to
 * cores[].  A core with several homes counts for each with its part.
 */
extern void pgsweep_homes_count(const PgSweepNumaTopology *t, uint32 node,
								const PgSweepHomes *homes, double *cores);

#pragma GCC visibility pop

#endif							/* PGSWEEP_HOMES_H */
