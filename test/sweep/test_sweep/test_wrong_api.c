/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/test_wrong_api.c
 *	  Makes the server look as if it were built with another hook contract.
 *
 * Preloaded before pg_sweep, it changes the number that pg_sweep compares.
 * That is a constant, so its page must be made writable first.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/mman.h>
#include <unistd.h>

#include "fmgr.h"
#include "storage/sweep_hooks.h"

PG_MODULE_MAGIC_EXT(
					.name = "test_wrong_api",
					.version = "1.0"
);

void
_PG_init(void)
{
	size_t		page_size = sysconf(_SC_PAGESIZE);
	void	   *page = (void *) TYPEALIGN_DOWN(page_size, (uintptr_t) &sweep_hooks_api);

	if (mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0)
		elog(FATAL, "could not make sweep_hooks_api writable: %m");
	*(volatile int *) &sweep_hooks_api = SWEEP_HOOKS_API + 1;
}
