/*-------------------------------------------------------------------------
 *
 * extension/pg_sweep.c
 *	  Loading: check the server, then let each feature set itself up.
 *
 * Three stages, in three hooks of core: parameters and checks here, the request
 * for shared memory once MaxBackends is known, and its initialization, after
 * which core may call what the features install.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "feature.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "shared.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/guc.h"

PG_MODULE_MAGIC_EXT(
					.name = "pg_sweep",
					.version = PGSWEEP_VERSION
);

#define FEATURE_ROW(name) &pgsweep_##name##_feature,

const PgSweepFeature *const pgsweep_features[] = {
	PGSWEEP_FEATURES(FEATURE_ROW)
	NULL
};

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

static void
pgsweep_shmem_request(void)
{
	const PgSweepFeature *feature;
	Size		size = pgsweep_shared_size();

	if (prev_shmem_request_hook)
		prev_shmem_request_hook();

	for (int i = 0; (feature = pgsweep_features[i]) != NULL; i++)
		if (feature->prepare && pgsweep_feature_works(feature))
			feature->prepare();
	for (int i = 0; (feature = pgsweep_features[i]) != NULL; i++)
		if (feature->shmem_size && pgsweep_feature_works(feature))
			size = add_size(size, feature->shmem_size());

	RequestAddinShmemSpace(size);
	RequestNamedLWLockTranche("pg_sweep", 1);
}

/*
 * Refuse to start where another library has taken a hook.
 */
static void
check_conflicts(void)
{
	const PgSweepFeature *feature;

	for (int i = 0; (feature = pgsweep_features[i]) != NULL; i++)
	{
		const char *conflict = NULL;

		if (feature->conflict && pgsweep_feature_works(feature))
			conflict = feature->conflict();
		if (conflict)
			ereport(FATAL,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("pg_sweep cannot be loaded: %s", conflict)));
	}
}

static void
pgsweep_shmem_startup(void)
{
	const PgSweepFeature *feature;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	check_conflicts();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	pgsweep_shared_init();
	for (int i = 0; (feature = pgsweep_features[i]) != NULL; i++)
		if (feature->shmem_init && pgsweep_feature_works(feature))
			feature->shmem_init();
	LWLockRelease(AddinShmemInitLock);

	for (int i = 0; (feature = pgsweep_features[i]) != NULL; i++)
		if (feature->install && pgsweep_feature_works(feature))
			feature->install();
}

static void
define_gucs(void)
{
	const PgSweepFeature *feature;

	for (int i = 0; (feature = pgsweep_features[i]) != NULL; i++)
		if (feature->define_gucs)
			feature->define_gucs();
	MarkGUCPrefixReserved("pg_sweep");
}

/*
 * Only the background writer applies a changed configuration to shared
 * memory, as the checkpointer does for core's shared settings.  With several
 * processes, a late reader of the file could bring an old value back.
 */
void
pgsweep_apply_configuration(void)
{
	const PgSweepFeature *feature;

	for (int i = 0; (feature = pgsweep_features[i]) != NULL; i++)
		if (feature->apply_configuration && pgsweep_feature_works(feature))
			feature->apply_configuration();
}

void
_PG_init(void)
{
	PgSweepState state;

	/*
	 * Loaded later than at server start, by CREATE EXTENSION or a function
	 * call: the views answer and say why nothing else works.
	 */
	if (!process_shared_preload_libraries_in_progress)
		return;

	/* Before anything is installed, because nothing may be left half done */
	state = pgsweep_state();
	if (state == PGSWEEP_STATE_WRONG_API)
		ereport(FATAL,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pg_sweep was built for hook API number %d, but this server has number %d",
						SWEEP_HOOKS_API, sweep_hooks_api),
				 errhint("Use the pg_sweep that the server's patches came with, or remove it from \"shared_preload_libraries\".")));

	define_gucs();
	if (state == PGSWEEP_STATE_NOT_PATCHED)
	{
		ereport(WARNING,
				(errmsg("pg_sweep does nothing on this server"),
				 errdetail("%s", pgsweep_state_note(state))));
		return;
	}

	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = pgsweep_shmem_request;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = pgsweep_shmem_startup;
}
