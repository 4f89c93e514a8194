/*-------------------------------------------------------------------------
 *
 * extension/pins/views.c
 *	  The SQL function about pins.
 *
 * It returns no rows if pg_sweep is not active, or if the server lacks the
 * patch that makes pins visible.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "feature.h"
#include "fmgr.h"
#include "funcapi.h"
#include "pins/pins.h"
#include "sql.h"

PG_FUNCTION_INFO_V1(pg_sweep_get_pins);

/*
 * Behind view pg_sweep_pins; one row per process whose pins others can see.
 */
Datum
pg_sweep_get_pins(PG_FUNCTION_ARGS)
{
	PgSweepBackend backend;
	int			position = 0;

	InitMaterializedSRF(fcinfo, 0);
	if (pgsweep_state() != PGSWEEP_STATE_OK)
		return (Datum) 0;

	while (pgsweep_next_backend(&backend, &position))
	{
		PrivateRefCountInfo info;
		PgSweepRow	row = {0};

		if (!pgsweep_pins_read(backend.procno, backend.pid, &info))
			continue;

		put(&row, Int32GetDatum(backend.pid));
		put_text(&row, backend.type);
		/* in front and in the table */
		put(&row, Int32GetDatum(info.in_table + (info.in_front != InvalidBuffer)));
		put(&row, Int32GetDatum(info.most_in_table + 1));
		put_int8(&row, info.slots);
		pgsweep_store_row(fcinfo, &row);
	}
	return (Datum) 0;
}
