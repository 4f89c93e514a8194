/*-------------------------------------------------------------------------
 *
 * extension/sql.c
 *	  View pg_sweep_status, the reset of all counters, and helpers for the SQL
 *	  functions of the features.
 *
 * Functions behind views answer in every state of the server (support.c),
 * with NULL for unknown values.  Functions that change something raise an
 * error instead.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_extension.h"
#include "compat.h"
#include "feature.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "shared.h"
#include "sql.h"
#include "utils/backend_status.h"
#include "utils/fmgroids.h"
#include "utils/regproc.h"
#include "utils/rel.h"

PG_FUNCTION_INFO_V1(pg_sweep_get_status);
PG_FUNCTION_INFO_V1(pg_sweep_reset_stats);

/*
 * The version of the extension's SQL objects in this database; NULL if there
 * are none.
 */
static char *
objects_version(void)
{
	Relation	rel = table_open(ExtensionRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	char	   *version = NULL;

	ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ,
				CStringGetDatum("pg_sweep"));
	scan = systable_beginscan(rel, ExtensionNameIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		bool		isnull;
		Datum		value = heap_getattr(tuple, Anum_pg_extension_extversion,
										 RelationGetDescr(rel), &isnull);

		if (!isnull)
			version = TextDatumGetCString(value);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return version;
}

/*
 * What to do if SQL objects and library are of different versions; NULL if
 * they are not.  Objects are newer after an update in a server that has not
 * been restarted since, and on a standby that has an older library.
 */
static const char *
version_note(void)
{
	const char *objects = objects_version();
	int			order = objects ? strverscmp(objects, PGSWEEP_VERSION) : 0;

	if (order < 0)
		return psprintf("The SQL objects are of version %s, the library is of version %s; use ALTER EXTENSION pg_sweep UPDATE.",
						objects, PGSWEEP_VERSION);
	if (order > 0)
		return psprintf("The SQL objects are of version %s, the library is of version %s; install library version %s and restart the server.",
						objects, PGSWEEP_VERSION, objects);
	return NULL;
}

/*
 * Refuse to make a row of a function that was declared with another number of
 * columns, by the SQL file of another version: values would be taken for
 * others, and pointers read that are none.
 */
static void
check_columns(FunctionCallInfo fcinfo, int natts, int n)
{
	const char *note;

	if (natts == n)
		return;
	note = version_note();
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("function %s is declared with %d columns, but the library has %d",
					format_procedure(fcinfo->flinfo->fn_oid), natts, n),
			 note ? errhint("%s", note) :
			 errhint("The function is not that of this library's SQL file: drop the extension and create it again.")));
}

/*
 * The columns of pg_sweep_status that are known in state "ok" only.
 */
static void
put_status(PgSweepRow *row)
{
	const PgSweepFeature *feature;
	TimestampTz stats_reset;

	for (int i = 0; (feature = pgsweep_features[i]) != NULL; i++)
		if (feature->put_status)
			feature->put_status(row);

	LWLockAcquire(PgSweep->lock, LW_SHARED);
	stats_reset = PgSweep->stats_reset;
	LWLockRelease(PgSweep->lock);
	put(row, TimestampTzGetDatum(stats_reset));
}

/*
 * Behind view pg_sweep_status: always one row.
 */
Datum
pg_sweep_get_status(PG_FUNCTION_ARGS)
{
	PgSweepState state = pgsweep_state();
	const char *note = pgsweep_state_note(state);
	const char *versions = version_note();
	TupleDesc	tupdesc;
	PgSweepRow	row = {0};

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	put_text(&row, pgsweep_state_name(state));
	put_text(&row, note && versions ? psprintf("%s %s", note, versions) :
			 note ? note : versions);
	if (state == PGSWEEP_STATE_NOT_PATCHED)
		put_null(&row);
	else
		put(&row, Int32GetDatum(sweep_hooks_api));

	if (state == PGSWEEP_STATE_OK)
		put_status(&row);
	else
		while (row.n < Min(tupdesc->natts, (int) lengthof(row.nulls)))
			put_null(&row);
	check_columns(fcinfo, tupdesc->natts, row.n);

	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  row.values, row.nulls)));
}

/*
 * pg_sweep_reset_stats() returns timestamptz
 *
 * The counters belong to their processes and go on growing; a reset remembers
 * their values.  Returns the time of the previous reset.
 */
Datum
pg_sweep_reset_stats(PG_FUNCTION_ARGS)
{
	const PgSweepFeature *feature;
	TimestampTz before;

	pgsweep_require_feature(pgsweep_features[0], "pg_sweep_reset_stats");

	LWLockAcquire(PgSweep->lock, LW_EXCLUSIVE);
	before = PgSweep->stats_reset;
	PgSweep->stats_reset = GetCurrentTimestamp();
	for (int i = 0; (feature = pgsweep_features[i]) != NULL; i++)
		if (feature->reset && pgsweep_feature_works(feature))
			feature->reset();
	LWLockRelease(PgSweep->lock);

	PG_RETURN_TIMESTAMPTZ(before);
}

/*
 * Add a row to the result of a function that has called InitMaterializedSRF().
 */
void
pgsweep_store_row(FunctionCallInfo fcinfo, PgSweepRow *row)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	check_columns(fcinfo, rsinfo->setDesc->natts, row->n);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, row->values, row->nulls);
}

/*
 * The next process that may have a slot, with its type as pg_stat_activity has
 * it.  *position is 0 at first.  Returns false if there is no further one.
 */
bool
pgsweep_next_backend(PgSweepBackend *backend, int *position)
{
	/* a copy of pg_stat_activity's source */
	while (++*position <= pgstat_fetch_stat_numbackends())
	{
		LocalPgBackendStatus *local = pgstat_get_local_beentry_by_index(*position);
		PgBackendStatus *status = &local->backendStatus;

		if (status->st_procpid == 0 || local->proc_number < 0 ||
			(uint32) local->proc_number >= PgSweep->num_slots)
			continue;

		backend->pid = status->st_procpid;
		backend->procno = local->proc_number;
		backend->type = NULL;
		if (status->st_backendType == B_BG_WORKER)
			backend->type = GetBackgroundWorkerTypeByPid(status->st_procpid);
		if (backend->type == NULL)
			backend->type = GetBackendTypeDesc(status->st_backendType);
		return true;
	}
	return false;
}
