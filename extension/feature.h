/*-------------------------------------------------------------------------
 *
 * extension/feature.h
 *	  What a feature of pg_sweep is.
 *
 * To add one: write extension/NAME/ with one const PgSweepFeature named
 * pgsweep_NAME_feature, and add a line to PGSWEEP_FEATURES.  Its views and
 * functions go into the install script.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_FEATURE_H
#define PGSWEEP_FEATURE_H

#pragma GCC visibility push(hidden)

struct PgSweepRow;

/*
 * Members are called in the order of PGSWEEP_FEATURES.  Each but the first two
 * may be NULL: the feature then has nothing to do there.
 *
 * All but define_gucs and put_status are called only if the server has the
 * feature's patch, or works_without_patch is set.
 */
typedef struct PgSweepFeature
{
	/* ---- required ---- */

	/*
	 * The core patch that the feature needs, by its name in core-hooks/NN,
	 * and the address of a symbol that the patch adds: a weak reference, so
	 * NULL on a server without it (compat.h).
	 */
	const char *patch;
	const void *symbol;

	/* ---- optional ---- */

	/*
	 * The patch is one of core-hooks/NN/optional: a server without it is
	 * complete.
	 */
	bool		optional_patch;

	/*
	 * The feature does a part of its work on a server without the patch.  Its
	 * members look by themselves which part that is.
	 */
	bool		works_without_patch;

	/*
	 * Define the parameters, on any server that preloads the library, with
	 * the patch or without.  In the postmaster, from _PG_init.  May ereport.
	 */
	void		(*define_gucs) (void);

	/*
	 * Called once in the life of the postmaster, before any shmem_size:
	 * MaxBackends and all parameters are known.  May ereport.
	 */
	void		(*prepare) (void);

	/*
	 * The shared memory that shmem_init will ask for, in bytes.  In the
	 * postmaster.  May ereport.
	 */
	Size		(*shmem_size) (void);

	/*
	 * Create or find the feature's shared memory, and initialize what was
	 * created.  In the postmaster, again after a crash; core's part of shared
	 * memory is there.  The caller holds AddinShmemInitLock.  May ereport.
	 */
	void		(*shmem_init) (void);

	/*
	 * If another library has taken the feature's hook, what that library did,
	 * for the message with which the server refuses to start; else NULL.
	 * After a crash, the feature's own routine is in the hook already. Called
	 * for all features before any shmem_init.  Must not ereport.
	 */
	const char *(*conflict) (void);

	/*
	 * Take the hook: from here on, core calls the feature.  In the
	 * postmaster, after all shmem_init, without locks; again after a crash.
	 * Must not ereport(ERROR).
	 */
	void		(*install) (void);

	/*
	 * A process takes the slot of its ProcNumber, or leaves it at exit (from
	 * on_shmem_exit).  take_slot is called in the middle of an allocation: no
	 * memory must be allocated, no lock taken that the process could hold,
	 * and nothing raised.
	 */
	void		(*take_slot) (void);
	void		(*leave_slot) (void);

	/*
	 * Apply the parameters of this process to shared memory, if they have
	 * changed since the last time.  Called in each cycle of the background
	 * writer, and only in that process: no lock is needed to see that nothing
	 * has changed.  No lock is held.  May ereport.
	 */
	void		(*apply_configuration) (void);

	/*
	 * Reset the counters.  In any backend, which holds PgSweep->lock
	 * exclusively; PgSweep->stats_reset is set.  Must not ereport(ERROR).
	 */
	void		(*reset) (void);

	/*
	 * Add the feature's columns to the row of pg_sweep_status, NULLs if the
	 * server lacks the patch.  In any backend of a server in state "ok",
	 * without locks.  May ereport.
	 */
	void		(*put_status) (struct PgSweepRow *row);
} PgSweepFeature;

/*
 * May the members be called that need the patch?
 */
static inline bool
pgsweep_feature_works(const PgSweepFeature *feature)
{
	return feature->symbol != NULL || feature->works_without_patch;
}

/*
 * All features.  Their columns are in pg_sweep_status in this order.  The server
 * must have the patch of the first one; each other can do without its own.
 */
#define PGSWEEP_FEATURES(FEATURE) \
	FEATURE(sweep) \
	FEATURE(advice) \
	FEATURE(numa) \
	FEATURE(numa_hits) \
	FEATURE(lwlock) \
	FEATURE(pins) \
	FEATURE(ring) \
								/* end of the list */

#define PGSWEEP_DECLARE_FEATURE(name) extern const PgSweepFeature pgsweep_##name##_feature;
PGSWEEP_FEATURES(PGSWEEP_DECLARE_FEATURE)

/* pg_sweep.c; the last element is NULL */
extern const PgSweepFeature *const pgsweep_features[];
extern void pgsweep_apply_configuration(void);

/* support.c */
typedef enum PgSweepState
{
	PGSWEEP_STATE_OK,
	PGSWEEP_STATE_NOT_PRELOADED,
	PGSWEEP_STATE_NOT_PATCHED,
	PGSWEEP_STATE_WRONG_API,
} PgSweepState;

extern PgSweepState pgsweep_state(void);
extern const char *pgsweep_state_name(PgSweepState state);
extern const char *pgsweep_state_note(PgSweepState state);
extern const char *pgsweep_feature_missing(const PgSweepFeature *feature);
extern void pgsweep_require_feature(const PgSweepFeature *feature, const char *function);
extern bool pgsweep_check_guc(const PgSweepFeature *feature, bool wanted);

#pragma GCC visibility pop

#endif							/* PGSWEEP_FEATURE_H */
