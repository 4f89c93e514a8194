/*-------------------------------------------------------------------------
 *
 * affinity.c
 *	  On which node a process runs, which PGPROC it takes, and where its own
 *	  memory is.
 *
 * The PGPROCs are divided among the nodes, each of the kinds that core has
 * (clients, background workers, ...) in equal parts, as consecutive ranges, so
 * that pages can be put on nodes.  A new process takes one of the node that it
 * runs on, or that it will be bound to.
 *
 * Processes are bound at their start only, and only those that work for
 * somebody: client backends, walsenders and background workers, parallel
 * workers among them.  Autovacuum, which has time, and auxiliary processes, of
 * which there is one each, stay where the kernel likes them.
 *
 * IDENTIFICATION
 *	  extension/numa/affinity.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef USE_LIBNUMA
#include <numaif.h>
#endif
#ifdef __linux__
#include <sched.h>
#endif

#include "access/twophase.h"
#include "miscadmin.h"
#include "numa/numa.h"
#include "postmaster/autovacuum.h"
#include "replication/walsender.h"
#include "storage/proc.h"
#include "utils/memutils.h"

/*
 * PGPROCs to look at for one of the right node.  As many as may be, and no
 * more, since it is done under a spinlock that every start and end of a process
 * takes: with the lists in the order that pgsweep_numa_spread_procs() makes, a few
 * are enough.
 */
#define PROCS_LOOKED_AT		64

/* Of each PGPROC, by its number; made in the postmaster and inherited */
static uint8 *proc_node = NULL;

/* Where this process is to run */
static uint32 my_node = 0;

/*
 * Order a free list so that consecutive entries are of the nodes in turn.
 */
static void
spread_free_list(dlist_head *list)
{
	dlist_head	of_node[PGSWEEP_NUMA_MAX_NODES];
	bool		more = true;

	for (uint32 node = 0; node < pgsweep_numa_topology.nnodes; node++)
		dlist_init(&of_node[node]);

	while (!dlist_is_empty(list))
	{
		PGPROC	   *proc = dlist_container(PGPROC, links, dlist_pop_head_node(list));

		dlist_push_tail(&of_node[pgsweep_numa_proc_node(GetNumberFromPGProc(proc))],
						&proc->links);
	}

	while (more)
	{
		more = false;
		for (uint32 node = 0; node < pgsweep_numa_topology.nnodes; node++)
			if (!dlist_is_empty(&of_node[node]))
			{
				dlist_push_tail(list, dlist_pop_head_node(&of_node[node]));
				more = true;
			}
	}
}

void
pgsweep_numa_spread_procs(void)
{
	/* in the order of InitProcGlobal() */
	const int	kinds[PGSWEEP_NUMA_PROC_KINDS] = {
		MaxConnections,
		autovacuum_worker_slots + NUM_SPECIAL_WORKER_PROCS,
		max_worker_processes,
		max_wal_senders,
		NUM_AUXILIARY_PROCS,
		max_prepared_xacts
	};
	int			total = MaxBackends + NUM_AUXILIARY_PROCS + max_prepared_xacts;
	int			procno = 0;

	Assert(!IsUnderPostmaster);

	/* again after a crash: the numbers are the same */
	if (proc_node == NULL)
		proc_node = MemoryContextAlloc(TopMemoryContext, total);
	for (int kind = 0; kind < PGSWEEP_NUMA_PROC_KINDS; kind++)
		for (int i = 0; i < kinds[kind]; i++)
			proc_node[procno++] = (uint64) i * pgsweep_numa_topology.nnodes / kinds[kind];
	Assert(procno == total);

	spread_free_list(&ProcGlobal->freeProcs);
	spread_free_list(&ProcGlobal->autovacFreeProcs);
	spread_free_list(&ProcGlobal->bgworkerFreeProcs);
	spread_free_list(&ProcGlobal->walsenderFreeProcs);
}

uint32
pgsweep_numa_proc_node(int procno)
{
	return proc_node[procno];
}

/*
 * Is this a process that is bound to a node, if any is?
 */
static bool
may_bind(void)
{
	return AmRegularBackendProcess() || AmWalSenderProcess() || AmBackgroundWorkerProcess();
}

/*
 * The node that this process is going to run on.  Under ProcStructLock.
 */
