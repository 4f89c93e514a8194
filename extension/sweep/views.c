/*-------------------------------------------------------------------------
 *
 * views.c
 *	  The SQL functions of pg_sweep.
 *
 * Those behind views answer in every state of the server (state.c): what is not
 * known is NULL.  Those that change something raise an error instead.
 *
 * IDENTIFICATION
 *	  extension/sweep/views.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lwlock/lwlock.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "ring/ring.h"
#include "sweep/counts.h"
#include "storage/bufmgr.h"
#include "storage/procarray.h"
#include "sweep/batch.h"
#include "sweep/sweep.h"
#include "utils/backend_status.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "sql.h"

PG_FUNCTION_INFO_V1(pg_sweep_set_strategy);
PG_FUNCTION_INFO_V1(pg_sweep_reset_stats);
PG_FUNCTION_INFO_V1(pg_sweep_get_status);
PG_FUNCTION_INFO_V1(pg_sweep_get_strategies);
PG_FUNCTION_INFO_V1(pg_sweep_get_backends);

static void
put_counters(Row *row, const PgSweepCounters *c)
{
	put_int8(row, c->allocations);
	put_int8(row, c->failed);
	put_int8(row, c->evictions);
	put_int8(row, pgsweep_looked_at(c));
	put_int8(row, c->usage_taken);
	put_int8(row, c->pinned);
	put_int8(row, c->lost_races);
	put_int8(row, c->leases);
	put_int8(row, c->leases_expired);
	put_int8(row, c->buffers_expired);
}

/*
 * pg_sweep_set_strategy(text) returns text
 *
 * Not transactional: what it did stays done if the transaction aborts.
 */
Datum
pg_sweep_set_strategy(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	PgSweepStrategyId before;

	pgsweep_require_ok("pg_sweep_set_strategy");

	for (const struct config_enum_entry *option = pgsweep_strategy_options;
		 option->name; option++)
	{
		/* the same spelling rule as for the parameter */
		if (pg_strcasecmp(name, option->name) == 0)
		{
			before = pgsweep_switch(option->val, PGSWEEP_SET_BY_FUNCTION);
			PG_RETURN_TEXT_P(cstring_to_text(pgsweep_strategies[before]->name));
		}
	}

	{
		StringInfoData names;

		initStringInfo(&names);
		for (const struct config_enum_entry *option = pgsweep_strategy_options;
			 option->name; option++)
			appendStringInfo(&names, "%s%s", names.len > 0 ? ", " : "", option->name);
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unrecognized buffer replacement strategy \"%s\"", name),
				 errhint("Available strategies: %s.", names.data)));
	}
}

/*
 * pg_sweep_reset_stats() returns timestamptz
 */
Datum
pg_sweep_reset_stats(PG_FUNCTION_ARGS)
{
	pgsweep_require_ok("pg_sweep_reset_stats");
	PG_RETURN_TIMESTAMPTZ(pgsweep_reset());
}

static const char *
set_by_name(PgSweepSetBy by)
{
	switch (by)
	{
		case PGSWEEP_SET_BY_START:
			return "start";
		case PGSWEEP_SET_BY_RELOAD:
			return "reload";
		case PGSWEEP_SET_BY_FUNCTION:
			return "function";
	}
	pg_unreachable();
}

/*
 * All of pg_sweep_status but the columns that are known in every state.
 */
