/*-------------------------------------------------------------------------
 *
 * extension/numa/numa.h
 *	  NUMA: where memory is put, where backends run.
 *
 * Knows nodes, CPUs and pieces of memory, but not how buffers are replaced.
 * The room that divides the pool says which parts there are (pool.h).
 *
 * Files of this folder:
 *
 * numa.c		the feature: what pg_sweep.c calls
 * topology.[ch]	nodes, CPUs and distances, from libnuma, or emulated for tests
 * caches.[ch]	which CPUs share a core or a cache, from sysfs
 * nodes.c		which of the nodes are used
 * pieces.c		which pieces of shared memory belong on which node
 * placement.c	putting them there when the server starts
 * memory.c		where pages should be, and where the kernel says they are
 * segment.c		the named parts of the segment that have no node of their own
 * affinity.c	on which node a process runs, its PGPROC, its own memory
 * hits.c		the feature numa_hits: a sample of buffer hits by node
 * pool.h		the parts of the buffer pool
 * gucs.c, views.c
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_NUMA_H
#define PGSWEEP_NUMA_H

#include "compat.h"
#include "datatype/timestamp.h"
#include "fmgr.h"
#include "lib/ilist.h"
#include "numa/pool.h"
#include "numa/topology.h"
#include "port/atomics.h"

#pragma GCC visibility push(hidden)

struct PgSweepRow;

#define PGSWEEP_NUMA_PROC_KINDS	6	/* of PGPROCs: clients, background
									 * workers, ... */
#define PGSWEEP_NUMA_PROC_LISTS	4	/* those of them with a free list */

/* pg_sweep.numa_placement */
typedef enum PgSweepNumaPlacement
{
	PGSWEEP_NUMA_PLACEMENT_OFF,
	PGSWEEP_NUMA_PLACEMENT_INTERLEAVE,
	PGSWEEP_NUMA_PLACEMENT_PARTITION,
	PGSWEEP_NUMA_PLACEMENT_AUTO,
} PgSweepNumaPlacement;

/* pg_sweep.numa_affinity */
typedef enum PgSweepNumaAffinity
{
	PGSWEEP_NUMA_AFFINITY_OFF,
	PGSWEEP_NUMA_AFFINITY_SPREAD,
	PGSWEEP_NUMA_AFFINITY_CURRENT,
} PgSweepNumaAffinity;

/* The effect of pg_sweep.numa_placement */
typedef struct PgSweepNumaPlacementStatus
{
	PgSweepNumaPlacement configured;
	PgSweepNumaPlacement effective; /* never AUTO */
	int			error;			/* errno of what failed, or 0 */
	int64		usec;			/* time it took at start */
	char		note[256];		/* why it is not as configured, or "" */
} PgSweepNumaPlacementStatus;

typedef struct PgSweepNumaShared
{
	PgSweepNumaPlacementStatus placement;	/* constant after start */

	/* What pg_sweep_numa_residence found last; protected by PgSweep->lock */
	TimestampTz resident_at;	/* 0 = never asked */
	uint64		resident_buffers[PGSWEEP_NUMA_MAX_NODES];

	/* Next node to start a process on, for pg_sweep.numa_affinity */
	pg_atomic_uint32 next_node;

	/*
	 * Core's free lists by kind and node with CPUs, if procs_divided, which
	 * is constant after start.  Protected by core's ProcStructLock.
	 */
	bool		procs_divided;
	dlist_head	free_procs[PGSWEEP_NUMA_PROC_LISTS][PGSWEEP_NUMA_MAX_NODES];

	/* Has been reported; no lock, at worst it is reported twice */
	bool		binding_failed;
} PgSweepNumaShared;

/* numa.c; NULL unless preloaded into a server that has the patches */
extern PgSweepNumaShared *PgSweepNuma;

/* gucs.c */
extern int	pgsweep_numa_placement;
extern int	pgsweep_numa_affinity;
extern bool pgsweep_numa_local_memory;
extern char *pgsweep_numa_nodes;
extern int	pgsweep_numa_debug_nodes;
extern void pgsweep_numa_define_gucs(void);
extern const char *pgsweep_numa_placement_name(PgSweepNumaPlacement placement);

/* views.c */
extern void pgsweep_numa_put_status(struct PgSweepRow *row);

/* topology.c */
extern void pgsweep_numa_detect_topology(uint32 emulated_nodes);

/* nodes.c; nodes are by the kernel's number, PGSWEEP_NUMA_MAX_NODE_IDS of them */
extern const char *pgsweep_numa_parse_nodes(const char *list, bool *named);
extern void pgsweep_numa_choose_nodes(bool *nodes, char *note, Size note_size);
extern int64 pgsweep_numa_room(uint32 node, Size page_size, int64 *unused);

/*
 * A piece of shared memory and the node that its pages are meant for.
 */
