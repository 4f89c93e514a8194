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

/* The slots are behind the struct, aligned to a cache line */
#define SLOTS_OFFSET	TYPEALIGN(PG_CACHE_LINE_SIZE, sizeof(PgSweepLwlockShared))

StaticAssertDecl(sizeof(PgSweepLwlockSlotPadded) % PG_CACHE_LINE_SIZE == 0,
				 "slots do not end at a cache line");

static uint32
num_slots(void)
{
	return Min(pgsweep_num_slots(), PGSWEEP_LWLOCK_MAX_SLOTS);
}

static Size
lwlock_shmem_size(void)
{
	return add_size(SLOTS_OFFSET,
					mul_size(num_slots(), sizeof(PgSweepLwlockSlotPadded)));
}

static void
lwlock_shmem_init(void)
{
	PgSweepLwlockShared *shared;
	bool		found;

	PgSweepLwlock = ShmemInitStruct("pg_sweep lwlock", lwlock_shmem_size(), &found);
	if (found)
		return;

	shared = PgSweepLwlock;
	memset(shared, 0, lwlock_shmem_size());
	shared->default_policy = pgsweep_lwlock_policy;
	shared->configured = pgsweep_lwlock_policy;
	memset(shared->tranche_policy, PGSWEEP_LWLOCK_DEFAULT, sizeof(shared->tranche_policy));
	shared->num_slots = num_slots();
	shared->slots = (PgSweepLwlockSlotPadded *) ((char *) shared + SLOTS_OFFSET);
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
