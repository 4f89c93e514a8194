/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/homes_mutants.h
 *	  pg_sweep's homes of CPUs, and broken variants of them.
 *
 * t/sweep/homes.pl demands that each mutant is caught: those that read files
 * wrongly on the machines of test/numa/sysfs, the others on random machines.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HOMES_MUTANTS_H
#define HOMES_MUTANTS_H

#include "numa/caches.h"
#include "sweep/homes.h"

typedef struct HomesCode
{
	const char *name;
	void		(*read) (const char *root, uint32 ncpus, uint16 *core, uint16 *cache);
	uint32		(*wanted) (const PgSweepNumaTopology *t, uint32 node);
	void		(*divide) (const PgSweepNumaTopology *t, uint32 node,
						   PgSweepHomes parts, PgSweepHomes *homes);
	void		(*count) (const PgSweepNumaTopology *t, uint32 node,
						  const PgSweepHomes *homes, double *cores);
} HomesCode;

#define READ	pgsweep_numa_read_caches
#define WANTED	pgsweep_homes_wanted
#define DIVIDE	pgsweep_homes_divide
#define COUNT	pgsweep_homes_count

/* ---- reading ---- */

/* By what the files under a CPU's directory say, with these names */
static void
read_lists(const char *root, uint32 ncpus, uint16 *core, uint16 *cache,
		   const char *threads, const char *shared)
{
	memset(core, 0xFF, ncpus * sizeof(uint16));
	memset(cache, 0xFF, ncpus * sizeof(uint16));
	for (uint32 cpu = 0; cpu < ncpus; cpu++)
	{
		if (core[cpu] == NONE)
			(void) join_list(root, cpu, threads, ncpus, core);
		if (core[cpu] == NONE)
			core[cpu] = cpu;
		if (cache[cpu] == NONE)
			(void) join_list(root, cpu, shared, ncpus, cache);
		if (cache[cpu] == NONE)
			cache[cpu] = PGSWEEP_NUMA_NO_CACHE;
	}
}

/* The third directory, whatever it is */
static void
read_third_index(const char *root, uint32 ncpus, uint16 *core, uint16 *cache)
{
	read_lists(root, ncpus, core, cache, "topology/core_cpus_list",
			   "cache/index3/shared_cpu_list");
	for (uint32 cpu = 0; cpu < ncpus; cpu++)
		if (core[cpu] == cpu)
			find_core(root, cpu, ncpus, core);
}

static void
read_new_kernels(const char *root, uint32 ncpus, uint16 *core, uint16 *cache)
{
	uint16		cores[PGSWEEP_NUMA_MAX_CPUS];

	READ(root, ncpus, core, cache);
	read_lists(root, ncpus, core, cores, "topology/core_cpus_list", "");
}

/* The largest cache that there is */
static void
read_last_index(const char *root, uint32 ncpus, uint16 *core, uint16 *cache)
{
	uint16		cores[PGSWEEP_NUMA_MAX_CPUS];
	uint16		fourth[PGSWEEP_NUMA_MAX_CPUS];

	READ(root, ncpus, core, cache);
	read_lists(root, ncpus, cores, fourth, "", "cache/index4/shared_cpu_list");
	for (uint32 cpu = 0; cpu < ncpus; cpu++)
		if (fourth[cpu] != PGSWEEP_NUMA_NO_CACHE)
			cache[cpu] = fourth[cpu];
}

/* The id, which need not say anything */
static void
read_ids(const char *root, uint32 ncpus, uint16 *core, uint16 *cache)
{
	char		content[32];

	READ(root, ncpus, core, cache);
	for (uint32 cpu = 0; cpu < ncpus; cpu++)
		if (read_file(root, cpu, "cache/index3/id", content, sizeof(content)) && atoi(content) == 0)
			cache[cpu] = 0;
}

/* ---- how many ---- */

/* A copy of a machine, to change it */
static PgSweepNumaTopology *
altered(const PgSweepNumaTopology *t)
{
	static PgSweepNumaTopology copy;

	copy = *t;
	return &copy;
}

static PgSweepNumaTopology *
without_threads(const PgSweepNumaTopology *t)
{
	PgSweepNumaTopology *copy = altered(t);

	for (uint32 cpu = 0; cpu < t->cpu_limit; cpu++)
		copy->cpu_core[cpu] = cpu;
	return copy;
}

static PgSweepNumaTopology *
without_caches(const PgSweepNumaTopology *t)
{
	PgSweepNumaTopology *copy = altered(t);

	for (uint32 cpu = 0; cpu < t->cpu_limit; cpu++)
		copy->cpu_cache[cpu] = PGSWEEP_NUMA_NO_CACHE;
	return copy;
}

