/*-------------------------------------------------------------------------
 *
 * views_pins.c
 *	  The SQL function about pins.
 *
 * It returns no rows where pg_sweep can do nothing, or the server lacks the
 * patch by which pins can be seen.
 *
 * IDENTIFICATION
 *	  extension/pins/views.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "pg_sweep.h"
#include "pgstat.h"
#include "utils/backend_status.h"
#include "sql.h"

PG_FUNCTION_INFO_V1(pg_sweep_get_pins);

/*
 * Behind view pg_sweep_pins; a row a process that others can see the pins of.
 */
Datum
pg_sweep_get_pins(PG_FUNCTION_ARGS)
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
		int			pid = local->backendStatus.st_procpid;
		PrivateRefCountInfo info;
		Row			row = {0};

		if (pid == 0 || !pgsweep_pins_read(local->proc_number, pid, &info))
			continue;

		put(&row, Int32GetDatum(pid));
		put_text(&row, pgsweep_backend_type(&local->backendStatus));
		put(&row, Int32GetDatum(info.pinned));
		put(&row, Int32GetDatum(info.most_pinned));
		put_int8(&row, info.slots);

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, row.values, row.nulls);
	}
	return (Datum) 0;
}
