/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/property.h
 *	  Common parts of the property tests: the code under test by its name,
 *	  random cases, and results as rows.
 *
 * Each test has a table of structs whose first member is a name: pg_sweep's
 * code and its mutants.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PROPERTY_H
#define PROPERTY_H

#include "common/pg_prng.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"

/* The first property that does not hold, for tests that stop there; "" if none */
static inline char *
violation_text(void)
{
	static char text[256];

	return text;
}

static inline bool violated(const char *fmt,...) pg_attribute_printf(1, 2);

/* Always false, for return violated(...) */
static inline bool
violated(const char *fmt,...)
{
	va_list		args;

	va_start(args, fmt);
	vsnprintf(violation_text(), 256, fmt, args);
	va_end(args);
	return false;
}

/* The entry of a table of codes that argument arg of an SQL function names */
#define FIND_CODE(codes, arg) \
	(&(codes)[code_number(codes, sizeof((codes)[0]), lengthof(codes), \
						  text_to_cstring(PG_GETARG_TEXT_PP(arg)))])

static inline const char *
code_name(const void *codes, Size size, int i)
{
	return *(const char *const *) ((const char *) codes + i * size);
}

static inline int
code_number(const void *codes, Size size, int ncodes, const char *name)
{
	for (int i = 0; i < ncodes; i++)
		if (strcmp(code_name(codes, size, i), name) == 0)
			return i;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("there is no code \"%s\" to test", name)));
}

/* All names, the real code first */
static inline Datum
code_names(FunctionCallInfo fcinfo, const void *codes, Size size, int ncodes)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	for (int i = 0; i < ncodes; i++)
	{
		Datum		value = CStringGetTextDatum(code_name(codes, size, i));
		bool		null = false;

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, &value, &null);
	}
	return (Datum) 0;
}

/* A row of n values, of which the first may be null, and then counts */
static inline Datum
result_row(FunctionCallInfo fcinfo, const Datum *first, int n, bool null,
		   const void *counts, Size counts_size)
{
	Datum		values[32];
	bool		nulls[32] = {null};
	int			ncounts = counts_size / sizeof(int64);
	TupleDesc	tupdesc;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (tupdesc->natts != n + ncounts || n + ncounts > lengthof(values))
		elog(ERROR, "the SQL function does not fit the library");
	for (int i = 0; i < n; i++)
		values[i] = first[i];
	for (int i = 0; i < ncounts; i++)
		values[n + i] = Int64GetDatum(((const int64 *) counts)[i]);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc), values, nulls));
}

/* The same with the first violation, NULL if there was none */
static inline Datum
violation_row(FunctionCallInfo fcinfo, const char *violation,
			  const void *counts, Size counts_size)
{
	Datum		value = violation ? CStringGetTextDatum(violation) : (Datum) 0;

	return result_row(fcinfo, &value, 1, violation == NULL, counts, counts_size);
}

/* What makes random cases; run_cases() seeds it */
static pg_prng_state prng;

static inline uint32
random_in(uint32 low, uint32 high)
{
	return (uint32) pg_prng_uint64_range(&prng, low, high);
}

/*
 * An SQL function (seed, number of cases, code), given that code's entry.
 * check_case makes a random case and returns false if a property does not hold.
 * The first of the counts is that of cases.
 */
static inline Datum
run_cases(FunctionCallInfo fcinfo, bool (*check_case) (const void *code),
		  const void *code, int64 *counts, Size counts_size)
{
	bool		good = true;

	pg_prng_seed(&prng, PG_GETARG_INT64(0));
	memset(counts, 0, counts_size);
	for (int32 i = PG_GETARG_INT32(1); i > 0 && good; i--)
	{
		CHECK_FOR_INTERRUPTS();
		counts[0]++;
		good = check_case(code);
	}
	return violation_row(fcinfo, good ? NULL : violation_text(), counts, counts_size);
}

#endif							/* PROPERTY_H */
