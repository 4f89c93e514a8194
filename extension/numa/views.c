/*-------------------------------------------------------------------------
 *
 * extension/numa/views.c
 *	  The columns of pg_sweep_status, and the SQL function that asks the
 *	  kernel where pages are.
 *
 * It is a view of its own because it takes a system call per page that it
 * asks about.  These are a sample if there are many.  The numbers of buffers
 * are kept for pg_sweep_nodes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "feature.h"
#include "fmgr.h"
#include "funcapi.h"
#include "numa/numa.h"
#include "shared.h"
#include "sql.h"

PG_FUNCTION_INFO_V1(pg_sweep_get_numa_residence);

/*
 * Pages of each kind to ask about, at most.  With 64 partitions that is 256
 * pages each, a standard error of 3 % of the partition.  It takes 32 ms of
 * CPU.  A named part needs fewer: a sixteenth gives the share of one of four
 * nodes to 1.4 points.  What has no name is small.
 */
#define MAX_SAMPLE		16384
#define MAX_SAMPLE_REST	1024

/*
 * Pages of pieces of the same kind, partition and wanted node.
 */
typedef struct ResidenceGroup
{
	const PgSweepNumaPiece *piece;	/* one of them */
	Size		page_size;
	PgSweepNumaResidence found;
	uint64		asked;			/* sum of what was found */

	/* what has been shown, to make the rows add up */
	uint64		asked_shown;
	uint64		pages_shown;
} ResidenceGroup;

static bool
same_group(const PgSweepNumaPiece *a, const PgSweepNumaPiece *b)
{
	return strcmp(a->what, b->what) == 0 && a->owner == b->owner && a->node == b->node;
}

/*
 * The columns of pg_sweep_status.
 */
void
pgsweep_numa_put_status(PgSweepRow *row)
{
	const PgSweepNumaPlacementStatus *placement = &PgSweepNuma->placement;
	const char *note;

	put(row, Int32GetDatum(pgsweep_numa_topology.nnodes));
	put_text(row, pgsweep_numa_topology.note[0] ? pgsweep_numa_topology.note : NULL);
	put_text(row, pgsweep_numa_placement_name(placement->effective));
	put_text(row, pgsweep_numa_placement_name(placement->configured));
	note = pgsweep_numa_placement_note();
	put_text(row, note[0] ? note : NULL);
	put_interval(row, placement->usec);
}

/*
 * Fill in the columns that are the same in all rows of a group.
 */
static void
put_group(PgSweepRow *row, const ResidenceGroup *group, int node_id)
{
	const PgSweepNumaPiece *piece = group->piece;

	put_text(row, piece->what);
	if (piece->owner >= 0)
		put(row, Int32GetDatum(piece->owner));
	else
		put_null(row);
	if (node_id >= 0)
		put(row, Int32GetDatum(node_id));
	else
		put_null(row);
	if (piece->node >= 0)
		put(row, Int32GetDatum(pgsweep_numa_topology.node_id[piece->node]));
	else
		put_null(row);
	put_int8(row, group->page_size);
}

/*
 * Pages of a group on one node, of which `asked` were found there.  Returns
 * their number.
 */
static uint64
store_pages(FunctionCallInfo fcinfo, ResidenceGroup *group, int node_id, uint64 asked)
{
	PgSweepRow	row = {0};
	uint64		pages;

	if (asked == 0)
		return 0;

	group->asked_shown += asked;
	pages = group->found.pages * group->asked_shown / group->asked - group->pages_shown;
	group->pages_shown += pages;

	put_group(&row, group, node_id);
	put_int8(&row, pages);
	put_int8(&row, pages * group->page_size);
	put_int8(&row, asked);
	put_null(&row);
	pgsweep_store_row(fcinfo, &row);
	return pages;
}

/*
 * A group that the kernel says nothing about.
 */
static void
store_unknown(FunctionCallInfo fcinfo, const ResidenceGroup *group, int error)
{
	const char *hint = pgsweep_numa_kernel_hint(error);
	PgSweepRow	row = {0};

	if (error == EPERM && pgsweep_numa_asks_postmaster(group->piece, group->page_size))
		hint = "Pages of this part are asked for by the postmaster's pid, which needs the right to trace it (ptrace).";

	put_group(&row, group, -1);
	put_null(&row);
	put_null(&row);
	put_int8(&row, 0);
	put_text(&row, psprintf("The kernel does not tell: %s.%s%s", strerror(error),
							hint ? " " : "", hint ? hint : ""));
	pgsweep_store_row(fcinfo, &row);
}

