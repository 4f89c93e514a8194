/*-------------------------------------------------------------------------
 *
 * extension/lwlock/views.c
 *	  SQL functions about waiting for LWLocks.
 *
 * Functions behind views return no rows if pg_sweep is not active, or if the
 * server lacks the hooks for waiting.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "feature.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lwlock/lwlock.h"
#include "shared.h"
#include "sql.h"
#include "utils/array.h"
#include "utils/guc.h"

PG_FUNCTION_INFO_V1(pg_sweep_set_lwlock_policy);
PG_FUNCTION_INFO_V1(pg_sweep_get_lwlock_waits);
PG_FUNCTION_INFO_V1(pg_sweep_get_lwlock_policies);

/* Removes the policy of a tranche */
#define POLICY_DEFAULT		"default"

/* Name in wait events of tranches that this process does not know */
#define UNKNOWN_TRANCHE		"extension"

/*
 * Id of a policy, for PgSweepLwlockShared.tranche_policy.
 */
static uint8
find_policy(const char *name, bool for_tranche)
{
	StringInfoData names;

	/* the same spelling rule as for the parameter */
	for (const struct config_enum_entry *option = pgsweep_lwlock_policy_options;
		 option->name; option++)
		if (pg_strcasecmp(name, option->name) == 0)
			return option->val;
	if (for_tranche && pg_strcasecmp(name, POLICY_DEFAULT) == 0)
		return PGSWEEP_LWLOCK_DEFAULT;

	initStringInfo(&names);
	for (const struct config_enum_entry *option = pgsweep_lwlock_policy_options;
		 option->name; option++)
		appendStringInfo(&names, "%s%s", names.len > 0 ? ", " : "", option->name);
	if (for_tranche)
		appendStringInfoString(&names, ", " POLICY_DEFAULT);
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unrecognized LWLock wait policy \"%s\"", name),
			 errhint("Available policies: %s.", names.data)));
}

/*
 * pg_sweep_set_lwlock_policy(policy text, tranche text) returns text
 *
 * Not transactional: a ROLLBACK does not undo it.
 */
Datum
pg_sweep_set_lwlock_policy(PG_FUNCTION_ARGS)
{
	bool		for_tranche = !PG_ARGISNULL(1);
	PgSweepLwlockPolicyId before;
	uint8		policy;

	pgsweep_require_feature(&pgsweep_lwlock_feature, "pg_sweep_set_lwlock_policy");
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();

	policy = find_policy(text_to_cstring(PG_GETARG_TEXT_PP(0)), for_tranche);
	if (!for_tranche)
		before = pgsweep_lwlock_set_default(policy, false);
	else
	{
		char	   *tranche = text_to_cstring(PG_GETARG_TEXT_PP(1));

		if (!pgsweep_lwlock_set_tranche(tranche, policy, &before))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("LWLock tranche \"%s\" does not exist, or this session does not know it",
							tranche),
					 errhint("View pg_sweep_lwlock_policies lists the known tranches.")));
	}
	PG_RETURN_TEXT_P(cstring_to_text(pgsweep_lwlock_policy_name(before)));
}

/*
 * The columns of pg_sweep_status.
 */
void
pgsweep_lwlock_put_status(PgSweepRow *row)
{
	PgSweepLwlockPolicyId policy;
	PgSweepLwlockPolicyId configured;

	if (PgSweepLwlock == NULL)
	{
		put_null(row);
		put_null(row);
		return;
	}

	LWLockAcquire(PgSweep->lock, LW_SHARED);
	policy = PgSweepLwlock->default_policy;
	configured = PgSweepLwlock->configured;
	LWLockRelease(PgSweep->lock);

	put_text(row, pgsweep_lwlock_policy_name(policy));
	put_text(row, pgsweep_lwlock_policy_name(configured));
}

/*
 * The name of a tranche in wait events.
 */
static const char *
shown_name(uint16 tranche)
{
	const char *name = pgsweep_lwlock_tranche_name(tranche);

	return name ? name : UNKNOWN_TRANCHE;
}

static uint16
tranche_of(uint32 key)
{
	return (key - 1) >> 2;
}

static const char *
mode_name(uint32 key)
{
	switch ((LWLockMode) ((key - 1) & 3))
	{
		case LW_EXCLUSIVE:
			return "exclusive";
		case LW_SHARED:
			return "shared";
		case LW_WAIT_UNTIL_FREE:
			return "wait until free";
	}
	pg_unreachable();
}

/* One row of pg_sweep_lwlock_waits; "other" comes last */
typedef struct WaitsRow
{
	const char *tranche;		/* NULL = "other", as are mode and policy */
	const char *mode;
	const char *policy;
	const PgSweepLwlockCounts *counts;
} WaitsRow;

static int
compare_waits(const void *a, const void *b)
{
	const WaitsRow *x = a;
	const WaitsRow *y = b;
	int			order;

	if (x->tranche == NULL || y->tranche == NULL)
		return (x->tranche == NULL) - (y->tranche == NULL);
	order = strcmp(x->tranche, y->tranche);
	if (order == 0)
		order = strcmp(x->mode, y->mode);
	if (order == 0)
		order = strcmp(x->policy, y->policy);
	return order;
}

/*
 * Add counters of another tranche with the same name.
 */
static void
merge_counts(PgSweepLwlockCounts *to, const PgSweepLwlockCounts *from)
{
	to->contended += from->contended;
	to->spun += from->spun;
	to->queued += from->queued;
	to->slept += from->slept;
	to->vain += from->vain;
	to->overtaken += from->overtaken;
	to->granted += from->granted;
	to->wait_ns += from->wait_ns;
	to->longest_ns = Max(to->longest_ns, from->longest_ns);
	for (int i = 0; i < PGSWEEP_LWLOCK_BUCKETS; i++)
		to->histogram[i] += from->histogram[i];
}

