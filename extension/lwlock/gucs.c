/*-------------------------------------------------------------------------
 *
 * extension/lwlock/gucs.c
 *	  Parameters of the feature "lwlock".
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "feature.h"
#include "lwlock/lwlock.h"
#include "utils/guc.h"

int			pgsweep_lwlock_policy = PGSWEEP_LWLOCK_STOCK;
int			pgsweep_lwlock_spin_tries = PGSWEEP_LWLOCK_TRIES;
int			pgsweep_lwlock_handoff_after = PGSWEEP_LWLOCK_HANDOFF_MS;
bool		pgsweep_lwlock_track_waits = true;

#define POLICY_OPTION(id, name) {#name, PGSWEEP_LWLOCK_##id, false},

const struct config_enum_entry pgsweep_lwlock_policy_options[] = {
	PGSWEEP_LWLOCK_POLICIES(POLICY_OPTION)
	{NULL, 0, false}
};

/* The options are in the order of the ids */
const char *
pgsweep_lwlock_policy_name(PgSweepLwlockPolicyId id)
{
	return pgsweep_lwlock_policy_options[id].name;
}

static bool
check_policy(int *newval, void **extra, GucSource source)
{
	return pgsweep_check_guc(&pgsweep_lwlock_feature, *newval != PGSWEEP_LWLOCK_STOCK);
}

void
pgsweep_lwlock_define_gucs(void)
{
	DefineCustomEnumVariable("pg_sweep.lwlock_policy",
							 "Sets how processes wait for LWLocks.",
							 "A reload applies a changed value to all tranches without a policy of their own. pg_sweep_set_lwlock_policy() switches the policy without changing this value.",
							 &pgsweep_lwlock_policy,
							 PGSWEEP_LWLOCK_STOCK,
							 pgsweep_lwlock_policy_options,
							 PGC_SIGHUP,
							 0,
							 check_policy, NULL, NULL);

	DefineCustomIntVariable("pg_sweep.lwlock_spin_tries",
							"Sets the maximum number of tries to get an LWLock before queueing.",
							"Policy \"lockless_spin\" uses it. Each process learns for each tranche how many of these tries pay off.",
							&pgsweep_lwlock_spin_tries,
							PGSWEEP_LWLOCK_TRIES, 0, PGSWEEP_LWLOCK_MAX_TRIES,
							PGC_SIGHUP,
							0,
							NULL, NULL, NULL);

	DefineCustomIntVariable("pg_sweep.lwlock_handoff_after",
							"Sets the time that a process waits until an LWLock is handed over to it.",
							"It counts from the begin of the wait. Only a process that has been woken twice and lost the lock again is handed it. Zero disables handing over. Without effect under policy \"stock\".",
							&pgsweep_lwlock_handoff_after,
							PGSWEEP_LWLOCK_HANDOFF_MS, 0, PGSWEEP_LWLOCK_MAX_HANDOFF_MS,
							PGC_SIGHUP,
							GUC_UNIT_MS,
							NULL, NULL, NULL);

	DefineCustomBoolVariable("pg_sweep.lwlock_track_waits",
							 "Counts waits for LWLocks, for pg_sweep_lwlock_waits.",
							 NULL,
							 &pgsweep_lwlock_track_waits,
							 true,
							 PGC_SUSET,
							 0,
							 NULL, NULL, NULL);
}
