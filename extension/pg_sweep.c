/*-------------------------------------------------------------------------
 *
 * pg_sweep.c
 *	  Loading: check the server, then wire everything up.
 *
 * Three stages, in three hooks of core: parameters and checks here, the request
 * for shared memory once MaxBackends is known, and its initialization, after
 * which the hooks for buffer replacement, waiting and rings may be called.
 *
 * IDENTIFICATION
 *	  extension/pg_sweep.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "lwlock/lwlock.h"
#include "miscadmin.h"
#include "pg_sweep.h"
#include "ring/ring.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "sweep/sweep.h"

PG_MODULE_MAGIC_EXT(
					.name = "pg_sweep",
					.version = PGSWEEP_VERSION
);

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

static void
pgsweep_shmem_request(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();

	pgsweep_numa_detect_topology(pgsweep_numa_debug_nodes);
	RequestAddinShmemSpace(pgsweep_shmem_size());
	RequestNamedLWLockTranche("pg_sweep", 1);
}

static void
pgsweep_shmem_startup(void)
{
	const BufferReplacementRoutine *installed;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	/* After a crash, core runs this again with our own routine in place */
	installed = GetBufferReplacement();
	if (installed != NULL && installed != &pgsweep_replacement_routine)
		ereport(FATAL,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("pg_sweep cannot be loaded: another library has replaced buffer replacement already")));

	if (pgsweep_has_lwlock_wait() && LWLockWait != NULL &&
		LWLockWait != &pgsweep_lwlock_wait_routine)
		ereport(FATAL,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("pg_sweep cannot be loaded: another library has replaced waiting for LWLocks already")));

	if (pgsweep_has_ring_flush() && RingFlush != NULL &&
		RingFlush != &pgsweep_ring_flush_routine)
		ereport(FATAL,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("pg_sweep cannot be loaded: another library writes out rings already")));

	pgsweep_shmem_init();
	pgsweep_numa_place();
	SetBufferReplacement(&pgsweep_replacement_routine);
	if (pgsweep_has_lwlock_wait())
		LWLockWait = &pgsweep_lwlock_wait_routine;
	if (pgsweep_has_ring_flush())
		RingFlush = &pgsweep_ring_flush_routine;
}

void
_PG_init(void)
{
	PgSweepState state;

	/*
	 * Loaded later than at server start, by CREATE EXTENSION or a call of one
	 * of our functions: the views answer and say why nothing else works.
	 */
	if (!process_shared_preload_libraries_in_progress)
		return;

	/* Before anything is installed, so that nothing is left half done */
	state = pgsweep_state();
	if (state == PGSWEEP_STATE_WRONG_API)
		ereport(FATAL,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pg_sweep was built for hook API number %d, but this server has number %d",
						SWEEP_HOOKS_API, sweep_hooks_api),
				 errhint("Use the pg_sweep that the server's patches came with, or remove it from \"shared_preload_libraries\".")));
	if (state == PGSWEEP_STATE_NOT_PATCHED)
	{
		pgsweep_define_gucs();
		ereport(WARNING,
				(errmsg("pg_sweep does nothing on this server"),
				 errdetail("%s", pgsweep_state_note(state))));
		return;
	}

	pgsweep_define_gucs();

	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = pgsweep_shmem_request;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = pgsweep_shmem_startup;
	if (pgsweep_has_private_refcount())
		pgsweep_pins_init();
}
