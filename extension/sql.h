/*-------------------------------------------------------------------------
 *
 * views.h
 *	  Filling the rows of the views.
 *
 * extension/sql.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_VIEWS_H
#define PGSWEEP_VIEWS_H

#include "utils/backend_status.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

/*
 * A row being filled from left to right.
 */
typedef struct Row
{
	Datum		values[32];
	bool		nulls[32];
	int			n;
} Row;

static inline void
put(Row *row, Datum value)
{
	Assert(row->n < lengthof(row->values));
	row->nulls[row->n] = false;
	row->values[row->n++] = value;
}

static inline void
put_null(Row *row)
{
	Assert(row->n < lengthof(row->values));
	row->values[row->n] = (Datum) 0;
	row->nulls[row->n++] = true;
}

static inline void
put_text(Row *row, const char *value)
{
	if (value == NULL)
		put_null(row);
	else
		put(row, CStringGetTextDatum(value));
}

static inline void
put_int8(Row *row, uint64 value)
{
	put(row, Int64GetDatum((int64) value));
}

static inline void
put_interval(Row *row, int64 usec)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->time = usec;
	put(row, IntervalPGetDatum(interval));
}

/* views.c */
#pragma GCC visibility push(hidden)
extern const char *pgsweep_backend_type(const PgBackendStatus *status);
#pragma GCC visibility pop

#endif							/* PGSWEEP_VIEWS_H */
