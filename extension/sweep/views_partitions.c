/*-------------------------------------------------------------------------
 *
 * extension/sweep/views_partitions.c
 *	  SQL functions that show partitions, NUMA nodes and the balance of both.
 *
 * They show shared memory; numa/views.c asks the kernel.  Without pg_sweep in
 * the server they return no rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "feature.h"
#include "fmgr.h"
#include "funcapi.h"
#include "numa/pool.h"
#include "numa/topology.h"
#include "sql.h"
#include "sweep/partitions.h"

PG_FUNCTION_INFO_V1(pg_sweep_get_partitions);
PG_FUNCTION_INFO_V1(pg_sweep_get_nodes);
PG_FUNCTION_INFO_V1(pg_sweep_get_flows);

/*
 * to += from - base
 */
static void
add_since(PgSweepPartCounters *to, const PgSweepPartCounters *from,
		  const PgSweepPartCounters *base)
{
	uint64	   *t = (uint64 *) to;
	const uint64 *f = (const uint64 *) from;
	const uint64 *b = (const uint64 *) base;

	for (int i = 0; i < sizeof(*to) / sizeof(uint64); i++)
		t[i] += f[i] - b[i];
}

static int
kernel_node(uint32 partition)
{
	return pgsweep_numa_topology.node_id[PgSweepPool->parts[partition].node];
}

static int
distance_between(uint32 a, uint32 b)
{
	return pgsweep_numa_topology.distance[PgSweepPool->parts[a].node][PgSweepPool->parts[b].node];
}

/*
 * Behind view pg_sweep_partitions: one row per partition.
 */
Datum
pg_sweep_get_partitions(PG_FUNCTION_ARGS)
{
	PgSweepPartCounters totals[PGSWEEP_MAX_PARTITIONS];
	PgSweepPartCounters since[PGSWEEP_MAX_PARTITIONS] = {0};
	double		active_usec;

	InitMaterializedSRF(fcinfo, 0);
	if (pgsweep_state() != PGSWEEP_STATE_OK)
		return (Datum) 0;

	LWLockAcquire(PgSweep->lock, LW_SHARED);
	pgsweep_sum_partitions(totals);
	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
		add_since(&since[i], &totals[i], &PgSweepPool->part_base[i]);
	active_usec = pgsweep_active_usec(PGSWEEP_PARTITIONED) +
		pgsweep_active_usec(PGSWEEP_CLOCK2Q_PARTITIONED);
	LWLockRelease(PgSweep->lock);

	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
	{
		PgSweepPartition *part = &PgSweepPool->parts[i];
		PgSweepRow	row = {0};
		int			hand;
		uint64		passes;
		double		usec;

		pgsweep_hand_position(part, &hand, &passes);
		put(&row, Int32GetDatum(i));
		put(&row, Int32GetDatum(kernel_node(i)));
		put(&row, Int32GetDatum(part->first_buffer));
		put(&row, Int32GetDatum(part->num_buffers));
		put(&row, Int32GetDatum(hand));
		put_int8(&row, passes);
		put(&row, Float8GetDatum(pgsweep_laps_done(&PgSweepPool->laps, i, part,
												   pgsweep_hand_read(part))));
		put_int8(&row, since[i].requests);
		put_int8(&row, since[i].redirected_out);
		put_int8(&row, since[i].allocations);
		put_int8(&row, since[i].redirected_in);
		put_int8(&row, since[i].local);
		put_int8(&row, since[i].evictions);

		/*
		 * The time in which as many pages are evicted as it has buffers; NULL
		 * also if that exceeds the range of 64 bits.
		 */
		usec = active_usec * part->num_buffers / Max(since[i].evictions, 1);
		if (since[i].evictions == 0 || usec >= (double) PG_INT64_MAX)
			put_null(&row);
		else
			put_interval(&row, (int64) usec);
		pgsweep_store_row(fcinfo, &row);
	}
	return (Datum) 0;
}

/*
 * One node of pg_sweep_nodes: sums over its partitions.
 */
