/*-------------------------------------------------------------------------
 *
 * settings.c
 *	  Which tranche of LWLocks has which waiting policy.
 *
 * A byte a tranche in shared memory, and one for those without a policy of their
 * own.  Each contended acquisition reads them without a lock, as every policy is
 * a right one at any moment; so writing the byte is the switch.
 *
 * A tranche is known by its name, which only those processes have that have
 * registered it; several tranches may have one name.  One of an id that is
 * allocated later is not meant: it has the default.
 *
 * IDENTIFICATION
 *	  extension/lwwait/settings.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lwwait/lwwait.h"
#include "pg_sweep.h"
#include "utils/wait_event.h"

/* What core calls tranches that this process has no name of */
#define UNKNOWN_TRANCHE		"extension"

/*
 * A slot for each process that may wait.
 */
Size
pgsweep_lwwait_shmem_size(uint32 num_slots)
{
	StaticAssertStmt(offsetof(PgSweepLwWaitShared, slots) % PG_CACHE_LINE_SIZE == 0,
					 "slots do not begin at a cache line");
	StaticAssertStmt(sizeof(PgSweepLwWaitSlotPadded) % PG_CACHE_LINE_SIZE == 0,
					 "slots do not end at a cache line");

	return add_size(offsetof(PgSweepLwWaitShared, slots),
					mul_size(num_slots, sizeof(PgSweepLwWaitSlotPadded)));
}

/*
 * The slots are left as they are: see pgsweep_lwwait_counts().
 */
void
pgsweep_lwwait_shmem_init(PgSweepLwWaitShared *shared, uint32 num_slots)
{
	memset(shared, 0, offsetof(PgSweepLwWaitShared, slots));
	shared->default_policy = pgsweep_lwlock_wait;
	shared->configured = pgsweep_lwlock_wait;
	memset(shared->tranche_policy, PGSWEEP_LWWAIT_DEFAULT, sizeof(shared->tranche_policy));
	shared->num_slots = num_slots;
	shared->nbase = 1;			/* "other" */
}

/*
 * NULL if this process does not know the tranche.
 */
const char *
pgsweep_tranche_name(uint16 tranche)
{
	const char *name = GetLWLockIdentifier(PG_WAIT_LWLOCK, tranche);

	/* numbers of locks that are no more have no name at all */
	if (name == NULL || strcmp(name, UNKNOWN_TRANCHE) == 0)
		return NULL;
	return name;
}

/*
 * The policy in force, its own or the default.
 */
PgSweepLwWaitPolicyId
pgsweep_lwwait_policy(uint16 tranche)
{
	uint8		policy = PgSweepLwWait->tranche_policy[tranche];

	return policy == PGSWEEP_LWWAIT_DEFAULT ? PgSweepLwWait->default_policy : policy;
}

/*
 * Switch all tranches without a policy of their own.  Returns what they had.
 */
PgSweepLwWaitPolicyId
pgsweep_set_lwwait_default(PgSweepLwWaitPolicyId policy, bool by_reload)
{
	PgSweepLwWaitPolicyId before;

	LWLockAcquire(PgSweep->lock, LW_EXCLUSIVE);
	before = PgSweepLwWait->default_policy;
	PgSweepLwWait->default_policy = policy;
	if (by_reload)
		PgSweepLwWait->configured = policy;
	LWLockRelease(PgSweep->lock);

	if (policy != before)
		ereport(DEBUG1,
				(errmsg_internal("pg_sweep: LWLock wait policy \"%s\" is active, was \"%s\"",
								 pgsweep_lwwait_policies[policy]->name,
								 pgsweep_lwwait_policies[before]->name)));
	return before;
}

/*
 * Give all tranches of a name a policy of their own, or take it away from them
 * (PGSWEEP_LWWAIT_DEFAULT).  Sets *before to what the first of them had.  Returns
 * false if there is none.
 */
bool
pgsweep_set_lwwait_tranche(const char *tranche, uint8 policy,
						   PgSweepLwWaitPolicyId *before)
{
	bool		found = false;

	LWLockAcquire(PgSweep->lock, LW_EXCLUSIVE);
	for (int id = 0; id < PGSWEEP_NUM_TRANCHES; id++)
	{
		const char *name = pgsweep_tranche_name(id);

		if (name == NULL || strcmp(name, tranche) != 0)
			continue;
		if (!found)
			*before = pgsweep_lwwait_policy(id);
		found = true;
		PgSweepLwWait->tranche_policy[id] = policy;
	}
	LWLockRelease(PgSweep->lock);
	return found;
}

/*
 * As pgsweep_apply_configuration(), which calls this, and by the same rules.
 */
void
pgsweep_apply_lwwait_configuration(void)
{
	if (PgSweepLwWait != NULL && pgsweep_lwlock_wait != PgSweepLwWait->configured)
		pgsweep_set_lwwait_default(pgsweep_lwlock_wait, true);
}
