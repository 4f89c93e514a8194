/*-------------------------------------------------------------------------
 *
 * extension/sweep/sweep.c
 *	  The feature "sweep": buffer replacement.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "feature.h"
#include "sweep/strategy.h"

static const char *
sweep_conflict(void)
{
	const BufferReplacementRoutine *installed = GetBufferReplacement();

	if (installed == NULL || installed == &pgsweep_replacement_routine)
		return NULL;
	return "another library has replaced buffer replacement already";
}

static void
sweep_install(void)
{
	SetBufferReplacement(&pgsweep_replacement_routine);
}

static void
sweep_apply_configuration(void)
{
	if (pgsweep_strategy != PgSweepPool->configured)
		pgsweep_switch(pgsweep_strategy, PGSWEEP_SET_BY_RELOAD);
	if ((uint32) pgsweep_batch_size != PgSweepPool->batch_configured)
		pgsweep_set_batch_configured(pgsweep_batch_size);
}

const PgSweepFeature pgsweep_sweep_feature = {
	.patch = "sweep-replacement-hooks",
	.symbol = (const void *) SetBufferReplacement,
	.define_gucs = pgsweep_define_gucs,
	.shmem_size = pgsweep_pool_size,
	.shmem_init = pgsweep_pool_init,
	.conflict = sweep_conflict,
	.install = sweep_install,
	.take_slot = pgsweep_enter_slot,
	.leave_slot = pgsweep_leave_slot,
	.apply_configuration = sweep_apply_configuration,
	.reset = pgsweep_reset_counters,
	.put_status = pgsweep_put_status,
};
