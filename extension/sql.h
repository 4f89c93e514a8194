/*-------------------------------------------------------------------------
 *
 * extension/sql.h
 *	  Filling the rows of the views.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_SQL_H
#define PGSWEEP_SQL_H

#include "fmgr.h"
#include "storage/procnumber.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

/*
 * A row being filled from left to right.
 */
typedef struct PgSweepRow
{
	Datum		values[48];
	bool		nulls[48];
	int			n;
} PgSweepRow;

static inline void
put(PgSweepRow *row, Datum value)
{
	Assert(row->n < lengthof(row->values));
	row->nulls[row->n] = false;
	row->values[row->n++] = value;
}

static inline void
put_null(PgSweepRow *row)
{
	Assert(row->n < lengthof(row->values));
	row->values[row->n] = (Datum) 0;
	row->nulls[row->n++] = true;
}

static inline void
put_text(PgSweepRow *row, const char *value)
{
	if (value == NULL)
		put_null(row);
	else
		put(row, CStringGetTextDatum(value));
}

static inline void
put_int8(PgSweepRow *row, uint64 value)
{
	put(row, Int64GetDatum((int64) value));
}

static inline void
put_interval(PgSweepRow *row, int64 usec)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->time = usec;
	put(row, IntervalPGetDatum(interval));
}

/*
 * A process as pg_stat_activity has it.
 */
typedef struct PgSweepBackend
{
	int			pid;
	ProcNumber	procno;			/* 0 .. PgSweep->num_slots - 1 */
	const char *type;
} PgSweepBackend;

/* sql.c */
#pragma GCC visibility push(hidden)
extern void pgsweep_store_row(FunctionCallInfo fcinfo, PgSweepRow *row);
extern bool pgsweep_next_backend(PgSweepBackend *backend, int *position);
#pragma GCC visibility pop

#endif							/* PGSWEEP_SQL_H */
