/*-------------------------------------------------------------------------
 *
 * extension/numa/affinity.c
 *	  Chooses the node that a process runs on, its PGPROC, and the node of its
 *	  own memory.
 *
 * The PGPROCs of each kind (clients, background workers, ...) are divided
 * equally among the nodes.  Each part is a consecutive range, because only
 * whole pages can be placed.  A new process takes a PGPROC of the node that
 * it runs on, or that it will be bound to.
 *
 * Processes are bound only at their start: client backends, walsenders and
 * background workers, including parallel workers.  Autovacuum and auxiliary
 * processes are left to the kernel: the former has time, and of the latter
 * there is one each.
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
 * PGPROCs to look at for one of the right node.  The bound is needed because
 * this runs under a spinlock that every start and end of a process takes.  A
 * few are enough in lists ordered by pgsweep_numa_spread_procs().
 */
#define PROCS_LOOKED_AT		64

/* By number of the PGPROC; made in the postmaster and inherited */
static uint8 *proc_node = NULL;

/* Where this process is to run */
static uint32 my_node = 0;

/*
 * Order a free list by nodes in turn.
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
 * Is this process of a kind that can be bound to a node?
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
 * Log that a process could not be bound.  Only once, because the next one
 * will fail in the same way.
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
			 errdetail("Processes continue unbound. This is reported once.")));
}

#ifdef __linux__

/*
 * Bind the process to those CPUs of a node that it may use.
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

	/* all were taken away since the server started: stay unbound */
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
