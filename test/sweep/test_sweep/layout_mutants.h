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
						   uint32 parts_per_node);
	void		(*shares) (uint32 nbuffers, uint32 n, const double *weight,
						   const double *room, double *share);
	uint32		(*unit) (uint32 n, const double *share, uint32 unit);
	void		(*sizes) (uint32 nbuffers, uint32 n, uint32 unit, uint32 head,
						  const double *share, uint32 *size);
} LayoutCode;

/* ---- how many ---- */

/* What was asked for, whatever the nodes */
static uint32
number_without_nodes(uint32 configured, uint32 nbuffers, uint32 nnodes, uint32 parts_per_node)
{
	uint32		limit = Max(Min(nbuffers / 16, 64), 1);

	return configured > 0 ? Min(configured, limit) :
		pgsweep_num_partitions_for(0, nbuffers, nnodes, parts_per_node);
}

/* What the pool has room for, whatever the nodes */
static uint32
number_cut_anywhere(uint32 configured, uint32 nbuffers, uint32 nnodes, uint32 parts_per_node)
{
	uint32		wish = pgsweep_num_partitions_for(configured, PG_INT32_MAX, nnodes, parts_per_node);

	return Min(wish, Max(nbuffers / (configured ? 16 : 128), 1));
}

/* Rounded down */
static uint32
number_rounded_down(uint32 configured, uint32 nbuffers, uint32 nnodes, uint32 parts_per_node)
{
	return pgsweep_num_partitions_for(configured > nnodes ? configured / nnodes * nnodes : configured,
									  nbuffers, nnodes, parts_per_node);
}

/* As many as were asked for, however small */
static uint32
number_in_any_pool(uint32 configured, uint32 nbuffers, uint32 nnodes, uint32 parts_per_node)
{
	return pgsweep_num_partitions_for(configured, configured ? PG_INT32_MAX : nbuffers,
									  nnodes, parts_per_node);
}

/* The automatic number with the limit of configured ones */
static uint32
number_of_tiny_ones(uint32 configured, uint32 nbuffers, uint32 nnodes, uint32 parts_per_node)
{
	if (configured == 0)
		configured = pgsweep_num_partitions_for(0, PG_INT32_MAX, nnodes, parts_per_node);
	return pgsweep_num_partitions_for(configured, nbuffers, nnodes, parts_per_node);
}

/* Nothing at all in a small pool */
static uint32
number_zero(uint32 configured, uint32 nbuffers, uint32 nnodes, uint32 parts_per_node)
{
	uint32		limit = nbuffers / (configured ? 16 : 128);

	return Min(limit, pgsweep_num_partitions_for(configured, nbuffers, nnodes, parts_per_node));
}

/* One for each node, whatever the caches */
static uint32
number_without_caches(uint32 configured, uint32 nbuffers, uint32 nnodes, uint32 parts_per_node)
{
	return pgsweep_num_partitions_for(configured, nbuffers, nnodes, 1);
}

/* ---- shares ---- */

static double
fair_share(uint32 nbuffers, uint32 n, const double *weight, uint32 i)
{
	double		all = 0;

	for (uint32 k = 0; k < n; k++)
		all += weight[k];
	return nbuffers * weight[i] / all;
}

/* By weight, whether there is room or not */
static void
shares_without_room(uint32 nbuffers, uint32 n, const double *weight, const double *room, double *share)
{
	for (uint32 i = 0; i < n; i++)
		share[i] = fair_share(nbuffers, n, weight, i);
}

/* The same for each that has room, however many cores are at home there */
static void
shares_without_weights(uint32 nbuffers, uint32 n, const double *weight, const double *room, double *share)
{
	double		same[PGSWEEP_MAX_PARTITIONS];

	for (uint32 i = 0; i < n; i++)
		same[i] = 1;
	pgsweep_layout_shares(nbuffers, n, same, room, share);
}

/* By memory, even where there is enough */
static void
shares_by_memory(uint32 nbuffers, uint32 n, const double *weight, const double *room, double *share)
{
	double		all_room = 0;

	for (uint32 i = 0; i < n; i++)
		all_room += Max(room[i], 16);
	for (uint32 i = 0; i < n; i++)
		share[i] = Max(room[i], 16) * nbuffers / all_room;
}

