/*-------------------------------------------------------------------------
 *
 * extension/sweep/auto.c
 *	  Strategy "auto": chooses a strategy for this machine.
 *
 * Decides each time that "auto" is set: at start, by a reload that changes
 * pg_sweep.strategy, and by pg_sweep_set_strategy('auto').
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "numa/topology.h"
#include "sweep/sweep.h"

/*
 * One hand in leases is enough for this many CPUs of one node; see batch.h
 * for the arithmetic.  With more, even one node has several groups of cores
 * that share a cache, and partitions keep a hand within a group.  Not
 * measured: no such machine was available.
 */
#define PGSWEEP_AUTO_ONE_HAND_CPUS	64

/*
 * The strategy for a wish.  Sets reason to why "auto" chose it, to "" for any
 * other wish.
 */
PgSweepStrategyId
pgsweep_resolve_strategy(PgSweepStrategyId wish, char *reason, Size size)
{
	uint32		nnodes = pgsweep_numa_topology.nnodes;
	uint32		ncpus = PgSweepPool->ncpus;

	reason[0] = '\0';
	if (wish != PGSWEEP_AUTO)
		return wish;

	if (PgSweepPool->num_partitions == 1)
	{
		snprintf(reason, size, "batched: there is only one partition");
		return PGSWEEP_BATCHED;
	}
	if (nnodes > 1)
	{
		snprintf(reason, size, "partitioned: %u NUMA nodes%s", nnodes,
				 pgsweep_numa_topology.emulated ? " (emulated)" : "");
		return PGSWEEP_PARTITIONED;
	}
	if (ncpus > PGSWEEP_AUTO_ONE_HAND_CPUS)
	{
		snprintf(reason, size, "partitioned: one NUMA node, but %u CPUs (more than %d)",
				 ncpus, PGSWEEP_AUTO_ONE_HAND_CPUS);
		return PGSWEEP_PARTITIONED;
	}
	snprintf(reason, size, "batched: one NUMA node, and %u CPUs (no more than %d)",
			 ncpus, PGSWEEP_AUTO_ONE_HAND_CPUS);
	return PGSWEEP_BATCHED;
}