static uint32
node_to_run_on(void)
{
	if (pgsweep_numa_affinity == PGSWEEP_NUMA_AFFINITY_SPREAD && may_bind())
	{
		/* some node has a CPU */
		for (uint32 i = 0; i < pgsweep_numa_topology.nnodes; i++)
		{
			uint32		node = PgSweepNuma->next_node++ % pgsweep_numa_topology.nnodes;

			if (pgsweep_numa_topology.node_cpus[node] > 0)
				return node;
		}
	}
	return pgsweep_numa_topology.cpu_node[pgsweep_numa_current_cpu()];
}

/*
 * ProcPlacementRoutine.choose
 */
static PGPROC *
choose_proc(dlist_head *freelist)
{
	PGPROC	   *first = dlist_head_element(PGPROC, links, freelist);
	dlist_iter	iter;
	int			looks = 0;

	if (pgsweep_numa_topology.nnodes == 1)
		return first;

	my_node = node_to_run_on();
	if (PgSweepNuma->placement.effective != PGSWEEP_NUMA_PLACEMENT_PARTITION || proc_node == NULL)
		return first;

	dlist_foreach(iter, freelist)
	{
		PGPROC	   *proc = dlist_container(PGPROC, links, iter.cur);

		if (pgsweep_numa_proc_node(GetNumberFromPGProc(proc)) == my_node)
			return proc;
		if (++looks == PROCS_LOOKED_AT)
			break;
	}
	return first;
}

/*
 * Say that a process could not be bound.  Once: the next one will not fare any
 * better.
 */
static void
report_failure(const char *call)
{
	int			save_errno = errno;
	bool		first = !PgSweepNuma->binding_failed;

	PgSweepNuma->binding_failed = true;
	errno = save_errno;
	ereport(first ? LOG : DEBUG1,
			(errmsg("pg_sweep could not bind a process to NUMA node %d: %s: %m",
					pgsweep_numa_topology.node_id[my_node], call),
			 errdetail("Processes go on without; this is reported once.")));
}

#ifdef __linux__

/*
 * Run on the CPUs of a node, as far as the process may use them.
 */
static void
bind_to_cpus(uint32 node)
{
	union
	{
		cpu_set_t	set;
		char		space[CPU_ALLOC_SIZE(PGSWEEP_NUMA_MAX_CPUS)];
	}			cpus;
	uint32		left = 0;

	if (sched_getaffinity(0, sizeof(cpus), &cpus.set) != 0)
	{
		report_failure("sched_getaffinity");
		return;
	}
	for (uint32 cpu = 0; cpu < PGSWEEP_NUMA_MAX_CPUS; cpu++)
	{
		if (!CPU_ISSET_S(cpu, sizeof(cpus), &cpus.set))
			continue;
		if (cpu < pgsweep_numa_topology.cpu_limit && pgsweep_numa_topology.cpu_node[cpu] == node)
			left++;
		else
			CPU_CLR_S(cpu, sizeof(cpus), &cpus.set);
	}

	/* taken away since the server was started: stay where we are allowed */
	if (left == 0)
		return;
	if (sched_setaffinity(0, sizeof(cpus), &cpus.set) != 0)
		report_failure("sched_setaffinity");
}

#else

static void
bind_to_cpus(uint32 node)
{
}

#endif

/*
 * ProcPlacementRoutine.started
 */
static void
proc_started(void)
{
	if (pgsweep_numa_topology.nnodes == 1 || !may_bind())
		return;

	if (pgsweep_numa_affinity != PGSWEEP_NUMA_AFFINITY_OFF)
		bind_to_cpus(my_node);

#ifdef USE_LIBNUMA
	if (pgsweep_numa_local_memory && !pgsweep_numa_topology.emulated &&
		set_mempolicy(MPOL_LOCAL, NULL, 0) != 0)
		report_failure("set_mempolicy");
#endif
}

static const ProcPlacementRoutine proc_placement_routine = {
	.choose = choose_proc,
	.started = proc_started,
};

bool
pgsweep_numa_install_proc_placement(void)
{
	if (&ProcPlacement == NULL)
		return false;
	if (ProcPlacement == NULL)
		ProcPlacement = &proc_placement_routine;
	return ProcPlacement == &proc_placement_routine;
}