/* What one has no room for goes to all others, whether they have room or not */
static void
shares_once(uint32 nbuffers, uint32 n, const double *weight, const double *room, double *share)
{
	double		left = nbuffers;
	double		open = 0;

	for (uint32 i = 0; i < n; i++)
	{
		double		fair = fair_share(nbuffers, n, weight, i);

		share[i] = Max(Min(room[i], fair), 16);
		if (share[i] != fair)
			left -= share[i];
		else
			open += weight[i];
	}
	if (open == 0)
	{
		pgsweep_layout_shares(nbuffers, n, weight, room, share);
		return;
	}
	for (uint32 i = 0; i < n; i++)
		if (share[i] == fair_share(nbuffers, n, weight, i))
			share[i] = left * weight[i] / open;
}

/* By weight if all together have no room */
static void
shares_fair_if_full(uint32 nbuffers, uint32 n, const double *weight, const double *room, double *share)
{
	double		all_room = 0;

	for (uint32 i = 0; i < n; i++)
		all_room += Max(room[i], 16);
	if (all_room < nbuffers)
		shares_without_room(nbuffers, n, weight, room, share);
	else
		pgsweep_layout_shares(nbuffers, n, weight, room, share);
}

/* What has few cores at home gets nearly nothing */
static void
shares_without_minimum_of_weights(uint32 nbuffers, uint32 n, const double *weight, const double *room, double *share)
{
	double		fair = fair_share(nbuffers, n, weight, 0);

	pgsweep_layout_shares(nbuffers, n, weight, room, share);
	if (n > 1 && fair < 16 && room[0] > 16)
	{
		share[n - 1] += share[0] - fair;
		share[0] = fair;
	}
}

/* A node that is nearly full gets nearly nothing */
static void
shares_without_minimum(uint32 nbuffers, uint32 n, const double *weight, const double *room, double *share)
{
	double		left = nbuffers;
	double		some = Min(room[0], left / n);

	pgsweep_layout_shares(nbuffers, n, weight, room, share);
	if (n > 1 && room[0] < 16)
	{
		share[n - 1] += share[0] - some;
		share[0] = some;
	}
}

/* The same for each if none has room */
static void
shares_same_without_room(uint32 nbuffers, uint32 n, const double *weight, const double *room, double *share)
{
	pgsweep_layout_shares(nbuffers, n, weight, room, share);
	for (uint32 i = 0; i < n; i++)
		if (room[i] > 0)
			return;
	for (uint32 i = 0; i < n; i++)
		share[i] = (double) nbuffers / n;
}

/* ---- the grid ---- */

static uint32
unit_always(uint32 n, const double *share, uint32 unit)
{
	return unit;
}

static uint32
unit_never(uint32 n, const double *share, uint32 unit)
{
	return 1;
}

static uint32
unit_if_any_room(uint32 n, const double *share, uint32 unit)
{
	for (uint32 i = 0; i < n; i++)
		if (share[i] < unit)
			return 1;
	return unit;
}

/* Several units, which can be few buffers */
static uint32
unit_of_few(uint32 n, const double *share, uint32 unit)
{
	for (uint32 i = 0; i < n; i++)
		if (share[i] < 4.0 * unit)
			return 1;
	return unit;
}

/* If they have room on average */
static uint32
unit_on_average(uint32 n, const double *share, uint32 unit)
{
	double		sum = 0;

	for (uint32 i = 0; i < n; i++)
		sum += share[i];
	return sum / n >= 4.0 * unit ? unit : 1;
}

/* ---- where they end ---- */

/* The same for each, whatever the shares */
static void
sizes_without_shares(uint32 nbuffers, uint32 n, uint32 unit, uint32 head,
					 const double *share, uint32 *size)
{
	double		equal[PGSWEEP_MAX_PARTITIONS];

	for (uint32 i = 0; i < n; i++)
		equal[i] = (double) nbuffers / n;
	pgsweep_layout_sizes(nbuffers, n, unit, head, equal, size);
}

/* As if the array began where a page does */
static void
sizes_without_head(uint32 nbuffers, uint32 n, uint32 unit, uint32 head,
				   const double *share, uint32 *size)
{
	pgsweep_layout_sizes(nbuffers, n, unit, 0, share, size);
}

