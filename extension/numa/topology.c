/*-------------------------------------------------------------------------
 *
 * extension/numa/topology.c
 *	  Detects the NUMA nodes and CPUs that this server may use.
 *
 * A node counts if it has memory that the server may use: by its cpuset, and
 * by the memory policy that it was started with, as far as that is a limit and
 * no wish ("bind").  mbind() would win over that policy.  Machines are
 * irregular.  Numbers of nodes and CPUs have gaps.  A node can be without
 * CPUs (memory on CXL) or without memory; its CPUs then belong to the nearest
 * node with memory.  A container may be allowed only some nodes, or may not
 * ask.  Any failure ends in one node with all CPUs, and a note that says why.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef __linux__
#include <sched.h>
#include <sys/syscall.h>
#endif
#ifdef USE_LIBNUMA
#include <numa.h>
#include <numaif.h>
#endif
#include <unistd.h>

#include "numa/caches.h"
#include "numa/numa.h"
#include "port/pg_numa.h"

/* Constant after start, see numa.h; not in shared memory, but inherited */
PgSweepNumaTopology pgsweep_numa_topology;

/*
 * The CPUs of this process' affinity mask (cpuset, taskset); without affinity
 * masks, those that are online.
 */
static void
find_cpus(PgSweepNumaTopology *t)
{
	long		online;

#ifdef __linux__
	{
		union
		{
			cpu_set_t	set;
			char		space[CPU_ALLOC_SIZE(PGSWEEP_NUMA_MAX_CPUS)];
		}			cpus;

		if (sched_getaffinity(0, sizeof(cpus), &cpus.set) == 0)
		{
			for (int cpu = 0; cpu < PGSWEEP_NUMA_MAX_CPUS; cpu++)
				if (CPU_ISSET_S(cpu, sizeof(cpus), &cpus.set))
				{
					t->cpu_usable[cpu] = true;
					t->cpu_limit = cpu + 1;
				}
			if (t->cpu_limit > 0)
				return;
		}
	}
#endif

	online = sysconf(_SC_NPROCESSORS_ONLN);
	t->cpu_limit = Min(Max(online, 1), PGSWEEP_NUMA_MAX_CPUS);
	memset(t->cpu_usable, true, t->cpu_limit);
}

/*
 * Count the usable CPUs of each node.  There is at least one, and each belongs
 * to a node: to the first if that of no CPU is known.  So some node has CPUs.
 */
static void
count_cpus(PgSweepNumaTopology *t)
{
	memset(t->node_cpus, 0, sizeof(t->node_cpus));
	t->ncpus = 0;
	for (uint32 cpu = 0; cpu < t->cpu_limit; cpu++)
		if (t->cpu_usable[cpu])
		{
			if (t->cpu_node[cpu] == PGSWEEP_NUMA_NO_NODE)
				t->cpu_node[cpu] = 0;
			t->node_cpus[t->cpu_node[cpu]]++;
			t->ncpus++;
		}

	t->ncpu_nodes = 0;
	for (uint32 node = 0; node < t->nnodes; node++)
		if (t->node_cpus[node] > 0)
			t->cpu_nodes[t->ncpu_nodes++] = node;
	Assert(t->ncpu_nodes > 0);
}

/*
 * All CPUs on one node.
 */
static void
one_node(PgSweepNumaTopology *t)
{
	t->nnodes = 1;
	t->node_id[0] = 0;
	t->node_memory[0] = 0;
	t->distance[0][0] = PGSWEEP_NUMA_DISTANCE_LOCAL;
	memset(t->cpu_node, 0, sizeof(t->cpu_node));
}

/*
 * Emulate nodes, for tests on machines with one.  They get the CPUs in turn.
 */
static void
emulate(PgSweepNumaTopology *t, uint32 n)
{
	bool		sockets = (n >= 4 && n % 2 == 0);

	t->emulated = true;
	t->nnodes = Min(n, PGSWEEP_NUMA_MAX_NODES);
	t->several = t->nnodes > 1;
	for (uint32 a = 0; a < t->nnodes; a++)
	{
		t->node_id[a] = a;
		for (uint32 b = 0; b < t->nnodes; b++)
			t->distance[a][b] = a == b ? PGSWEEP_NUMA_DISTANCE_LOCAL :
				!sockets ? PGSWEEP_NUMA_DISTANCE_REMOTE :
				(a < n / 2) == (b < n / 2) ? 12 : 21;
	}
	for (uint32 cpu = 0; cpu < PGSWEEP_NUMA_MAX_CPUS; cpu++)
		t->cpu_node[cpu] = cpu % t->nnodes;
}

