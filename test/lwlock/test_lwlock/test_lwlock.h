/*-------------------------------------------------------------------------
 *
 * test_lwlock.h
 *	  Tests of waiting for LWLocks, from inside the server.
 *
 * Preloaded behind pg_sweep.
 *
 *	 test_lwlock.c	loading, parameters, shared memory
 *	 hooks.c			stop points around the hooks for waiting
 *	 actors.c			sessions that do what others tell them, and SQL
 *	 hammer.c			everything that can be done to a lock, at random
 *	 watchdog.c			a worker that looks for processes that sleep for ever
 *	 switcher.c			a worker that switches policies and strategies
 *	 tranches.c			locks in tranches of their own; needs no preloading
 *
 * test/lwlock/test_lwlock/test_lwlock.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_LWLOCK_WAIT_H
#define TEST_LWLOCK_WAIT_H

#include "storage/lwlock_queue.h"
#include "storage/sweep_hooks.h"

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

/*
 * A lock, with room behind it so that every other one is not at an 8-byte
 * boundary.
 */
typedef struct TestLock
{
	LWLock		lock;
	uint32		pad;
} TestLock;

/* Of each process, by its ProcNumber; written by it alone, but "armed" */
typedef struct TestSlot
{
	pg_atomic_uint32 armed;		/* points to stop at, a bit each */
	pg_atomic_uint32 stopped;	/* the point it is stopped at plus 1, or 0;
								 * another sets it to 0 to let it go on */
	pg_atomic_uint64 sleeping_on;	/* address of a lock, or 0 */
	pg_atomic_uint64 sleeps;
	pg_atomic_uint64 queueings; /* done by the library, not by core */
} TestSlot;

typedef struct TestActor
{
	int			pid;			/* 0 = nobody serves */
	ProcNumber	procno;
	pg_atomic_uint32 busy;		/* set by who sends, reset by the actor: the
								 * rest belongs to the actor while it is set */
	int			command;
	int			lock;
	LWLockMode	mode;
	uint64		value;
	char		result[32];
	uint64		acquired;
} TestActor;

typedef struct TestShared
{
	TestLock	locks[TEST_NUM_LOCKS];
	pg_atomic_uint64 vars[TEST_NUM_LOCKS];	/* for LWLockWaitForVar() */
	uint64		lost[TEST_NUM_LOCKS];	/* queues that were taken away */
	pg_atomic_uint64 acquisitions;
	TestActor	actors[TEST_NUM_ACTORS];

	/* of hammer.c: under their locks, and how often any was added to */
	uint64		counters[TEST_NUM_LOCKS];
	pg_atomic_uint64 total;

	pg_atomic_uint64 switches;
	pg_atomic_uint64 looks;
	pg_atomic_uint64 hangs;

	uint32		num_slots;
	TestSlot	slots[FLEXIBLE_ARRAY_MEMBER];
} TestShared;

extern TestShared *test_shared;

/* parameters */
extern bool test_stop_points;
extern int	test_switch_every;
extern int	test_watch_for;

/* hooks.c */
extern const char *const test_point_names[TEST_NUM_POINTS];
extern void test_unwrap_routine(void);
extern void test_wrap_routine(void);

/* switcher.c, watchdog.c */
extern void test_register_switcher(void);
extern void test_register_watchdog(void);

#pragma GCC visibility pop

#endif							/* TEST_LWLOCK_WAIT_H */
