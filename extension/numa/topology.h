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
	bool		interleaved;	/* started with a policy that interleaves
								 * (numactl --interleave) */
	uint32		nnodes;			/* usable nodes with memory; >= 1 */
	uint32		ncpus;			/* usable CPUs; >= 1 */
	uint32		cpu_limit;		/* highest CPU number known, plus one */
	int			node_id[PGSWEEP_NUMA_MAX_NODES];	/* the kernel's number */
	uint32		node_cpus[PGSWEEP_NUMA_MAX_NODES];	/* of ncpus, those whose
													 * nearest node this is;
													 * may be 0 */
	uint32		ncpu_nodes;		/* nodes with such CPUs; >= 1 */
	uint8		cpu_nodes[PGSWEEP_NUMA_MAX_NODES];	/* which these are */
	uint8		distance[PGSWEEP_NUMA_MAX_NODES][PGSWEEP_NUMA_MAX_NODES];

	/*
	 * For each CPU number: the index of the nearest node, and its rank among
	 * that node's CPUs, from 0.  Unusable CPUs come after usable ones,
	 * because an administrator can make them usable.
	 */
	uint8		cpu_node[PGSWEEP_NUMA_MAX_CPUS];
	uint16		cpu_rank[PGSWEEP_NUMA_MAX_CPUS];

	/* Why these are not all nodes of the machine; "" if they are */
	char		note[256];
} PgSweepNumaTopology;

/* topology.c */
extern PgSweepNumaTopology pgsweep_numa_topology;

/*
 * The CPU that this process runs on now, for cpu_node[] and cpu_rank[];
 * always less than cpu_limit.  No system call (vDSO or rseq).
 */
extern uint32 pgsweep_numa_current_cpu(void);

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
