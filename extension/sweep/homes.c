/*-------------------------------------------------------------------------
 *
 * extension/sweep/homes.c
 *	  Which of a node's partitions is the home of which of its CPUs.
 *
 * The line of a hand is cheap within a cache and dear between two.  So the
 * CPUs of a node are taken by the L3 that they share (their group) and then by
 * core, never by number: Linux numbers second threads last.
 *
 * With at least as many partitions as groups, each group has its own ones, and
 * its cores are divided among them.  With fewer, each partition has several
 * whole groups.  So threads of a core always have the same home, and no
 * partition is the home of two groups unless there are too few partitions.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sweep/homes.h"

#define NONE	PG_UINT16_MAX

/*
 * A node's usable cores by the cache that they share, in the order of their
 * first CPUs.
 */
typedef struct CacheGroup
{
	uint32		cores;
	uint32		first;			/* of its partitions, within the node's */
	uint32		parts;			/* it has no other groups if more than 1 */
} CacheGroup;

typedef struct NodeGroups
{
	uint32		n;
	uint32		cores;
	CacheGroup	group[PGSWEEP_NUMA_MAX_CPUS];
	uint16		of_cache[PGSWEEP_NUMA_NO_CACHE + 1];	/* which group */
	uint16		rank[PGSWEEP_NUMA_MAX_CPUS];	/* of a core in its group */
} NodeGroups;

/*
 * Filled in anew by each call: in the postmaster only, and for one node at a
 * time.
 */
static NodeGroups *
find_groups(const PgSweepNumaTopology *t, uint32 node)
{
	static NodeGroups groups;
	NodeGroups *g = &groups;

	g->n = 0;
	g->cores = 0;
	memset(g->of_cache, 0xFF, sizeof(g->of_cache));
	memset(g->rank, 0xFF, sizeof(g->rank));

	for (uint32 cpu = 0; cpu < t->cpu_limit; cpu++)
	{
		uint16		core = t->cpu_core[cpu];
		uint16		cache = t->cpu_cache[cpu];

		if (t->cpu_node[cpu] != node || !t->cpu_usable[cpu] || g->rank[core] != NONE)
			continue;
		if (g->of_cache[cache] == NONE)
		{
			g->of_cache[cache] = g->n;
			g->group[g->n++].cores = 0;
		}
		g->rank[core] = g->group[g->of_cache[cache]].cores++;
		g->cores++;
	}
	return g;
}

/*
 * The number of runs of whole groups, from the given one on, that have at most
 * this many cores each; the fewest.  No group has more.
 */
static uint32
count_runs(const NodeGroups *g, uint32 from, uint32 most)
{
	uint32		runs = 0;
	uint32		cores = 0;

	for (uint32 i = from; i < g->n; i++)
	{
		if (runs == 0 || cores + g->group[i].cores > most)
		{
			runs++;
			cores = 0;
		}
		cores += g->group[i].cores;
	}
	return runs;
}

static uint32
largest_group(const NodeGroups *g)
{
	uint32		largest = 0;

	for (uint32 i = 0; i < g->n; i++)
		largest = Max(largest, g->group[i].cores);
	return largest;
}

/*
 * The number of runs of one group less than fits, if homes.h wants them rather
 * than these.  Where these are that uneven, runs of two groups less are too
 * small.
 */
static uint32
count_even_runs(const NodeGroups *g, uint32 runs)
{
	uint32		each = largest_group(g);
	uint32		fewest = g->n / Max(runs, 1);
	uint32		most = fewest + (fewest * runs < g->n);
	uint32		k;

	if (each * g->n != g->cores || fewest >= PGSWEEP_HOMES_EVEN * most)
		return runs;
	k = PGSWEEP_CORES_PER_PARTITION / each - 1;
	if (k * each >= PGSWEEP_CORES_PER_PARTITION_LEAST && g->n % k == 0)
		return g->n / k;
	return runs;
}

uint32
pgsweep_homes_wanted(const PgSweepNumaTopology *t, uint32 node)
{
	const uint32 most = PGSWEEP_CORES_PER_PARTITION;
	NodeGroups *g = find_groups(t, node);
	uint32		wanted = 0;

	if (largest_group(g) <= most)
		wanted = count_even_runs(g, count_runs(g, 0, most));
	else
		for (uint32 i = 0; i < g->n; i++)
			wanted += (g->group[i].cores + most - 1) / most;
	return Max(wanted, 1);
}

