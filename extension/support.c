/*-------------------------------------------------------------------------
 *
 * extension/support.c
 *	  Can pg_sweep and its features work on this server, and if not, why not?
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "feature.h"
#include "lib/stringinfo.h"
#include "shared.h"
#include "utils/guc.h"

PgSweepState
pgsweep_state(void)
{
	if (&sweep_hooks_api == NULL || pgsweep_features[0]->symbol == NULL)
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
 * The patches of the series that the server lacks, of those that pg_sweep can
 * do without; NULL if it has them all.
 */
static const char *
missing_patches(void)
{
	StringInfoData note;

	initStringInfo(&note);
	for (int i = 0; pgsweep_features[i]; i++)
	{
		const PgSweepFeature *feature = pgsweep_features[i];
		const char *missing = pgsweep_feature_missing(feature);

		if (missing && !feature->optional_patch)
			appendStringInfo(&note, "%s%s", note.len > 0 ? " " : "", missing);
	}
	return note.len > 0 ? note.data : NULL;
}

/*
 * How to leave a state that is not "ok"; NULL if there is nothing to do.
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
			return psprintf("The server lacks the core patch \"%s\"; apply core-hooks to its source and build it again.",
							pgsweep_features[0]->patch);
		case PGSWEEP_STATE_WRONG_API:
			return psprintf("The server's hooks have API number %d, this library was built for %d; use the pg_sweep that the server's patches came with.",
							sweep_hooks_api, SWEEP_HOOKS_API);
	}
	pg_unreachable();
}

/*
 * A sentence about the patch that the server lacks; NULL if it has it.
 */
const char *
pgsweep_feature_missing(const PgSweepFeature *feature)
{
	if (feature->symbol != NULL)
		return NULL;
	return psprintf("The server lacks the %score patch \"%s\".",
					feature->optional_patch ? "optional " : "", feature->patch);
}

/*
 * For functions that change something.
 */
void
pgsweep_require_feature(const PgSweepFeature *feature, const char *function)
{
	PgSweepState state = pgsweep_state();

	if (state != PGSWEEP_STATE_OK)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("%s() cannot be used: %s", function,
						state == PGSWEEP_STATE_NOT_PRELOADED ?
						"pg_sweep must be loaded via \"shared_preload_libraries\"" :
						state == PGSWEEP_STATE_NOT_PATCHED ?
						psprintf("the server lacks the core patch \"%s\"",
								 pgsweep_features[0]->patch) :
						"the server's hooks have another API number"),
				 errhint("%s", pgsweep_state_note(state))));

	if (feature->symbol == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("%s() cannot be used: the server lacks the core patch \"%s\"",
						function, feature->patch),
				 errhint("Apply core-hooks to its source and build it again.")));
}

/*
 * For check hooks of parameters.  A value that cannot work on this server is
 * refused: at start with a warning, and by ALTER SYSTEM.
 */
bool
pgsweep_check_guc(const PgSweepFeature *feature, bool wanted)
{
	if (!wanted || feature->symbol != NULL)
		return true;
	GUC_check_errcode(ERRCODE_FEATURE_NOT_SUPPORTED);
	GUC_check_errdetail("%s", pgsweep_feature_missing(feature));
	if (feature->optional_patch)
		GUC_check_errhint("Use core-hooks/apply with --with %s, and build the server again.",
						  feature->patch);
	return false;
}
