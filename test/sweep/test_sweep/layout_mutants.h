/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/layout_mutants.h
 *	  pg_sweep's layout of partitions, and broken variants of it.
 *
 * Each mutant has one mistake that a pool of a round size does not show.
 * t/sweep/layout.pl demands that each is caught.
 *
 *-------------------------------------------------------------------------
 */
#ifndef LAYOUT_MUTANTS_H
#define LAYOUT_MUTANTS_H

#include "sweep/layout.h"

typedef struct LayoutCode
{
	const char *name;
	uint32		(*number) (uint32 configured, uint32 nbuffers, uint32 nnodes,
						   uint32 cpus_per_node);
	uint32		(*unit) (uint32 nbuffers, uint32 nparts, uint32 unit);
	void		(*sizes) (uint32 nbuffers, uint32 nparts, uint32 unit, uint32 head,
						  uint32 *size);
} LayoutCode;

/* ---- how many ---- */

/* What was asked for, whatever the nodes */
static uint32
number_without_nodes(uint32 configured, uint32 nbuffers, uint32 nnodes, uint32 cpus_per_node)
{
	uint32		limit = Max(Min(nbuffers / 16, 64), 1);

	return configured > 0 ? Min(configured, limit) :
		pgsweep_num_partitions_for(0, nbuffers, nnodes, cpus_per_node);
}

/* What the pool has room for, whatever the nodes */
static uint32
number_cut_anywhere(uint32 configured, uint32 nbuffers, uint32 nnodes, uint32 cpus_per_node)
{
	uint32		wish = pgsweep_num_partitions_for(configured, PG_INT32_MAX, nnodes, cpus_per_node);

	return Min(wish, Max(nbuffers / (configured ? 16 : 128), 1));
}

/* Rounded down */
static uint32
number_rounded_down(uint32 configured, uint32 nbuffers, uint32 nnodes, uint32 cpus_per_node)
{
	return pgsweep_num_partitions_for(configured > nnodes ? configured / nnodes * nnodes : configured,
									  nbuffers, nnodes, cpus_per_node);
}

/* As many as were asked for, however small */
static uint32
number_in_any_pool(uint32 configured, uint32 nbuffers, uint32 nnodes, uint32 cpus_per_node)
{
	return pgsweep_num_partitions_for(configured, configured ? PG_INT32_MAX : nbuffers,
									  nnodes, cpus_per_node);
}

/* The automatic number with the limit of configured ones */
static uint32
number_of_tiny_ones(uint32 configured, uint32 nbuffers, uint32 nnodes, uint32 cpus_per_node)
{
	if (configured == 0)
		configured = pgsweep_num_partitions_for(0, PG_INT32_MAX, nnodes, cpus_per_node);
	return pgsweep_num_partitions_for(configured, nbuffers, nnodes, cpus_per_node);
}

/* Nothing at all in a small pool */
static uint32
number_zero(uint32 configured, uint32 nbuffers, uint32 nnodes, uint32 cpus_per_node)
{
	uint32		limit = nbuffers / (configured ? 16 : 128);

	return Min(limit, pgsweep_num_partitions_for(configured, nbuffers, nnodes, cpus_per_node));
}

/* One for each node, whatever the CPUs */
static uint32
number_without_cpus(uint32 configured, uint32 nbuffers, uint32 nnodes, uint32 cpus_per_node)
{
	return pgsweep_num_partitions_for(configured, nbuffers, nnodes, 1);
}

/* More CPUs to a hand because the division rounds down */
static uint32
number_cpus_rounded(uint32 configured, uint32 nbuffers, uint32 nnodes, uint32 cpus_per_node)
{
	return pgsweep_num_partitions_for(configured, nbuffers, nnodes,
									  Max(cpus_per_node / 12 * 12, 1));
}

/* ---- the grid ---- */

static uint32
unit_always(uint32 nbuffers, uint32 nparts, uint32 unit)
{
	return unit;
}

static uint32
unit_never(uint32 nbuffers, uint32 nparts, uint32 unit)
{
	return 1;
}