static void
put_node(PgSweepRow *row, uint32 node, const PgSweepPartCounters *since)
{
	PgSweepPartCounters sum = {0};
	static const PgSweepPartCounters zero = {0};
	uint32		partitions = 0;
	uint64		buffers = 0;
	uint64		resident;
	TimestampTz resident_at = pgsweep_numa_resident_buffers(node, &resident);

	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
	{
		if (PgSweepPool->parts[i].node != node)
			continue;
		add_since(&sum, &since[i], &zero);
		partitions++;
		buffers += PgSweepPool->parts[i].num_buffers;
	}

	put(row, Int32GetDatum(pgsweep_numa_topology.node_id[node]));
	put(row, Int32GetDatum(pgsweep_numa_topology.node_cpus[node]));
	put(row, Int32GetDatum(partitions));
	put_int8(row, buffers);
	if (resident_at == 0)
	{
		put_null(row);
		put_null(row);
	}
	else
	{
		put_int8(row, resident);
		put(row, TimestampTzGetDatum(resident_at));
	}
	put_int8(row, sum.requests);
	put_int8(row, sum.allocations);
	put_int8(row, sum.local);
}

/*
 * Behind view pg_sweep_nodes: one row per node.
 */
Datum
pg_sweep_get_nodes(PG_FUNCTION_ARGS)
{
	PgSweepPartCounters totals[PGSWEEP_MAX_PARTITIONS];
	PgSweepPartCounters since[PGSWEEP_MAX_PARTITIONS] = {0};
	PgSweepRow	rows[PGSWEEP_NUMA_MAX_NODES] = {0};

	InitMaterializedSRF(fcinfo, 0);
	if (pgsweep_state() != PGSWEEP_STATE_OK)
		return (Datum) 0;

	LWLockAcquire(PgSweep->lock, LW_SHARED);
	pgsweep_sum_partitions(totals);
	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
		add_since(&since[i], &totals[i], &PgSweepPool->part_base[i]);
	for (uint32 i = 0; i < pgsweep_numa_topology.nnodes; i++)
		put_node(&rows[i], i, since);
	LWLockRelease(PgSweep->lock);

	for (uint32 i = 0; i < pgsweep_numa_topology.nnodes; i++)
		pgsweep_store_row(fcinfo, &rows[i]);
	return (Datum) 0;
}

/*
 * Behind view pg_sweep_flows: one row for each home and each partition that has
 * served its requests.
 */
Datum
pg_sweep_get_flows(PG_FUNCTION_ARGS)
{
	PgSweepPartCounters totals[PGSWEEP_MAX_PARTITIONS];
	uint32		n;
	uint64		(*flow)[PGSWEEP_MAX_PARTITIONS];

	InitMaterializedSRF(fcinfo, 0);
	if (pgsweep_state() != PGSWEEP_STATE_OK)
		return (Datum) 0;

	n = PgSweepPool->num_partitions;
	flow = palloc(n * sizeof(*flow));
	LWLockAcquire(PgSweep->lock, LW_SHARED);
	pgsweep_sum_partitions(totals);
	for (uint32 from = 0; from < n; from++)
	{
		PgSweepPartCounters since = {0};

		for (uint32 to = 0; to < n; to++)
			flow[from][to] = pg_atomic_read_u64(&PgSweepPool->flow[from][to]) -
				PgSweepPool->flow_base[from][to];

		/* what stays at home is counted by each process alone */
		add_since(&since, &totals[from], &PgSweepPool->part_base[from]);
		flow[from][from] = since.allocations - Min(since.redirected_in, since.allocations);
	}
	LWLockRelease(PgSweep->lock);

	for (uint32 from = 0; from < n; from++)
		for (uint32 i = 0; i < n; i++)
		{
			uint32		to = pgsweep_order(from)->part[i];
			PgSweepRow	row = {0};

			if (flow[from][to] == 0)
				continue;
			put(&row, Int32GetDatum(from));
			put(&row, Int32GetDatum(to));
			put(&row, Int32GetDatum(kernel_node(from)));
			put(&row, Int32GetDatum(kernel_node(to)));
			put_int8(&row, flow[from][to]);
			put(&row, Int32GetDatum(distance_between(from, to)));
			pgsweep_store_row(fcinfo, &row);
		}
	return (Datum) 0;
}
