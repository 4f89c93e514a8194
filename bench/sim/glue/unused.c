/*-------------------------------------------------------------------------
 *
 * unused.c
 *	  What the files that are played refer to, and must not come to here.
 *
 * Weak: a file that is played may bring the real one.
 *
 * bench/sim/glue/unused.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lwwait/lwwait.h"
#include "pg_sweep.h"
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
SIM_COMMON WEAK PgSweepLwWaitShared *PgSweepLwWait = NULL;

UNUSED(int, StrategySyncStart, (uint32 *complete_passes, uint32 *num_buf_alloc))
UNUSED(void, pgsweep_apply_configuration, (void))
UNUSED(Size, pgsweep_lwwait_shmem_size, (uint32 num_slots))
UNUSED(void, pgsweep_lwwait_shmem_init, (PgSweepLwWaitShared *shared, uint32 num_slots))
UNUSED(void, pgsweep_reset_lwwaits, (void))
UNUSED(Size, pgsweep_pins_shmem_size, (uint32 num_slots))
UNUSED(void, pgsweep_pins_shmem_init, (uint32 num_slots))
UNUSED(Size, pgsweep_ring_shmem_size, (void))
UNUSED(void, pgsweep_ring_shmem_init, (void))
UNUSED(void, pgsweep_ring_reset_counts, (void))
