/*-------------------------------------------------------------------------
 *
 * extension/numa/placement.c
 *	  Puts the pieces of shared memory on their NUMA nodes when the server
 *	  starts.
 *
 * The pieces of each partition are its blocks and its buffer descriptors.
 * affinity.c divides the PGPROCs and their arrays of fast-path locks.  The
 * blocks have not been touched yet, so telling the kernel is enough.  Core
 * has already set up descriptors and PGPROCs, so they are moved.
 *
 * The rest of core's shared memory has the policy of the process that touches
 * it first.  If that interleaves, as the server's does that was started so, it
 * becomes the policy of the memory itself: pg_sweep.numa_local_memory takes it
 * from the processes.
 *
 * If the kernel refuses, the server starts without placement and logs why.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/twophase.h"
#include "feature.h"
#include "miscadmin.h"
#include "numa/numa.h"
#include "portability/instr_time.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/proc.h"
#include "storage/shmem.h"

/* Set at start and inherited */
static PgSweepNumaPart parts[PGSWEEP_NUMA_MAX_PARTS];
static int	num_parts = 0;
static bool (*parts_in_use) (void) = NULL;

void
pgsweep_numa_set_parts(const PgSweepNumaPart *new_parts, int n, bool (*in_use) (void))
{
	Assert(n <= PGSWEEP_NUMA_MAX_PARTS);
	memcpy(parts, new_parts, n * sizeof(PgSweepNumaPart));
	num_parts = n;
	parts_in_use = in_use;
}

/*
 * Does a huge page hold a buffer that is in use?  If so, it has been given
 * out.  If all its buffers have become free again, this is unknown.
 */
static bool
block_page_in_use(const char *page, Size page_size)
{
	Size		offset = page - BufferBlocks;
	int			end = Min((offset + page_size + BLCKSZ - 1) / BLCKSZ, NBuffers);

	for (int i = offset / BLCKSZ; i < end; i++)
		if (pg_atomic_read_u32(&GetBufferDescriptor(i)->state) & BM_TAG_VALID)
			return true;
	return false;
}

/*
 * An array that is cut into pieces.
 */
typedef struct PlacedArray
{
	const char *what;
	char	   *start;
	Size		element;		/* bytes */
	int			n;				/* elements */
	bool		touched;
} PlacedArray;

/*
 * The start of the piece that begins with element i: the nearest page
 * boundary.  A page shared by two pieces then belongs to the one with the
 * larger part.  The result lies within the whole pages of the array.
 */
static char *
cut_array(const PlacedArray *array, int i, Size page_size)
{
	char	   *first = (char *) TYPEALIGN(page_size, array->start);
	char	   *end = (char *) TYPEALIGN_DOWN(page_size, array->start + array->n * array->element);
	char	   *cut = (char *) TYPEALIGN_DOWN(page_size, array->start + i * array->element + page_size / 2);

	if (end < first || i == 0)
		return first;
	if (i == array->n)
		return end;
	return Max(first, Min(cut, end));
}

/*
 * The elements first .. end - 1.
 */
static PgSweepNumaPiece *
add_piece(PgSweepNumaPiece *pieces, int *n, const PlacedArray *array,
		  int owner, int node, int first, int end)
{
	PgSweepNumaPiece *piece = &pieces[(*n)++];
	Size		page_size = pgsweep_numa_shmem_page_size();

	piece->what = array->what;
	piece->owner = owner;
	piece->node = node;
	piece->start = cut_array(array, first, page_size);
	piece->size = cut_array(array, end, page_size) - piece->start;
	piece->touched = array->touched;
	piece->page_in_use = NULL;
	return piece;
}

static void
add_buffers(PgSweepNumaPiece *pieces, int *n, int owner, int node, int first, int end)
{
	const PlacedArray blocks = {PGSWEEP_NUMA_PIECE_BLOCKS, BufferBlocks, BLCKSZ, NBuffers, false};
	const PlacedArray descriptors = {"descriptors", (char *) BufferDescriptors,
	sizeof(BufferDescPadded), NBuffers, true};

	add_piece(pieces, n, &blocks, owner, node, first, end)->page_in_use = block_page_in_use;
	add_piece(pieces, n, &descriptors, owner, node, first, end);
}

