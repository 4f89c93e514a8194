/*-------------------------------------------------------------------------
 *
 * extension/numa/placement.c
 *	  Puts the pieces of shared memory on their NUMA nodes when the server
 *	  starts.
 *
 * Everything is interleaved but the pieces that have a node (pieces.c).
 *
 * Core writes most of its shared memory while it creates it, gigabytes in the
 * table of buffers alone.  No library is called in between.  So the postmaster
 * itself interleaves from shmem_request_hook to shmem_startup_hook, which costs
 * nothing.  What it allocates for itself meanwhile is little.  After a crash,
 * the former hook is not called again; the end of the old shared memory is.
 * Then the memory gets its policies: for pages that are used later, whatever
 * the policy of the process.  Of what has been written already, the pieces with
 * a node are moved.
 *
 * If the kernel refuses, the server starts without placement and logs why.
 * What has been written by then stays where it is.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "feature.h"
#include "miscadmin.h"
#include "numa/numa.h"
#include "portability/instr_time.h"
#include "storage/bufmgr.h"
#include "storage/ipc.h"
#include "storage/shmem.h"

/*
 * What pg_sweep.numa_placement leads to, decided once.  "error" is that of the
 * last time that shared memory was created.
 */
static PgSweepNumaPlacementStatus decided;

/*
 * The part of a node's memory that its buffers may have before it gets less
 * than other nodes.  The documentation of shared_buffers advises 25 to 40 % of
 * memory; the other half is for the processes and the kernel's cache.  More
 * would be of little use: what does not fit goes to other nodes silently.
 */
#define NODE_MEMORY_PART	0.5

/*
 * Huge pages are reserved for this, so all that are left are room.  By now core
 * has written what it keeps besides the buffers.
 */
uint64
pgsweep_numa_room_for_parts(uint32 node)
{
	Size		page_size = pgsweep_numa_shmem_page_size();
	uint64		memory = pgsweep_numa_topology.node_memory[node];

	if (decided.effective != PGSWEEP_NUMA_PLACEMENT_PARTITION || decided.error != 0)
		return PG_UINT64_MAX;
	if (page_size > sysconf(_SC_PAGESIZE))
	{
		int64		unused;
		int64		room = pgsweep_numa_room(node, page_size, &unused);

		return room >= 0 ? room : PG_UINT64_MAX;
	}
	return memory > 0 ? (uint64) (memory * NODE_MEMORY_PART) : PG_UINT64_MAX;
}

/*
 * The placement that pg_sweep.numa_placement leads to on this machine.  If
 * that is less than the configured one, the note says why.
 */
static PgSweepNumaPlacement
resolve_placement(PgSweepNumaPlacementStatus *status)
{
	const PgSweepNumaTopology *t = &pgsweep_numa_topology;

	if (status->configured == PGSWEEP_NUMA_PLACEMENT_OFF)
		return PGSWEEP_NUMA_PLACEMENT_OFF;

	/*
	 * No note if "auto" does nothing on one node.  One of several is another
	 * thing: without a policy, memory would go to those that are left out.
	 */
	if (t->emulated)
		strlcpy(status->note, "the NUMA nodes are emulated (pg_sweep.numa_debug_nodes)",
				sizeof(status->note));
	else if (!t->several && t->note[0] != '\0')
		strlcpy(status->note, t->note, sizeof(status->note));
	else if (!t->several && status->configured != PGSWEEP_NUMA_PLACEMENT_AUTO)
		strlcpy(status->note, "the machine has one NUMA node", sizeof(status->note));
	if (t->emulated || !t->several)
		return PGSWEEP_NUMA_PLACEMENT_OFF;

	if (status->configured != PGSWEEP_NUMA_PLACEMENT_AUTO)
		return status->configured;

	/*
	 * Whatever the strategy is now: it can change later, and the pages
	 * cannot.
	 */
	return PGSWEEP_NUMA_PLACEMENT_PARTITION;
}

/*
 * Why placement is not as configured, or not what the strategy in force needs;
 * "" if it is both.
 */
