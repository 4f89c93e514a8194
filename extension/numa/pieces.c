/*-------------------------------------------------------------------------
 *
 * extension/numa/pieces.c
 *	  The pieces of shared memory that have a NUMA node.
 *
 * They are the blocks and descriptors of each partition, and of each process its
 * PGPROC, its fast-path locks and its slots (affinity.c divides processes among
 * nodes).  All else has none.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/twophase.h"
#include "miscadmin.h"
#include "numa/numa.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/proc.h"

/* Set at start and inherited */
static PgSweepNumaPart parts[PGSWEEP_NUMA_MAX_PARTS];
static int	num_parts = 0;
static bool (*parts_in_use) (void) = NULL;

typedef struct SlotArray
{
	char	   *start;
	Size		element;
	uint32		n;
} SlotArray;

static SlotArray slot_arrays[PGSWEEP_NUMA_MAX_SLOT_ARRAYS];
static int	num_slot_arrays = 0;

void
pgsweep_numa_set_parts(const PgSweepNumaPart *new_parts, int n, bool (*in_use) (void))
{
	Assert(n <= PGSWEEP_NUMA_MAX_PARTS);
	memcpy(parts, new_parts, n * sizeof(PgSweepNumaPart));
	num_parts = n;
	parts_in_use = in_use;
	num_slot_arrays = 0;
}

void
pgsweep_numa_add_slots(void *start, Size element, uint32 n)
{
	Assert(num_slot_arrays < PGSWEEP_NUMA_MAX_SLOT_ARRAYS);
	slot_arrays[num_slot_arrays++] = (SlotArray) {start, element, n};
}

/*
 * The node that a buffer is meant for under placement "partition".
 */
uint32
pgsweep_numa_wanted_node(int buf_id)
{
	int			i = num_parts - 1;

	while (parts[i].first_buffer > buf_id)
		i--;
	return parts[i].node;
}

/*
 * Does the strategy in force serve processes from the parts?
 */
bool
pgsweep_numa_parts_in_use(void)
{
	return parts_in_use();
}

/*
 * The bytes of buffers in a node's parts, and what they would be if all parts
 * were equal.
 */
uint64
pgsweep_numa_parts_size(uint32 node, uint64 *equal)
{
	uint64		size = 0;

	*equal = 0;
	for (int i = 0; i < num_parts; i++)
		if (parts[i].node == node)
		{
			*equal += (uint64) NBuffers * BLCKSZ / num_parts;
			size += (uint64) parts[i].num_buffers * BLCKSZ;
		}
	return size;
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
 * The PGPROCs first .. end - 1, and what belongs to them.  Prepared
 * transactions have no slots; they are the last.
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
	for (int i = 0; i < num_slot_arrays; i++)
	{
		const SlotArray *a = &slot_arrays[i];
		const PlacedArray slots = {"slots", a->start, a->element, a->n, true};

		if (first < a->n)
			add_piece(pieces, n, &slots, -1, node, first, Min(end, a->n));
	}
}

/* Two for each partition, and these for each run of PGPROCs of a node */
#define MAX_PIECES	(2 * PGSWEEP_NUMA_MAX_PARTS + \
					 (2 + PGSWEEP_NUMA_MAX_SLOT_ARRAYS) * PGSWEEP_NUMA_PROC_KINDS * PGSWEEP_NUMA_MAX_NODES)

/*
 * The node of memory that has none of its own.
 */
static int
node_of_rest(PgSweepNumaPlacement placement)
{
	return placement == PGSWEEP_NUMA_PLACEMENT_OFF ?
		PGSWEEP_NUMA_NODE_DEFAULT : PGSWEEP_NUMA_NODE_INTERLEAVED;
}

/*
 * All pieces, each with its node under this placement.  Buffers are divided
 * by partition.  PGPROCs are divided by node if procs is true, or one piece.
 */
PgSweepNumaPiece *
pgsweep_numa_make_pieces(PgSweepNumaPlacement placement, bool procs, int *n)
{
	PgSweepNumaPiece *pieces = palloc(MAX_PIECES * sizeof(PgSweepNumaPiece));
	int			first = 0;

	*n = 0;
	for (int i = 0; i < num_parts; i++)
	{
		const PgSweepNumaPart *part = &parts[i];

		add_buffers(pieces, n, i,
					placement == PGSWEEP_NUMA_PLACEMENT_PARTITION ? part->node : node_of_rest(placement),
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
		add_procs(pieces, n, node_of_rest(placement), 0, num_procs());

	Assert(*n <= MAX_PIECES);
	return pieces;
}

/*
 * The pieces under the placement in force.
 */
PgSweepNumaPiece *
pgsweep_numa_pieces(int *n)
{
	return pgsweep_numa_make_pieces(PgSweepNuma->placement.effective, PgSweepNuma->procs_divided, n);
}