static PgSweepNumaTopology *
all_usable(const PgSweepNumaTopology *t)
{
	PgSweepNumaTopology *copy = altered(t);

	memset(copy->cpu_usable, true, t->cpu_limit);
	return copy;
}

static uint32
wanted_by_threads(const PgSweepNumaTopology *t, uint32 node)
{
	return WANTED(without_threads(t), node);
}

static uint32
wanted_without_caches(const PgSweepNumaTopology *t, uint32 node)
{
	return WANTED(without_caches(t), node);
}

static uint32
wanted_by_all(const PgSweepNumaTopology *t, uint32 node)
{
	return WANTED(all_usable(t), node);
}

/* One for each cache, however small */
static uint32
wanted_by_groups(const PgSweepNumaTopology *t, uint32 node)
{
	NodeGroups *g = find_groups(t, node);

	return largest_group(g) <= 12 ? Max(g->n, 1) : WANTED(t, node);
}

static uint32
wanted_rounded(const PgSweepNumaTopology *t, uint32 node)
{
	NodeGroups *g = find_groups(t, node);
	uint32		n = 0;

	if (largest_group(g) <= 12)
		return WANTED(t, node);
	for (uint32 i = 0; i < g->n; i++)
		n += Max(g->group[i].cores / 12, 1);
	return n;
}

/* As full as possible, even where that makes unequal ones of equal caches */
static uint32
wanted_uneven(const PgSweepNumaTopology *t, uint32 node)
{
	NodeGroups *g = find_groups(t, node);

	return largest_group(g) <= 12 ? Max(count_runs(g, 0, 12), 1) : WANTED(t, node);
}

/* Equal ones, however small they get */
static uint32
wanted_even(const PgSweepNumaTopology *t, uint32 node)
{
	NodeGroups *g = find_groups(t, node);
	uint32		each = largest_group(g);

	if (g->n > 0 && each <= 12 && each * g->n == g->cores)
		for (uint32 k = 12 / each;; k--)
			if (g->n % k == 0)
				return g->n / k;
	return WANTED(t, node);
}

/* Equal ones, even where the others would be nearly so */
static uint32
wanted_equal(const PgSweepNumaTopology *t, uint32 node)
{
	NodeGroups *g = find_groups(t, node);
	uint32		each = largest_group(g);

	if (g->n > 0 && each * g->n == g->cores)
		for (uint32 k = 12 / each; k * each >= 8; k--)
			if (g->n % k == 0)
				return g->n / k;
	return WANTED(t, node);
}

/* ---- which ---- */

static void
divide_without_threads(const PgSweepNumaTopology *t, uint32 node, PgSweepHomes parts,
					   PgSweepHomes *homes)
{
	DIVIDE(without_threads(t), node, parts, homes);
}

static void
divide_without_caches(const PgSweepNumaTopology *t, uint32 node, PgSweepHomes parts,
					  PgSweepHomes *homes)
{
	DIVIDE(without_caches(t), node, parts, homes);
}

static void
divide_by_all(const PgSweepNumaTopology *t, uint32 node, PgSweepHomes parts,
			  PgSweepHomes *homes)
{
	DIVIDE(all_usable(t), node, parts, homes);
}

/* The node's first partition is taken for 0 */
static void
divide_from_zero(const PgSweepNumaTopology *t, uint32 node, PgSweepHomes parts,
				 PgSweepHomes *homes)
{
	parts.first = 0;
	DIVIDE(t, node, parts, homes);
}

/* One partition more than there are */
static void
divide_one_more(const PgSweepNumaTopology *t, uint32 node, PgSweepHomes parts,
				PgSweepHomes *homes)
{
	parts.span++;
	DIVIDE(t, node, parts, homes);
}

/* Whole groups as they come, until a partition is full */
static void
divide_greedily(const PgSweepNumaTopology *t, uint32 node, PgSweepHomes parts,
				PgSweepHomes *homes)
{
	NodeGroups *g = find_groups(t, node);

	DIVIDE(t, node, parts, homes);
	if (g->n > parts.span)
		for (uint32 cpu = 0; cpu < t->cpu_limit; cpu++)
		{
			uint16		group = g->of_cache[t->cpu_cache[cpu]];

			if (t->cpu_node[cpu] == node && group != NONE)
			{
				uint32		each = (g->n + parts.span - 1) / parts.span;

				homes[cpu].first = parts.first + group / each;
			}
		}
}

