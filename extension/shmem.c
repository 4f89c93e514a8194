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

#include "lwlock/lwlock.h"
#include "miscadmin.h"
#include "pg_sweep.h"
#include "ring/ring.h"
#include "storage/bufmgr.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "sweep/batch.h"
#include "sweep/partitions.h"
#include "sweep/sweep.h"
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

/*
 * Where the slots' counters of partitions begin, and how far one slot's are from
 * the next one's.
 */
static Size
part_counters_offset(void)
{
	StaticAssertStmt(offsetof(PgSweepShared, slots) % PG_CACHE_LINE_SIZE == 0,
					 "slots do not begin at a cache line");
	StaticAssertStmt(sizeof(PgSweepSlotPadded) % PG_CACHE_LINE_SIZE == 0,
					 "slots do not end at a cache line");

	return add_size(offsetof(PgSweepShared, slots),
					mul_size(num_slots(), sizeof(PgSweepSlotPadded)));
}

static Size
part_counters_stride(void)
{
	return TYPEALIGN(PG_CACHE_LINE_SIZE,
					 pgsweep_count_partitions() * sizeof(PgSweepPartCounters));
}

static Size
main_size(void)
{
	return add_size(part_counters_offset(),
					mul_size(num_slots(), part_counters_stride()));
}

/*
 * All of it.  The topology is known, and so are NBuffers and MaxBackends.
 */
Size
pgsweep_shmem_size(void)
{
	Size		size = main_size();

	if (pgsweep_has_lwlock_wait())
		size = add_size(size, pgsweep_lwlock_shmem_size(num_slots()));
	if (pgsweep_has_private_refcount())
		size = add_size(size, pgsweep_pins_shmem_size(num_slots()));
	if (pgsweep_has_ring_flush())
		size = add_size(size, pgsweep_ring_shmem_size());
	return size;
}

void
pgsweep_shmem_init(void)
{
	PgSweepStrategyId strategy;
	bool		found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	PgSweep = ShmemInitStruct("pg_sweep", main_size(), &found);
	if (!found)
	{
		memset(PgSweep, 0, main_size());
		PgSweep->lock = &(GetNamedLWLockTranche("pg_sweep"))->lock;
		PgSweep->num_slots = num_slots();
		PgSweep->ncpus = pgsweep_numa_topology.ncpus;
		PgSweep->num_partitions = pgsweep_count_partitions();
		PgSweep->part_counters_offset = part_counters_offset();
		PgSweep->part_counters_stride = part_counters_stride();

		SpinLockInit(&PgSweep->mutex);
		PgSweep->batch_configured = pgsweep_batch_size;
		pg_atomic_init_u32(&PgSweep->batch,
						   pgsweep_batch_size_in_force(pgsweep_batch_size, 0));

		PgSweep->configured = pgsweep_strategy;
		PgSweep->set_by = PGSWEEP_SET_BY_START;
		PgSweep->active_since = GetCurrentTimestamp();
		PgSweep->stats_reset = PgSweep->active_since;
		PgSweep->eviction_sample_at = PgSweep->active_since;
		pgsweep_partition_init(&PgSweep->pool, 0, NBuffers);
		pgsweep_init_partitions();
		pgsweep_init_plan();

		strategy = pgsweep_resolve_strategy(pgsweep_strategy, PgSweep->reason,
											sizeof(PgSweep->reason));
		PgSweep->switches[strategy] = 1;
		pg_atomic_init_u64(&PgSweep->active,
						   PGSWEEP_ACTIVE(PGSWEEP_FIRST_GENERATION, strategy));
		if (strategy != PGSWEEP_STOCK)
			StrategyEmptyFreelist();
	}
	if (pgsweep_has_lwlock_wait())
	{
		PgSweepLwlock = ShmemInitStruct("pg_sweep lwlock waits",
										pgsweep_lwlock_shmem_size(num_slots()), &found);
		if (!found)
			pgsweep_lwlock_shmem_init(PgSweepLwlock, num_slots());
	}
	if (pgsweep_has_private_refcount())
		pgsweep_pins_shmem_init(num_slots());
	if (pgsweep_has_ring_flush())
		pgsweep_ring_shmem_init();
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
