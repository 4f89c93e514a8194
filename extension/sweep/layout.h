/*-------------------------------------------------------------------------
 *
 * extension/sweep/layout.h
 *	  The number of partitions, and their boundaries.
 *
 * Boundaries are at ends of pages, because each page of the buffers is put on
 * its partition's node.  They lie on a grid with one line every unit buffers,
 * the first after head buffers: the array need not begin at a page boundary.
 * Each size is within one unit of the partition's share.
 *
 * Nodes have equal shares as long as these fit into their memory.  Only a node
 * that is too small gets less.  Shares do not follow memory where there is
 * enough of it: nodes differ by a few percent anyway (the kernel's own, the
 * firmware's), and balance sends allocations to where more buffers are.
 *
 * Within a node, shares follow the cores at home.  Otherwise hands of an even
 * load would move at different paces, and balance would send what is too much
 * to other homes.
 *
 * Only arithmetic: test/sweep/test_sweep tries all cases.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_LAYOUT_H
#define PGSWEEP_LAYOUT_H

#include "sweep/laps.h"

/* At least this many, if the pool has room for them */
#define PGSWEEP_MIN_PARTITIONS		4

/*
 * Minimum of buffers in a partition.  With the automatic number it is that of
 * the average one: all backends of a partition can have a handful pinned, and
 * a smaller one is the home of fewer.  A configured number is limited only by
 * the smallest possible shared_buffers.
 */
#define PGSWEEP_PARTITION_BUFFERS_AUTO	128
#define PGSWEEP_PARTITION_BUFFERS_MIN	16

/* Halvings that find a number to the 53 bits of a double, and some */
#define PGSWEEP_LAYOUT_PASSES	64

/*
 * The number of partitions for a pool. configured is pg_sweep.partitions, 0 =
 * automatic; parts_per_node is the largest number that suits a node's caches
 * (homes.h).
 *
 * A multiple of the number of nodes, to give all the same share, unless the
 * pool is too small for one per node.
 */
static inline uint32
pgsweep_num_partitions_for(uint32 configured, uint32 nbuffers,
						   uint32 nnodes, uint32 parts_per_node)
{
	uint32		wish = configured;
	uint32		limit;

	if (configured == 0)
		wish = Max(nnodes * parts_per_node, PGSWEEP_MIN_PARTITIONS);
	wish = (wish + nnodes - 1) / nnodes * nnodes;

	limit = nbuffers / (configured ? PGSWEEP_PARTITION_BUFFERS_MIN :
						PGSWEEP_PARTITION_BUFFERS_AUTO);
	limit = Max(Min(limit, PGSWEEP_MAX_PARTITIONS), 1);
	if (wish <= limit)
		return wish;
	return limit > nnodes ? limit / nnodes * nnodes : limit;
}

static inline double
pgsweep_layout_share(double level, double weight, double room)
{
	return Max(Min(level * weight, room), PGSWEEP_PARTITION_BUFFERS_MIN);
}

/*
 * The share of each partition, in buffers: in proportion to its weight, but no
 * more than there is room for, and at least the minimum.  What some have no
 * room for goes to the others by weight.  If all together have too little room,
 * shares are in proportion to it; if they have none at all, to weights.
 *
 * n * PGSWEEP_PARTITION_BUFFERS_MIN <= nbuffers, or n = 1; weights are
 * positive.
 */
static inline void
pgsweep_layout_shares(uint32 nbuffers, uint32 n, const double *weight,
					  const double *room, double *share)
{
	double		low = 0;
	double		high = 0;
	double		all_room = 0;
	double		any_room = 0;

	for (uint32 i = 0; i < n; i++)
	{
		Assert(weight[i] > 0);
		any_room = Max(any_room, room[i]);
		share[i] = Max(room[i], PGSWEEP_PARTITION_BUFFERS_MIN);
		all_room += share[i];
		high = Max(high, nbuffers / weight[i]);
	}
	if (all_room <= nbuffers && any_room > 0)
	{
		for (uint32 i = 0; i < n; i++)
			share[i] *= nbuffers / all_room;
		return;
	}

	/* The level at which they are all buffers: as near as doubles go */
	for (int pass = 0; pass < PGSWEEP_LAYOUT_PASSES; pass++)
	{
		double		level = (low + high) / 2;
		double		sum = 0;

		for (uint32 i = 0; i < n; i++)
			sum += pgsweep_layout_share(level, weight[i], any_room > 0 ? room[i] : nbuffers);
		if (sum < nbuffers)
			low = level;
		else
			high = level;
	}
	for (uint32 i = 0; i < n; i++)
		share[i] = pgsweep_layout_share(high, weight[i], any_room > 0 ? room[i] : nbuffers);
}

/*
 * The grid to use: unit if each partition gets several of it, and the minimum of
 * buffers even with one less.  Otherwise any buffer can be a boundary, and a
 * page can have buffers of two partitions.
 */
#define PGSWEEP_UNITS_PER_PARTITION	4

static inline uint32
pgsweep_layout_unit(uint32 n, const double *share, uint32 unit)
{
	for (uint32 i = 0; i < n; i++)
		if (share[i] < Max((double) unit * PGSWEEP_UNITS_PER_PARTITION,
						   (double) unit + PGSWEEP_PARTITION_BUFFERS_MIN))
			return 1;
	return unit;
}

/*
 * Sizes of the partitions, in size[].  unit > 0; head < unit is the number of
 * buffers before the grid's first line; each share is at least a unit.
 *
 * Each partition gets the whole units of its share, the first also the head
 * and the last also the tail, which belong to their shares.  The rest goes,
 * unit by unit, to the partition that lacks most.  One lacks something as long
 * as there is a rest, and none gets more than a unit too much.
 */
static inline void
pgsweep_layout_sizes(uint32 nbuffers, uint32 n, uint32 unit, uint32 head,
					 const double *share, uint32 *size)
{
	uint32		left = nbuffers;

	for (uint32 i = 0; i < n; i++)
	{
		uint32		fixed = 0;

		if (i == 0)
			fixed += head;
		if (i == n - 1)
			fixed += (nbuffers - head) % unit;
		size[i] = fixed;
		if (share[i] > fixed)
			size[i] += (uint32) ((share[i] - fixed) / unit) * unit;
		left -= size[i];
	}

	for (; left > 0; left -= unit)
	{
		uint32		most = 0;

		for (uint32 i = 1; i < n; i++)
			if (share[i] - size[i] > share[most] - size[most])
				most = i;
		size[most] += unit;
	}
}

#endif							/* PGSWEEP_LAYOUT_H */