const char *
pgsweep_numa_placement_note(void)
{
	const PgSweepNumaPlacementStatus *status = &PgSweepNuma->placement;
	const char *misfit = "the strategy in force has partitions, but their buffers are not on their nodes";

	if (pgsweep_numa_topology.nnodes == 1 || pgsweep_numa_topology.emulated ||
		status->effective == PGSWEEP_NUMA_PLACEMENT_PARTITION || !pgsweep_numa_parts_in_use())
		return status->note;
	if (status->note[0] == '\0')
		return misfit;
	/* a note of what "off" comes from says it all; others are of full nodes */
	return status->effective == PGSWEEP_NUMA_PLACEMENT_OFF ? status->note :
		psprintf("%s; %s", misfit, status->note);
}

/*
 * A hint for an error of the system calls for NUMA, or NULL.
 */
const char *
pgsweep_numa_kernel_hint(int error)
{
	switch (error)
	{
		case EPERM:
			return "In a container, the capability SYS_NICE or another seccomp profile may be needed.";
		case ENOSYS:
			return "Kernel and server must have been built with NUMA support.";
		case ENOMEM:
		case EIO:
			return "The nodes may not have enough free memory, or not enough free huge pages.";
		default:
			return NULL;
	}
}

/* More than the size of any shared memory; a power of two */
#define FAR		(INT64CONST(1) << 46)

/*
 * The outermost byte of core's shared memory, downwards (-1) or upwards (1).
 * Core tells only if an address is in it.
 */
static uintptr_t
shmem_edge(int direction)
{
	uintptr_t	edge = (uintptr_t) BufferBlocks;

	for (int64 step = FAR; step > 0; step /= 2)
		while (ShmemAddrIsValid((void *) (edge + direction * step)))
			edge += direction * step;
	return edge;
}

/*
 * All of core's shared memory, to the end of its last page.
 */
static PgSweepNumaPiece
whole_segment(Size page_size)
{
	char	   *start = (char *) shmem_edge(-1);
	char	   *end = (char *) TYPEALIGN(page_size, shmem_edge(1));

	return (PgSweepNumaPiece) {
		.node = PGSWEEP_NUMA_NODE_INTERLEAVED, .start = start, .size = end - start
	};
}

/*
 * Interleave all of it, and then put the pieces on their nodes; all or none.
 * Returns 0 or errno.
 */
static int
place_pieces(PgSweepNumaPiece whole, const PgSweepNumaPiece *pieces, int n, Size page_size)
{
	int			error = pgsweep_numa_place_piece(&whole, page_size);

	for (int i = 0; i < n && error == 0; i++)
		if (pieces[i].node >= 0)
			error = pgsweep_numa_place_piece(&pieces[i], page_size);

	if (error != 0)
	{
		/*
		 * Pages that exist stay.  New ones follow the process that touches
		 * them: under a policy that binds, huge pages were reserved by the
		 * same policy, as without pg_sweep.
		 */
		whole.node = PGSWEEP_NUMA_NODE_DEFAULT;
		(void) pgsweep_numa_place_piece(&whole, page_size);
	}
	return error;
}

/*
 * Bytes of buffers that are to be on this node, or on any (-1).
 */
static uint64
buffers_on_node(const PgSweepNumaPiece *pieces, int n, int node, Size page_size)
{
	uint64		sum = 0;

	for (int i = 0; i < n; i++)
	{
		uint64		npages;

		if (strcmp(pieces[i].what, PGSWEEP_NUMA_PIECE_BLOCKS) != 0 ||
			(node >= 0 && pieces[i].node != node))
			continue;
		(void) pgsweep_numa_whole_pages(&pieces[i], page_size, &npages);
		sum += npages * page_size;
	}
	return sum;
}

