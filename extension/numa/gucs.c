/*-------------------------------------------------------------------------
 *
 * extension/numa/gucs.c
 *	  Parameters of the feature "numa".
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "feature.h"
#include "numa/numa.h"
#include "utils/guc.h"

int			pgsweep_numa_placement = PGSWEEP_NUMA_PLACEMENT_OFF;
int			pgsweep_numa_affinity = PGSWEEP_NUMA_AFFINITY_OFF;
bool		pgsweep_numa_local_memory = false;
char	   *pgsweep_numa_nodes = NULL;
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

/* The options are in the order of the enum */
const char *
pgsweep_numa_placement_name(PgSweepNumaPlacement placement)
{
	return placement_options[placement].name;
}

static bool
check_affinity(int *newval, void **extra, GucSource source)
{
	return pgsweep_check_guc(&pgsweep_numa_feature,
							 *newval != PGSWEEP_NUMA_AFFINITY_OFF);
}

static bool
check_local_memory(bool *newval, void **extra, GucSource source)
{
	return pgsweep_check_guc(&pgsweep_numa_feature, *newval);
}

static bool
check_nodes(char **newval, void **extra, GucSource source)
{
	bool		named[PGSWEEP_NUMA_MAX_NODE_IDS];
	const char *problem = pgsweep_numa_parse_nodes(*newval, named);

	if (problem == NULL)
		return true;
	GUC_check_errdetail("%s", problem);
	return false;
}

/*
 * For tests on machines with one node.
 */
static void
define_developer_gucs(void)
{
	DefineCustomIntVariable("pg_sweep.numa_debug_nodes",
							"Sets the number of emulated NUMA nodes.",
							"A process is on the node of its number modulo this value. No memory is placed, and pg_sweep.numa_nodes has no effect. Zero asks the machine.",
							&pgsweep_numa_debug_nodes,
							0, 0, PGSWEEP_NUMA_MAX_NODES,
							PGC_POSTMASTER,
							GUC_NOT_IN_SAMPLE,
							NULL, NULL, NULL);

	DefineCustomIntVariable("pg_sweep.numa_debug_node",
							"Sets the emulated NUMA node of this session.",
							"-1 leaves the choice to the server. Without pg_sweep.numa_debug_nodes this has no effect.",
							&pgsweep_numa_debug_node,
							-1, -1, PGSWEEP_NUMA_MAX_NODES - 1,
							PGC_SUSET,
							GUC_NOT_IN_SAMPLE,
							NULL, NULL, NULL);
}

void
pgsweep_numa_define_gucs(void)
{
	DefineCustomEnumVariable("pg_sweep.numa_placement",
							 "Sets the NUMA nodes that shared memory is placed on.",
							 "\"interleave\" spreads it page by page over the nodes that are used. \"partition\" puts each partition on its node, and spreads the rest. \"auto\" does the latter if the server may use several.",
							 &pgsweep_numa_placement,
							 PGSWEEP_NUMA_PLACEMENT_OFF,
							 placement_options,
							 PGC_POSTMASTER,
							 0,
							 NULL, NULL, NULL);

	DefineCustomStringVariable("pg_sweep.numa_nodes",
							   "Sets the NUMA nodes that are used, such as \"0-3,5\".",
							   "They have partitions and shared memory. Empty: all that the server may use, but not far memory without CPUs.",
							   &pgsweep_numa_nodes,
							   "",
							   PGC_POSTMASTER,
							   0,
							   check_nodes, NULL, NULL);

	DefineCustomEnumVariable("pg_sweep.numa_affinity",
							 "Sets the NUMA nodes that new backends are bound to.",
							 "\"spread\" binds each to the CPUs of the next node in turn, \"current\" to those of the node that it starts on. Background and I/O workers are bound, too.",
							 &pgsweep_numa_affinity,
							 PGSWEEP_NUMA_AFFINITY_OFF,
							 affinity_options,
							 PGC_SIGHUP,
							 0,
							 check_affinity, NULL, NULL);

	DefineCustomBoolVariable("pg_sweep.numa_local_memory",
							 "Gives new processes their own memory on the NUMA node that they run on.",
							 "Only if the server was started by \"numactl --interleave\", and shared memory is placed. Dynamic shared memory is local, too; core's other shared memory stays interleaved.",
							 &pgsweep_numa_local_memory,
							 false,
							 PGC_SIGHUP,
							 0,
							 check_local_memory, NULL, NULL);

	define_developer_gucs();
}
