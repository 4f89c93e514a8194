/*-------------------------------------------------------------------------
 *
 * shmem.c
 *	  pg_sweep's shared memory.
 *
 * IDENTIFICATION
 *	  extension/shmem.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef __linux__
#include <sched.h>
#endif
#include <unistd.h>

#include "miscadmin.h"
#include "pg_sweep.h"
#include "storage/bufmgr.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "sweep/batch.h"
#include "utils/timestamp.h"

PgSweepShared *PgSweep = NULL;

/*
 * A slot for each process that can allocate a buffer.
 */
static uint32
num_slots(void)
{
	return MaxBackends + NUM_AUXILIARY_PROCS;
}

Size
pgsweep_shmem_size(void)
{
	return add_size(offsetof(PgSweepShared, slots),
					mul_size(num_slots(), sizeof(PgSweepSlotPadded)));
}

/*
 * CPUs that this server may run on: those of its affinity mask (cpusets,
 * taskset), else those that are online.  A quota of CPU time, as containers
 * have by default, is not seen.
 */
static uint32
count_cpus(void)
{
	long		online;

#ifdef __linux__
	cpu_set_t	set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		return Max(CPU_COUNT(&set), 1);
	/* more CPUs than the set can hold: go on */
#endif
	online = sysconf(_SC_NPROCESSORS_ONLN);
	return online > 0 ? (uint32) online : 1;
}

void
pgsweep_shmem_init(void)
{
	bool		found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	PgSweep = ShmemInitStruct("pg_sweep", pgsweep_shmem_size(), &found);
	if (!found)
	{
		memset(PgSweep, 0, pgsweep_shmem_size());
		PgSweep->lock = &(GetNamedLWLockTranche("pg_sweep"))->lock;
		PgSweep->num_slots = num_slots();
		PgSweep->ncpus = count_cpus();

		SpinLockInit(&PgSweep->mutex);
		PgSweep->batch_configured = pgsweep_batch_size;
		pg_atomic_init_u32(&PgSweep->batch,
						   pgsweep_batch_size_in_force(pgsweep_batch_size, 0));

		PgSweep->configured = pgsweep_strategy;
		PgSweep->set_by = PGSWEEP_SET_BY_START;
		PgSweep->active_since = GetCurrentTimestamp();
		PgSweep->stats_reset = PgSweep->active_since;
		PgSweep->switches[pgsweep_strategy] = 1;
		pgsweep_partition_init(&PgSweep->pool, 0, NBuffers);

		pg_atomic_init_u64(&PgSweep->active,
						   PGSWEEP_ACTIVE(PGSWEEP_FIRST_GENERATION, pgsweep_strategy));
		if (pgsweep_strategy != PGSWEEP_STOCK)
			StrategyEmptyFreelist();
	}
	LWLockRelease(AddinShmemInitLock);
}

/*
 * The size of a lease for a setting of pg_sweep.batch_size and a number of
 * backends, on this machine and with this pool.
 */
uint32
pgsweep_batch_size_in_force(uint32 configured, uint32 nbackends)
{
	return pgsweep_batch_size_for(pgsweep_batch_wish(configured, PgSweep->ncpus),
								  NBuffers, nbackends);
}
