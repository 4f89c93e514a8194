/*-------------------------------------------------------------------------
 *
 * extension/lwlock/lwlock.c
 *	  The feature "lwlock": how processes wait for LWLocks.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "feature.h"
#include "lwlock/lwlock.h"
#include "shared.h"
#include "storage/shmem.h"

/*
 * Three parts: the struct, has_waited[], and the slots, aligned to a cache
 * line.
 */
static Size
slots_offset(void)
{
	StaticAssertStmt(sizeof(PgSweepLwlockSlotPadded) % PG_CACHE_LINE_SIZE == 0,
					 "slots do not end at a cache line");

	return TYPEALIGN(PG_CACHE_LINE_SIZE,
					 add_size(sizeof(PgSweepLwlockShared),
							  mul_size(pgsweep_num_slots(), sizeof(bool))));
}

static Size
lwlock_shmem_size(void)
{
	return add_size(slots_offset(),
					mul_size(pgsweep_num_slots(), sizeof(PgSweepLwlockSlotPadded)));
}

/*
 * The slots stay untouched: see pgsweep_lwlock_counts().
 */
static void
lwlock_shmem_init(void)
{
	PgSweepLwlockShared *shared;
	bool		found;

	PgSweepLwlock = ShmemInitStruct("pg_sweep lwlock", lwlock_shmem_size(), &found);
	if (found)
		return;

	shared = PgSweepLwlock;
	memset(shared, 0, slots_offset());
	shared->default_policy = pgsweep_lwlock_policy;
	shared->configured = pgsweep_lwlock_policy;
	memset(shared->tranche_policy, PGSWEEP_LWLOCK_DEFAULT, sizeof(shared->tranche_policy));
	shared->num_slots = pgsweep_num_slots();
	shared->has_waited = (bool *) (shared + 1);
	shared->slots = (PgSweepLwlockSlotPadded *) ((char *) shared + slots_offset());
	shared->nbase = 1;			/* "other" */
}

static const char *
lwlock_conflict(void)
{
	if (LWLockWait == NULL || LWLockWait == &pgsweep_lwlock_wait_routine)
		return NULL;
	return "another library has replaced waiting for LWLocks already";
}

static void
lwlock_install(void)
{
	LWLockWait = &pgsweep_lwlock_wait_routine;
}

static void
lwlock_apply_configuration(void)
{
	if (pgsweep_lwlock_policy != PgSweepLwlock->configured)
		pgsweep_lwlock_set_default(pgsweep_lwlock_policy, true);
}

const PgSweepFeature pgsweep_lwlock_feature = {
	.patch = "lwlock-wait-hooks",
	.symbol = &LWLockWait,
	.define_gucs = pgsweep_lwlock_define_gucs,
	.shmem_size = lwlock_shmem_size,
	.shmem_init = lwlock_shmem_init,
	.conflict = lwlock_conflict,
	.install = lwlock_install,
	.apply_configuration = lwlock_apply_configuration,
	.reset = pgsweep_lwlock_reset,
	.put_status = pgsweep_lwlock_put_status,
};