static uint32
unit_if_any_room(uint32 nbuffers, uint32 nparts, uint32 unit)
{
	return nbuffers / nparts >= unit ? unit : 1;
}

/* ---- where they end ---- */

/* The same number of buffers each, wherever that is */
static void
sizes_off_grid(uint32 nbuffers, uint32 nparts, uint32 unit, uint32 head, uint32 *size)
{
	for (uint32 i = 0; i < nparts; i++)
		size[i] = nbuffers / nparts + (i < nbuffers % nparts);
}

/* As if the array began where a page does */
static void
sizes_without_head(uint32 nbuffers, uint32 nparts, uint32 unit, uint32 head, uint32 *size)
{
	pgsweep_layout_sizes(nbuffers, nparts, unit, 0, size);
}

/* What is left over goes to the last */
static void
sizes_rest_to_last(uint32 nbuffers, uint32 nparts, uint32 unit, uint32 head, uint32 *size)
{
	uint32		each = (nbuffers - head) / unit / nparts * unit;

	for (uint32 i = 0; i < nparts; i++)
		size[i] = each;
	size[0] += head;
	size[nparts - 1] += nbuffers - head - nparts * each;
}

/* What is left over goes to the first ones, of which one has the head already */
static void
sizes_rest_to_first(uint32 nbuffers, uint32 nparts, uint32 unit, uint32 head, uint32 *size)
{
	uint32		units = (nbuffers - head) / unit;

	for (uint32 i = 0; i < nparts; i++)
		size[i] = (units / nparts + (i < units % nparts)) * unit;
	size[0] += head;
	size[nparts - 1] += (nbuffers - head) % unit;
}

/* The last few buffers belong to no partition */
static void
sizes_without_tail(uint32 nbuffers, uint32 nparts, uint32 unit, uint32 head, uint32 *size)
{
	pgsweep_layout_sizes(nbuffers - (nbuffers - head) % unit, nparts, unit, head, size);
}

/* By products that do not go into 32 bits */
static void
sizes_overflow(uint32 nbuffers, uint32 nparts, uint32 unit, uint32 head, uint32 *size)
{
	uint32		units = (nbuffers - head) / unit;
	uint32		before = 0;

	pgsweep_layout_sizes(nbuffers, nparts, unit, head, size);
	if (units % nparts == 0)
		for (uint32 i = 0; i < nparts - 1; i++)
		{
			uint32		end = head + units * (i + 1) / nparts * unit;

			size[i] = end - before;
			before = end;
		}
}

#define NUMBER	pgsweep_num_partitions_for
#define GRID	pgsweep_layout_unit
#define SIZES	pgsweep_layout_sizes

static const LayoutCode layout_codes[] = {
	{"pg_sweep", NUMBER, GRID, SIZES},
	{"number: not by nodes", number_without_nodes, GRID, SIZES},
	{"number: cut anywhere", number_cut_anywhere, GRID, SIZES},
	{"number: rounded down", number_rounded_down, GRID, SIZES},
	{"number: in any pool", number_in_any_pool, GRID, SIZES},
	{"number: tiny ones", number_of_tiny_ones, GRID, SIZES},
	{"number: zero", number_zero, GRID, SIZES},
	{"number: not by CPUs", number_without_cpus, GRID, SIZES},
	{"number: CPUs rounded", number_cpus_rounded, GRID, SIZES},
	{"grid: always", NUMBER, unit_always, SIZES},
	{"grid: never", NUMBER, unit_never, SIZES},
	{"grid: if any room", NUMBER, unit_if_any_room, SIZES},
	{"sizes: off grid", NUMBER, GRID, sizes_off_grid},
	{"sizes: no head", NUMBER, GRID, sizes_without_head},
	{"sizes: rest to last", NUMBER, GRID, sizes_rest_to_last},
	{"sizes: rest to first", NUMBER, GRID, sizes_rest_to_first},
	{"sizes: no tail", NUMBER, GRID, sizes_without_tail},
	{"sizes: overflow", NUMBER, GRID, sizes_overflow},
};

#endif							/* LAYOUT_MUTANTS_H */
