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

#include "pg_sweep.h"
#include "sweep/batch.h"
#include "sweep/sweep.h"
#include "utils/guc.h"

int			pgsweep_strategy = PGSWEEP_STOCK;
int			pgsweep_batch_size = 0;
int			pgsweep_partitions = 0;
bool		pgsweep_balance = true;
int			pgsweep_numa_placement = PGSWEEP_PLACEMENT_OFF;
int			pgsweep_debug_numa_nodes = 0;
int			pgsweep_debug_node = -1;

static const struct config_enum_entry placement_options[] = {
	{"off", PGSWEEP_PLACEMENT_OFF, false},
	{"interleave", PGSWEEP_PLACEMENT_INTERLEAVE, false},
	{"partition", PGSWEEP_PLACEMENT_PARTITION, false},
	{"auto", PGSWEEP_PLACEMENT_AUTO, false},
	{NULL, 0, false}
};

const char *
pgsweep_placement_name(PgSweepPlacement placement)
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
 * For tests on machines with one node.
 */
static void
define_developer_gucs(void)
{
	DefineCustomIntVariable("pg_sweep.debug_numa_nodes",
							"Pretends that the machine has so many NUMA nodes.",
							"A process is on the node that its number modulo this is. No memory is placed. Zero asks the machine.",
							&pgsweep_debug_numa_nodes,
							0, 0, PGSWEEP_MAX_NODES,
							PGC_POSTMASTER,
							GUC_NOT_IN_SAMPLE,
							NULL, NULL, NULL);

	DefineCustomIntVariable("pg_sweep.debug_node",
							"Sets the pretended NUMA node that this session is on.",
							"-1 leaves it to pg_sweep.debug_numa_nodes, without which this has no effect.",
							&pgsweep_debug_node,
							-1, -1, PGSWEEP_MAX_NODES - 1,
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
							 PGSWEEP_PLACEMENT_OFF,
							 placement_options,
							 PGC_POSTMASTER,
							 0,
							 NULL, NULL, NULL);

	define_developer_gucs();

	MarkGUCPrefixReserved("pg_sweep");
}
