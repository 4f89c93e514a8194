/*-------------------------------------------------------------------------
 *
 * sim/glue/lwlock.c
 *	  What lwlock.c and extension/lwlock/ need of the rest of the server:
 *	  PGPROCs, semaphores, locks, the library's shared memory, parameters.
 *
 * The locks themselves, their queue and the policies of waiting are the real
 * files (lib/build.py lists them).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <time.h>

#include "glue/glue.h"
#include "lwlock/lwlock.h"
#include "storage/pg_sema.h"
#include "storage/proc.h"
#include "storage/spin.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

SIM_COMMON bool sim_have_procs = false;
int64		sim_lwlock_sleeps = 0;	/* of this process: waits for an LWLock */

/* the same for all */
static SIM_COMMON PROC_HDR proc_global;
SIM_COMMON PROC_HDR *ProcGlobal = &proc_global;
SIM_COMMON slock_t *ShmemLock = NULL;
SIM_COMMON bool process_shmem_requests_in_progress = false;
SIM_COMMON MemoryContext TopMemoryContext = NULL;

SIM_COMMON int pgsweep_lwlock_spin_tries = PGSWEEP_LWLOCK_TRIES;
SIM_COMMON int pgsweep_lwlock_handoff_after = PGSWEEP_LWLOCK_HANDOFF_MS;
SIM_COMMON bool pgsweep_lwlock_track_waits = true;

struct PGSemaphoreData
{
	SimSem		sem;
};

/*
 * PGPROCs of n processes, one after the other as in a server, and that one's
 * locks by its own code.
 */
void
sim_procs_setup(int n)
{
	PGPROC	   *procs = sim_shared_alloc("procs", n * sizeof(PGPROC), PG_CACHE_LINE_SIZE,
										 SIM_INTERLEAVE);
	struct PGSemaphoreData *semaphores = calloc(n, sizeof(semaphores[0]));

	sim_have_procs = true;
	if (semaphores == NULL)
		sim_fail("no memory for %d semaphores", n);
	proc_global.allProcs = procs;
	proc_global.allProcCount = n;
	pg_atomic_init_u32(&proc_global.procArrayGroupFirst, INVALID_PROC_NUMBER);
	for (int i = 0; i < n; i++)
	{
		procs[i].sem = &semaphores[i];
		pg_atomic_init_u32(&procs[i].procArrayGroupNext, INVALID_PROC_NUMBER);
	}

	ShmemLock = calloc(1, sizeof(slock_t));
	process_shmem_requests_in_progress = true;
	RequestNamedLWLockTranche("pg_sweep", 1);
	process_shmem_requests_in_progress = false;
	CreateLWLocks();
}

/*
 * The PGPROC of this fiber.
 */
void
sim_proc_attach(void)
{
	MyProc = GetPGProcByNumber(MyProcNumber);
	my_wait_event_info = &MyProc->wait_event_info;
}

/*
 * Memory of the processes that is never given back: of start only.
 */
void *
ShmemAlloc(Size size)
{
	return sim_shared_alloc("locks", size, PG_CACHE_LINE_SIZE, 0);
}

void *
MemoryContextAlloc(MemoryContext context, Size size)
{
	return MemoryContextAllocZero(context, size);
}

void *
MemoryContextAllocZero(MemoryContext context, Size size)
{
	void	   *p = calloc(1, size);

	if (p == NULL)
		sim_fail("no memory");
	return p;
}

void *
repalloc(void *pointer, Size size)
{
	sim_fail("called repalloc()");
}

void *
repalloc0(void *pointer, Size oldsize, Size size)
{
	sim_fail("called repalloc0()");
}

size_t
strlcpy(char *dst, const char *src, size_t size)
{
	return snprintf(dst, size, "%s", src);
}

/*
 * The lock's waits are told from others by what a process says it waits for.
 */
void
PGSemaphoreLock(PGSemaphore sema)
{
	if (*my_wait_event_info != 0)
		sim_lwlock_sleeps++;
	sim_sem_wait(&sema->sem);
}

void
PGSemaphoreUnlock(PGSemaphore sema)
{
	sim_sem_post(&sema->sem);
}

/*
 * In the place of the C library's, for all that is played.
 */
int
clock_gettime(clockid_t id, struct timespec *now)
{
	SimTime		ns = sim_now() / SIM_NS;

	now->tv_sec = ns / 1000000000;
	now->tv_nsec = ns % 1000000000;
	return 0;
}

/*
 * A lock in lines of its own, as those of the main array are.
 */
LWLock *
sim_lwlock(const char *region, int tranche)
{
	LWLockPadded *lock = sim_shared_alloc(region, sizeof(LWLockPadded), sizeof(LWLockPadded), 0);

	LWLockInitialize(&lock->lock, tranche);
	return &lock->lock;
}

/*
 * The library, as if it were preloaded, with a policy for all tranches.  Its
 * parameters are the defaults of pg_sweep.lwlock_*.
 */
void
sim_lwlock_setup(PgSweepLwlockPolicyId policy, int nprocs)
{
	PgSweepLwlock = sim_shared_alloc("lwlock", sizeof(PgSweepLwlockShared),
									 PG_CACHE_LINE_SIZE, SIM_INTERLEAVE);
	PgSweepLwlock->slots = sim_shared_alloc("lwlock",
											nprocs * sizeof(PgSweepLwlockSlotPadded),
											PG_CACHE_LINE_SIZE, SIM_INTERLEAVE);
	PgSweepLwlock->default_policy = policy;
	memset(PgSweepLwlock->tranche_policy, PGSWEEP_LWLOCK_DEFAULT, PGSWEEP_LWLOCK_NUM_TRANCHES);
	PgSweepLwlock->num_slots = nprocs;
	LWLockWait = &pgsweep_lwlock_wait_routine;
}

/*
 * What one process has counted of its waits for a tranche, in one mode; of all
 * zeroes if there were none.
 */
PgSweepLwlockCounts
sim_lwlock_counts(int proc, uint16 tranche, LWLockMode mode)
{
	PgSweepLwlockSlot *slot = &PgSweepLwlock->slots[proc].slot;

	for (int i = 0; i < PGSWEEP_LWLOCK_ENTRIES; i++)
		if (slot->entries[i].key == pgsweep_lwlock_key(tranche, mode))
			return slot->entries[i].counts;
	return (PgSweepLwlockCounts) {0};
}
