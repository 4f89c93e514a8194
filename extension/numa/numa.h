/*-------------------------------------------------------------------------
 *
 * numa.h
 *	  NUMA nodes: what there is, where memory is put, where backends run.
 *
 * This room knows nodes, CPUs and pieces of memory.  It knows nothing of
 * buffers and partitions; placement.c at the top of extension/ says which
 * pieces there are.
 *
 * Files of this folder:
 *
 * topology.c	nodes, CPUs and distances, from libnuma, or made up for tests
 * memory.c		where pages are to be put, and where the kernel says they are
 * affinity.c	on which node a process runs, its PGPROC, its own memory
 *
 * Throughout, a node is named by its index in PgSweepNumaTopology (0 .. nnodes - 1),
 * but for node_id, which is the kernel's number of it.
 *
 * extension/numa/numa.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_NUMA_H
#define PGSWEEP_NUMA_H

#pragma GCC visibility push(hidden)

#define PGSWEEP_NUMA_MAX_NODES	64	/* more than any machine that we know of */
#define PGSWEEP_NUMA_MAX_NODE_IDS 1024	/* the kernel's own limit (NODES_SHIFT) */
#define PGSWEEP_NUMA_MAX_CPUS	8192	/* the kernel's own limit (NR_CPUS) */

/* Distances that numa(7) uses where the firmware says nothing */
#define PGSWEEP_NUMA_DISTANCE_LOCAL	10
#define PGSWEEP_NUMA_DISTANCE_REMOTE	20

/*
 * The machine, as far as this server may use it.  Found out once, in the
 * postmaster before shared memory is requested; constant after, and inherited
 * by every child.
 */
typedef struct PgSweepNumaTopology
{
	bool		faked;			/* pg_sweep.numa_debug_nodes */
	uint32		nnodes;			/* nodes with memory that we may use; >= 1 */
	uint32		ncpus;			/* CPUs that we may run on; >= 1 */
	uint32		cpu_limit;		/* highest CPU number known, plus one */
	int			node_id[PGSWEEP_NUMA_MAX_NODES]; /* the kernel's number */
	uint32		node_cpus[PGSWEEP_NUMA_MAX_NODES];	/* of ncpus, those whose
												 * nearest node this is; may
												 * be 0 */
	uint8		distance[PGSWEEP_NUMA_MAX_NODES][PGSWEEP_NUMA_MAX_NODES];

	/*
	 * For each CPU number: the index of the nearest node of ours, and which
	 * of that node's CPUs it is, counted from 0 (CPUs that we may not run on
	 * now come after those we may: an administrator can change that).
	 */
	uint8		cpu_node[PGSWEEP_NUMA_MAX_CPUS];
	uint16		cpu_rank[PGSWEEP_NUMA_MAX_CPUS];

	/* Why these are not all nodes of the machine; "" if they are */
	char		note[256];
} PgSweepNumaTopology;

/* topology.c */
extern PgSweepNumaTopology pgsweep_numa_topology;
extern void pgsweep_numa_detect_topology(uint32 fake_nodes);

/*
 * The CPU that this process runs on now, for cpu_node[] and cpu_rank[]; less
 * than cpu_limit whatever the kernel says.  No system call (vDSO or rseq).
 */
extern uint32 pgsweep_numa_current_cpu(void);

/*
 * A piece of shared memory and the node that its pages are meant for.
 */
#define PGSWEEP_NUMA_NODE_INTERLEAVED	(-1)	/* all nodes, page by page */
#define PGSWEEP_NUMA_NODE_DEFAULT		(-2)	/* no policy: where first touched */

typedef struct PgSweepNumaPiece
{
	const char *what;			/* "blocks", "descriptors", ... */
	int			owner;			/* partition, or -1 */
	int			node;			/* index, or one of the above */
	char	   *start;
	Size		size;			/* bytes */
	bool		touched;		/* has pages already, which must be moved */

	/*
	 * Has this page been given out?  For huge pages of a piece that is not
	 * touched, of which the kernel does not tell without giving them out. May
	 * say no where it cannot know; then such a page counts as untouched.
	 */
	bool		(*page_in_use) (const char *page, Size page_size);
} PgSweepNumaPiece;

/* memory.c */

/*
 * Size in bytes of the pages of the main shared memory segment, huge pages
 * included.  Only after that has been created.
 */
extern Size pgsweep_numa_shmem_page_size(void);

/*
 * The pages that lie wholly inside of the piece: where the first begins, and how
 * many they are.  Only they can be placed.
 */
extern char *pgsweep_numa_whole_pages(const PgSweepNumaPiece *piece, Size page_size,
								 uint64 *npages);

/*
 * Set the memory policy of those pages: the piece's node preferred (not bound: a
 * full node must not kill the server), interleaved over all nodes, or none.
 * Pages that the kernel has given out already are moved if piece->touched.
 * Returns 0, or errno of the system call that failed.
 */
extern int	pgsweep_numa_place_piece(const PgSweepNumaPiece *piece, Size page_size);

/*
 * Ask the kernel where those pages are (move_pages).  on_node[id] is added to for
 * pages on the node of that number (the kernel's: it need not be one of ours);
 * *untouched for pages that have not been given out yet, which they are not by
 * this.  Returns 0 or errno.  May be interrupted (ereport).
 */
extern int	pgsweep_numa_query_piece(const PgSweepNumaPiece *piece, Size page_size,
								uint64 on_node[PGSWEEP_NUMA_MAX_NODE_IDS],
								uint64 *untouched);

/* affinity.c */

#define PGSWEEP_NUMA_PROC_KINDS	6	/* of PGPROCs: clients, background workers,
								 * ... */

/*
 * Become the one that chooses PGPROCs.  Returns false if the server has no such
 * hook, or somebody else has taken it.  In the postmaster.
 */
extern bool pgsweep_numa_install_proc_placement(void);

/*
 * Divide the PGPROCs among the nodes, and order the free lists so that processes
 * get one of each node in turn.  In the postmaster, before there are any.
 */
extern void pgsweep_numa_spread_procs(void);

/* The node that the PGPROC of this number belongs to, after that */
extern uint32 pgsweep_numa_proc_node(int procno);

#pragma GCC visibility pop

#endif							/* PGSWEEP_NUMA_H */