/*
 * Partitions for each group: one, and the others one by one to where most
 * cores share one.
 */
static void
give_parts(NodeGroups *g, uint32 nparts)
{
	uint32		first = 0;

	for (uint32 i = 0; i < g->n; i++)
		g->group[i].parts = 1;
	for (uint32 left = nparts - g->n; left > 0; left--)
	{
		CacheGroup *most = &g->group[0];

		for (uint32 i = 1; i < g->n; i++)
			if (g->group[i].cores * most->parts > most->cores * g->group[i].parts)
				most = &g->group[i];
		most->parts++;
	}
	for (uint32 i = 0; i < g->n; i++)
	{
		g->group[i].first = first;
		first += g->group[i].parts;
	}
}

/*
 * Whole groups for each partition, neighbours together, with as few cores as
 * possible where they are most.  Among such divisions an even one: a run also
 * ends when it has its share of the cores that are left, if the rest can then
 * still be divided.
 */
static void
give_groups(NodeGroups *g, uint32 nparts)
{
	uint32		low = largest_group(g);
	uint32		most = g->cores;
	uint32		part = 0;
	uint32		cores = 0;
	uint32		left = g->cores;	/* of this run and those that follow */

	while (low < most)
	{
		uint32		middle = (low + most) / 2;

		if (count_runs(g, 0, middle) <= nparts)
			most = middle;
		else
			low = middle + 1;
	}

	for (uint32 i = 0; i < g->n; i++)
	{
		uint32		parts_left = nparts - part; /* with the present one */

		if (cores > 0 &&
			(cores + g->group[i].cores > most ||
			 g->n - i < parts_left ||
			 (cores * parts_left >= left && count_runs(g, i, most) < parts_left)))
		{
			left -= cores;
			cores = 0;
			part++;
		}
		g->group[i].first = part;
		g->group[i].parts = 1;
		cores += g->group[i].cores;
	}
	Assert(part == nparts - 1);
}

/*
 * A CPU that the server may not use now gets the home of its core or all homes
 * of its group, because an administrator can make it usable.  If no CPU of
 * those is usable, it gets all partitions of the node.
 */
void
pgsweep_homes_divide(const PgSweepNumaTopology *t, uint32 node,
					 PgSweepHomes parts, PgSweepHomes *homes)
{
	NodeGroups *g = find_groups(t, node);

	if (g->n > parts.span)
		give_groups(g, parts.span);
	else if (g->n > 0)
		give_parts(g, parts.span);

	for (uint32 cpu = 0; cpu < t->cpu_limit; cpu++)
	{
		uint16		of_cache = g->of_cache[t->cpu_cache[cpu]];
		uint32		rank = g->rank[t->cpu_core[cpu]];
		const CacheGroup *group;
		uint32		first;
		uint32		end;

		if (t->cpu_node[cpu] != node)
			continue;
		homes[cpu] = parts;
		if (of_cache == NONE)
			continue;
		group = &g->group[of_cache];
		homes[cpu].first = parts.first + group->first;
		homes[cpu].span = group->parts;
		if (rank == NONE)
			continue;

		/* with more partitions than cores, each core has several */
		first = rank * group->parts / group->cores;
		end = (rank + 1) * group->parts / group->cores;
		homes[cpu].first += first;
		homes[cpu].span = Max(end - first, 1);
	}
}

void
pgsweep_homes_count(const PgSweepNumaTopology *t, uint32 node,
					const PgSweepHomes *homes, double *cores)
{
	NodeGroups *g = find_groups(t, node);

	for (uint32 cpu = 0; cpu < t->cpu_limit; cpu++)
	{
		uint16	   *rank = &g->rank[t->cpu_core[cpu]];

		if (t->cpu_node[cpu] != node || !t->cpu_usable[cpu] || *rank == NONE)
			continue;
		for (uint32 i = 0; i < homes[cpu].span; i++)
			cores[homes[cpu].first + i] += 1.0 / homes[cpu].span;
		*rank = NONE;			/* counted, and so are its other threads */
	}
}
