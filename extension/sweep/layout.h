/*-------------------------------------------------------------------------
 *
 * extension/sweep/layout.h
 *	  The number of partitions, and their boundaries.
 *
 * Boundaries are at ends of pages, because each page of the buffers is put on
 * its partition's node.  They lie on a grid with one line every unit buffers,
 * the first after head buffers: the array need not begin at a page boundary.
 * Sizes differ by at most one unit.
 *
 * Only arithmetic: test/sweep/test_sweep tries all cases.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_LAYOUT_H
#define PGSWEEP_LAYOUT_H

#include "sweep/laps.h"

/*
 * CPUs that share a hand.  On 44 cores per node, four hands per node took the
 * scans of 64 clients from 2.8 to 4.1 times stock's throughput (Vondra,
 * "Adding basic NUMA awareness", 2025-08-04, 176 cores): 11 cores per hand.
 * Those hands moved by one buffer at a time.  With leases a line moves less
 * often, so this is rather too many hands than too few.
 */
#define PGSWEEP_CPUS_PER_PARTITION	12

/* At least this many, if the pool has room for them */
#define PGSWEEP_MIN_PARTITIONS		4

/*
 * Minimum of buffers in a partition.  With the automatic number, all backends
 * of a partition can have a handful pinned.  A configured number is limited
 * only by the smallest possible shared_buffers.
 */
#define PGSWEEP_PARTITION_BUFFERS_AUTO	128
#define PGSWEEP_PARTITION_BUFFERS_MIN	16

/*
 * The number of partitions for a pool. configured is pg_sweep.partitions, 0 =
 * automatic; cpus_per_node is that of the largest node.
 *
 * A multiple of the number of nodes, to give all the same share, unless the
 * pool is too small for one per node.
 */
static inline uint32
pgsweep_num_partitions_for(uint32 configured, uint32 nbuffers,
						   uint32 nnodes, uint32 cpus_per_node)
{
	uint32		wish = configured;
	uint32		limit;

	if (configured == 0)
	{
		wish = nnodes * Max((cpus_per_node + PGSWEEP_CPUS_PER_PARTITION - 1) /
							PGSWEEP_CPUS_PER_PARTITION, 1);
		wish = Max(wish, PGSWEEP_MIN_PARTITIONS);
	}
	wish = (wish + nnodes - 1) / nnodes * nnodes;

	limit = nbuffers / (configured ? PGSWEEP_PARTITION_BUFFERS_MIN :
						PGSWEEP_PARTITION_BUFFERS_AUTO);
	limit = Max(Min(limit, PGSWEEP_MAX_PARTITIONS), 1);
	if (wish <= limit)
		return wish;
	return limit > nnodes ? limit / nnodes * nnodes : limit;
}

/*
 * The grid to use: unit if each partition gets several of it.  Otherwise any
 * buffer can be a boundary, and a page can have buffers of two partitions.
 */
#define PGSWEEP_UNITS_PER_PARTITION	4

static inline uint32
pgsweep_layout_unit(uint32 nbuffers, uint32 nparts, uint32 unit)
{
	return nbuffers / nparts >= unit * PGSWEEP_UNITS_PER_PARTITION ? unit : 1;
}

/*
 * Sizes of the partitions, in size[].  unit > 0; head < unit is the number of
 * buffers before the grid's first line; nparts <= nbuffers.
 *
 * Each partition gets the same number of units, the first also the head and
 * the last also the tail.  The rest goes, unit by unit, to the smallest
 * partition.  No step makes the smallest more than one unit larger than
 * another, so sizes never differ by more.
 */
static inline void
pgsweep_layout_sizes(uint32 nbuffers, uint32 nparts, uint32 unit, uint32 head,
					 uint32 *size)
{
	uint32		units = (nbuffers - head) / unit;

	for (uint32 i = 0; i < nparts; i++)
		size[i] = units / nparts * unit;
	size[0] += head;
	size[nparts - 1] += (nbuffers - head) % unit;

	for (uint32 left = units % nparts; left > 0; left--)
	{
		uint32		smallest = 0;

		for (uint32 i = 1; i < nparts; i++)
			if (size[i] < size[smallest])
				smallest = i;
		size[smallest] += unit;
	}
}

#endif							/* PGSWEEP_LAYOUT_H */
