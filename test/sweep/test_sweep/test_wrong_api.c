/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/test_wrong_api.c
 *	  Makes the server look as if it were built with another hook contract.
 *
 * Preloaded before pg_sweep, it changes the number that pg_sweep compares.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "storage/sweep_hooks.h"

PG_MODULE_MAGIC_EXT(
					.name = "test_wrong_api",
					.version = "1.0"
);

void
_PG_init(void)
{
	sweep_hooks_api = SWEEP_HOOKS_API + 1;
}
