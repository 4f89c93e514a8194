/*-------------------------------------------------------------------------
 *
 * test/lwlock/test_lwlock/test_lwlock.h
 *	  Tests of waiting for LWLocks, from inside the server.
 *
 * Preloaded after pg_sweep.
 *
 *	 test_lwlock.c		loading, parameters, shared memory, background workers
 *	 hooks.c			stop points around the hooks for waiting
 *	 actors.c			sessions that take commands from others
 *	 state.c			a lock's word and queue, seen and changed from SQL
 *	 hammer.c			random operations on random locks
 *	 watchdog.c			a worker that looks for processes that sleep forever
 *	 switcher.c			a worker that switches policies and strategies
 *	 tranches.c			locks in tranches of their own; needs no preloading
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_LWLOCK_H
#define TEST_LWLOCK_H

#include "storage/lwlock_queue.h"
#include "storage/sweep_hooks.h"

#include "test_module.h"

#pragma GCC visibility push(hidden)

#define TEST_NUM_LOCKS		8
#define TEST_NUM_ACTORS		16

/* Where a process can be stopped */
typedef enum TestPoint
{
	TEST_POINT_ACQUIRE,			/* has seen that it must wait, not queued yet */
	TEST_POINT_SLEEP,			/* in the queue, to sleep next */
	TEST_POINT_WOKEN,			/* woken, has not tried again yet */
	TEST_POINT_WAKE,			/* has released the lock, is to wake others */
	TEST_POINT_WAKE_LOCKED,		/* has locked the wait list for that */
} TestPoint;

#define TEST_NUM_POINTS		(TEST_POINT_WAKE_LOCKED + 1)

/* The pad moves every other lock away from 8-byte boundaries. */
typedef struct TestLock
{
	LWLock		lock;
	uint32		pad;
} TestLock;

/* One per process, by ProcNumber; only "armed" is written by others */
typedef struct TestSlot
{
	pg_atomic_uint32 armed;		/* points to stop at, one bit per point */
	pg_atomic_uint32 stopped;	/* the point it is stopped at plus 1, or 0;
								 * another process resets it to 0 */
	pg_atomic_uint64 sleeping_on;	/* address of a lock, or 0 */
	pg_atomic_uint64 sleeps;
} TestSlot;

typedef struct TestActor
{
	int			pid;			/* 0 = no session serves */
	ProcNumber	procno;
	pg_atomic_uint32 busy;		/* set by the sender, reset by the actor, which
								 * owns the fields below while it is set */
	int			command;
	int			lock;
	LWLockMode	mode;
	uint64		value;
	char		result[32];
} TestActor;

typedef struct TestShared
{
	TestLock	locks[TEST_NUM_LOCKS];
	pg_atomic_uint64 vars[TEST_NUM_LOCKS];	/* for LWLockWaitForVar() */
	uint64		lost[TEST_NUM_LOCKS];	/* queues that were taken away */
	TestActor	actors[TEST_NUM_ACTORS];

	/* of hammer.c: protected by the locks, and the sum of all additions */
	uint64		counters[TEST_NUM_LOCKS];
	pg_atomic_uint64 total;

	pg_atomic_uint64 switches;
	pg_atomic_uint64 looks;
	pg_atomic_uint64 hangs;

	uint32		num_slots;
	TestSlot	slots[FLEXIBLE_ARRAY_MEMBER];
} TestShared;

extern TestShared *test_shared;
extern void test_require_shared(void);
extern int	test_find_lock(int32 number);

/* parameters */
extern bool test_stop_points;
extern int	test_switch_every;
extern int	test_watch_for;

/* hooks.c */
extern const char *const test_point_names[TEST_NUM_POINTS];
extern void test_unwrap_routine(void);
extern void test_wrap_routine(void);

/* switcher.c, watchdog.c */
extern PGDLLEXPORT void test_lwlock_switcher_main(Datum arg);
extern PGDLLEXPORT void test_lwlock_watchdog_main(Datum arg);

#pragma GCC visibility pop

#endif							/* TEST_LWLOCK_H */
