/*-------------------------------------------------------------------------
 *
 * extension/numa/affinity.c
 *	  Chooses the node that a process runs on, its PGPROC, and the node of its
 *	  own memory.
 *
 * The PGPROCs of each kind (clients, background workers, ...) are divided
 * equally among the nodes that had usable CPUs at start: a node of memory only
 * (CXL, HBM) is far from each process.  Each part is a consecutive range,
 * because only whole pages can be placed.  Each part of a free list is a list
 * of its own.  A new process takes a PGPROC of the node that it runs on, or
 * that it will be bound to; if there is none, one of the nearest node that has
 * one.  So does a process on a node whose CPUs became usable later.
 *
 * Processes are bound only at their start: client backends, walsenders,
 * background workers, parallel workers included, and I/O workers, which fill
 * shared buffers.  Autovacuum and other auxiliary processes are left to the
 * kernel: the former has time, and of the latter there is one each.
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

/* The node that this process is to run on; negative: not decided yet */
static int	my_node = -1;

/*
 * The PGPROCs of each kind, in the order of InitProcGlobal(), and core's free
 * list of them.  The last two kinds have none.
 */
static int
procs_of_kind(int kind, dlist_head **freelist)
{
	switch (kind)
	{
		case 0:
			*freelist = &ProcGlobal->freeProcs;
			return MaxConnections;
		case 1:
			*freelist = &ProcGlobal->autovacFreeProcs;
			return autovacuum_worker_slots + NUM_SPECIAL_WORKER_PROCS;
		case 2:
			*freelist = &ProcGlobal->bgworkerFreeProcs;
			return max_worker_processes;
		case 3:
			*freelist = &ProcGlobal->walsenderFreeProcs;
			return max_wal_senders;
		case 4:
			*freelist = NULL;
			return NUM_AUXILIARY_PROCS;
		default:
			Assert(kind == PGSWEEP_NUMA_PROC_KINDS - 1);
			*freelist = NULL;
			return max_prepared_xacts;
	}
}

uint32
pgsweep_numa_proc_node(int procno)
{
	for (int kind = 0; kind < PGSWEEP_NUMA_PROC_KINDS; kind++)
	{
		dlist_head *freelist;
		int			n = procs_of_kind(kind, &freelist);

		if (procno < n)
			return pgsweep_numa_topology.cpu_nodes[(uint64) procno *
												   pgsweep_numa_topology.ncpu_nodes / n];
		procno -= n;
	}
	pg_unreachable();
}

void
pgsweep_numa_divide_procs(void)
{
	Assert(!IsUnderPostmaster);

	for (int kind = 0; kind < PGSWEEP_NUMA_PROC_LISTS; kind++)
	{
		dlist_head *parts = PgSweepNuma->free_procs[kind];
		dlist_head *freelist;

		(void) procs_of_kind(kind, &freelist);
		for (uint32 i = 0; i < pgsweep_numa_topology.ncpu_nodes; i++)
			dlist_init(&parts[pgsweep_numa_topology.cpu_nodes[i]]);
		while (!dlist_is_empty(freelist))
		{
			PGPROC	   *proc = dlist_container(PGPROC, links, dlist_pop_head_node(freelist));

			proc->procgloballist = &parts[pgsweep_numa_proc_node(GetNumberFromPGProc(proc))];
			dlist_push_tail(proc->procgloballist, &proc->links);
		}
	}
	PgSweepNuma->procs_divided = true;
}

/*
 * Is this process of a kind that can be bound to a node?
 */
static bool
may_bind(void)
{
	return AmRegularBackendProcess() || AmWalSenderProcess() ||
		AmBackgroundWorkerProcess() || AmIoWorkerProcess();
}

/*
 * The node that this process is going to run on.
 */
static uint32
node_to_run_on(void)
{
	if (pgsweep_numa_affinity == PGSWEEP_NUMA_AFFINITY_SPREAD && may_bind())
		return pgsweep_numa_topology.cpu_nodes[pg_atomic_fetch_add_u32(&PgSweepNuma->next_node, 1) %
											   pgsweep_numa_topology.ncpu_nodes];
	return pgsweep_numa_current_node();
}

/*
 * ProcPlacementRoutine.free_lists: the parts of core's list, nearest first.
 */
static dlist_head *const *
free_lists(dlist_head *freelist)
{
	static dlist_head *lists[PGSWEEP_NUMA_MAX_NODES + 1];
	const uint8 *distance;
	uint32		order[PGSWEEP_NUMA_MAX_NODES];
	uint32		n = pgsweep_numa_topology.ncpu_nodes;

	StaticAssertStmt(PGSWEEP_NUMA_MAX_NODES <= PROC_PLACEMENT_MAX_LISTS,
					 "core does not take this many lists");

	if (pgsweep_numa_topology.several && my_node < 0)
		my_node = node_to_run_on();
	if (!PgSweepNuma->procs_divided)
		return NULL;

	/* a node's distance to itself is the smallest; insertion sort */
	Assert(my_node >= 0);
	distance = pgsweep_numa_topology.distance[my_node];
	for (uint32 i = 0; i < n; i++)
	{
		uint32		node = pgsweep_numa_topology.cpu_nodes[i];
		uint32		at = i;

		for (; at > 0 && distance[node] < distance[order[at - 1]]; at--)
			order[at] = order[at - 1];
		order[at] = node;
	}

	for (int kind = 0; kind < PGSWEEP_NUMA_PROC_LISTS; kind++)
	{
		dlist_head *of_kind;

		(void) procs_of_kind(kind, &of_kind);
		if (of_kind == freelist)
			for (uint32 i = 0; i < n; i++)
				lists[i] = &PgSweepNuma->free_procs[kind][order[i]];
	}
	lists[n] = NULL;
	return lists;
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
	if (!pgsweep_numa_topology.several)
		return;
	if (my_node < 0)			/* an auxiliary process */
		my_node = node_to_run_on();

	if (pgsweep_numa_affinity != PGSWEEP_NUMA_AFFINITY_OFF && may_bind())
		bind_to_cpus(my_node);

#ifdef USE_LIBNUMA

	/*
	 * Only instead of an interleaving, which is meant for shared memory. Only
	 * if shared memory has policies of its own (placement.c): otherwise, what
	 * this process touches first would become local, too.
	 */
	if (pgsweep_numa_local_memory && pgsweep_numa_topology.interleaved &&
		PgSweepNuma->placement.effective != PGSWEEP_NUMA_PLACEMENT_OFF &&
		set_mempolicy(MPOL_LOCAL, NULL, 0) != 0)
		report_failure("set_mempolicy");
#endif
}

static const ProcPlacementRoutine proc_placement_routine = {
	.free_lists = free_lists,
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
