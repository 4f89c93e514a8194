/*-------------------------------------------------------------------------
 *
 * sim/glue/server.c
 *	  Stand-ins for the server around the strategies: global variables, clock,
 *	  errors, spinlocks and buffer headers.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <stdarg.h>

#include "common/hashfn.h"
#include "common/pg_prng.h"
#include "feature.h"
#include "glue/glue.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgwriter.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

/* ---- of a process; each fiber has its own ---- */

ProcNumber	MyProcNumber = INVALID_PROC_NUMBER;
PGPROC	   *MyProc = NULL;
int			MyProcPid = 0;
volatile uint32 InterruptHoldoffCount = 0;
volatile uint32 CritSectionCount = 0;

/* ---- constant after start ---- */

SIM_COMMON bool IsUnderPostmaster = false;
SIM_COMMON int NBuffers = 0;
SIM_COMMON int MaxBackends = 0;
SIM_COMMON BufferDescPadded *BufferDescriptors = NULL;
SIM_COMMON char *BufferBlocks = NULL;

static SIM_COMMON PGPROC no_proc;

/* Process ids are this plus the number of the fiber */
#define FIRST_PID	1000

/*
 * Processes are numbered as fibers are.
 */
void
sim_process_begins(void)
{
	MyProcNumber = sim_self();
	MyProcPid = FIRST_PID + MyProcNumber;
	MyProc = &no_proc;			/* not NULL is all that is asked for */
	if (sim_have_procs)
		sim_proc_attach();
}

/* ---- errors: none of them is expected ---- */

static SIM_COMMON char message[256];

/* The server has its own, for formats that are not used here */
#undef vsnprintf

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

int
errmsg_internal(const char *fmt,...)
{
	va_list		args;

	va_start(args, fmt);
	vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);
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

void
pg_usleep(long microsec)
{
	sim_sleep(microsec * SIM_US);
}

/* ---- chance: the fiber's, whatever state is asked for ---- */

pg_prng_state pg_global_prng_state;

double
pg_prng_double(pg_prng_state *state)
{
	return sim_random() / 4294967296.0;
}

/* ---- spinlocks are s_lock.c's; this is what it reports ---- */

static uint32 wait_event = 0;
uint32 *my_wait_event_info = &wait_event;

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

/* ---- what the played files refer to, and do not use here ---- */

#define UNUSED(type, name, args) \
	type name args { sim_fail("%s() was called", #name); }

SIM_COMMON int bgwriter_lru_maxpages = 0;
SIM_COMMON int BgWriterDelay = 200;
SIM_COMMON double bgwriter_lru_multiplier = 2.0;
SIM_COMMON PgStat_BgWriterStats PendingBgWriterStats;

UNUSED(int, StrategySyncStart, (uint32 *complete_passes, uint32 *num_buf_alloc))
UNUSED(void, pgsweep_apply_configuration, (void))
