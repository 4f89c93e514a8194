/*-------------------------------------------------------------------------
 *
 * state.c
 *	  Can pg_sweep do anything on this server, and if not, why not?
 *
 * IDENTIFICATION
 *	  extension/support.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "pg_sweep.h"

/* The patch that each function needs; see core-hooks/README.md */
#define REPLACEMENT_PATCH	"sweep-replacement-hooks"
#define PROC_PATCH			"numa-placement-hooks"
#define LWLOCK_PATCH		"lwlock-wait-hooks"
#define REFCOUNT_PATCH		"pins-private-refcount"
#define RING_PATCH			"ring-flush-hooks"

PgSweepState
pgsweep_state(void)
{
	if (&sweep_hooks_api == NULL || SetBufferReplacement == NULL)
		return PGSWEEP_STATE_NOT_PATCHED;
	if (sweep_hooks_api != SWEEP_HOOKS_API)
		return PGSWEEP_STATE_WRONG_API;
	if (PgSweep == NULL)
		return PGSWEEP_STATE_NOT_PRELOADED;
	return PGSWEEP_STATE_OK;
}

/* As pg_sweep_status shows it */
const char *
pgsweep_state_name(PgSweepState state)
{
	switch (state)
	{
		case PGSWEEP_STATE_OK:
			return "ok";
		case PGSWEEP_STATE_NOT_PRELOADED:
			return "not preloaded";
		case PGSWEEP_STATE_NOT_PATCHED:
			return "server not patched";
		case PGSWEEP_STATE_WRONG_API:
			return "wrong API";
	}
	pg_unreachable();
}

/*
 * The patches that the server lacks of those that most can be done without;
 * NULL if it has them all.
 */
static const char *
missing_patches(void)
{
	StringInfoData note;

	initStringInfo(&note);
	if (!pgsweep_has_proc_placement())
		appendStringInfo(&note, " %s", pgsweep_proc_placement_note());
	if (!pgsweep_has_lwlock_wait())
		appendStringInfo(&note, " %s", pgsweep_lwlock_wait_note());
	if (!pgsweep_has_private_refcount())
		appendStringInfo(&note, " %s", pgsweep_private_refcount_note());
	if (!pgsweep_has_ring_flush())
		appendStringInfo(&note, " %s", pgsweep_ring_flush_note());
	return note.len > 0 ? note.data + 1 : NULL;
}

/*
 * What to do about it; NULL if there is nothing to do.
 */
const char *
pgsweep_state_note(PgSweepState state)
{
	switch (state)
	{
		case PGSWEEP_STATE_OK:
			return missing_patches();
		case PGSWEEP_STATE_NOT_PRELOADED:
			return "Add pg_sweep to \"shared_preload_libraries\" and restart the server.";
		case PGSWEEP_STATE_NOT_PATCHED:
			return "The server lacks the core patch \"" REPLACEMENT_PATCH
				"\"; apply core-hooks to its source and build it again.";
		case PGSWEEP_STATE_WRONG_API:
			return psprintf("The server's hooks have API number %d, this library was built for %d; use the pg_sweep that the server's patches came with.",
							sweep_hooks_api, SWEEP_HOOKS_API);
	}
	pg_unreachable();
}

/*
 * For functions that change something.
 */
void
pgsweep_require_ok(const char *function)
{
	PgSweepState state = pgsweep_state();

	if (state == PGSWEEP_STATE_OK)
		return;

	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("%s() cannot be used: %s", function,
					state == PGSWEEP_STATE_NOT_PRELOADED ?
					"pg_sweep must be loaded via \"shared_preload_libraries\"" :
					state == PGSWEEP_STATE_NOT_PATCHED ?
					"the server lacks the core patch \"" REPLACEMENT_PATCH "\"" :
					"the server's hooks have another API number"),
			 errhint("%s", pgsweep_state_note(state))));
}

/*
 * Can PGPROCs be chosen, and processes be bound to nodes?
 */
bool
pgsweep_has_proc_placement(void)
{
	return &ProcPlacement != NULL;
}

/*
 * What is missing if they cannot.
 */
const char *
pgsweep_proc_placement_note(void)
{
	return "The server lacks the core patch \"" PROC_PATCH "\".";
}

/*
 * Can LWLocks be waited for in other ways than core's?
 */
bool
pgsweep_has_lwlock_wait(void)
{
	return &LWLockWait != NULL;
}

/*
 * What is missing if they cannot.
 */
const char *
pgsweep_lwlock_wait_note(void)
{
	return "The server lacks the core patch \"" LWLOCK_PATCH "\".";
}

/*
 * For functions that change how.
 */
void
pgsweep_require_lwlock_wait(const char *function)
{
	pgsweep_require_ok(function);
	if (pgsweep_has_lwlock_wait())
		return;

	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("%s() cannot be used: the server lacks the core patch \"" LWLOCK_PATCH "\"",
					function),
			 errhint("Apply core-hooks to its source and build it again.")));
}

/*
 * Can a process' pins be seen by others?
 */
bool
pgsweep_has_private_refcount(void)
{
	return MovePrivateRefCountHead != NULL;
}

/*
 * What is missing if they cannot.
 */
const char *
pgsweep_private_refcount_note(void)
{
	return "The server lacks the core patch \"" REFCOUNT_PATCH "\".";
}

/*
 * Can rings be written out in another way than core's?
 */
bool
pgsweep_has_ring_flush(void)
{
	return &RingFlush != NULL;
}

/*
 * What is missing if they cannot.
 */
const char *
pgsweep_ring_flush_note(void)
{
	return "The server lacks the core patch \"" RING_PATCH "\".";
}
