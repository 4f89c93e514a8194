/*-------------------------------------------------------------------------
 *
 * guc.c
 *	  Parameters of pg_sweep.
 *
 * IDENTIFICATION
 *	  extension/guc.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lwlock/lwlock.h"
#include "pg_sweep.h"
#include "ring/ring.h"
#include "sweep/batch.h"
#include "sweep/sweep.h"
#include "utils/guc.h"

int			pgsweep_strategy = PGSWEEP_STOCK;
int			pgsweep_batch_size = 0;
int			pgsweep_partitions = 0;
bool		pgsweep_balance = true;
int			pgsweep_numa_placement = PGSWEEP_NUMA_PLACEMENT_OFF;
int			pgsweep_numa_affinity = PGSWEEP_NUMA_AFFINITY_OFF;
bool		pgsweep_numa_local_memory = false;
int			pgsweep_lwlock_policy = PGSWEEP_LWLOCK_STOCK;
int			pgsweep_lwlock_spin_tries = PGSWEEP_LWLOCK_TRIES;
int			pgsweep_lwlock_handoff_after = PGSWEEP_LWLOCK_HANDOFF_MS;
bool		pgsweep_lwlock_track_waits = true;
int			pgsweep_numa_debug_nodes = 0;
int			pgsweep_numa_debug_node = -1;

static const struct config_enum_entry placement_options[] = {
	{"off", PGSWEEP_NUMA_PLACEMENT_OFF, false},
	{"interleave", PGSWEEP_NUMA_PLACEMENT_INTERLEAVE, false},
	{"partition", PGSWEEP_NUMA_PLACEMENT_PARTITION, false},
	{"auto", PGSWEEP_NUMA_PLACEMENT_AUTO, false},
	{NULL, 0, false}
};

static const struct config_enum_entry affinity_options[] = {
	{"off", PGSWEEP_NUMA_AFFINITY_OFF, false},
	{"spread", PGSWEEP_NUMA_AFFINITY_SPREAD, false},
	{"current", PGSWEEP_NUMA_AFFINITY_CURRENT, false},
	{NULL, 0, false}
};

const char *
pgsweep_numa_placement_name(PgSweepNumaPlacement placement)
{
	for (const struct config_enum_entry *option = placement_options; option->name; option++)
		if (option->val == (int) placement)
			return option->name;
	return NULL;
}

/*
 * As pg_sweep.strategy has it: "auto" included.
 */
const char *
pgsweep_option_name(PgSweepStrategyId id)
{
	for (const struct config_enum_entry *option = pgsweep_strategy_options; option->name; option++)
		if (option->val == (int) id)
			return option->name;
	return NULL;
}

/*
 * What cannot work on this server is refused, rather than to be without effect:
 * at start with a warning, and by ALTER SYSTEM.
 */
static bool
check_proc_placement(bool wanted)
{
	if (!wanted || pgsweep_has_proc_placement())
		return true;
	GUC_check_errcode(ERRCODE_FEATURE_NOT_SUPPORTED);
	GUC_check_errdetail("%s", pgsweep_proc_placement_note());
	return false;
}

static bool
check_backend_affinity(int *newval, void **extra, GucSource source)
{
	return check_proc_placement(*newval != PGSWEEP_NUMA_AFFINITY_OFF);
}

static bool
check_local_memory(bool *newval, void **extra, GucSource source)
{
	return check_proc_placement(*newval);
}

static bool
check_lwlock_wait(int *newval, void **extra, GucSource source)
{
	if (*newval == PGSWEEP_LWLOCK_STOCK || pgsweep_has_lwlock_wait())
		return true;
	GUC_check_errcode(ERRCODE_FEATURE_NOT_SUPPORTED);
	GUC_check_errdetail("%s", pgsweep_lwlock_wait_note());
	return false;
}

static void
define_process_gucs(void)
{
	DefineCustomEnumVariable("pg_sweep.numa_affinity",
							 "Sets on which NUMA nodes new backends are bound to run.",
							 "\"spread\" binds each to the CPUs of the next node in turn, \"current\" to those of the node that it happens to start on. Background workers are bound, too.",
							 &pgsweep_numa_affinity,
							 PGSWEEP_NUMA_AFFINITY_OFF,
							 affinity_options,
							 PGC_SIGHUP,
							 0,
							 check_backend_affinity, NULL, NULL);

	DefineCustomBoolVariable("pg_sweep.numa_local_memory",
							 "Lets new backends have their own memory on the NUMA node that they run on.",
							 "That is what they have anyway, unless the server was started under another policy, as by \"numactl --interleave\".",
							 &pgsweep_numa_local_memory,
							 false,
							 PGC_SIGHUP,
							 0,
							 check_local_memory, NULL, NULL);
}

static bool
check_eager_flush(bool *newval, void **extra, GucSource source)
{
	if (!*newval || pgsweep_has_ring_flush())
		return true;

	GUC_check_errcode(ERRCODE_FEATURE_NOT_SUPPORTED);
	GUC_check_errdetail("%s", pgsweep_ring_flush_note());
	return false;
}

static void
define_ring_gucs(void)
{
	DefineCustomBoolVariable("pg_sweep.ring_eager_flush",
							 "Writes out the ring of a bulk write or of VACUUM when a dirty buffer of it is reused.",
							 "What needs no WAL to be flushed is written then, neighbouring blocks by one call of up to \"io_combine_limit\".",
							 &pgsweep_ring_eager_flush,
							 false,
							 PGC_SUSET,
							 0,
							 check_eager_flush, NULL, NULL);
}

