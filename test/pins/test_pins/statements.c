/*-------------------------------------------------------------------------
 *
 * test/pins/test_pins/statements.c
 *	  Runs SQL statements while many buffers are pinned.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/array.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "test_pins.h"

PG_FUNCTION_INFO_V1(test_pins_with_buffers);

/*
 * Run a statement in a subtransaction.  Returns NULL if it succeeded, else
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
 * Add to the shared pin counts of buffers, or subtract, past the bookkeeping of
 * this process.  Unlike a pin by bufmgr.c, this works without a page, too.
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
 * run_statement() catches the errors of the statement.  Only cancelling the query
 * can get past it, in the commands of the subtransaction itself.
 */
Datum
test_pins_with_buffers(PG_FUNCTION_ARGS)
{
	ArrayType  *array = PG_GETARG_ARRAYTYPE_P(0);
	char	   *sql = text_to_cstring(PG_GETARG_TEXT_PP(1));
	Datum	   *buffers;
	int			n;
	char	   *failure = NULL;

	if (array_contains_nulls(array))
		elog(ERROR, "buffer numbers must not be null");
	deconstruct_array_builtin(array, INT4OID, &buffers, NULL, &n);
	for (int i = 0; i < n; i++)
		if (DatumGetInt32(buffers[i]) < 0 || DatumGetInt32(buffers[i]) >= NBuffers)
			elog(ERROR, "there is no buffer %d", DatumGetInt32(buffers[i]));

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