static void
put_status(Row *row)
{
	uint64		active;
	uint32		nbackends;
	uint32		batch;
	uint32		batch_configured;
	PgSweepStrategyId configured;
	TimestampTz active_since;
	TimestampTz stats_reset;
	PgSweepSetBy set_by;
	NameData	role;
	char		reason[sizeof(PgSweep->reason)];
	const char *lwlock_policy = NULL;
	const char *lwlock_policy_configured = NULL;
	int			hand;
	uint64		passes;

	SpinLockAcquire(&PgSweep->mutex);
	nbackends = PgSweep->nbackends;
	batch = pg_atomic_read_u32(&PgSweep->batch);
	batch_configured = PgSweep->batch_configured;
	SpinLockRelease(&PgSweep->mutex);

	LWLockAcquire(PgSweep->lock, LW_SHARED);
	active = pgsweep_read_u64(&PgSweep->active);
	configured = PgSweep->configured;
	active_since = PgSweep->active_since;
	stats_reset = PgSweep->stats_reset;
	strlcpy(reason, PgSweep->reason, sizeof(reason));
	set_by = PgSweep->set_by;
	role = PgSweep->set_by_role;
	if (PgSweepLwlock)
	{
		lwlock_policy = pgsweep_lwlock_policies[PgSweepLwlock->default_policy]->name;
		lwlock_policy_configured = pgsweep_lwlock_policies[PgSweepLwlock->configured]->name;
	}
	LWLockRelease(PgSweep->lock);

	pgsweep_strategies[PGSWEEP_ACTIVE_ID(active)]->position(&hand, &passes);

	put_text(row, pgsweep_strategies[PGSWEEP_ACTIVE_ID(active)]->name);
	put_text(row, pgsweep_option_name(configured));
	put_text(row, reason[0] ? reason : NULL);
	put_int8(row, PGSWEEP_ACTIVE_GENERATION(active));
	put(row, TimestampTzGetDatum(active_since));
	put_text(row, set_by_name(set_by));
	if (set_by == PGSWEEP_SET_BY_FUNCTION)
		put(row, DirectFunctionCall1(namein, CStringGetDatum(NameStr(role))));
	else
		put_null(row);
	put(row, Int32GetDatum(batch));
	put(row, Int32GetDatum(batch_configured));
	put(row, Int32GetDatum(NBuffers));
	put(row, Int32GetDatum(nbackends));
	put(row, Int32GetDatum(pgsweep_lease_limit(NBuffers)));
	put(row, Int32GetDatum(hand));
	put_int8(row, passes);
	put(row, Int32GetDatum(PgSweep->num_partitions));
	put(row, Int32GetDatum(pgsweep_partitions));
	put(row, Int32GetDatum(pgsweep_numa_topology.nnodes));
	put_text(row, pgsweep_numa_topology.note[0] ? pgsweep_numa_topology.note : NULL);
	put_text(row, pgsweep_numa_placement_name(PgSweep->placement.effective));
	put_text(row, pgsweep_numa_placement_name(PgSweep->placement.configured));
	put_text(row, PgSweep->placement.note[0] ? PgSweep->placement.note : NULL);
	put_interval(row, PgSweep->placement.usec);
	put_text(row, lwlock_policy);
	put_text(row, lwlock_policy_configured);
	if (pgsweep_has_ring_flush())
		put(row, BoolGetDatum(pgsweep_ring_eager_flush));
	else
		put_null(row);
	put(row, TimestampTzGetDatum(stats_reset));
}

/*
 * Behind view pg_sweep_status; always one row.
 */
Datum
pg_sweep_get_status(PG_FUNCTION_ARGS)
{
	PgSweepState state = pgsweep_state();
	TupleDesc	tupdesc;
	Row			row = {0};

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	put_text(&row, pgsweep_state_name(state));
	put_text(&row, pgsweep_state_note(state));
	if (state == PGSWEEP_STATE_NOT_PATCHED)
		put_null(&row);
	else
		put(&row, Int32GetDatum(sweep_hooks_api));

	if (state == PGSWEEP_STATE_OK)
		put_status(&row);
	while (row.n < tupdesc->natts)
		put_null(&row);

	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  row.values, row.nulls)));
}

/*
 * Behind view pg_sweep_strategies; a row a strategy, none where pg_sweep can
 * do nothing.
 */
Datum
pg_sweep_get_strategies(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	PgSweepCounters totals[PGSWEEP_NUM_STRATEGIES];
	PgSweepStrategyStats stats[PGSWEEP_NUM_STRATEGIES];
	PgSweepStrategyId active;

	InitMaterializedSRF(fcinfo, 0);
	if (pgsweep_state() != PGSWEEP_STATE_OK)
		return (Datum) 0;

	LWLockAcquire(PgSweep->lock, LW_SHARED);
	active = PGSWEEP_ACTIVE_ID(pgsweep_read_u64(&PgSweep->active));
	pgsweep_sum_counters(totals);
	for (int i = 0; i < PGSWEEP_NUM_STRATEGIES; i++)
		pgsweep_strategy_stats(i, totals, &stats[i]);
	LWLockRelease(PgSweep->lock);

	for (int i = 0; i < PGSWEEP_NUM_STRATEGIES; i++)
	{
		PgSweepCounters *c = &stats[i].counters;
		Row			row = {0};

		put_text(&row, pgsweep_strategies[i]->name);
		put(&row, BoolGetDatum(i == active));
		put_interval(&row, stats[i].active_usec);
		put_int8(&row, stats[i].switches);
		put(&row, Int32GetDatum(stats[i].hand));
		put_int8(&row, stats[i].passes);
		if (i == PGSWEEP_STOCK)
		{
			/* core does not count what it looked at for */
			put_int8(&row, c->allocations);
			put_null(&row);
			put_null(&row);
			put_int8(&row, stats[i].looked_at);
			for (int k = 3; k < PGSWEEP_NUM_COUNTERS; k++)
				put_null(&row);
		}
		else
			put_counters(&row, c);
		put_int8(&row, stats[i].shared_atomics);

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, row.values, row.nulls);
	}
	return (Datum) 0;
}

