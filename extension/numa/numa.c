/*-------------------------------------------------------------------------
 *
 * extension/numa/numa.c
 *	  The feature "numa": memory and processes on NUMA nodes.
 *
 * Without the core patch, memory is still placed, but PGPROCs stay where they
 * are, and no process is bound to a node.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "feature.h"
#include "numa/numa.h"
#include "storage/shmem.h"

PgSweepNumaShared *PgSweepNuma = NULL;

static void
numa_prepare(void)
{
	pgsweep_numa_detect_topology(pgsweep_numa_debug_nodes);
	pgsweep_numa_decide_placement();
}

static Size
numa_shmem_size(void)
{
	return sizeof(PgSweepNumaShared);
}

static void
numa_shmem_init(void)
{
	bool		found;

	PgSweepNuma = ShmemInitStruct("pg_sweep numa", sizeof(PgSweepNumaShared), &found);
	if (!found)
	{
		memset(PgSweepNuma, 0, sizeof(PgSweepNumaShared));
		pg_atomic_init_u32(&PgSweepNuma->next_node, 0);
	}
}

const PgSweepFeature pgsweep_numa_feature = {
	.patch = "numa-placement-hooks",
	.symbol = &ProcPlacement,
	.works_without_patch = true,
	.define_gucs = pgsweep_numa_define_gucs,
	.prepare = numa_prepare,
	.shmem_size = numa_shmem_size,
	.shmem_init = numa_shmem_init,
	.install = pgsweep_numa_place,
	.put_status = pgsweep_numa_put_status,
};
