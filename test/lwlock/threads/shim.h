/*-------------------------------------------------------------------------
 *
 * test/lwlock/threads/shim.h
 *	  Included before each file of the server or the extension (-include): lets
 *	  threads play backends.
 *
 * Globals of a process are elements of arrays here; per_backend does the same for
 * static variables.  Each atomic operation, barrier and sleep is a point where
 * others may run, and is observed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SHIM_H
#define SHIM_H

#include "postgres.h"

#include <time.h>

/* before instr_time.h, which has it in inline functions */
extern int	harness_clock_gettime(clockid_t id, struct timespec *now);
#define clock_gettime harness_clock_gettime

#include "miscadmin.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "portability/instr_time.h"
#include "storage/lwlock.h"
#include "storage/pg_sema.h"
#include "storage/proc.h"
#include "storage/s_lock.h"

#include "harness.h"

/* Globals of a process.  Its ProcNumber is the number of the backend. */
extern PGPROC *harness_my_proc[HARNESS_MAX_BACKENDS];

#define MyProc					(harness_my_proc[harness_self])
#define MyProcNumber			((ProcNumber) harness_self)
#define InterruptHoldoffCount	(HARNESS_ME->holdoff)

/* A full barrier, which ThreadSanitizer is told about (tsan.c) */
#ifdef HARNESS_TSAN
#define harness_full_barrier()	harness_read_barrier()
#else
#define harness_full_barrier()	((void) 0)
#endif

/*
 * Atomic operations.  For code that keeps to the rules, a point before each is
 * enough; the one after it is for code that does not.
 */
static inline bool
harness_cas(volatile pg_atomic_uint64 *ptr, uint64 *expected, uint64 newval)
{
	uint64		old = *expected;
	HarnessLinks mine = harness_links();
	bool		done;

	harness_point();
	done = pg_atomic_compare_exchange_u64(ptr, expected, newval);
	if (done)
		harness_observe(ptr, old, newval, &mine);
	harness_full_barrier();
	harness_point();
	return done;
}

#define HARNESS_FETCH(name, type, operator) \
static inline uint64 \
harness_fetch_##name(volatile pg_atomic_uint64 *ptr, type operand) \
{ \
	HarnessLinks mine = harness_links(); \
	uint64		old; \
\
	harness_point(); \
	old = pg_atomic_fetch_##name##_u64(ptr, operand); \
	harness_observe(ptr, old, old operator operand, &mine); \
	harness_full_barrier(); \
	harness_point(); \
	return old; \
}

HARNESS_FETCH(or, uint64, |)
HARNESS_FETCH(and, uint64, &)
HARNESS_FETCH(add, int64, +)

static inline uint64
harness_exchange(volatile pg_atomic_uint64 *ptr, uint64 newval)
{
	uint64		old;

	harness_point();
	old = pg_atomic_exchange_u64(ptr, newval);
	harness_full_barrier();
	harness_point();
	return old;
}

static inline uint64
harness_read(volatile pg_atomic_uint64 *ptr)
{
	harness_point();
	return pg_atomic_read_u64(ptr);
}

#define pg_atomic_compare_exchange_u64(p, e, n) harness_cas(p, e, n)
#define pg_atomic_fetch_or_u64(p, v)	harness_fetch_or(p, v)
#define pg_atomic_fetch_and_u64(p, v)	harness_fetch_and(p, v)
#define pg_atomic_fetch_add_u64(p, v)	harness_fetch_add(p, v)
#define pg_atomic_fetch_sub_u64(p, v)	harness_fetch_add(p, -(int64) (v))
#define pg_atomic_add_fetch_u64(p, v)	(harness_fetch_add(p, v) + (v))
#define pg_atomic_sub_fetch_u64(p, v)	(harness_fetch_add(p, -(int64) (v)) - (v))
#define pg_atomic_exchange_u64(p, v)	harness_exchange(p, v)
#define pg_atomic_read_u64(p)			harness_read(p)

#undef pg_read_barrier
#undef pg_write_barrier
#undef pg_memory_barrier
#ifdef HARNESS_TSAN
#define pg_read_barrier()	(harness_read_barrier(), harness_point())
#define pg_write_barrier()	(harness_point(), harness_write_barrier())
#define pg_memory_barrier() (harness_read_barrier(), harness_point(), harness_write_barrier())
#else
#define pg_read_barrier()	do { pg_read_barrier_impl(); harness_point(); } while (0)
#define pg_write_barrier()	do { harness_point(); pg_write_barrier_impl(); harness_point(); } while (0)
#define pg_memory_barrier() do { pg_memory_barrier_impl(); harness_point(); } while (0)
#endif

#undef SPIN_DELAY
#define SPIN_DELAY()	harness_pause()

#ifdef HARNESS_EXTENSION
#include "lwlock/lwlock.h"

#define pgsweep_lwlock_spin_tries		(HARNESS_ME->spin_tries)
#define pgsweep_lwlock_handoff_after	(HARNESS_ME->handoff_after)
#define pgsweep_lwlock_track_waits		(HARNESS_ME->track)
#endif

#endif							/* SHIM_H */
