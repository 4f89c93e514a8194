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

	MarkGUCPrefixReserved("pg_sweep");
}
