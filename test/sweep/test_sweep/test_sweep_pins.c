/*-------------------------------------------------------------------------
 *
 * test_sweep_pins.c
 *	  Holds pins on many buffers while something else is tried.
 *
 * IDENTIFICATION
 *	  test/sweep/test_sweep/test_sweep_pins.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"

PG_MODULE_MAGIC_EXT(
					.name = "test_sweep_pins",
					.version = "1.0"
);

PG_FUNCTION_INFO_V1(test_sweep_hold_pins);
PG_FUNCTION_INFO_V1(test_sweep_hold_buffers);

/*
 * Run a statement in a subtransaction.  Returns NULL if it went well, else
 * "SQLSTATE: message" of its error.
 */
static char *
run_statement(const char *sql)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	char	   *volatile failure = NULL;

	BeginInternalSubTransaction(NULL);
	PG_TRY();
	{
		int			result;

		SPI_connect();
		result = SPI_execute(sql, false, 0);
		if (result < 0)
			elog(ERROR, "SPI_execute: %s", SPI_result_code_string(result));
		SPI_finish();
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		failure = psprintf("%s: %s", unpack_sql_state(error->sqlerrcode), error->message);
	}
	PG_END_TRY();

	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return failure;
}

/*
 * test_sweep_hold_pins(rel, blocks, sql): run a statement while the first
 * blocks of a relation are pinned.
 *
 * The pins belong to the caller's resource owner: if a page cannot even be
 * read, its error is the caller's and abort lets them go.
 */
Datum
test_sweep_hold_pins(PG_FUNCTION_ARGS)
{
	int32		blocks = PG_GETARG_INT32(1);
	char	   *sql = text_to_cstring(PG_GETARG_TEXT_PP(2));
	Relation	rel = relation_open(PG_GETARG_OID(0), AccessShareLock);
	Buffer	   *buffers;
	char	   *failure;

	if (blocks < 0 || (BlockNumber) blocks > RelationGetNumberOfBlocks(rel))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"%s\" has %u blocks, not %d", RelationGetRelationName(rel),
						RelationGetNumberOfBlocks(rel), blocks)));

	buffers = palloc_array(Buffer, Max(blocks, 1));
	for (int i = 0; i < blocks; i++)
		buffers[i] = ReadBuffer(rel, i);

	failure = run_statement(sql);

	for (int i = 0; i < blocks; i++)
		ReleaseBuffer(buffers[i]);
	relation_close(rel, AccessShareLock);

	if (failure == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(failure));
}

/*
 * Add to the shared pin count of a buffer, past this process' own bookkeeping.
 * Unlike a pin by bufmgr.c, that works for a buffer without a page, too.
 */
static void
add_pins(Datum *buffers, int n, bool add)
{
	for (int i = 0; i < n; i++)
	{
		BufferDesc *buf = GetBufferDescriptor(DatumGetInt32(buffers[i]));
		uint32		state = LockBufHdr(buf);

		UnlockBufHdr(buf, add ? state + BUF_REFCOUNT_ONE : state - BUF_REFCOUNT_ONE);
	}
}

/*
 * test_sweep_hold_buffers(buffers, sql): run a statement while these buffers
 * are pinned.
 *
 * run_statement() catches the statement's errors; only cancelling the query can
 * get past it, in the subtransaction's own commands.
 */
Datum
test_sweep_hold_buffers(PG_FUNCTION_ARGS)
{
	ArrayType  *array = PG_GETARG_ARRAYTYPE_P(0);
	char	   *sql = text_to_cstring(PG_GETARG_TEXT_PP(1));
	Datum	   *buffers;
	int			n;
	char	   *failure = NULL;

	if (array_contains_nulls(array))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("buffer numbers must not be null")));
	deconstruct_array_builtin(array, INT4OID, &buffers, NULL, &n);
	for (int i = 0; i < n; i++)
		if (DatumGetInt32(buffers[i]) < 0 || DatumGetInt32(buffers[i]) >= NBuffers)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("there is no buffer %d", DatumGetInt32(buffers[i]))));

	add_pins(buffers, n, true);
	PG_TRY();
	{
		failure = run_statement(sql);
	}
	PG_FINALLY();
	{
		add_pins(buffers, n, false);
	}
	PG_END_TRY();

	if (failure == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(failure));
}