static void
put_ms(PgSweepRow *row, uint64 ns)
{
	put(row, Float8GetDatum(ns / 1e6));
}

static void
put_waits(PgSweepRow *row, const WaitsRow *waits, const PgSweepLwlockCounts *c)
{
	Datum		histogram[PGSWEEP_LWLOCK_BUCKETS];

	put_text(row, waits->tranche);
	put_text(row, waits->mode);
	put_text(row, waits->policy);
	put_int8(row, c->contended);
	put_int8(row, c->spun);
	put_int8(row, c->queued);
	put_int8(row, c->slept);
	put_int8(row, c->vain);
	put_int8(row, c->overtaken);
	put_int8(row, c->granted);
	put_ms(row, c->wait_ns);
	put_ms(row, c->longest_ns);
	for (int i = 0; i < PGSWEEP_LWLOCK_BUCKETS; i++)
		histogram[i] = Int64GetDatum((int64) c->histogram[i]);
	put(row, PointerGetDatum(construct_array_builtin(histogram, PGSWEEP_LWLOCK_BUCKETS,
													 INT8OID)));
}

/*
 * Behind view pg_sweep_lwlock_waits: one row per tranche and mode with
 * counts.
 */
Datum
pg_sweep_get_lwlock_waits(PG_FUNCTION_ARGS)
{
	static const PgSweepLwlockCounts zero = {0};
	PgSweepLwlockEntry *totals;
	WaitsRow   *rows;
	int			ntotals;
	int			nrows = 0;

	InitMaterializedSRF(fcinfo, 0);
	if (PgSweepLwlock == NULL)
		return (Datum) 0;

	totals = palloc_array(PgSweepLwlockEntry, PGSWEEP_LWLOCK_BASE);
	rows = palloc_array(WaitsRow, PGSWEEP_LWLOCK_BASE);

	LWLockAcquire(PgSweep->lock, LW_SHARED);
	ntotals = pgsweep_lwlock_sum(totals);
	for (int i = 0; i < ntotals; i++)
	{
		uint32		key = totals[i].key;
		WaitsRow   *row = &rows[nrows];

		if (memcmp(&totals[i].counts, &zero, sizeof(zero)) == 0)
			continue;
		memset(row, 0, sizeof(WaitsRow));
		row->counts = &totals[i].counts;
		if (key != 0)
		{
			row->tranche = shown_name(tranche_of(key));
			row->mode = mode_name(key);
			row->policy = pgsweep_lwlock_policy_name(pgsweep_lwlock_policy_of(tranche_of(key)));
		}
		nrows++;
	}
	LWLockRelease(PgSweep->lock);

	qsort(rows, nrows, sizeof(WaitsRow), compare_waits);
	for (int i = 0; i < nrows;)
	{
		const WaitsRow *first = &rows[i];
		PgSweepLwlockCounts sum = *first->counts;
		PgSweepRow	row = {0};

		for (i++; i < nrows && compare_waits(first, &rows[i]) == 0; i++)
			merge_counts(&sum, rows[i].counts);
		put_waits(&row, first, &sum);
		pgsweep_store_row(fcinfo, &row);
	}
	return (Datum) 0;
}

/* One row of pg_sweep_lwlock_policies */
typedef struct PolicyRow
{
	const char *tranche;
	uint8		policy;
	bool		own;
} PolicyRow;

static int
compare_policies(const void *a, const void *b)
{
	const PolicyRow *x = a;
	const PolicyRow *y = b;
	int			order = strcmp(x->tranche, y->tranche);

	if (order == 0)
		order = x->policy - y->policy;
	if (order == 0)
		order = x->own - y->own;
	return order;
}

static void
store_policy(FunctionCallInfo fcinfo, const char *tranche, uint8 policy, bool own)
{
	PgSweepRow	row = {0};

	put_text(&row, tranche);
	put_text(&row, pgsweep_lwlock_policy_name(policy));
	put(&row, BoolGetDatum(own));
	pgsweep_store_row(fcinfo, &row);
}

/*
 * Behind view pg_sweep_lwlock_policies: one row for the default, one per
 * tranche that this process knows, and one per policy of tranches that it
 * does not know.
 */
Datum
pg_sweep_get_lwlock_policies(PG_FUNCTION_ARGS)
{
	PolicyRow  *rows;
	int			nrows = 0;
	uint8		default_policy;

	InitMaterializedSRF(fcinfo, 0);
	if (PgSweepLwlock == NULL)
		return (Datum) 0;

	rows = palloc_array(PolicyRow, PGSWEEP_LWLOCK_NUM_TRANCHES);

	LWLockAcquire(PgSweep->lock, LW_SHARED);
	default_policy = PgSweepLwlock->default_policy;
	for (int id = 0; id < PGSWEEP_LWLOCK_NUM_TRANCHES; id++)
	{
		PolicyRow  *row = &rows[nrows];

		row->own = PgSweepLwlock->tranche_policy[id] != PGSWEEP_LWLOCK_DEFAULT;
		if (!row->own && pgsweep_lwlock_tranche_name(id) == NULL)
			continue;
		row->tranche = shown_name(id);
		row->policy = pgsweep_lwlock_policy_of(id);
		nrows++;
	}
	LWLockRelease(PgSweep->lock);

	qsort(rows, nrows, sizeof(PolicyRow), compare_policies);
	store_policy(fcinfo, NULL, default_policy, false);
	for (int i = 0; i < nrows; i++)
		if (i == 0 || compare_policies(&rows[i - 1], &rows[i]) != 0)
			store_policy(fcinfo, rows[i].tranche, rows[i].policy, rows[i].own);
	return (Datum) 0;
}
