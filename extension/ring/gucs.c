/*-------------------------------------------------------------------------
 *
 * extension/ring/gucs.c
 *	  Parameters of the feature "ring".
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "feature.h"
#include "ring/ring.h"
#include "utils/guc.h"

bool		pgsweep_ring_eager_flush = false;

/*
 * ALTER ROLE and the like may set what this server cannot do: a dump that has
 * it must be restorable.  It is refused when it is to be used.
 */
static bool
check_eager_flush(bool *newval, void **extra, GucSource source)
{
	const char *missing = pgsweep_feature_missing(&pgsweep_ring_feature);

	if (source == PGC_S_TEST && *newval && missing)
	{
		ereport(NOTICE,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("\"%s\" cannot be used on this server", "pg_sweep.ring_eager_flush"),
				 errdetail("%s", missing)));
		return true;
	}
	return pgsweep_check_guc(&pgsweep_ring_feature, *newval);
}

void
pgsweep_ring_define_gucs(void)
{
	DefineCustomBoolVariable("pg_sweep.ring_eager_flush",
							 "Writes out the ring of a bulk write or of VACUUM when a dirty buffer of it is reused.",
							 "Only what needs no WAL flush is written, neighboring blocks in one call of up to \"io_combine_limit\".",
							 &pgsweep_ring_eager_flush,
							 false,
							 PGC_SUSET,
							 0,
							 check_eager_flush, NULL, NULL);
}