static int
num_procs(void)
{
	return MaxBackends + NUM_AUXILIARY_PROCS + max_prepared_xacts;
}

/*
 * The PGPROCs first .. end - 1.
 */
static void
add_procs(PgSweepNumaPiece *pieces, int *n, int node, int first, int end)
{
	const PGPROC *p = ProcGlobal->allProcs;
	const PlacedArray procs = {"procs", (char *) p, sizeof(PGPROC), num_procs(), true};
	const PlacedArray locks = {"fast-path locks", (char *) p[0].fpLockBits,
	(char *) p[1].fpLockBits - (char *) p[0].fpLockBits, num_procs(), true};

	add_piece(pieces, n, &procs, -1, node, first, end);
	add_piece(pieces, n, &locks, -1, node, first, end);
}

/* Two for each partition, and two for each run of PGPROCs of a node */
#define MAX_PIECES	(2 * PGSWEEP_NUMA_MAX_PARTS + 2 * PGSWEEP_NUMA_PROC_KINDS * PGSWEEP_NUMA_MAX_NODES)

/*
 * All pieces, each with its node under this placement.  Buffers are divided
 * by partition.  Only when "interleave" is applied (whole), they are one
 * piece, because interleaving ignores partitions.  PGPROCs are divided by
 * node, or one piece that is left alone.
 */
static PgSweepNumaPiece *
make_pieces(PgSweepNumaPlacement placement, bool whole, bool procs, int *n)
{
	PgSweepNumaPiece *pieces = palloc(MAX_PIECES * sizeof(PgSweepNumaPiece));
	int			first = 0;

	*n = 0;
	if (whole)
		add_buffers(pieces, n, -1, PGSWEEP_NUMA_NODE_INTERLEAVED, 0, NBuffers);
	for (int i = 0; !whole && i < num_parts; i++)
	{
		const PgSweepNumaPart *part = &parts[i];

		add_buffers(pieces, n, i,
					placement == PGSWEEP_NUMA_PLACEMENT_PARTITION ? part->node :
					placement == PGSWEEP_NUMA_PLACEMENT_INTERLEAVE ? PGSWEEP_NUMA_NODE_INTERLEAVED :
					PGSWEEP_NUMA_NODE_DEFAULT,
					part->first_buffer, part->first_buffer + part->num_buffers);
	}

	if (procs)
	{
		for (int i = 1; i <= num_procs(); i++)
			if (i == num_procs() || pgsweep_numa_proc_node(i) != pgsweep_numa_proc_node(first))
			{
				add_procs(pieces, n, pgsweep_numa_proc_node(first), first, i);
				first = i;
			}
	}
	else
		add_procs(pieces, n, PGSWEEP_NUMA_NODE_DEFAULT, 0, num_procs());

	Assert(*n <= MAX_PIECES);
	return pieces;
}

/*
 * The pieces under the placement in force.
 */