/*
 * Keep the numbers of buffers.
 */
static void
remember_residence(const uint64 *block_bytes)
{
	LWLockAcquire(PgSweep->lock, LW_EXCLUSIVE);
	for (uint32 node = 0; node < pgsweep_numa_topology.nnodes; node++)
		PgSweepNuma->resident_buffers[node] =
			block_bytes[pgsweep_numa_topology.node_id[node]] / BLCKSZ;
	PgSweepNuma->resident_at = GetCurrentTimestamp();
	LWLockRelease(PgSweep->lock);
}

TimestampTz
pgsweep_numa_resident_buffers(uint32 node, uint64 *buffers)
{
	*buffers = PgSweepNuma->resident_buffers[node];
	return PgSweepNuma->resident_at;
}

/*
 * Of how many pages of a kind one is asked about.
 */
static uint64
sample_stride(const PgSweepNumaPiece *pieces, int n, const char *what, Size page_size)
{
	uint64		total = 0;
	uint64		sample = MAX_SAMPLE_REST;

	for (int i = 0; i < n; i++)
		if (strcmp(pieces[i].what, what) == 0)
		{
			uint64		npages;

			if (pieces[i].owner >= 0 || strcmp(what, PGSWEEP_NUMA_PIECE_OTHER) == 0)
				sample = MAX_SAMPLE;

			(void) pgsweep_numa_whole_pages(&pieces[i], page_size, &npages);
			total += npages;
		}
	return Max((total + sample - 1) / sample, 1);
}

/*
 * All pieces of shared memory: the placed ones, then the rest.
 */
static PgSweepNumaPiece *
all_pieces(FunctionCallInfo fcinfo, int *n)
{
	int			nplaced;
	int			nrest;
	PgSweepNumaPiece *placed = pgsweep_numa_pieces(&nplaced);
	PgSweepNumaPiece *rest = pgsweep_numa_rest(fcinfo, placed, nplaced, &nrest);

	*n = nplaced + nrest;
	placed = repalloc(placed, *n * sizeof(PgSweepNumaPiece));
	memcpy(placed + nplaced, rest, nrest * sizeof(PgSweepNumaPiece));
	pfree(rest);
	return placed;
}

/*
 * Behind view pg_sweep_numa_residence: one row for each kind of memory,
 * partition and node with pages.
 */
Datum
pg_sweep_get_numa_residence(PG_FUNCTION_ARGS)
{
	uint64		block_bytes[PGSWEEP_NUMA_MAX_NODE_IDS] = {0};
	ResidenceGroup *group;
	PgSweepNumaPiece *pieces;
	bool	   *grouped;
	int			n;
	bool		blocks_known = true;

	InitMaterializedSRF(fcinfo, 0);
	if (pgsweep_state() != PGSWEEP_STATE_OK)
		return (Datum) 0;

	pieces = all_pieces(fcinfo, &n);
	grouped = palloc0(n * sizeof(bool));
	group = palloc(sizeof(ResidenceGroup));

	for (int i = 0; i < n; i++)
	{
		bool		blocks = strcmp(pieces[i].what, PGSWEEP_NUMA_PIECE_BLOCKS) == 0;
		uint64		stride;
		int			error = 0;

		if (grouped[i])
			continue;

		memset(group, 0, sizeof(*group));
		group->piece = &pieces[i];
		group->page_size = pgsweep_numa_shmem_page_size();
		stride = sample_stride(pieces, n, pieces[i].what, group->page_size);

		for (int k = i; k < n; k++)
			if (same_group(&pieces[i], &pieces[k]))
			{
				grouped[k] = true;
				if (error == 0)
					error = pgsweep_numa_query_piece(&pieces[k], group->page_size,
													 stride, &group->found);
			}
		if (error != 0)
		{
			/* parts are asked about in different ways, see memory.c */
			blocks_known &= !blocks;
			store_unknown(fcinfo, group, error);
			continue;
		}

		group->asked = group->found.untouched;
		for (int id = 0; id < PGSWEEP_NUMA_MAX_NODE_IDS; id++)
			group->asked += group->found.on_node[id];
		for (int id = 0; id < PGSWEEP_NUMA_MAX_NODE_IDS; id++)
		{
			uint64		pages = store_pages(fcinfo, group, id, group->found.on_node[id]);

			if (blocks)
				block_bytes[id] += pages * group->page_size;
		}
		(void) store_pages(fcinfo, group, -1, group->found.untouched);
	}

	if (blocks_known)
		remember_residence(block_bytes);
	return (Datum) 0;
}
