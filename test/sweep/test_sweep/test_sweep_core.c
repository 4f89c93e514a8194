/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/test_sweep_core.c
 *	  Sets core's own clock hand, which would take hours to get anywhere.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "port/atomics.h"
#include "storage/shmem.h"
#include "storage/spin.h"

PG_MODULE_MAGIC_EXT(
					.name = "test_sweep_core",
					.version = "1.0"
);

/* The beginning of core's BufferStrategyControl (freelist.c) */
typedef struct CoreHand
{
	slock_t		lock;
	pg_atomic_uint32 next_victim;
	int			first_free;
	int			last_free;
	uint32		passes;
} CoreHand;

PG_FUNCTION_INFO_V1(test_sweep_set_core_passes);

/*
 * (size of core's struct, complete passes) -> the passes before
 *
 * With bgwriter_lru_maxpages = 0: the background writer does not expect jumps.
 */
Datum
test_sweep_set_core_passes(PG_FUNCTION_ARGS)
{
	bool		found;
	CoreHand   *core = ShmemInitStruct("Buffer Strategy Status", PG_GETARG_INT64(0), &found);
	uint32		before;

	if (!found)
		elog(ERROR, "core's hand is not where it was");

	SpinLockAcquire(&core->lock);
	before = core->passes;
	core->passes = (uint32) PG_GETARG_INT64(1);
	SpinLockRelease(&core->lock);
	PG_RETURN_INT64(before);
}
