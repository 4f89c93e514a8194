/*-------------------------------------------------------------------------
 *
 * extension/sweep/gucs.c
 *	  Parameters of the feature "sweep".
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sweep/batch.h"
#include "sweep/sweep.h"
#include "utils/guc.h"

int			pgsweep_strategy = PGSWEEP_STOCK;
int			pgsweep_batch_size = 0;
int			pgsweep_partitions = 0;
bool		pgsweep_balance = true;

#define STRATEGY_OPTION(id, name) {#name, PGSWEEP_##id, false},

const struct config_enum_entry pgsweep_strategy_options[] = {
	PGSWEEP_STRATEGIES(STRATEGY_OPTION)
	{"auto", PGSWEEP_AUTO, false},
	{NULL, 0, false}
};

/* The options are in the order of the ids */
const char *
pgsweep_strategy_name(PgSweepStrategyId id)
{
	return pgsweep_strategy_options[id].name;
}

void
pgsweep_define_gucs(void)
{
	/* "stock": loading the library changes nothing by itself */
	DefineCustomEnumVariable("pg_sweep.strategy",
							 "Sets the buffer replacement strategy.",
							 "A reload makes a changed value active. pg_sweep_set_strategy() switches the strategy without changing this value.",
							 &pgsweep_strategy,
							 PGSWEEP_STOCK,
							 pgsweep_strategy_options,
							 PGC_SIGHUP,
							 0,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("pg_sweep.batch_size",
							"Sets the number of buffers that a backend takes from the clock hand at once.",
							"Zero chooses by the number of CPUs. The size is reduced if all backends together would hold more than an eighth of shared_buffers.",
							&pgsweep_batch_size,
							0, 0, PGSWEEP_BATCH_MAX,
							PGC_SIGHUP,
							0,
							NULL, NULL, NULL);

	DefineCustomIntVariable("pg_sweep.partitions",
							"Sets the number of partitions of shared_buffers for strategies with partitions.",
							"Zero chooses by the NUMA nodes, and by their cores and caches. The number is rounded up to a multiple of the nodes, and reduced for a small pool.",
							&pgsweep_partitions,
							0, 0, PGSWEEP_MAX_PARTITIONS,
							PGC_POSTMASTER,
							0,
							NULL, NULL, NULL);

	DefineCustomBoolVariable("pg_sweep.balance",
							 "Sends allocations from busy partitions to idle ones.",
							 "If it is off, every backend allocates from its home partition only, even if others have room.",
							 &pgsweep_balance,
							 true,
							 PGC_SIGHUP,
							 0,
							 NULL, NULL, NULL);
}