/* Partitions to the groups in turn, whatever their sizes */
static void
divide_in_turn(const PgSweepNumaTopology *t, uint32 node, PgSweepHomes parts,
			   PgSweepHomes *homes)
{
	PgSweepNumaTopology *copy = altered(t);
	NodeGroups *g = find_groups(t, node);
	uint16		first_core[PGSWEEP_NUMA_NO_CACHE + 1];

	DIVIDE(t, node, parts, homes);
	if (g->n == 0 || g->n > parts.span)
		return;

	/* as if each group were one core */
	memset(first_core, 0xFF, sizeof(first_core));
	for (uint32 cpu = 0; cpu < t->cpu_limit; cpu++)
	{
		uint16	   *core = &first_core[t->cpu_cache[cpu]];

		if (t->cpu_node[cpu] == node && t->cpu_usable[cpu])
		{
			if (*core == NONE)
				*core = t->cpu_core[cpu];
			copy->cpu_core[cpu] = *core;
		}
	}
	DIVIDE(copy, node, parts, homes);
}

/* An unusable CPU is at home anywhere on its node */
static void
divide_forgetting(const PgSweepNumaTopology *t, uint32 node, PgSweepHomes parts,
				  PgSweepHomes *homes)
{
	DIVIDE(t, node, parts, homes);
	for (uint32 cpu = 0; cpu < t->cpu_limit; cpu++)
		if (t->cpu_node[cpu] == node && !t->cpu_usable[cpu])
			homes[cpu] = parts;
}

/* ---- how many cores at home ---- */

static void
count_threads(const PgSweepNumaTopology *t, uint32 node, const PgSweepHomes *homes, double *cores)
{
	COUNT(without_threads(t), node, homes, cores);
}

static void
count_all(const PgSweepNumaTopology *t, uint32 node, const PgSweepHomes *homes, double *cores)
{
	COUNT(all_usable(t), node, homes, cores);
}

/* A core with several homes counts as a whole one for each */
static void
count_whole(const PgSweepNumaTopology *t, uint32 node, const PgSweepHomes *homes, double *cores)
{
	static PgSweepHomes one[PGSWEEP_NUMA_MAX_CPUS];

	for (uint32 i = 0; i < PG_UINT8_MAX; i++)
	{
		for (uint32 cpu = 0; cpu < t->cpu_limit; cpu++)
		{
			one[cpu].first = homes[cpu].first + i;
			one[cpu].span = i < homes[cpu].span;
		}
		COUNT(t, node, one, cores);
	}
}

/* Cores of other nodes are forgotten */
static void
count_anew(const PgSweepNumaTopology *t, uint32 node, const PgSweepHomes *homes, double *cores)
{
	for (uint32 cpu = 0; cpu < t->cpu_limit; cpu++)
		if (t->cpu_node[cpu] == node && t->cpu_usable[cpu])
			for (uint32 i = 0; i < homes[cpu].span; i++)
				cores[homes[cpu].first + i] = 0;
	COUNT(t, node, homes, cores);
}

static const HomesCode homes_codes[] = {
	{"pg_sweep", READ, WANTED, DIVIDE, COUNT},
	{"reads index3", read_third_index, WANTED, DIVIDE, COUNT},
	{"reads new kernels", read_new_kernels, WANTED, DIVIDE, COUNT},
	{"reads level 4", read_last_index, WANTED, DIVIDE, COUNT},
	{"reads ids", read_ids, WANTED, DIVIDE, COUNT},
	{"wanted: by threads", READ, wanted_by_threads, DIVIDE, COUNT},
	{"wanted: no caches", READ, wanted_without_caches, DIVIDE, COUNT},
	{"wanted: by all CPUs", READ, wanted_by_all, DIVIDE, COUNT},
	{"wanted: one per cache", READ, wanted_by_groups, DIVIDE, COUNT},
	{"wanted: rounded down", READ, wanted_rounded, DIVIDE, COUNT},
	{"wanted: uneven", READ, wanted_uneven, DIVIDE, COUNT},
	{"wanted: even at any price", READ, wanted_even, DIVIDE, COUNT},
	{"wanted: equal", READ, wanted_equal, DIVIDE, COUNT},
	{"homes: no threads", READ, WANTED, divide_without_threads, COUNT},
	{"homes: no caches", READ, WANTED, divide_without_caches, COUNT},
	{"homes: by all CPUs", READ, WANTED, divide_by_all, COUNT},
	{"homes: from zero", READ, WANTED, divide_from_zero, COUNT},
	{"homes: one more", READ, WANTED, divide_one_more, COUNT},
	{"homes: greedily", READ, WANTED, divide_greedily, COUNT},
	{"homes: in turn", READ, WANTED, divide_in_turn, COUNT},
	{"homes: forgets the unusable", READ, WANTED, divide_forgetting, COUNT},
	{"cores: by threads", READ, WANTED, DIVIDE, count_threads},
	{"cores: by all CPUs", READ, WANTED, DIVIDE, count_all},
	{"cores: not divided", READ, WANTED, DIVIDE, count_whole},
	{"cores: not added", READ, WANTED, DIVIDE, count_anew},
};

#endif							/* HOMES_MUTANTS_H */
