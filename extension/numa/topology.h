/*-------------------------------------------------------------------------
 *
 * extension/numa/topology.h
 *	  The machine: NUMA nodes, CPUs and distances.  For other rooms, too.
 *
 * A node is always named by its index in PgSweepNumaTopology (0 .. nnodes -
 * 1), except in node_id, which has the kernel's number.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_NUMA_TOPOLOGY_H
#define PGSWEEP_NUMA_TOPOLOGY_H

#pragma GCC visibility push(hidden)

#define PGSWEEP_NUMA_MAX_NODES	64	/* more than any known machine */
#define PGSWEEP_NUMA_MAX_NODE_IDS 1024	/* the kernel's own limit
										 * (NODES_SHIFT) */
#define PGSWEEP_NUMA_MAX_CPUS	8192	/* the kernel's own limit (NR_CPUS) */

#define PGSWEEP_NUMA_NO_NODE	PG_UINT8_MAX	/* in cpu_node[] */
#define PGSWEEP_NUMA_NO_CACHE	PGSWEEP_NUMA_MAX_CPUS	/* in cpu_cache[] */

/* Distances that numa(7) uses where the firmware says nothing */
#define PGSWEEP_NUMA_DISTANCE_LOCAL	10
#define PGSWEEP_NUMA_DISTANCE_REMOTE	20

/*
 * The part of the machine that this server may use.  Detected once, in the
 * postmaster before shared memory is requested.  Constant after that, and
 * inherited by every child.
 */
typedef struct PgSweepNumaTopology
{
	bool		emulated;		/* pg_sweep.numa_debug_nodes */
	bool		bound;			/* started with a policy that is a limit
								 * (numactl --membind) */
	bool		interleaved;	/* started with a policy that interleaves
								 * (numactl --interleave) */
	bool		several;		/* the server may use several nodes; one of
								 * them, if the others are left out */
	uint32		nnodes;			/* used nodes with memory; >= 1 */
	uint32		ncpus;			/* usable CPUs; >= 1 */
	uint32		cpu_limit;		/* highest CPU number known, plus one; CPUs
								 * can be added while the server runs */
	int			node_id[PGSWEEP_NUMA_MAX_NODES];	/* the kernel's number */
	uint64		node_memory[PGSWEEP_NUMA_MAX_NODES];	/* bytes; 0 = unknown */
	uint32		node_cpus[PGSWEEP_NUMA_MAX_NODES];	/* of ncpus, those whose
													 * nearest node this is;
													 * may be 0 */
	uint32		ncpu_nodes;		/* nodes with such CPUs; >= 1 */
	uint8		cpu_nodes[PGSWEEP_NUMA_MAX_NODES];	/* which these are */
	uint8		distance[PGSWEEP_NUMA_MAX_NODES][PGSWEEP_NUMA_MAX_NODES];

	/*
	 * For each of the kernel's numbers of nodes: the index of the nearest
	 * node.  0 for a node that was not there at start.
	 */
	uint8		nearest_node[PGSWEEP_NUMA_MAX_NODE_IDS];

	/*
	 * For each CPU: the index of the nearest node.  It is not known
	 * (PGSWEEP_NUMA_NO_NODE) of CPUs that were offline, or not there, at
	 * start: pgsweep_numa_current_node() asks the kernel then.
	 *
	 * cpu_core and cpu_cache are the numbers of one of the CPUs that share a
	 * core, and a cache (caches.h).  Like cpu_usable they are set below
	 * cpu_limit.
	 */
	uint8		cpu_node[PGSWEEP_NUMA_MAX_CPUS];
	bool		cpu_usable[PGSWEEP_NUMA_MAX_CPUS];
	uint16		cpu_core[PGSWEEP_NUMA_MAX_CPUS];
	uint16		cpu_cache[PGSWEEP_NUMA_MAX_CPUS];

	/* Why these are not all nodes of the machine; "" if they are */
	char		note[256];
} PgSweepNumaTopology;

/* topology.c */
extern PgSweepNumaTopology pgsweep_numa_topology;

/*
 * The CPU that this process runs on now; always less than
 * PGSWEEP_NUMA_MAX_CPUS.  No system call (vDSO or rseq).
 */
extern uint32 pgsweep_numa_current_cpu(void);

/*
 * The node of that CPU, or the nearest one.  A system call only when a process
 * is for the first time on a CPU that was not online at start.
 */
extern uint32 pgsweep_numa_current_node(void);

/* memory.c */

/*
 * Size in bytes of the pages of the main shared memory segment, huge pages
 * included.  Only after that has been created.
 */
extern Size pgsweep_numa_shmem_page_size(void);

/* gucs.c: pg_sweep.numa_debug_node, the emulated node of this session; -1: none */
extern int	pgsweep_numa_debug_node;

#pragma GCC visibility pop

#endif							/* PGSWEEP_NUMA_TOPOLOGY_H */
