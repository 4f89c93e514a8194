/*-------------------------------------------------------------------------
 *
 * test/lwlock/threads/harness.h
 *	  What the files of the harness share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HARNESS_H
#define HARNESS_H

#define HARNESS_MAX_BACKENDS	32
#define HARNESS_MAX_LOCKS		4

/*
 * The number of the running backend.  With HARNESS_FIBERS all backends run in one
 * thread, one at a time, and sched.c decides which.
 */
#ifdef HARNESS_FIBERS
extern int	harness_self;
#else
extern __thread int harness_self;
#endif

/* Private data of a process, and what the harness knows about it */
typedef struct HarnessBackend
{
	volatile uint32 holdoff;	/* InterruptHoldoffCount */
	int			spin_tries;		/* its parameters */
	int			handoff_after;
	bool		track;
	uint64		random;

	/* observe.c: for each lock */
	bool		list_locked[HARNESS_MAX_LOCKS]; /* holds LW_FLAG_LOCKED */
	bool		pushed;			/* in the queue, has not slept yet */
	int			reservations;	/* made for the present acquisition */
	uint64		shared_at_reservation;	/* shared acquisitions until the last one */

	int			spins;			/* pauses for the wait list (scripted.c) */

	/* read by others; relaxed atomics */
	uint64		steps;			/* operations done */
	int			doing;			/* HarnessOp */
	int			with;			/* which lock */
	int			var_call;		/* odd while in LWLockWaitForVar() */
	uint64		var_oldval;		/* what it waits to see change */
	uint32		posted;			/* wakeups that it was sent for no reason */
	uint32		taken;			/* those taken between operations */
} HarnessBackend;

extern HarnessBackend harness_backends[HARNESS_MAX_BACKENDS];
#define HARNESS_ME	(&harness_backends[harness_self])

/* What has happened; a run in which one of them has not is worth nothing */
#define HARNESS_COUNTS(X) \
	X(ROUNDS) X(OPERATIONS) X(EXCLUSIVE) X(SHARED) X(CONDITIONAL_GOT) \
	X(CONDITIONAL_FAILED) X(OR_WAIT_GOT) X(OR_WAIT_WAITED) X(VAR_FREE) \
	X(VAR_CHANGED) X(VAR_UPDATES) X(VAR_ACKNOWLEDGED) X(DISOWNED) X(NESTED) \
	X(POLICY_SWITCHES) X(SLEPT) X(SPURIOUS) X(PUSHED_LOCKED) \
	X(PUSHED_LOCKLESS) X(PUSHED_FRONT) X(PUSHED_UNTIL_FREE) X(UNDONE) \
	X(WAKE_WANTED) X(RESERVED) X(GRANTED)

typedef enum HarnessCount
{
#define X(name) HC_##name,
	HARNESS_COUNTS(X)
#undef X
	HC_NUM,
} HarnessCount;

extern void harness_count(HarnessCount what);
extern uint64 harness_counted(HarnessCount what);

/* The links of a process before it changed a word; others may write them later */
typedef struct HarnessLinks
{
	int			older;
	int			newer;
	int			mode;
} HarnessLinks;

/* sched.c */
extern void harness_point(void);	/* others may run here */
extern void harness_pause(void);	/* others must run first */
extern void harness_run(int nbackends, void (*backend) (void));
extern uint32 harness_random(uint32 below);
extern int	harness_sem_value(int backend);
extern bool harness_sem_try(int backend);
extern bool harness_sleeps(int backend);	/* fibers */

/* Fibers: decides at each point which backend goes on; below 0: chance does */
extern int	(*harness_next) (void);

/* scripted.c; false if there is no script of this name */
extern bool harness_run_scripted(const char *name);

pg_noreturn extern void harness_fail(const char *fmt,...) pg_attribute_printf(1, 2);
extern int	harness_switch_one_in;
extern int	harness_gone_one_in;	/* how often one loses its CPU (fibers) */
extern int	harness_ns_per_point;	/* pace of the clock (fibers) */
extern int	harness_watchdog_seconds;
extern uint64 harness_seed;
extern uint64 harness_round_seed;

/* observe.c */
extern bool harness_check_steps;
extern void harness_lock_place(int i, LWLock *lock);
extern void harness_observe(const volatile void *word, uint64 old, uint64 new, const HarnessLinks *mine);
extern void harness_dump(void);
extern HarnessLinks harness_links(void);

/* tsan.c */
extern void harness_read_barrier(void);
extern void harness_write_barrier(void);

/* The C library's, not the server's */
#undef printf
#undef fprintf
#undef vfprintf
#undef snprintf

#define relaxed_read(p)		__atomic_load_n(p, __ATOMIC_RELAXED)
#define relaxed_write(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define relaxed_add(p, v)	__atomic_fetch_add(p, v, __ATOMIC_RELAXED)

#endif							/* HARNESS_H */
