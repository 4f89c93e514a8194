/*-------------------------------------------------------------------------
 *
 * extension/sweep/partitions.c
 *	  The partitions of the pool, and the home of a process.
 *
 * Nothing computed here changes while the server runs.  The maps from CPUs to
 * partitions are made in the postmaster and inherited.  They are only read,
 * so each CPU can keep their cache lines.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "numa/topology.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "sweep/layout.h"
#include "sweep/partitions.h"

/*
 * Partitions first .. first + span - 1.  If there are more partitions than
 * CPUs, a CPU has several, which are divided among its processes.
 */
typedef struct PgSweepHomes
{
	uint8		first;
	uint8		span;
} PgSweepHomes;

static PgSweepHomes cpu_homes[PGSWEEP_NUMA_MAX_CPUS];
static PgSweepHomes node_homes[PGSWEEP_NUMA_MAX_NODES];
static PgSweepOrder orders[PGSWEEP_MAX_PARTITIONS];

/*
 * The number of partitions of this pool.  The same answer each time.
 */
uint32
pgsweep_count_partitions(void)
{
	uint32		cpus = 1;

	for (uint32 i = 0; i < pgsweep_numa_topology.nnodes; i++)
		cpus = Max(cpus, pgsweep_numa_topology.node_cpus[i]);
	return pgsweep_num_partitions_for(pgsweep_partitions, NBuffers,
									  pgsweep_numa_topology.nnodes, cpus);
}

/*
 * Cut the pool where pages end.  With pages smaller than a buffer, buffers
 * end at pages everywhere, so descriptors decide.  With huge pages, buffers
 * decide: a huge page of descriptors belongs to 256 MB of buffers, which
 * would be too coarse.
 */
static void
cut_pool(uint32 *size)
{
	Size		page = pgsweep_numa_shmem_page_size();
	uintptr_t	base;
	Size		element;
	uint32		unit;
	uint32		head;

	if (page > BLCKSZ)
	{
		base = (uintptr_t) BufferBlocks;
		element = BLCKSZ;
	}
	else
	{
		base = (uintptr_t) BufferDescriptors;
		element = sizeof(BufferDescPadded);
	}

	unit = pgsweep_layout_unit(NBuffers, PgSweepPool->num_partitions, page / element);
	head = (uint32) ((TYPEALIGN(page, base) - base) / element) % unit;
	pgsweep_layout_sizes(NBuffers, PgSweepPool->num_partitions, unit, head, size);
}

/* The own node comes first, whatever the firmware says of others */
static uint32
partition_distance(uint32 a, uint32 b)
{
	uint32		from = PgSweepPool->parts[a].node;
	uint32		to = PgSweepPool->parts[b].node;

	return from == to ? 0 : pgsweep_numa_topology.distance[from][to];
}

/*
 * Sort the partitions by their distance from one.  Equally distant ones
 * follow in the order of the pool, beginning after it, to give each home
 * another second choice.
 */
static void
sort_by_distance(uint32 home)
{
	uint32		n = PgSweepPool->num_partitions;
	uint8	   *order = orders[home].part;

	orders[home].near = 0;
	for (uint32 i = 0; i < n; i++)
	{
		uint32		part = (home + i) % n;
		uint32		k = i;

		/* by insertion; the home itself stays first */
		while (k > 1 && partition_distance(home, part) < partition_distance(home, order[k - 1]))
		{
			order[k] = order[k - 1];
			k--;
		}
		order[k] = (uint8) part;
		if (PgSweepPool->parts[part].node == PgSweepPool->parts[home].node)
			orders[home].near++;
	}
}

/*
 * The partitions of each node; a node without partitions gets the nearest
 * one.
 */
static void
find_node_homes(void)
{
	for (uint32 node = 0; node < pgsweep_numa_topology.nnodes; node++)
	{
		PgSweepHomes *homes = &node_homes[node];
		uint32		best = 0;

		homes->span = 0;
		for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
		{
			uint32		at = PgSweepPool->parts[i].node;

			if (at == node && homes->span++ == 0)
				homes->first = (uint8) i;
			if (pgsweep_numa_topology.distance[node][at] <
				pgsweep_numa_topology.distance[node][PgSweepPool->parts[best].node])
				best = i;
		}
		if (homes->span == 0)
		{
			homes->first = (uint8) best;
			homes->span = 1;
		}
	}
}

/*
 * Divide a node's partitions among its CPUs, neighbours to neighbours.
 */
static void
find_cpu_homes(void)
{
	for (uint32 cpu = 0; cpu < pgsweep_numa_topology.cpu_limit; cpu++)
	{
		uint32		node = pgsweep_numa_topology.cpu_node[cpu];
		uint32		cpus = Max(pgsweep_numa_topology.node_cpus[node], 1);
		uint32		rank = pgsweep_numa_topology.cpu_rank[cpu] % cpus;
		uint32		parts = node_homes[node].span;
		uint32		first = rank * parts / cpus;
		uint32		end = (rank + 1) * parts / cpus;

		cpu_homes[cpu].first = (uint8) (node_homes[node].first + first);
		cpu_homes[cpu].span = (uint8) Max(end - first, 1);
	}
}

/*
 * Fill PgSweepPool->parts.  Called when shared memory is created, after
 * core's part; PgSweepPool->num_partitions is set.
 */
void
pgsweep_init_partitions(void)
{
	uint32		size[PGSWEEP_MAX_PARTITIONS] = {0};
	uint32		first = 0;

	cut_pool(size);
	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
	{
		PgSweepPartition *part = &PgSweepPool->parts[i];

		pgsweep_partition_init(part, first, size[i]);
		part->node = i * pgsweep_numa_topology.nnodes / PgSweepPool->num_partitions;
		first += size[i];
	}
	Assert(first == NBuffers);

	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
		sort_by_distance(i);
	find_node_homes();
	find_cpu_homes();
}

uint32
pgsweep_home(ProcNumber procno)
{
	const PgSweepHomes *homes;

	if (unlikely(pgsweep_numa_topology.emulated))
	{
		uint32		nnodes = pgsweep_numa_topology.nnodes;
		uint32		node = pgsweep_numa_debug_node >= 0 ? pgsweep_numa_debug_node : procno;

		homes = &node_homes[node % nnodes];
		return homes->first + procno / nnodes % homes->span;
	}

	homes = &cpu_homes[pgsweep_numa_current_cpu()];
	if (likely(homes->span == 1))
		return homes->first;
	return homes->first + procno % homes->span;
}

const PgSweepOrder *
pgsweep_order(uint32 home)
{
	return &orders[home];
}
