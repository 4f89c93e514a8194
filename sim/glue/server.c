/*-------------------------------------------------------------------------
 *
 * server.c
 *	  What stands in for the server around the strategies: its global variables,
 *	  its clock, its errors, its spinlocks and buffer headers.
 *
 * Weak are those that a file of the server which is played may bring along.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <stdarg.h>

#include "common/pg_prng.h"
#include "glue/glue.h"
#include "miscadmin.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#define WEAK	__attribute__((weak))

/* ---- of a process; each fiber has its own ---- */

ProcNumber	MyProcNumber = INVALID_PROC_NUMBER;
WEAK PGPROC *MyProc = NULL;
int			MyProcPid = 0;
WEAK volatile uint32 InterruptHoldoffCount = 0;
WEAK volatile uint32 CritSectionCount = 0;

/* ---- constant after start ---- */

SIM_COMMON WEAK bool IsUnderPostmaster = false;
SIM_COMMON int NBuffers = 0;
SIM_COMMON int MaxBackends = 0;
SIM_COMMON BufferDescPadded *BufferDescriptors = NULL;
SIM_COMMON char *BufferBlocks = NULL;
SIM_COMMON WEAK LWLockPadded *MainLWLockArray = NULL;

static SIM_COMMON bool have_procs = false;
static SIM_COMMON PGPROC no_proc;

/* PGPROCs come with the locks that need them */
#pragma weak sim_procs_setup
#pragma weak sim_proc_attach
extern void sim_procs_setup(int nprocs);
extern void sim_proc_attach(void);

void
glue_procs_setup(int n)
{
	if (sim_procs_setup != NULL)
	{
		sim_procs_setup(n);
		have_procs = true;
	}
}

/*
 * Processes are numbered as fibers are.
 */
void
sim_process_begins(void)
{
	MyProcNumber = sim_self();
	MyProcPid = GLUE_FIRST_PID + MyProcNumber;
	MyProc = &no_proc;			/* somebody, for those that only ask that */
	if (have_procs)
		sim_proc_attach();
}

/* ---- errors: none of them is expected ---- */

static SIM_COMMON char message[256];

bool
errstart(int elevel, const char *domain)
{
	return elevel >= ERROR;
}

bool
errstart_cold(int elevel, const char *domain)
{
	return errstart(elevel, domain);
}

#define FORMAT_MESSAGE(fmt) \
	do { \
		va_list	args; \
		va_start(args, fmt); \
		vsnprintf(message, sizeof(message), fmt, args); \
		va_end(args); \
	} while (0)

int
errmsg_internal(const char *fmt,...)
{
	FORMAT_MESSAGE(fmt);
	return 0;
}

int
errmsg(const char *fmt,...)
{
	FORMAT_MESSAGE(fmt);
	return 0;
}

int
errdetail(const char *fmt,...)
{
	return 0;
}

int
errhint(const char *fmt,...)
{
	return 0;
}

int
errcode(int sqlerrcode)
{
	return 0;
}

void
errfinish(const char *filename, int lineno, const char *funcname)
{
	sim_fail("fiber %d: %s (%s, %s:%d)", sim_self(), message, funcname, filename, lineno);
}

void
ExceptionalCondition(const char *condition, const char *filename, int lineno)
{
	sim_fail("fiber %d: assertion \"%s\" failed (%s:%d)", sim_self(), condition, filename, lineno);
}

/* The server has its own, for formats that we do not use */
#undef vsnprintf

int
pg_vsnprintf(char *str, size_t count, const char *fmt, va_list args)
{
	return vsnprintf(str, count, fmt, args);
}

int
pg_snprintf(char *str, size_t count, const char *fmt,...)
{
	va_list		args;
	int			n;

	va_start(args, fmt);
	n = vsnprintf(str, count, fmt, args);
	va_end(args);
	return n;
}

/* ---- clock ---- */

/* Any moment will do; a run begins at the same one each time */
#define START_OF_TIME	INT64CONST(800000000000000)

TimestampTz
GetCurrentTimestamp(void)
{
	return START_OF_TIME + sim_now() / SIM_US;
}

bool
TimestampDifferenceExceeds(TimestampTz start_time, TimestampTz stop_time, int msec)
{
	return stop_time - start_time >= msec * INT64CONST(1000);
}

WEAK void
pg_usleep(long microsec)
{
	sim_sleep(microsec * SIM_US);
}

/* ---- chance: the fiber's, whatever state is asked for ---- */

WEAK pg_prng_state pg_global_prng_state;

WEAK double
pg_prng_double(pg_prng_state *state)
{
	return sim_random() / 4294967296.0;
}

WEAK uint32
pg_prng_uint32(pg_prng_state *state)
{
	return sim_random();
}

/* ---- spinlocks are s_lock.c's; this is what it reports ---- */

static uint32 wait_event = 0;
WEAK uint32 *my_wait_event_info = &wait_event;

/* ---- LWLocks, unless lwlock.c is played: nobody waits for one ---- */

WEAK bool
LWLockAcquire(LWLock *lock, LWLockMode mode)
{
	return true;
}

WEAK void
LWLockRelease(LWLock *lock)
{
}

WEAK LWLockPadded *
GetNamedLWLockTranche(const char *tranche_name)
{
	return sim_shared_alloc("locks", sizeof(LWLockPadded), PG_CACHE_LINE_SIZE, 0);
}

/* ---- shared memory ---- */

void *
ShmemInitStruct(const char *name, Size size, bool *found)
{
	*found = false;
	return sim_shared_alloc(name, size, PG_CACHE_LINE_SIZE, SIM_INTERLEAVE);
}

Size
add_size(Size s1, Size s2)
{
	return s1 + s2;
}

Size
mul_size(Size s1, Size s2)
{
	return s1 * s2;
}

void
on_shmem_exit(pg_on_exit_callback function, Datum arg)
{
	/* processes stay to the end */
}

/* ---- buffer headers ---- */

/*
 * As in bufmgr.c of the server.
 */
uint32
LockBufHdr(BufferDesc *desc)
{
	SpinDelayStatus delay;
	uint32		state;

	init_local_spin_delay(&delay);
	while ((state = pg_atomic_fetch_or_u32(&desc->state, BM_LOCKED)) & BM_LOCKED)
		perform_spin_delay(&delay);
	finish_spin_delay(&delay);
	return state | BM_LOCKED;
}