#define PGSWEEP_NUMA_NODE_INTERLEAVED	(-1)	/* all nodes, page by page */
#define PGSWEEP_NUMA_NODE_DEFAULT		(-2)	/* no policy: where first
												 * touched */

typedef struct PgSweepNumaPiece
{
	const char *what;			/* "blocks", "descriptors", ... */
	int			owner;			/* partition, or -1 */
	int			node;			/* index, or one of the above */
	char	   *start;
	Size		size;			/* bytes */
	bool		touched;		/* has pages already, which must be moved */

	/*
	 * Has this page been given out?  Used for huge pages, because the kernel
	 * cannot tell without giving them out.  False if unknown: the page then
	 * counts as untouched.  NULL: given out if touched is set, or if the
	 * postmaster has used it.
	 */
	bool		(*page_in_use) (const char *page, Size page_size);
} PgSweepNumaPiece;

#define PGSWEEP_NUMA_PIECE_BLOCKS	"blocks"	/* PgSweepNumaPiece.what of
												 * the buffers themselves */

#define PGSWEEP_NUMA_PIECE_OTHER	"other" /* of what is too small to have a
											 * name */

/* pieces.c */
extern bool pgsweep_numa_parts_in_use(void);
extern uint64 pgsweep_numa_parts_size(uint32 node, uint64 *equal);
extern PgSweepNumaPiece *pgsweep_numa_make_pieces(PgSweepNumaPlacement placement, bool procs,
												  int *n);
extern PgSweepNumaPiece *pgsweep_numa_pieces(int *n);
extern uint32 pgsweep_numa_wanted_node(int buf_id);

/* placement.c */
extern void pgsweep_numa_decide_placement(void);
extern void pgsweep_numa_place(void);
extern const char *pgsweep_numa_placement_note(void);
extern const char *pgsweep_numa_kernel_hint(int error);

/*
 * segment.c: the rest of core's shared memory, in pieces of whole pages that
 * are named as in pg_shmem_allocations.  fcinfo is of a function that returns a
 * set, and has been called by the executor.
 */
extern PgSweepNumaPiece *pgsweep_numa_rest(FunctionCallInfo fcinfo,
										   const PgSweepNumaPiece *placed, int nplaced,
										   int *n);

/* memory.c */

/*
 * Interleave what this process touches first, if memory has no policy of its
 * own, over all nodes; and return to the policy that it had before.  A policy
 * that binds is kept if there may be huge pages.  Return 0 or errno.
 */
extern int	pgsweep_numa_interleave_process(void);
extern int	pgsweep_numa_restore_process(void);

/*
 * The pages that lie wholly inside of the piece: where the first begins, and how
 * many they are.  Only they can be placed.
 */
extern char *pgsweep_numa_whole_pages(const PgSweepNumaPiece *piece, Size page_size,
									  uint64 *npages);

/*
 * Set the memory policy of those pages: the piece's node preferred,
 * interleaved over all nodes, or none.  Preferred and not bound, because a
 * full node must not kill the server.  Pages that the kernel has given out
 * already are moved if piece->touched.  Returns 0, or errno of the system
 * call that failed.
 */
extern int	pgsweep_numa_place_piece(const PgSweepNumaPiece *piece, Size page_size);

/*
 * Where pages are.  The kernel's numbers of nodes need not be in
 * pgsweep_numa_topology.
 */
typedef struct PgSweepNumaResidence
{
	uint64		pages;			/* all of them; the rest: those asked about */
	uint64		on_node[PGSWEEP_NUMA_MAX_NODE_IDS]; /* by the kernel's number */
	uint64		untouched;		/* not given out yet */
} PgSweepNumaResidence;

/*
 * Add those pages to *found.  Asks the kernel about one page of each `stride`,
 * a random one; asking does not give out pages.  Returns 0 or errno.  May be
 * interrupted (ereport).  The rest of huge pages is asked for by the
 * postmaster's pid, which the kernel can refuse by itself.
 */
extern bool pgsweep_numa_asks_postmaster(const PgSweepNumaPiece *piece, Size page_size);
extern int	pgsweep_numa_query_piece(const PgSweepNumaPiece *piece, Size page_size,
									 uint64 stride, PgSweepNumaResidence *found);

/* affinity.c */

/*
 * Install the hook that places processes.  Returns false if the server has no
 * such hook, or another library has taken it.  In the postmaster.
 */
extern bool pgsweep_numa_install_proc_placement(void);

/*
 * The node that the PGPROC of this number belongs to, if PGPROCs are divided
 * among the nodes.
 */
extern uint32 pgsweep_numa_proc_node(int procno);

/*
 * Divide core's free lists of PGPROCs by that.  In the postmaster, before any
 * process has started.
 */
extern void pgsweep_numa_divide_procs(void);

#pragma GCC visibility pop

#endif							/* PGSWEEP_NUMA_H */
