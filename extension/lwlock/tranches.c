/*-------------------------------------------------------------------------
 *
 * extension/lwlock/tranches.c
 *	  The waiting policy of each tranche of LWLocks.
 *
 * Shared memory has one byte per tranche, and one for tranches without a
 * policy of their own.  Each contended acquisition reads them without a lock,
 * because any policy is correct at any moment.  Writing the byte is the
 * switch.
 *
 * A tranche is identified by name, which is known only in processes that have
 * registered it.  Several tranches may share a name.  A tranche that is
 * allocated later has the default policy.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lwlock/lwlock.h"
#include "shared.h"
#include "utils/wait_event.h"

/* Core's name for tranches that this process does not know */
#define UNKNOWN_TRANCHE		"extension"

/*
 * NULL if this process does not know the tranche.
 */
const char *
pgsweep_lwlock_tranche_name(uint16 tranche)
{
	const char *name = GetLWLockIdentifier(PG_WAIT_LWLOCK, tranche);

	/* ids of removed individual locks have no name at all */
	if (name == NULL || strcmp(name, UNKNOWN_TRANCHE) == 0)
		return NULL;
	return name;
}

/*
 * The policy in force: the tranche's own or the default.
 */
PgSweepLwlockPolicyId
pgsweep_lwlock_policy_of(uint16 tranche)
{
	uint8		policy = PgSweepLwlock->tranche_policy[tranche];

	return policy == PGSWEEP_LWLOCK_DEFAULT ? PgSweepLwlock->default_policy : policy;
}

/*
 * Switch all tranches without a policy of their own.  Returns the policy
 * before.
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
 * Set the policy of all tranches with a name, or remove it
 * (PGSWEEP_LWLOCK_DEFAULT).  Sets *before to the policy of the first one
 * before.  Returns false if there is no such tranche.
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