static void
report_placement(const PgSweepNumaPlacementStatus *status, Size page_size,
				 uint64 buffer_bytes, uint64 other_bytes)
{
	if (status->error != 0)
	{
		const char *hint = pgsweep_numa_kernel_hint(status->error);

		errno = status->error;
		ereport(WARNING,
				(errmsg("pg_sweep could not place shared memory on NUMA nodes: %m"),
				 errdetail("The server continues without placement. Pages that it has written already stay where they are."),
				 hint ? errhint("%s", hint) : 0));
	}
	else if (status->effective == PGSWEEP_NUMA_PLACEMENT_OFF)
	{
		/* no warning if the machine really has one node */
		bool		forbidden = pgsweep_numa_topology.note[0] != '\0' &&
			status->configured != PGSWEEP_NUMA_PLACEMENT_AUTO;

		if (status->note[0] != '\0')
			ereport(forbidden ? WARNING : LOG,
					(errmsg("pg_sweep.numa_placement = %s has no effect: %s",
							pgsweep_numa_placement_name(status->configured), status->note)));
	}
	else
		ereport(LOG,
				(errmsg("pg_sweep placed " UINT64_FORMAT " kB of buffers and " UINT64_FORMAT " kB of other shared memory on %u NUMA nodes (%s, pages of %zu kB) in %.3f ms",
						buffer_bytes / 1024, other_bytes / 1024,
						pgsweep_numa_topology.nnodes,
						pgsweep_numa_placement_name(status->effective),
						page_size / 1024, status->usec / 1000.0),
				 status->note[0] != '\0' ? errdetail_internal("%s", status->note) : 0));
}

static void
add_note(PgSweepNumaPlacementStatus *status, const char *what)
{
	Size		length = strlen(status->note);

	snprintf(status->note + length, sizeof(status->note) - length, "%s%s",
			 length > 0 ? "; " : "", what);
}

/*
 * Say so if partitions are smaller because their node lacks room.  No warning:
 * they are where they should be.
 */
static void
log_small_node(PgSweepNumaPlacementStatus *status, uint32 node)
{
	const uint64 mb = 1024 * 1024;
	int			id = pgsweep_numa_topology.node_id[node];
	uint64		equal;
	uint64		size = pgsweep_numa_parts_size(node, &equal);

	if (size >= equal || pgsweep_numa_room_for_parts(node) >= equal)
		return;
	ereport(LOG,
			(errmsg("NUMA node %d has " UINT64_FORMAT " MB of shared buffers instead of its equal part of " UINT64_FORMAT " MB",
					id, size / mb, equal / mb),
			 errdetail("A node has room for what is free of its huge pages, or without huge pages for half of its memory.")));
	add_note(status, psprintf("node %d has " UINT64_FORMAT " instead of " UINT64_FORMAT " MB of buffers for lack of room",
							  id, size / mb, equal / mb));
}

/*
 * Say so if a node does not have the memory for its buffers, or only after page
 * cache has been dropped.  The latter is usual, so it is no warning.
 */
static void
warn_of_full_node(PgSweepNumaPlacementStatus *status, uint32 node, uint64 wanted, Size page_size)
{
	const int64 mb = 1024 * 1024;
	int			id = pgsweep_numa_topology.node_id[node];
	int64		unused;
	int64		room = pgsweep_numa_room(node, page_size, &unused);

	if (room < 0 || (uint64) unused >= wanted)
		return;
	if ((uint64) room >= wanted)
	{
		ereport(LOG,
				(errmsg("NUMA node %d has " INT64_FORMAT " MB of free memory for its " INT64_FORMAT " MB of shared buffers, and page cache",
						id, unused / mb, (int64) wanted / mb),
				 errdetail("The kernel may use another node before it drops page cache, as pg_sweep_numa_residence shows.")));
		add_note(status, psprintf("node %d had " INT64_FORMAT " of " INT64_FORMAT " MB of buffers free, the rest was page cache",
								  id, unused / mb, (int64) wanted / mb));
		return;
	}
	ereport(WARNING,
			(errmsg("NUMA node %d has memory left for " INT64_FORMAT " MB of its " INT64_FORMAT " MB of shared buffers",
					id, room / mb, (int64) wanted / mb),
			 errdetail("What does not fit will be on other nodes, as pg_sweep_numa_residence shows.")));
	add_note(status, psprintf("node %d had memory for " INT64_FORMAT " of " INT64_FORMAT " MB of buffers",
							  id, room / mb, (int64) wanted / mb));
}

/*
 * Note what a placement that has been made falls short of.
 */