#ifdef USE_LIBNUMA

static uint8
node_distance(int a, int b)
{
	int			d = numa_distance(a, b);

	/* zero: the kernel does not say */
	if (d <= 0)
		d = a == b ? PGSWEEP_NUMA_DISTANCE_LOCAL : PGSWEEP_NUMA_DISTANCE_REMOTE;
	return Min(d, PG_UINT8_MAX);
}

/*
 * The node in *t nearest to the one with the kernel's number id.
 */
static uint8
nearest_node(const PgSweepNumaTopology *t, int id)
{
	uint8		best = 0;

	for (uint32 i = 1; i < t->nnodes; i++)
		if (node_distance(id, t->node_id[i]) < node_distance(id, t->node_id[best]))
			best = i;
	return best;
}

/* Of linux/mempolicy.h, not in each numaif.h */
#ifndef MPOL_WEIGHTED_INTERLEAVE
#define MPOL_WEIGHTED_INTERLEAVE 6	/* Linux 6.9 */
#endif
#ifndef MPOL_F_STATIC_NODES
#define MPOL_F_STATIC_NODES		(1 << 15)
#define MPOL_F_RELATIVE_NODES	(1 << 14)
#endif
#ifndef MPOL_F_NUMA_BALANCING
#define MPOL_F_NUMA_BALANCING	(1 << 13)
#endif

/*
 * The memory policy of this process, which it has from the one that started
 * it: fills in t->interleaved and t->bound, and takes the nodes that "bind"
 * forbids out of *allowed.  Returns false if there is no knowing them.
 */
static bool
apply_memory_policy(PgSweepNumaTopology *t, struct bitmask *allowed)
{
	const int	flags = MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES | MPOL_F_NUMA_BALANCING;
	struct bitmask *nodes = numa_allocate_nodemask();
	int			mode = 0;
	bool		known;

	/* the kernel takes one bit less than it is told */
	known = get_mempolicy(&mode, nodes->maskp, nodes->size + 1, NULL, 0) == 0;
	t->interleaved = (mode & ~flags) == MPOL_INTERLEAVE ||
		(mode & ~flags) == MPOL_WEIGHTED_INTERLEAVE;
	t->bound = (mode & ~flags) == MPOL_BIND;
	if (t->bound)
	{
		/* relative: not numbers of nodes; no known tool sets that */
		if (mode & MPOL_F_RELATIVE_NODES)
			known = false;
		for (int id = 0; id < allowed->size; id++)
			if (!numa_bitmask_isbitset(nodes, id))
				numa_bitmask_clearbit(allowed, id);
	}
	numa_bitmask_free(nodes);
	return known;
}

/*
 * Fill in nodes and CPUs from libnuma.  Returns false, with a note, if it cannot
 * tell.
 */
