/*-------------------------------------------------------------------------
 *
 * test/lwlock/threads/stubs.c
 *	  Parts of the server that lwlock.c and lwlock/ use in the harness; unused.c
 *	  has those that they only refer to.
 *
 *-------------------------------------------------------------------------
 */
#include "shim.h"

PGPROC		harness_procs[HARNESS_MAX_BACKENDS];
static PROC_HDR proc_global;
PROC_HDR   *ProcGlobal = &proc_global;

static uint32 wait_event;
uint32	   *my_wait_event_info = &wait_event;
bool		IsUnderPostmaster = true;

/* Used in code that the harness does not reach */
bool		process_shmem_requests_in_progress = false;
MemoryContext TopMemoryContext = NULL;
slock_t    *ShmemLock = NULL;

extern void harness_stubs_init(void);

void
harness_stubs_init(void)
{
	Size		waits = 2 * sizeof(PgSweepLwlockSlotPadded);

	proc_global.allProcs = harness_procs;
	proc_global.allProcCount = HARNESS_MAX_BACKENDS;
	for (int i = 0; i < HARNESS_MAX_BACKENDS; i++)
		harness_my_proc[i] = &harness_procs[i];

	PgSweepLwlock = calloc(1, sizeof(PgSweepLwlockShared));
	if (PgSweepLwlock == NULL)
		abort();
	PgSweepLwlock->slots = aligned_alloc(4096, TYPEALIGN(4096, waits));
	if (PgSweepLwlock->slots == NULL)
		abort();
	memset(PgSweepLwlock->slots, 0, waits);
	/* backends share them, as on a server with more processes than slots */
	PgSweepLwlock->num_slots = 2;
}

void
perform_spin_delay(SpinDelayStatus *status)
{
	HARNESS_ME->spins++;
	harness_pause();
}

void
finish_spin_delay(SpinDelayStatus *status)
{
}

void
ExceptionalCondition(const char *condition, const char *file, int line)
{
	harness_fail("assertion %s in %s:%d", condition, file, line);
}