static void
note_placed(PgSweepNumaPlacementStatus *status, bool hooked,
			const PgSweepNumaPiece *pieces, int n, Size page_size)
{
	if (buffers_on_node(pieces, n, -1, page_size) == 0)
		snprintf(status->note, sizeof(status->note),
				 "no partition has most of a page of %zu kB", page_size / 1024);
	else if (status->effective == PGSWEEP_NUMA_PLACEMENT_PARTITION && !hooked)
		snprintf(status->note, sizeof(status->note), "PGPROCs are not placed: %s",
				 pgsweep_feature_missing(&pgsweep_numa_feature) ?
				 pgsweep_feature_missing(&pgsweep_numa_feature) :
				 "another library places processes");

	for (uint32 node = 0; node < pgsweep_numa_topology.nnodes; node++)
	{
		log_small_node(status, node);
		warn_of_full_node(status, node,
						  status->effective == PGSWEEP_NUMA_PLACEMENT_PARTITION ?
						  buffers_on_node(pieces, n, node, page_size) :
						  buffers_on_node(pieces, n, -1, page_size) / pgsweep_numa_topology.nnodes,
						  page_size);
	}
}

/*
 * Interleave what core is about to create.
 */
static void
interleave_new_segment(int code, Datum arg)
{
	if (decided.effective != PGSWEEP_NUMA_PLACEMENT_OFF)
		decided.error = pgsweep_numa_interleave_process();
}

/*
 * Decide on the placement, before core creates its shared memory.  In the
 * postmaster, once.
 */
void
pgsweep_numa_decide_placement(void)
{
	memset(&decided, 0, sizeof(decided));
	decided.configured = pgsweep_numa_placement;
	decided.effective = resolve_placement(&decided);
	interleave_new_segment(0, 0);
}

/*
 * From here on, this process allocates where it did before.
 */
static void
end_interleaving(void)
{
	errno = pgsweep_numa_restore_process();
	if (errno != 0)
		ereport(WARNING,
				(errmsg("pg_sweep could not restore the memory policy that the server was started with: %m"),
				 errdetail("The server's processes use the default policy.")));

	/* the next segment, after a crash */
	on_shmem_exit(interleave_new_segment, 0);
}

/*
 * Place shared memory as pg_sweep.numa_placement says, and report it in
 * PgSweepNuma->placement and in the log.
 *
 * Called by the process that has just created shared memory, before any other
 * process can touch it.
 */
void
pgsweep_numa_place(void)
{
	PgSweepNumaPlacementStatus *status = &PgSweepNuma->placement;
	Size		page_size = pgsweep_numa_shmem_page_size();
	uint64		buffer_bytes = 0;
	uint64		other_bytes = 0;
	bool		hooked;
	instr_time	start;
	instr_time	end;

	Assert(!IsUnderPostmaster);
	end_interleaving();
	*status = decided;
	hooked = pgsweep_numa_install_proc_placement();

	INSTR_TIME_SET_CURRENT(start);
	if (status->effective != PGSWEEP_NUMA_PLACEMENT_OFF)
	{
		/* where processes cannot choose a PGPROC, moving it helps none */
		bool		procs = hooked && status->effective == PGSWEEP_NUMA_PLACEMENT_PARTITION;
		PgSweepNumaPiece whole = whole_segment(page_size);
		int			n;
		PgSweepNumaPiece *pieces = pgsweep_numa_make_pieces(status->effective, procs, &n);

		if (status->error == 0)
			status->error = place_pieces(whole, pieces, n, page_size);
		if (status->error != 0)
		{
			status->effective = PGSWEEP_NUMA_PLACEMENT_OFF;
			errno = status->error;
			snprintf(status->note, sizeof(status->note), "%m");
		}
		else
		{
			buffer_bytes = buffers_on_node(pieces, n, -1, page_size);
			other_bytes = whole.size - buffer_bytes;
			if (procs)
				pgsweep_numa_divide_procs();
			note_placed(status, hooked, pieces, n, page_size);
		}
		pfree(pieces);
		INSTR_TIME_SET_CURRENT(end);
		INSTR_TIME_SUBTRACT(end, start);
		status->usec = INSTR_TIME_GET_MICROSEC(end);
	}

	report_placement(status, page_size, buffer_bytes, other_bytes);
}