PgSweepNumaPiece *
pgsweep_numa_pieces(int *n)
{
	return make_pieces(PgSweepNuma->placement.effective, false,
					   PgSweepNuma->procs_divided, n);
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

	/* no note if "auto" does nothing on one node */
	if (t->emulated)
		strlcpy(status->note, "the NUMA nodes are emulated (pg_sweep.numa_debug_nodes)",
				sizeof(status->note));
	else if (t->nnodes == 1 && t->note[0] != '\0')
		strlcpy(status->note, t->note, sizeof(status->note));
	else if (t->nnodes == 1 && status->configured != PGSWEEP_NUMA_PLACEMENT_AUTO)
		strlcpy(status->note, "the machine has one NUMA node", sizeof(status->note));
	if (t->emulated || t->nnodes == 1)
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

	if (status->note[0] == '\0' && pgsweep_numa_topology.nnodes > 1 &&
		!pgsweep_numa_topology.emulated &&
		status->effective != PGSWEEP_NUMA_PLACEMENT_PARTITION && parts_in_use())
		return "the strategy in force has partitions, but their buffers are not on their nodes";
	return status->note;
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
 * Let all of core's shared memory keep an interleaving that the server was
 * started with.  Returns 0 or errno.
 */
static int
keep_interleaving(Size page_size)
{
	PgSweepNumaPiece all = {.node = PGSWEEP_NUMA_NODE_AS_STARTED};

	if (!pgsweep_numa_topology.interleaved)
		return 0;
	all.start = (char *) shmem_edge(-1);
	all.size = shmem_edge(1) - shmem_edge(-1) + 1;
	return pgsweep_numa_place_piece(&all, page_size);
}

/*
 * Put all pieces on their nodes; all or none.  Adds up the bytes of the whole
 * pages.  Returns 0 or errno.
 */
static int
place_pieces(PgSweepNumaPiece *pieces, int n, Size page_size,
			 uint64 *buffer_bytes, uint64 *other_bytes)
{
	for (int i = 0; i < n; i++)
	{
		uint64		npages;
		int			error;

		if (pieces[i].node == PGSWEEP_NUMA_NODE_DEFAULT)
			continue;
		error = pgsweep_numa_place_piece(&pieces[i], page_size);
		if (error != 0)
		{
			/* moved pages stay, but new ones go anywhere */
			for (int k = 0; k < i; k++)
			{
				pieces[k].node = PGSWEEP_NUMA_NODE_DEFAULT;
				pieces[k].touched = false;
				(void) pgsweep_numa_place_piece(&pieces[k], page_size);
			}
			return error;
		}

		(void) pgsweep_numa_whole_pages(&pieces[i], page_size, &npages);
		*(pieces[i].touched ? other_bytes : buffer_bytes) += npages * page_size;
	}
	return 0;
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
				 errdetail("The server continues as with pg_sweep.numa_placement = off."),
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
	PgSweepNumaPlacement wish;
	PgSweepNumaPiece *pieces;
	Size		page_size = pgsweep_numa_shmem_page_size();
	uint64		buffer_bytes = 0;
	uint64		other_bytes = 0;
	bool		hooked;
	bool		procs;
	int			n;
	instr_time	start;
	instr_time	end;

	Assert(!IsUnderPostmaster);
	memset(status, 0, sizeof(*status));
	status->configured = pgsweep_numa_placement;
	hooked = pgsweep_numa_install_proc_placement();

	INSTR_TIME_SET_CURRENT(start);
	wish = resolve_placement(status);
	if (wish != PGSWEEP_NUMA_PLACEMENT_OFF)
	{
		/* where processes cannot choose a PGPROC, moving it helps none */
		procs = hooked && wish == PGSWEEP_NUMA_PLACEMENT_PARTITION;
		pieces = make_pieces(wish, wish == PGSWEEP_NUMA_PLACEMENT_INTERLEAVE, procs, &n);
		status->error = keep_interleaving(page_size);
		if (status->error == 0)
			status->error = place_pieces(pieces, n, page_size, &buffer_bytes, &other_bytes);
		pfree(pieces);

		if (status->error != 0)
		{
			errno = status->error;
			snprintf(status->note, sizeof(status->note), "%m");
		}
		else
		{
			status->effective = wish;
			if (procs)
				pgsweep_numa_divide_procs();
			if (buffer_bytes == 0)
				snprintf(status->note, sizeof(status->note),
						 "no partition has most of a page of %zu kB", page_size / 1024);
			else if (wish == PGSWEEP_NUMA_PLACEMENT_PARTITION && !hooked)
				snprintf(status->note, sizeof(status->note), "PGPROCs are not placed: %s",
						 pgsweep_feature_missing(&pgsweep_numa_feature) ?
						 pgsweep_feature_missing(&pgsweep_numa_feature) :
						 "another library places processes");
		}
	}
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	status->usec = wish != PGSWEEP_NUMA_PLACEMENT_OFF ? INSTR_TIME_GET_MICROSEC(end) : 0;

	report_placement(status, page_size, buffer_bytes, other_bytes);
}
