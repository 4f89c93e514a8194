/*-------------------------------------------------------------------------
 *
 * test_lwlock.c
 *	  Loading, parameters, shared memory.
 *
 * IDENTIFICATION
 *	  test/lwlock/test_lwlock/test_lwlock.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "fmgr.h"
#include "miscadmin.h"
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

	/* for its name; the locks are in memory of our own */
	RequestNamedLWLockTranche(TRANCHE, 1);
}

static void
test_shmem_startup(void)
{
	bool		found;

	/*
	 * After a crash, core runs this again in the same postmaster.  A library
	 * before us is to find what it has left, not what we have put over it.
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

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;

	DefineCustomBoolVariable("test_lwlock.stop_points",
							 "Wraps the hooks for waiting in stop points.",
							 NULL,
							 &test_stop_points,
							 true,
							 PGC_POSTMASTER, 0,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("test_lwlock.switch_every",
							"Time between two switches of policy and strategy.",
							"0 means that nothing is switched.",
							&test_switch_every,
							0, 0, INT_MAX,
							PGC_POSTMASTER, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("test_lwlock.watch_for",
							"How long a process may sleep on a lock that is free.",
							"0 means that nobody watches.",
							&test_watch_for,
							0, 0, INT_MAX,
							PGC_POSTMASTER, GUC_UNIT_MS,
							NULL, NULL, NULL);
	MarkGUCPrefixReserved("test_lwlock");

	if (test_switch_every > 0)
		test_register_switcher();
	if (test_watch_for > 0)
		test_register_watchdog();

	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = test_shmem_request;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = test_shmem_startup;
}
