/*-------------------------------------------------------------------------
 *
 * extension/sweep/views.c
 *	  SQL functions that switch strategies, and show them and their users.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "feature.h"
#include "fmgr.h"
#include "funcapi.h"
#include "numa/topology.h"
#include "sql.h"
#include "storage/bufmgr.h"
#include "sweep/batch.h"
#include "sweep/counts.h"
#include "sweep/strategy.h"
#include "utils/guc.h"

PG_FUNCTION_INFO_V1(pg_sweep_set_strategy);
PG_FUNCTION_INFO_V1(pg_sweep_get_strategies);
PG_FUNCTION_INFO_V1(pg_sweep_get_backends);

static void
put_counters(PgSweepRow *row, const PgSweepCounters *c)
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
 * Not transactional: a rollback does not undo it.
 */
Datum
pg_sweep_set_strategy(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	PgSweepStrategyId before;

	pgsweep_require_feature(&pgsweep_sweep_feature, "pg_sweep_set_strategy");

	for (const struct config_enum_entry *option = pgsweep_strategy_options;
		 option->name; option++)
	{
		/* the same spelling rule as for the parameter */
		if (pg_strcasecmp(name, option->name) == 0)
		{
			before = pgsweep_switch(option->val, PGSWEEP_SET_BY_FUNCTION);
			PG_RETURN_TEXT_P(cstring_to_text(pgsweep_strategy_name(before)));
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

static void
put_hand(PgSweepRow *row, int hand)
{
	if (hand < 0)
		put_null(row);			/* there are several */
	else
		put(row, Int32GetDatum(hand));
}

/*
 * The columns of pg_sweep_status.
 */
void
pgsweep_put_status(PgSweepRow *row)
{
	uint64		active;
	uint32		nbackends;
	uint32		batch;
	uint32		batch_configured;
	PgSweepStrategyId configured;
	TimestampTz active_since;
	PgSweepSetBy set_by;
	NameData	role;
	char		reason[sizeof(PgSweepPool->reason)];
	int			hand;
	uint64		passes;

	SpinLockAcquire(&PgSweepPool->mutex);
	nbackends = PgSweepPool->nbackends;
	batch = pg_atomic_read_u32(&PgSweepPool->batch);
	batch_configured = PgSweepPool->batch_configured;
	SpinLockRelease(&PgSweepPool->mutex);

	LWLockAcquire(PgSweep->lock, LW_SHARED);
	active = pgsweep_read_u64(&PgSweepPool->active);
	configured = PgSweepPool->configured;
	active_since = PgSweepPool->active_since;
	strlcpy(reason, PgSweepPool->reason, sizeof(reason));
	set_by = PgSweepPool->set_by;
	role = PgSweepPool->set_by_role;
	LWLockRelease(PgSweep->lock);

	pgsweep_strategies[PGSWEEP_ACTIVE_ID(active)]->position(&hand, &passes);

	put_text(row, pgsweep_strategy_name(PGSWEEP_ACTIVE_ID(active)));
	put_text(row, pgsweep_strategy_name(configured));
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
	put_hand(row, hand);
	put_int8(row, passes);
	put(row, Int32GetDatum(PgSweepPool->num_partitions));
	put(row, Int32GetDatum(pgsweep_partitions));
}

/*
 * Behind view pg_sweep_strategies: one row per strategy, none if pg_sweep
 * cannot work on this server.
 */
Datum
pg_sweep_get_strategies(PG_FUNCTION_ARGS)
{
	PgSweepStrategyStats stats[PGSWEEP_NUM_STRATEGIES];
	PgSweepStrategyId active;

	InitMaterializedSRF(fcinfo, 0);
	if (pgsweep_state() != PGSWEEP_STATE_OK)
		return (Datum) 0;

	LWLockAcquire(PgSweep->lock, LW_SHARED);
	active = PGSWEEP_ACTIVE_ID(pgsweep_read_u64(&PgSweepPool->active));
	pgsweep_get_strategy_stats(stats);
	LWLockRelease(PgSweep->lock);

	for (int i = 0; i < PGSWEEP_NUM_STRATEGIES; i++)
	{
		PgSweepCounters *c = &stats[i].counters;
		PgSweepRow	row = {0};

		put_text(&row, pgsweep_strategy_name(i));
		put(&row, BoolGetDatum(i == active));
		put_interval(&row, stats[i].active_usec);
		put_int8(&row, stats[i].switches);
		put_hand(&row, stats[i].hand);
		put_int8(&row, stats[i].passes);
		if (i == PGSWEEP_STOCK)
		{
			/* core does not count the results of its looks */
			put_int8(&row, c->allocations);
			put_null(&row);
			put_null(&row);
			put_int8(&row, stats[i].looked_at);
			for (int k = 3; k < PGSWEEP_NUM_COUNTERS; k++)
				put_null(&row);
		}
		else
			put_counters(&row, c);
		pgsweep_store_row(fcinfo, &row);
	}
	return (Datum) 0;
}

/*
 * The counters of one process since it started or since the last reset.
 * Returns false if the slot does not belong to it (any more).
 *
 * base is read before the counters, so no difference is negative: the lock
 * keeps out a reset, which moves base, and the pid shows a new owner of the
 * slot.
 */
static bool
read_backend(const PgSweepBackend *backend, PgSweepCounters *sum,
			 uint32 *lease_left, uint64 *lease_active)
{
	const PgSweepSlot *slot = &PgSweepPool->slots[backend->procno].slot;
	const volatile int *owner = &PgSweep->owner[backend->procno];
	uint32		batch = pg_atomic_read_u32(&PgSweepPool->batch);
	bool		same;

	memset(sum, 0, sizeof(*sum));

	LWLockAcquire(PgSweep->lock, LW_SHARED);
	same = (*owner == backend->pid);
	pg_read_barrier();			/* pairs with pgsweep_take_slot() */
	pgsweep_add_counters(sum, &slot->base, -1);
	for (int s = 0; s < PGSWEEP_NUM_STRATEGIES; s++)
		pgsweep_add_counters(sum, &slot->counters[s], 1);

	/* count what its owner will drop at the next use as dropped */
	*lease_left = slot->lease.active == pgsweep_read_u64(&PgSweepPool->active) ?
		Min(slot->lease.left, batch) : 0;

	/* under "clock2q", a process may have had a lease of slots only */
	*lease_active = Max(slot->lease.active, slot->c2q.active);
	LWLockRelease(PgSweep->lock);

	return same && *owner == backend->pid;
}

/*
 * The home of a process at its last lease.  NULL unless that was of a
 * partition.
 */
static void
put_home(PgSweepRow *row, const PgSweepSlot *slot, uint64 lease_active)
{
	uint32		home = slot->itinerary.home;

	if (!pgsweep_has_partitions(PGSWEEP_ACTIVE_ID(lease_active)))
	{
		put_null(row);
		put_null(row);
		return;
	}
	put(row, Int32GetDatum(pgsweep_numa_topology.node_id[PgSweepPool->parts[home].node]));
	put(row, Int32GetDatum(home));
}

/*
 * Behind view pg_sweep_backends: one row per process that has had a lease.
 */
Datum
pg_sweep_get_backends(PG_FUNCTION_ARGS)
{
	PgSweepBackend backend;
	int			position = 0;

	InitMaterializedSRF(fcinfo, 0);
	if (pgsweep_state() != PGSWEEP_STATE_OK)
		return (Datum) 0;

	while (pgsweep_next_backend(&backend, &position))
	{
		PgSweepCounters sum;
		uint32		lease_left;
		uint64		lease_active;
		PgSweepRow	row = {0};

		/* no lease so far: it has just taken the slot */
		if (!read_backend(&backend, &sum, &lease_left, &lease_active) || lease_active == 0)
			continue;

		put(&row, Int32GetDatum(backend.pid));
		put_text(&row, backend.type);
		put_text(&row, pgsweep_strategy_name(PGSWEEP_ACTIVE_ID(lease_active)));
		put(&row, Int32GetDatum(lease_left));
		put_home(&row, &PgSweepPool->slots[backend.procno].slot, lease_active);
		put_counters(&row, &sum);
		pgsweep_store_row(fcinfo, &row);
	}
	return (Datum) 0;
}
