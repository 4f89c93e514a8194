/*-------------------------------------------------------------------------
 *
 * extension/numa/views.c
 *	  The columns of pg_sweep_status, and the SQL function that asks the
 *	  kernel where pages are.
 *
 * It is a view of its own because it takes a system call per 1000 pages and
 * maps every existing page into this process.  The numbers of buffers are
 * kept for pg_sweep_nodes.
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
 * Pages of pieces of the same kind, partition and wanted node.
 */
typedef struct ResidenceGroup
{
	const PgSweepNumaPiece *piece;	/* one of them */
	Size		page_size;
	uint64		on_node[PGSWEEP_NUMA_MAX_NODE_IDS];
	uint64		untouched;
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

	put(row, Int32GetDatum(pgsweep_numa_topology.nnodes));
	put_text(row, pgsweep_numa_topology.note[0] ? pgsweep_numa_topology.note : NULL);
	put_text(row, pgsweep_numa_placement_name(placement->effective));
	put_text(row, pgsweep_numa_placement_name(placement->configured));
	put_text(row, placement->note[0] ? placement->note : NULL);
	put_interval(row, placement->usec);
}

static void
store_pages(FunctionCallInfo fcinfo, const ResidenceGroup *group, int node_id, uint64 pages)
{
	const PgSweepNumaPiece *piece = group->piece;
	PgSweepRow	row = {0};

	if (pages == 0)
		return;

	put_text(&row, piece->what);
	if (piece->owner >= 0)
		put(&row, Int32GetDatum(piece->owner));
	else
		put_null(&row);
	if (node_id >= 0)
		put(&row, Int32GetDatum(node_id));
	else
		put_null(&row);
	if (piece->node >= 0)
		put(&row, Int32GetDatum(pgsweep_numa_topology.node_id[piece->node]));
	else
		put_null(&row);
	put_int8(&row, group->page_size);
	put_int8(&row, pages);
	put_int8(&row, pages * group->page_size);
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
 * Behind view pg_sweep_numa_residence: one row for each kind of memory,
 * partition and node with pages.
 */
Datum
pg_sweep_get_numa_residence(PG_FUNCTION_ARGS)
{
	uint64		block_bytes[PGSWEEP_NUMA_MAX_NODE_IDS] = {0};
	ResidenceGroup *group;
	PgSweepNumaPiece *pieces;
	int			n;

	InitMaterializedSRF(fcinfo, 0);
	if (pgsweep_state() != PGSWEEP_STATE_OK)
		return (Datum) 0;

	pieces = pgsweep_numa_pieces(&n);
	group = palloc(sizeof(ResidenceGroup));

	for (int i = 0; i < n; i++)
	{
		if (pieces[i].what == NULL)
			continue;			/* has been in a group */

		memset(group, 0, sizeof(*group));
		group->piece = &pieces[i];
		group->page_size = pgsweep_numa_shmem_page_size();

		for (int k = i; k < n; k++)
		{
			int			error;

			if (pieces[k].what == NULL || !same_group(&pieces[i], &pieces[k]))
				continue;
			error = pgsweep_numa_query_piece(&pieces[k], group->page_size,
											 group->on_node, &group->untouched);
			if (error != 0)
			{
				const char *hint = pgsweep_numa_kernel_hint(error);

				errno = error;
				ereport(ERROR,
						(errcode(ERRCODE_SYSTEM_ERROR),
						 errmsg("could not ask the kernel where shared memory is: %m"),
						 hint ? errhint("%s", hint) : 0));
			}
			if (k > i)
				pieces[k].what = NULL;
		}

		for (int id = 0; id < PGSWEEP_NUMA_MAX_NODE_IDS; id++)
		{
			store_pages(fcinfo, group, id, group->on_node[id]);
			if (strcmp(pieces[i].what, PGSWEEP_NUMA_PIECE_BLOCKS) == 0)
				block_bytes[id] += group->on_node[id] * group->page_size;
		}
		store_pages(fcinfo, group, -1, group->untouched);
	}

	remember_residence(block_bytes);
	return (Datum) 0;
}
