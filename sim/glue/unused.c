/*-------------------------------------------------------------------------
 *
 * unused.c
 *	  What the files that are played refer to, and must not come to here.
 *
 * Weak: a file that is played may bring the real one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lwlock/lwlock.h"
#include "feature.h"
#include "lwlock/lwlock.h"
#include "pgstat.h"
#include "postmaster/bgwriter.h"
#include "ring/ring.h"
#include "storage/bufmgr.h"
#include "storage/shmem.h"

#define WEAK	__attribute__((weak))

#define UNUSED(type, name, args) \
	WEAK type name args { sim_fail("%s() was called", #name); }

SIM_COMMON WEAK int bgwriter_lru_maxpages = 0;
SIM_COMMON WEAK int BgWriterDelay = 200;
SIM_COMMON WEAK double bgwriter_lru_multiplier = 2.0;
SIM_COMMON WEAK PgStat_BgWriterStats PendingBgWriterStats;
SIM_COMMON WEAK PgSweepLwlockShared *PgSweepLwlock = NULL;

UNUSED(int, StrategySyncStart, (uint32 *complete_passes, uint32 *num_buf_alloc))
UNUSED(void, pgsweep_apply_configuration, (void))
