/*-------------------------------------------------------------------------
 *
 * tranches.c
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
 *	  extension/lwlock/tranches.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lwlock/lwlock.h"
#include "shared.h"
#include "utils/wait_event.h"

/* What core calls tranches that this process has no name of */
#define UNKNOWN_TRANCHE		"extension"

/*
 * NULL if this process does not know the tranche.
 */
const char *
pgsweep_lwlock_tranche_name(uint16 tranche)
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
PgSweepLwlockPolicyId
pgsweep_lwlock_policy_of(uint16 tranche)
{
	uint8		policy = PgSweepLwlock->tranche_policy[tranche];

	return policy == PGSWEEP_LWLOCK_DEFAULT ? PgSweepLwlock->default_policy : policy;
}

/*
 * Switch all tranches without a policy of their own.  Returns what they had.
 */
PgSweepLwlockPolicyId
pgsweep_lwlock_set_default(PgSweepLwlockPolicyId policy, bool by_reload)
{
	PgSweepLwlockPolicyId before;

	LWLockAcquire(PgSweep->lock, LW_EXCLUSIVE);
	before = PgSweepLwlock->default_policy;
	PgSweepLwlock->default_policy = policy;
	if (by_reload)
		PgSweepLwlock->configured = policy;
	LWLockRelease(PgSweep->lock);

	if (policy != before)
		ereport(DEBUG1,
				(errmsg_internal("pg_sweep: LWLock wait policy \"%s\" is active, was \"%s\"",
								 pgsweep_lwlock_policy_name(policy),
								 pgsweep_lwlock_policy_name(before))));
	return before;
}

/*
 * Give all tranches of a name a policy of their own, or take it away from them
 * (PGSWEEP_LWLOCK_DEFAULT).  Sets *before to what the first of them had.  Returns
 * false if there is none.
 */
bool
pgsweep_lwlock_set_tranche(const char *tranche, uint8 policy,
						   PgSweepLwlockPolicyId *before)
{
	bool		found = false;

	LWLockAcquire(PgSweep->lock, LW_EXCLUSIVE);
	for (int id = 0; id < PGSWEEP_LWLOCK_NUM_TRANCHES; id++)
	{
		const char *name = pgsweep_lwlock_tranche_name(id);

		if (name == NULL || strcmp(name, tranche) != 0)
			continue;
		if (!found)
			*before = pgsweep_lwlock_policy_of(id);
		found = true;
		PgSweepLwlock->tranche_policy[id] = policy;
	}
	LWLockRelease(PgSweep->lock);
	return found;
}
