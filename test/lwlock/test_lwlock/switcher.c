/*-------------------------------------------------------------------------
 *
 * test/lwlock/test_lwlock/switcher.c
 *	  A worker that switches waiting policies and replacement strategies
 *	  periodically, by pg_sweep's own functions.
 *
 * It belongs to no database and reads no table.  The functions need at most the
 * name of our role, which is in the catalog cache after the first call.  Each
 * policy that the parameter knows is set for all tranches or for a random one of
 * core's; or a random tranche returns to the default.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "common/pg_prng.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/guc_tables.h"
#include "utils/wait_event.h"

#include "test_lwlock.h"

/* Logged after this many switches: every policy and strategy has had its turn */
#define SWITCHES_TO_TELL	16

/*
 * The values of an enum parameter in turn.
 */
static const char *
next_option(const char *parameter, uint64 turn)
{
	const struct config_enum *guc =
		(const struct config_enum *) find_option(parameter, false, false, ERROR);
	int			n = 0;

	Assert(guc->gen.vartype == PGC_ENUM);
	while (guc->options[n].name != NULL)
		n++;
	return guc->options[turn % n].name;
}

/*
 * The name of one of core's tranches; some numbers have no name.
 */
static const char *
random_tranche(void)
{
	const char *name;

	do
	{
		name = GetLWLockIdentifier(PG_WAIT_LWLOCK,
								   pg_prng_uint64_range(&pg_global_prng_state, 1,
														LWTRANCHE_FIRST_USER_DEFINED - 1));
	} while (name == NULL || name[0] == '\0' || strchr(name, '<') != NULL);
	return name;
}

static void
switch_strategy(PGFunction function, uint64 turn)
{
	const char *strategy = next_option("pg_sweep.strategy", turn);

	(void) DirectFunctionCall1(function, CStringGetTextDatum(strategy));
}

static void
switch_policy(PGFunction function, uint64 turn)
{
	const char *policy = next_option("pg_sweep.lwlock_policy", turn);
	const char *tranche = NULL;

	LOCAL_FCINFO(fcinfo, 2);

	/* all, one, or back to the default */
	if (turn % 3 != 0)
		tranche = random_tranche();
	if (turn % 3 == 2)
		policy = "default";

	InitFunctionCallInfoData(*fcinfo, NULL, 2, InvalidOid, NULL, NULL);
	fcinfo->args[0].value = CStringGetTextDatum(policy);
	fcinfo->args[0].isnull = false;
	fcinfo->args[1].value = tranche ? CStringGetTextDatum(tranche) : (Datum) 0;
	fcinfo->args[1].isnull = (tranche == NULL);
	(void) function(fcinfo);
}

void
test_lwlock_switcher_main(Datum arg)
{
	PGFunction	set_strategy;
	PGFunction	set_policy;
	uint64		turn = 0;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);

	set_strategy = load_external_function("pg_sweep", "pg_sweep_set_strategy", true, NULL);
	set_policy = load_external_function("pg_sweep", "pg_sweep_set_lwlock_policy", true, NULL);

	while (!ShutdownRequestPending)
	{
		/* to look up the role's name in a catalog */
		StartTransactionCommand();
		switch_policy(set_policy, turn);
		switch_strategy(set_strategy, turn);
		CommitTransactionCommand();

		turn++;
		pg_atomic_write_u64(&test_shared->switches, turn);
		if (turn == SWITCHES_TO_TELL)
			ereport(LOG,
					(errmsg("test_lwlock: switched %d times", SWITCHES_TO_TELL)));

		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 test_switch_every, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	ereport(LOG,
			(errmsg("test_lwlock: switched " UINT64_FORMAT " times in all", turn)));
	proc_exit(0);
}