static bool
ask_libnuma(PgSweepNumaTopology *t)
{
	struct bitmask *allowed;
	struct bitmask *cpus;
	uint32		with_memory = 0;
	uint32		in_cpuset = 0;
	uint32		usable = 0;
	bool		use[PGSWEEP_NUMA_MAX_NODE_IDS] = {0};
	bool		known;
	int			max_node;

	/* core's, because it knows which libnuma ignores EPERM (seccomp) */
	errno = 0;
	if (pg_numa_init() == -1)
	{
		strlcpy(t->note, errno == EPERM ?
				"the kernel does not permit the system calls for NUMA, as in many containers" :
				"the kernel has no NUMA support", sizeof(t->note));
		return false;
	}

	max_node = Min(numa_max_node(), PGSWEEP_NUMA_MAX_NODE_IDS - 1);
	allowed = numa_get_mems_allowed();
	for (int id = 0; id <= max_node; id++)
		if (numa_node_size64(id, NULL) > 0)
		{
			with_memory++;
			in_cpuset += numa_bitmask_isbitset(allowed, id);
		}

	known = apply_memory_policy(t, allowed);
	for (int id = 0; known && id <= max_node; id++)
		if (numa_node_size64(id, NULL) > 0 && numa_bitmask_isbitset(allowed, id))
		{
			usable++;
			use[id] = true;
		}
	numa_bitmask_free(allowed);

	if (!known)
	{
		strlcpy(t->note, "the memory policy that the server was started with is not known",
				sizeof(t->note));
		return false;
	}
	if (usable == 0)
	{
		strlcpy(t->note, "no NUMA node is known to have memory that the server may use",
				sizeof(t->note));
		return false;
	}
	if (usable < in_cpuset)
		snprintf(t->note, sizeof(t->note),
				 "the memory policy that the server was started with (\"bind\") allows %u of the machine's %u NUMA nodes",
				 usable, with_memory);
	else if (usable < with_memory)
		snprintf(t->note, sizeof(t->note),
				 "the server may use memory of %u of the machine's %u NUMA nodes",
				 usable, with_memory);

	t->several = usable > 1;
	pgsweep_numa_choose_nodes(use, t->note, sizeof(t->note));
	for (int id = 0; id <= max_node && t->nnodes < PGSWEEP_NUMA_MAX_NODES; id++)
		if (use[id])
		{
			t->node_memory[t->nnodes] = numa_node_size64(id, NULL);
			t->node_id[t->nnodes++] = id;
		}

	for (uint32 a = 0; a < t->nnodes; a++)
		for (uint32 b = 0; b < t->nnodes; b++)
			t->distance[a][b] = node_distance(t->node_id[a], t->node_id[b]);

	/*
	 * CPUs of all nodes, including CPUs and nodes that the server may not use
	 * now.  They are those that are online.
	 */
	cpus = numa_allocate_cpumask();
	for (int id = 0; id <= max_node; id++)
	{
		uint8		node = nearest_node(t, id);

		t->nearest_node[id] = node;

		/* libnuma complains on stderr about nodes that do not exist */
		if (!numa_bitmask_isbitset(numa_nodes_ptr, id) ||
			numa_node_to_cpus(id, cpus) != 0)
			continue;

		for (uint32 cpu = 0; cpu < Min(cpus->size, PGSWEEP_NUMA_MAX_CPUS); cpu++)
			if (numa_bitmask_isbitset(cpus, cpu))
			{
				t->cpu_node[cpu] = node;
				t->cpu_limit = Max(t->cpu_limit, cpu + 1);
			}
	}
	numa_free_cpumask(cpus);
	return true;
}

#else

static bool
ask_libnuma(PgSweepNumaTopology *t)
{
	strlcpy(t->note, "the server was built without libnuma", sizeof(t->note));
	return false;
}

#endif							/* USE_LIBNUMA */

/*
 * Detect the machine, or emulate nodes if their number is not zero.
 *
 * In the postmaster.  Can be called again.
 */
void
pgsweep_numa_detect_topology(uint32 emulated_nodes)
{
	PgSweepNumaTopology *t = &pgsweep_numa_topology;

	memset(t, 0, sizeof(*t));
	memset(t->cpu_node, PGSWEEP_NUMA_NO_NODE, sizeof(t->cpu_node));
	find_cpus(t);

	if (emulated_nodes > 0)
		emulate(t, emulated_nodes);
	else if (!ask_libnuma(t))
		one_node(t);

	count_cpus(t);
	pgsweep_numa_read_caches(PGSWEEP_NUMA_SYSFS_CPUS, t->cpu_limit,
							 t->cpu_core, t->cpu_cache);
}

uint32
pgsweep_numa_current_cpu(void)
{
	int			cpu = -1;

#ifdef __linux__
	cpu = sched_getcpu();
#endif
	return unlikely(cpu < 0 || cpu >= PGSWEEP_NUMA_MAX_CPUS) ? 0 : cpu;
}

/*
 * Ask the kernel for the node.  The answer is kept, for this process.
 */
static uint32
ask_node(PgSweepNumaTopology *t)
{
#ifdef __linux__
	unsigned	cpu;
	unsigned	id;

	/*
	 * glibc has getcpu() since 2.29 only.  The process may have moved to
	 * another CPU by now.
	 */
	if (syscall(SYS_getcpu, &cpu, &id, NULL) == 0 &&
		cpu < PGSWEEP_NUMA_MAX_CPUS && id < PGSWEEP_NUMA_MAX_NODE_IDS)
		return t->cpu_node[cpu] = t->nearest_node[id];
#endif
	return 0;
}

uint32
pgsweep_numa_current_node(void)
{
	PgSweepNumaTopology *t = &pgsweep_numa_topology;
	uint8		node = t->cpu_node[pgsweep_numa_current_cpu()];

	return likely(node != PGSWEEP_NUMA_NO_NODE) ? node : ask_node(t);
}
