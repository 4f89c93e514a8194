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

#include "numa/pool.h"
#include "numa/topology.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "sweep/homes.h"
#include "sweep/layout.h"
#include "sweep/partitions.h"

/* Without a span: a CPU that was offline, or not there, at start */
static PgSweepHomes cpu_homes[PGSWEEP_NUMA_MAX_CPUS];
static PgSweepHomes node_homes[PGSWEEP_NUMA_MAX_NODES];
static PgSweepOrder orders[PGSWEEP_MAX_PARTITIONS];

/*
 * The number of partitions of this pool.  The same answer each time.
 */
uint32
pgsweep_count_partitions(void)
{
	const PgSweepNumaTopology *t = &pgsweep_numa_topology;
	uint32		per_node = 1;

	for (uint32 i = 0; i < t->nnodes; i++)
		per_node = Max(per_node, pgsweep_homes_wanted(t, i));
	return pgsweep_num_partitions_for(pgsweep_partitions, NBuffers, t->nnodes, per_node);
}

/*
 * The share of each partition: equal ones for nodes, and of a node's by cores
 * at home.  Where no cores are, as on a node without CPUs, equal ones, too.
 *
 * Cores and not CPUs, as for homes: the kernel gives each core a process before
 * it gives any core a second, and two threads allocate little more than one.
 */
static void
find_shares(const double *cores, double *share)
{
	uint32		n = PgSweepPool->num_partitions;
	uint32		parts[PGSWEEP_NUMA_MAX_NODES] = {0};
	double		node_cores[PGSWEEP_NUMA_MAX_NODES] = {0};
	double		node_room[PGSWEEP_NUMA_MAX_NODES];
	double		weight[PGSWEEP_MAX_PARTITIONS];
	double		room[PGSWEEP_MAX_PARTITIONS];

	for (uint32 i = 0; i < n; i++)
	{
		parts[PgSweepPool->parts[i].node]++;
		node_cores[PgSweepPool->parts[i].node] += cores[i];
	}
	for (uint32 node = 0; node < pgsweep_numa_topology.nnodes; node++)
		node_room[node] = pgsweep_numa_room_for_parts(node) / BLCKSZ;
	for (uint32 i = 0; i < n; i++)
	{
		uint32		node = PgSweepPool->parts[i].node;

		weight[i] = node_cores[node] > 0 ? cores[i] * parts[node] / node_cores[node] : 1;
		room[i] = node_room[node] * weight[i] / parts[node];
	}
	pgsweep_layout_shares(NBuffers, n, weight, room, share);
}

/*
 * Cut the pool where pages end.  With pages smaller than a buffer, buffers
 * end at pages everywhere, so descriptors decide.  With huge pages, buffers
 * decide: a huge page of descriptors belongs to 256 MB of buffers, which
 * would be too coarse.
 */
static void
cut_pool(const double *cores, uint32 *size)
{
	Size		page = pgsweep_numa_shmem_page_size();
	uint32		n = PgSweepPool->num_partitions;
	double		share[PGSWEEP_MAX_PARTITIONS];
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

	find_shares(cores, share);
	unit = pgsweep_layout_unit(n, share, page / element);
	head = (uint32) ((TYPEALIGN(page, base) - base) / element) % unit;
	pgsweep_layout_sizes(NBuffers, n, unit, head, share, size);
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
 * Find the homes of CPUs, and count the cores at home in each partition.
 */
static void
find_cpu_homes(double *cores)
{
	const PgSweepNumaTopology *t = &pgsweep_numa_topology;

	find_node_homes();
	if (t->emulated)
		return;					/* pgsweep_home() does not look at CPUs */
	for (uint32 node = 0; node < t->nnodes; node++)
	{
		pgsweep_homes_divide(t, node, node_homes[node], cpu_homes);
		pgsweep_homes_count(t, node, cpu_homes, cores);
	}
}

/*
 * Fill PgSweepPool->parts.  Called when shared memory is created, after
 * core's part; PgSweepPool->num_partitions is set.
 */
void
pgsweep_init_partitions(void)
{
	double		cores[PGSWEEP_MAX_PARTITIONS] = {0};
	uint32		size[PGSWEEP_MAX_PARTITIONS] = {0};
	uint32		n = PgSweepPool->num_partitions;
	uint32		first = 0;

	for (uint32 i = 0; i < n; i++)
		PgSweepPool->parts[i].node = i * pgsweep_numa_topology.nnodes / n;
	for (uint32 i = 0; i < n; i++)
		sort_by_distance(i);
	find_cpu_homes(cores);
	cut_pool(cores, size);

	for (uint32 i = 0; i < n; i++)
	{
		pgsweep_partition_init(&PgSweepPool->parts[i], first, size[i]);
		first += size[i];
	}
	Assert(first == NBuffers);
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
	if (homes->span == 0)
		homes = &node_homes[pgsweep_numa_current_node()];
	return homes->first + procno % homes->span;
}

const PgSweepOrder *
pgsweep_order(uint32 home)
{
	return &orders[home];
}

/*
 * The partition that has a buffer.  They are of nearly equal sizes, so the first
 * guess is seldom far off.
 */
uint32
pgsweep_partition_of(int buffer)
{
	const PgSweepPartition *parts = PgSweepPool->parts;
	uint32		i = (uint64) buffer * PgSweepPool->num_partitions / NBuffers;

	while (parts[i].first_buffer > buffer)
		i--;
	while (parts[i].first_buffer + parts[i].num_buffers <= buffer)
		i++;
	return i;
}