static void
define_lwlock_gucs(void)
{
	DefineCustomEnumVariable("pg_sweep.lwlock_policy",
							 "Sets how processes wait for LWLocks.",
							 "A reload makes a changed value active, for tranches without a policy of their own; pg_sweep_set_lwlock_policy() switches without changing it.",
							 &pgsweep_lwlock_policy,
							 PGSWEEP_LWLOCK_STOCK,
							 pgsweep_lwlock_options,
							 PGC_SIGHUP,
							 0,
							 check_lwlock_wait, NULL, NULL);

	DefineCustomIntVariable("pg_sweep.lwlock_spin_tries",
							"Sets how often an LWLock is tried at most before queueing, under the policies that try.",
							"Each process learns for each tranche how many of these tries are worth it.",
							&pgsweep_lwlock_spin_tries,
							PGSWEEP_LWLOCK_TRIES, 0, PGSWEEP_LWLOCK_MAX_TRIES,
							PGC_SIGHUP,
							0,
							NULL, NULL, NULL);

	DefineCustomIntVariable("pg_sweep.lwlock_handoff_after",
							"Sets for how long a process that is woken for an LWLock may find that another was quicker.",
							"Then the lock is kept for it. Zero never does. Without effect under policy \"stock\".",
							&pgsweep_lwlock_handoff_after,
							PGSWEEP_LWLOCK_HANDOFF_MS, 0, PGSWEEP_LWLOCK_MAX_HANDOFF_MS,
							PGC_SIGHUP,
							GUC_UNIT_MS,
							NULL, NULL, NULL);

	DefineCustomBoolVariable("pg_sweep.lwlock_track_waits",
							 "Counts waits for LWLocks, for pg_sweep_lwlock_waits.",
							 NULL,
							 &pgsweep_lwlock_track_waits,
							 true,
							 PGC_SUSET,
							 0,
							 NULL, NULL, NULL);
}

/*
 * For tests on machines with one node.
 */
static void
define_developer_gucs(void)
{
	DefineCustomIntVariable("pg_sweep.numa_debug_nodes",
							"Pretends that the machine has so many NUMA nodes.",
							"A process is on the node that its number modulo this is. No memory is placed. Zero asks the machine.",
							&pgsweep_numa_debug_nodes,
							0, 0, PGSWEEP_NUMA_MAX_NODES,
							PGC_POSTMASTER,
							GUC_NOT_IN_SAMPLE,
							NULL, NULL, NULL);

	DefineCustomIntVariable("pg_sweep.numa_debug_node",
							"Sets the pretended NUMA node that this session is on.",
							"-1 leaves it to pg_sweep.numa_debug_nodes, without which this has no effect.",
							&pgsweep_numa_debug_node,
							-1, -1, PGSWEEP_NUMA_MAX_NODES - 1,
							PGC_SUSET,
							GUC_NOT_IN_SAMPLE,
							NULL, NULL, NULL);
}

void
pgsweep_define_gucs(void)
{
	/* "stock", so that loading the library changes nothing by itself */
	DefineCustomEnumVariable("pg_sweep.strategy",
							 "Sets the buffer replacement strategy.",
							 "A reload makes a changed value active; pg_sweep_set_strategy() switches without changing it.",
							 &pgsweep_strategy,
							 PGSWEEP_STOCK,
							 pgsweep_strategy_options,
							 PGC_SIGHUP,
							 0,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("pg_sweep.batch_size",
							"Sets the number of buffers that a backend takes from the clock hand at once.",
							"Zero chooses it from the number of CPUs. It is reduced where all backends together would hold more than an eighth of shared_buffers.",
							&pgsweep_batch_size,
							0, 0, PGSWEEP_BATCH_MAX,
							PGC_SIGHUP,
							0,
							NULL, NULL, NULL);

	DefineCustomIntVariable("pg_sweep.partitions",
							"Sets the number of partitions that shared_buffers are divided into for strategy \"partitioned\".",
							"Zero chooses it from the number of NUMA nodes and of CPUs. It is rounded up to a multiple of the nodes, and reduced for a small pool.",
							&pgsweep_partitions,
							0, 0, PGSWEEP_MAX_PARTITIONS,
							PGC_POSTMASTER,
							0,
							NULL, NULL, NULL);

	DefineCustomBoolVariable("pg_sweep.balance",
							 "Sends allocations from busy partitions to those with room.",
							 "If it is off, every backend allocates from its home partition only, whatever happens elsewhere.",
							 &pgsweep_balance,
							 true,
							 PGC_SIGHUP,
							 0,
							 NULL, NULL, NULL);

	DefineCustomEnumVariable("pg_sweep.numa_placement",
							 "Sets on which NUMA nodes the shared buffers are put.",
							 "\"interleave\" spreads them page by page over all nodes, \"partition\" puts each partition on its node, \"auto\" chooses by topology and strategy.",
							 &pgsweep_numa_placement,
							 PGSWEEP_NUMA_PLACEMENT_OFF,
							 placement_options,
							 PGC_POSTMASTER,
							 0,
							 NULL, NULL, NULL);

	define_process_gucs();
	define_lwlock_gucs();
	define_ring_gucs();
	define_developer_gucs();

	MarkGUCPrefixReserved("pg_sweep");
}