/*
 * What one process has counted since it began or since the last reset.
 * Returns false if its slot is not that process' (any more).
 *
 * base is read before the counters, so that no difference is negative: a
 * reset, which moves base, is kept out by the lock, and a new owner of the slot
 * shows by its pid.
 */
static bool
read_backend(const PgSweepSlot *slot, int pid, PgSweepCounters *sum,
			 uint32 *lease_left, PgSweepStrategyId *last_strategy)
{
	uint32		batch = pg_atomic_read_u32(&PgSweep->batch);
	uint64		lease_active;
	bool		same;

	memset(sum, 0, sizeof(*sum));

	LWLockAcquire(PgSweep->lock, LW_SHARED);
	same = (*(const volatile int *) &slot->pid == pid);
	pg_read_barrier();			/* pairs with pgsweep_attach() */
	for (int s = 0; same && s < PGSWEEP_NUM_STRATEGIES; s++)
	{
		pgsweep_add_counters(sum, &slot->base[s], -1);
		pgsweep_add_counters(sum, &slot->counters[s], 1);
	}

	/* what its owner will drop at the next use is as good as dropped */
	lease_active = slot->lease.active;
	*lease_left = lease_active == pgsweep_read_u64(&PgSweep->active) ?
		Min(slot->lease.left, batch) : 0;

	/* the newer word has the higher generation */
	*last_strategy = PGSWEEP_ACTIVE_ID(Max(lease_active, slot->stock_active));
	LWLockRelease(PgSweep->lock);

	return same && *(const volatile int *) &slot->pid == pid;
}

/*
 * Where a process was at home when it took its last lease.  NULL unless it
 * allocates by "partitioned".
 */
static void
put_home(Row *row, const PgSweepSlot *slot, PgSweepStrategyId last_strategy)
{
	uint32		home = slot->itinerary.home;

	if (last_strategy != PGSWEEP_PARTITIONED || !slot->itinerary.noting)
	{
		put_null(row);
		put_null(row);
		return;
	}
	put(row, Int32GetDatum(pgsweep_numa_topology.node_id[PgSweep->parts[home].node]));
	put(row, Int32GetDatum(home));
}

/*
 * What pg_stat_activity calls a process.
 */
const char *
pgsweep_backend_type(const PgBackendStatus *status)
{
	const char *type = NULL;

	if (status->st_backendType == B_BG_WORKER)
		type = GetBackgroundWorkerTypeByPid(status->st_procpid);
	return type ? type : GetBackendTypeDesc(status->st_backendType);
}

/*
 * Behind view pg_sweep_backends; a row a process that has allocated.
 */
Datum
pg_sweep_get_backends(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	int			num_backends;

	InitMaterializedSRF(fcinfo, 0);
	if (pgsweep_state() != PGSWEEP_STATE_OK)
		return (Datum) 0;

	/* a copy of pg_stat_activity's source, for the type of each process */
	num_backends = pgstat_fetch_stat_numbackends();

	for (int i = 1; i <= num_backends; i++)
	{
		LocalPgBackendStatus *local = pgstat_get_local_beentry_by_index(i);
		ProcNumber	procno = local->proc_number;
		int			pid = local->backendStatus.st_procpid;
		PgSweepCounters sum;
		uint32		lease_left;
		PgSweepStrategyId last_strategy;
		Row			row = {0};

		if (pid == 0 || procno < 0 || (uint32) procno >= PgSweep->num_slots)
			continue;
		if (!read_backend(&PgSweep->slots[procno].slot, pid, &sum, &lease_left,
						  &last_strategy))
			continue;

		put(&row, Int32GetDatum(pid));
		put_text(&row, pgsweep_backend_type(&local->backendStatus));
		put_text(&row, pgsweep_strategies[last_strategy]->name);
		put(&row, Int32GetDatum(lease_left));
		put_home(&row, &PgSweep->slots[procno].slot, last_strategy);
		put_counters(&row, &sum);

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, row.values, row.nulls);
	}
	return (Datum) 0;
}
