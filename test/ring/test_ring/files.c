/*-------------------------------------------------------------------------
 *
 * test/ring/test_ring/files.c
 *	  Files that cannot be written to.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/resource.h>

#include "storage/smgr.h"

#include "test_ring.h"

PG_FUNCTION_INFO_V1(test_ring_limit_files);
PG_FUNCTION_INFO_V1(test_ring_close_files);

/*
 * The server ignores SIGXFSZ: a write beyond the limit fails with EFBIG, and one
 * that crosses it is short.
 */
Datum
test_ring_limit_files(PG_FUNCTION_ARGS)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) != 0)
		elog(ERROR, "getrlimit: %m");
	if (PG_ARGISNULL(0))
		limit.rlim_cur = limit.rlim_max;
	else if (PG_GETARG_INT64(0) < 0)
		elog(ERROR, "a file cannot have " INT64_FORMAT " bytes", PG_GETARG_INT64(0));
	else
		limit.rlim_cur = PG_GETARG_INT64(0);
	if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
		elog(ERROR, "setrlimit: %m");
	PG_RETURN_VOID();
}

Datum
test_ring_close_files(PG_FUNCTION_ARGS)
{
	smgrreleaseall();
	PG_RETURN_VOID();
}
