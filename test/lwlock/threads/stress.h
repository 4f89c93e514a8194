/*-------------------------------------------------------------------------
 *
 * test/lwlock/threads/stress.h
 *	  What stress.c and ops.c share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef STRESS_H
#define STRESS_H

#include "shim.h"

#include "storage/lwlock_queue.h"

typedef enum HarnessOp
{
	OP_NONE,
	OP_EXCLUSIVE,
	OP_SHARED,
	OP_CONDITIONAL,
	OP_OR_WAIT,
	OP_WAIT_FOR_VAR,
	OP_DISOWN,
	OP_NESTED,
} HarnessOp;

/*
 * What a lock protects.  data is plain: ThreadSanitizer must find no race, and
 * both words must be equal and count each exclusive holder.
 */
typedef struct Protected
{
	LWLock	   *lock;
	uint64		data[2];
	uint64		next_value;		/* of var; under the exclusive lock */
	pg_atomic_uint64 var;
	int			holders;		/* shared holders, or -1: relaxed atomic */
	uint64		begun;			/* exclusive holds, relaxed atomics */
	uint64		ended;
	uint64		waking;			/* releases and changes of var, begun */
	uint64		woken;			/* and done */
	uint64		expected;		/* sum of what all have added */
} Protected;

/* How a round was set up */
typedef struct HarnessRound
{
	int			nbackends;
	int			nlocks;
	int			operations;		/* of each backend */
	uint32		sleep_inside;	/* points inside a hold, at most */
	bool		use_library;
	bool		spurious;		/* semaphores are posted for no reason */
	bool		disown;			/* the last backend releases for others */
	uint32		weights[8];		/* of each HarnessOp */
} HarnessRound;

extern HarnessRound harness_round;
extern Protected harness_locks[HARNESS_MAX_LOCKS];

/* Disowned locks, on their way to the last backend: atomic */
extern Protected *harness_disowned[HARNESS_MAX_BACKENDS];
extern int	harness_working;	/* backends that have not ended, relaxed atomic */

extern void harness_backend_main(void);

#define FAIL_IF(cond) \
	do { \
		if (cond) \
			harness_fail("%s:%d: %s", __FILE__, __LINE__, #cond); \
	} while (0)

#endif							/* STRESS_H */
