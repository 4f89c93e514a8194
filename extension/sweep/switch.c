/*-------------------------------------------------------------------------
 *
 * extension/sweep/switch.c
 *	  Switches the active strategy under load.
 *
 * One word in shared memory says which strategy is active, and every
 * allocation reads it once.  Writing it is the switch: no backend is stopped
 * or signalled.  Another word, core's own, says whether that strategy is one
 * of pg_sweep's: if not, core does not call the library to find a victim.  A
 * third one says whether the strategy wants to know of loads.  For a moment
 * they may disagree, and core chooses the victim, or a load is not told.  A
 * backend in the middle of an allocation finishes it by the old strategy, which
 * is safe because all strategies keep the rules of the buffer header.  The
 * generation in the first word makes every earlier lease out of date.
 *
 * Each strategy keeps its own hand and goes on from there.  Usage counts,
 * which decide about victims, belong to the buffers and not to a hand.
 *
 * Two callers switch: pg_sweep_set_strategy() in any backend, and the
 * background writer when a reload has changed pg_sweep.strategy.  The later
 * one wins.  A reload that does not change the parameter does not undo the
 * function.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "sweep/strategy.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

/*
 * Make a strategy active, or the one that "auto" chooses.  Returns the one
 * before.  If it is active already, only the reason of "auto" changes, but
 * not generation, set_by and set_by_role.
 */
PgSweepStrategyId
pgsweep_switch(PgSweepStrategyId wish, PgSweepSetBy by)
{
	char		reason[sizeof(PgSweepPool->reason)];
	PgSweepStrategyId to = pgsweep_resolve_strategy(wish, reason, sizeof(reason));
	char	   *role = NULL;
	uint64		active;
	PgSweepStrategyId from;

	/* look it up before taking the lock: it may read a catalog */
	if (by == PGSWEEP_SET_BY_FUNCTION)
		role = GetUserNameFromId(GetUserId(), true);

	LWLockAcquire(PgSweep->lock, LW_EXCLUSIVE);

	active = pgsweep_read_u64(&PgSweepPool->active);
	from = PGSWEEP_ACTIVE_ID(active);
	if (by == PGSWEEP_SET_BY_RELOAD)
		PgSweepPool->configured = wish;
	strlcpy(PgSweepPool->reason, reason, sizeof(PgSweepPool->reason));

	if (to != from)
	{
		TimestampTz now = GetCurrentTimestamp();

		PgSweepPool->active_usec[from] +=
			now - Max(PgSweepPool->active_since, PgSweep->stats_reset);
		PgSweepPool->active_since = now;
		PgSweepPool->switches[to]++;
		PgSweepPool->set_by = by;
		namestrcpy(&PgSweepPool->set_by_role, role ? role : "");

		pg_atomic_write_u64(&PgSweepPool->active,
							PGSWEEP_ACTIVE(PGSWEEP_ACTIVE_GENERATION(active) + 1, to));
		pgsweep_activate(to);
	}

	LWLockRelease(PgSweep->lock);

	/*
	 * From here on core's freelist is not used.  Its buffers would be in use
	 * at the switch back to "stock", which would then pop and discard them
	 * one by one under the list's spinlock.  So it does with the few that a
	 * process puts there which has not seen the switch yet.
	 */
	if (from == PGSWEEP_STOCK && to != PGSWEEP_STOCK)
		StrategyEmptyFreelist();

	if (to != from && pgsweep_strategies[to]->activated)
		pgsweep_strategies[to]->activated();

	if (to != from)
		ereport(DEBUG1,
				(errmsg_internal("pg_sweep: strategy \"%s\" is active, was \"%s\"",
								 pgsweep_strategy_name(to),
								 pgsweep_strategy_name(from))));
	return from;
}
