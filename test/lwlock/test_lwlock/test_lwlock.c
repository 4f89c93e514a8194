/*-------------------------------------------------------------------------
 *
 * test/lwlock/test_lwlock/test_lwlock.c
 *	  Loading, parameters, shared memory, background workers.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/guc.h"

#include "test_lwlock.h"

PG_MODULE_MAGIC_EXT(
					.name = "test_lwlock",
					.version = "1.0"
);

#define TRANCHE		"test_lwlock"

TestShared *test_shared = NULL;

bool		test_stop_points = true;
int			test_switch_every = 0;
int			test_watch_for = 0;

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

void
test_require_shared(void)
{
	if (test_shared == NULL)
		elog(ERROR, "test_lwlock must be loaded via \"shared_preload_libraries\"");
}

int
test_find_lock(int32 number)
{
	test_require_shared();
	if (number < 0 || number >= TEST_NUM_LOCKS)
		elog(ERROR, "locks are 0 to %d", TEST_NUM_LOCKS - 1);
	return number;
}

static uint32
num_slots(void)
{
	return MaxBackends + NUM_AUXILIARY_PROCS;
}

static Size
shared_size(void)
{
	return add_size(offsetof(TestShared, slots), mul_size(num_slots(), sizeof(TestSlot)));
}

static void
test_shmem_request(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();

	RequestAddinShmemSpace(shared_size());

	/* for its name; the locks are in our own memory */
	RequestNamedLWLockTranche(TRANCHE, 1);
}

static void
test_shmem_startup(void)
{
	bool		found;

	/*
	 * After a crash, core runs this again in the same postmaster.  A library
	 * loaded before must find what it has left, not our wrapper.
	 */
	test_unwrap_routine();
	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	test_shared = ShmemInitStruct(TRANCHE, shared_size(), &found);
	if (!found)
	{
		int			tranche = GetNamedLWLockTranche(TRANCHE)->lock.tranche;

		memset(test_shared, 0, shared_size());
		for (int i = 0; i < TEST_NUM_LOCKS; i++)
		{
			LWLockInitialize(&test_shared->locks[i].lock, tranche);
			pg_atomic_init_u64(&test_shared->vars[i], 0);
		}
		test_shared->num_slots = num_slots();
	}
	LWLockRelease(AddinShmemInitLock);

	if (test_stop_points || test_watch_for > 0)
		test_wrap_routine();
}

static void
register_worker(const char *name, int flags, BgWorkerStartTime start_time)
{
	BackgroundWorker worker = {
		.bgw_flags = BGWORKER_SHMEM_ACCESS | flags,
		.bgw_start_time = start_time,
		.bgw_restart_time = 1,
		.bgw_library_name = "test_lwlock",
	};

	snprintf(worker.bgw_name, BGW_MAXLEN, "test_lwlock %s", name);
	snprintf(worker.bgw_type, BGW_MAXLEN, "test_lwlock %s", name);
	snprintf(worker.bgw_function_name, BGW_MAXLEN, "test_lwlock_%s_main", name);
	RegisterBackgroundWorker(&worker);
}

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;

	DefineCustomBoolVariable("test_lwlock.stop_points",
							 "Puts stop points around the hooks for waiting.",
							 NULL,
							 &test_stop_points,
							 true,
							 PGC_POSTMASTER, 0,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("test_lwlock.switch_every",
							"Sets the time between two switches of policy and strategy.",
							"0 means that nothing is switched.",
							&test_switch_every,
							0, 0, INT_MAX,
							PGC_POSTMASTER, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("test_lwlock.watch_for",
							"Sets how long a process may sleep on a lock that is free.",
							"0 means that no process watches.",
							&test_watch_for,
							0, 0, INT_MAX,
							PGC_POSTMASTER, GUC_UNIT_MS,
							NULL, NULL, NULL);
	MarkGUCPrefixReserved("test_lwlock");

	if (test_switch_every > 0)
		register_worker("switcher", BGWORKER_BACKEND_DATABASE_CONNECTION,
						BgWorkerStart_ConsistentState);
	if (test_watch_for > 0)
		register_worker("watchdog", 0, BgWorkerStart_PostmasterStart);

	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = test_shmem_request;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = test_shmem_startup;
}
