/*-------------------------------------------------------------------------
 *
 * extension/sweep/shmem.c
 *	  Creates the shared memory of buffer replacement.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "numa/pool.h"
#include "numa/topology.h"
#include "storage/bufmgr.h"
#include "storage/shmem.h"
#include "sweep/partitions.h"
#include "sweep/probation.h"
#include "utils/timestamp.h"

PgSweepPoolShared *PgSweepPool = NULL;

/*
 * Offset of the slots' counters of partitions, and the distance from one
 * slot's to the next one's.
 */
static Size
part_counters_offset(void)
{
	StaticAssertStmt(offsetof(PgSweepPoolShared, slots) % PG_CACHE_LINE_SIZE == 0,
					 "slots do not begin at a cache line");
	StaticAssertStmt(PGSWEEP_MAX_PARTITIONS <= PGSWEEP_NUMA_MAX_PARTS,
					 "numa does not take this many parts");
	StaticAssertStmt(sizeof(PgSweepSlotPadded) % PG_CACHE_LINE_SIZE == 0,
					 "slots do not end at a cache line");

	return add_size(offsetof(PgSweepPoolShared, slots),
					mul_size(pgsweep_num_slots(), sizeof(PgSweepSlotPadded)));
}

static Size
part_counters_stride(void)
{
	return TYPEALIGN(PG_CACHE_LINE_SIZE,
					 pgsweep_count_partitions() * sizeof(PgSweepPartCounters));
}

static Size
own_size(void)
{
	return add_size(part_counters_offset(),
					mul_size(pgsweep_num_slots(), part_counters_stride()));
}

static Size
clock2q_size(void)
{
	Size		slots = mul_size(NBuffers, sizeof(pg_atomic_uint32));
	Size		sets = mul_size(pgsweep_c2q_num_sets(NBuffers), sizeof(PgSweepC2qSet));

	/* slots and places */
	return add_size(mul_size(CACHELINEALIGN(slots), 2), sets);
}

/*
 * The topology is known, and so are NBuffers and MaxBackends.
 */
Size
pgsweep_pool_size(void)
{
	return add_size(own_size(), clock2q_size());
}

/*
 * The arrays of "clock2q".  They are always there: any strategy can be made
 * active.  In pg_shmem_allocations, they have a name of their own.
 */
static void
init_clock2q(void)
{
	Size		slots = CACHELINEALIGN(mul_size(NBuffers, sizeof(pg_atomic_uint32)));
	bool		found;
	char	   *memory = ShmemInitStruct("pg_sweep clock2q", clock2q_size(), &found);
	PgSweepProbation *whole = &PgSweepPool->whole_probation;

	pgsweep_c2q_init(&whole->c2q, NBuffers, (pg_atomic_uint32 *) memory,
					 (pg_atomic_uint32 *) (memory + slots),
					 (PgSweepC2qSet *) (memory + 2 * slots));
	pg_atomic_init_u64(&PgSweepPool->first_laps, PG_UINT64_MAX >> (64 - PgSweepPool->num_partitions));
	whole->part = &PgSweepPool->whole;
	pgsweep_first_lap_init(whole);
	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
	{
		PgSweepProbation *p = &PgSweepPool->probation[i];

		p->part = &PgSweepPool->parts[i];
		pgsweep_c2q_init_partition(&p->c2q, &whole->c2q, p->part->first_buffer, p->part->num_buffers);
		pgsweep_first_lap_init(p);
	}
	pg_atomic_init_u32(&PgSweepPool->c2q_batch, pgsweep_c2q_batch(&whole->c2q, 0));
}

static void
init_pool(void)
{
	PgSweepStrategyId strategy;

	memset(PgSweepPool, 0, own_size());
	PgSweepPool->ncpus = pgsweep_numa_topology.ncpus;
	PgSweepPool->num_partitions = pgsweep_count_partitions();
	PgSweepPool->part_counters_offset = part_counters_offset();
	PgSweepPool->part_counters_stride = part_counters_stride();

	SpinLockInit(&PgSweepPool->mutex);
	PgSweepPool->batch_configured = pgsweep_batch_size;
	pg_atomic_init_u32(&PgSweepPool->batch,
					   pgsweep_batch_size_in_force(pgsweep_batch_size, 0));

	PgSweepPool->configured = pgsweep_strategy;
	PgSweepPool->set_by = PGSWEEP_SET_BY_START;
	PgSweepPool->active_since = GetCurrentTimestamp();
	pg_atomic_init_u64(&PgSweepPool->core_allocations, 0);
	pgsweep_partition_init(&PgSweepPool->whole, 0, NBuffers);
	pgsweep_init_partitions();
	pgsweep_init_laps();
	init_clock2q();

	strategy = pgsweep_resolve_strategy(pgsweep_strategy, PgSweepPool->reason,
										sizeof(PgSweepPool->reason));
	PgSweepPool->switches[strategy] = 1;
	pg_atomic_init_u64(&PgSweepPool->active,
					   PGSWEEP_ACTIVE(PGSWEEP_FIRST_GENERATION, strategy));
	if (strategy != PGSWEEP_STOCK)
	{
		pgsweep_activate(strategy);
		StrategyEmptyFreelist();
	}
}

static bool
parts_in_use(void)
{
	return pgsweep_has_partitions(PGSWEEP_ACTIVE_ID(pgsweep_read_u64(&PgSweepPool->active)));
}

static void
tell_parts(void)
{
	PgSweepNumaPart parts[PGSWEEP_MAX_PARTITIONS];

	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
	{
		parts[i].first_buffer = PgSweepPool->parts[i].first_buffer;
		parts[i].num_buffers = PgSweepPool->parts[i].num_buffers;
		parts[i].node = PgSweepPool->parts[i].node;
	}
	pgsweep_numa_set_parts(parts, PgSweepPool->num_partitions, parts_in_use);
	pgsweep_numa_add_slots(PgSweepPool->slots, sizeof(PgSweepSlotPadded), pgsweep_num_slots());
	pgsweep_numa_add_slots((char *) PgSweepPool + PgSweepPool->part_counters_offset,
						   PgSweepPool->part_counters_stride, pgsweep_num_slots());
}

void
pgsweep_pool_init(void)
{
	bool		found;

	PgSweepPool = ShmemInitStruct("pg_sweep", own_size(), &found);
	if (!found)
		init_pool();
	tell_parts();
}
