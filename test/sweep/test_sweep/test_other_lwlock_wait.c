/*-------------------------------------------------------------------------
 *
 * test_other_lwlock_wait.c
 *	  Loaded before pg_sweep: another library that waits for LWLocks its own way.
 *
 * Nothing of it is ever called: pg_sweep must refuse to start.
 *
 * IDENTIFICATION
 *	  test/sweep/test_sweep/test_other_lwlock_wait.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/sweep_hooks.h"

PG_MODULE_MAGIC_EXT(
					.name = "test_other_lwlock_wait",
					.version = "1.0"
);

static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

static void
take_it(void)
{
	static const LWLockWaitRoutine none = {0};

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();
	LWLockWait = &none;
}

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = take_it;
}