/* The rest goes to one of them, or to the first ones */
static void
sizes_rest(uint32 nbuffers, uint32 n, uint32 unit, uint32 head,
		   const double *share, uint32 *size, bool last)
{
	uint32		left = (nbuffers - head) / unit;

	for (uint32 i = 0; i < n; i++)
	{
		size[i] = (uint32) (share[i] / unit);
		if (i == 0 && size[i] > 0)
			size[i]--;			/* for the head */
		left -= size[i];
	}
	for (uint32 i = 0; left > 0; i = (i + 1) % n, left--)
		size[last ? n - 1 : i]++;
	for (uint32 i = 0; i < n; i++)
		size[i] *= unit;
	size[0] += head;
	size[n - 1] += (nbuffers - head) % unit;
}

static void
sizes_rest_to_last(uint32 nbuffers, uint32 n, uint32 unit, uint32 head,
				   const double *share, uint32 *size)
{
	sizes_rest(nbuffers, n, unit, head, share, size, true);
}

/* ... of which one has the head already */
static void
sizes_rest_to_first(uint32 nbuffers, uint32 n, uint32 unit, uint32 head,
					const double *share, uint32 *size)
{
	sizes_rest(nbuffers, n, unit, head, share, size, false);
}

/* The last few buffers belong to no partition */
static void
sizes_without_tail(uint32 nbuffers, uint32 n, uint32 unit, uint32 head,
				   const double *share, uint32 *size)
{
	pgsweep_layout_sizes(nbuffers - (nbuffers - head) % unit, n, unit, head, share, size);
}

#define NUMBER	pgsweep_num_partitions_for
#define SHARES	pgsweep_layout_shares
#define GRID	pgsweep_layout_unit
#define SIZES	pgsweep_layout_sizes

static const LayoutCode layout_codes[] = {
	{"pg_sweep", NUMBER, SHARES, GRID, SIZES},
	{"number: not by nodes", number_without_nodes, SHARES, GRID, SIZES},
	{"number: cut anywhere", number_cut_anywhere, SHARES, GRID, SIZES},
	{"number: rounded down", number_rounded_down, SHARES, GRID, SIZES},
	{"number: in any pool", number_in_any_pool, SHARES, GRID, SIZES},
	{"number: tiny ones", number_of_tiny_ones, SHARES, GRID, SIZES},
	{"number: zero", number_zero, SHARES, GRID, SIZES},
	{"number: not by caches", number_without_caches, SHARES, GRID, SIZES},
	{"shares: without room", NUMBER, shares_without_room, GRID, SIZES},
	{"shares: no weights", NUMBER, shares_without_weights, GRID, SIZES},
	{"shares: by memory", NUMBER, shares_by_memory, GRID, SIZES},
	{"shares: once", NUMBER, shares_once, GRID, SIZES},
	{"shares: no less if full", NUMBER, shares_fair_if_full, GRID, SIZES},
	{"shares: no minimum", NUMBER, shares_without_minimum, GRID, SIZES},
	{"shares: no minimum of the light", NUMBER, shares_without_minimum_of_weights, GRID, SIZES},
	{"shares: the same without room", NUMBER, shares_same_without_room, GRID, SIZES},
	{"grid: always", NUMBER, SHARES, unit_always, SIZES},
	{"grid: never", NUMBER, SHARES, unit_never, SIZES},
	{"grid: if any room", NUMBER, SHARES, unit_if_any_room, SIZES},
	{"grid: few buffers", NUMBER, SHARES, unit_of_few, SIZES},
	{"grid: on average", NUMBER, SHARES, unit_on_average, SIZES},
	{"sizes: no shares", NUMBER, SHARES, GRID, sizes_without_shares},
	{"sizes: no head", NUMBER, SHARES, GRID, sizes_without_head},
	{"sizes: rest to last", NUMBER, SHARES, GRID, sizes_rest_to_last},
	{"sizes: rest to first", NUMBER, SHARES, GRID, sizes_rest_to_first},
	{"sizes: no tail", NUMBER, SHARES, GRID, sizes_without_tail},
};

#endif							/* LAYOUT_MUTANTS_H */
