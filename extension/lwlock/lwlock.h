/*-------------------------------------------------------------------------
 *
 * extension/lwlock/lwlock.h
 *	  Policies of waiting for LWLocks, and the counters of waits.
 *
 * To add one: write lwlock/policy_NAME.c with one const PgSweepLwlockPolicy, and
 * add a line to PGSWEEP_LWLOCK_POLICIES below.
 *
 * A policy knows one lock, its state word and its queue (core's
 * storage/lwlock_queue.h), but neither SQL nor the buffer pool.  All of this
 * is on the slow path: acquiring and releasing a free lock does not come
 * here.
 *
 *	 lwlock.c		the feature: what pg_sweep.c calls
 *	 hooks.c		core's hooks: choose the policy, and count
 *	 policy_stock.c	core's own way
 *	 policy_lockless.c	queues by one compare-and-swap
 *	 policy_lockless_spin.c	spins, then the same
 *	 tries.c		spinning, and for how long
 *	 queue.c		the compare-and-swap, and waking waiters
 *	 counts.c		the counters of each process, and their sums
 *	 tranches.c		the policy of each tranche
 *	 gucs.c, views.c
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_LWLOCK_H
#define PGSWEEP_LWLOCK_H

#include "compat.h"
#include "storage/lwlock_queue.h"
#include "storage/sweep_hooks.h"
#include "utils/guc.h"

#pragma GCC visibility push(hidden)

struct PgSweepRow;

/*
 * The policies: id, and name in SQL and in pg_sweep.lwlock_policy.  The
 * struct is pgsweep_lwlock_NAME_policy.
 */
#define PGSWEEP_LWLOCK_POLICIES(POLICY) \
	POLICY(STOCK, stock) \
	POLICY(LOCKLESS, lockless) \
	POLICY(LOCKLESS_SPIN, lockless_spin) \
								/* end of the list */

/* Stored in shared memory */
#define PGSWEEP_LWLOCK_POLICY_ID(id, name) PGSWEEP_LWLOCK_##id,

typedef enum PgSweepLwlockPolicyId
{
	PGSWEEP_LWLOCK_POLICIES(PGSWEEP_LWLOCK_POLICY_ID)
	PGSWEEP_LWLOCK_NUM_POLICIES
} PgSweepLwlockPolicyId;

/* in tranche_policy[]: no policy of its own */
#define PGSWEEP_LWLOCK_DEFAULT		0xFF

/* Tranche ids are uint16 in LWLock */
#define PGSWEEP_LWLOCK_NUM_TRANCHES		65536

/*
 * Any member may be NULL.
 */
typedef struct PgSweepLwlockPolicy
{
	/*
	 * Like the members of LWLockWaitRoutine (sweep_hooks.h) with the same
	 * names, under the same rules.  NULL leaves the call to core.
	 *
	 * "overdue" is true if the process has waited for longer than
	 * pg_sweep.lwlock_handoff_after, and has had PGSWEEP_LWLOCK_HANDOFF_WAKEUPS
	 * spurious wakeups.
	 */
	LWLockWaitStep (*acquire) (LWLock *lock, LWLockMode mode, bool woken, bool overdue);
	LWLockWaitStep (*acquire_or_wait) (LWLock *lock, LWLockMode mode);
	bool		(*wait_for_var) (LWLock *lock, pg_atomic_uint64 *valptr, uint64 oldval);
	LWLockWakeStep (*wake) (LWLock *lock, uint64 *state);
} PgSweepLwlockPolicy;

/*
 * Histogram of waits.  Element 0 counts waits below 1 microsecond, element i
 * those from 2^(i-1) to 2^i, the last one all from 4 s on.
 */
#define PGSWEEP_LWLOCK_BUCKETS		24

/*
 * Counters of one tranche in one mode: LW_EXCLUSIVE, LW_SHARED, or
 * LW_WAIT_UNTIL_FREE (LWLockAcquireOrWait and LWLockWaitForVar).
 *
 * contended = acquisitions without a sleep + acquisitions with one.  Only the
 * latter are waits.  A wait lasts from the first failure to the last wake-up.
 */
typedef struct PgSweepLwlockCounts
{
	uint64		contended;		/* acquisitions that found the lock taken */
	uint64		spun;			/* of them, those that got it by spinning,
								 * never queued */
	uint64		queued;			/* times queued */
	uint64		slept;			/* times slept */
	uint64		vain;			/* spurious wakeups: lost the lock again */
	uint64		overtaken;		/* acquisitions with a spurious wakeup */
	uint64		granted;		/* of them, those that were then handed the
								 * lock */
	uint64		wait_ns;		/* total of waits */
	uint64		longest_ns;		/* since the last reset, which zeroes it */
	uint64		histogram[PGSWEEP_LWLOCK_BUCKETS];	/* an ongoing wait moves
													 * to later elements */
} PgSweepLwlockCounts;

/*
 * Add to a counter in shared memory, which other processes may change at the
 * same time.  Counters are plain integers because totals have the same type.
 */
static inline void
pgsweep_lwlock_add(uint64 *counter, uint64 n)
{
	StaticAssertStmt(sizeof(pg_atomic_uint64) == sizeof(uint64),
					 "a 64-bit integer cannot be counted atomically");
	pg_atomic_fetch_add_u64((pg_atomic_uint64 *) counter, n);
}

/*
 * Entry of a slot's table: open addressing, keys are never removed.
 */
typedef struct PgSweepLwlockEntry
{
	uint32		key;			/* pgsweep_lwlock_key(), 0 = unused */
	PgSweepLwlockCounts counts;
} PgSweepLwlockEntry;

/*
 * Maximum number of slots (7 MB).  Processes share a slot if their ProcNumbers
 * are equal modulo the number of slots.  That can be so if max_connections and
 * all other processes exceed this number, even if few are connected.  A slot's
 * cache lines then move between CPUs while two of its processes wait.
 */
#define PGSWEEP_LWLOCK_MAX_SLOTS	512

/*
 * Tranches and modes for which no entry is left are counted in "other".
 * pgbench with 3300 short connections and 200 long ones, three to a slot, had
 * contention in 22 of them altogether, so none was.
 */
#define PGSWEEP_LWLOCK_ENTRIES		48

typedef struct PgSweepLwlockSlot
{
	PgSweepLwlockEntry entries[PGSWEEP_LWLOCK_ENTRIES];
	PgSweepLwlockCounts other;
} PgSweepLwlockSlot;

typedef union PgSweepLwlockSlotPadded
{
	PgSweepLwlockSlot slot;
	char		pad[TYPEALIGN(PG_CACHE_LINE_SIZE, sizeof(PgSweepLwlockSlot))];
} PgSweepLwlockSlotPadded;

/* Number of tranche and mode combinations, for the totals at the last reset */
#define PGSWEEP_LWLOCK_BASE			1024

typedef struct PgSweepLwlockShared
{
	/*
	 * Read at each contended acquisition, without a lock: during a switch,
	 * either policy is correct.  Written under PgSweep->lock.
	 */
	uint8		default_policy;
	uint8		tranche_policy[PGSWEEP_LWLOCK_NUM_TRANCHES];

	/* Constant after start */
	uint32		num_slots;
	PgSweepLwlockSlotPadded *slots; /* added to and read without a lock */

	/* Protected by PgSweep->lock */
	PgSweepLwlockPolicyId configured;	/* pg_sweep.lwlock_policy as last
										 * applied */
	uint32		nbase;
	PgSweepLwlockEntry base[PGSWEEP_LWLOCK_BASE];	/* the first, with key 0,
													 * is "other" */
} PgSweepLwlockShared;

static inline uint32
pgsweep_lwlock_key(uint16 tranche, LWLockMode mode)
{
	return ((uint32) tranche << 2 | (uint32) mode) + 1;
}

/* NULL unless preloaded into a server that has the patch lwlock-wait-hooks */
extern PgSweepLwlockShared *PgSweepLwlock;

/* hooks.c */
extern const LWLockWaitRoutine pgsweep_lwlock_wait_routine;
extern const PgSweepLwlockPolicy *const pgsweep_lwlock_policies[];

#define PGSWEEP_LWLOCK_DECLARE_POLICY(id, name) \
	extern const PgSweepLwlockPolicy pgsweep_lwlock_##name##_policy;
PGSWEEP_LWLOCK_POLICIES(PGSWEEP_LWLOCK_DECLARE_POLICY)

/* tries.c */
extern bool pgsweep_lwlock_try_for_a_while(LWLock *lock, LWLockMode mode);
extern bool pgsweep_lwlock_watch_for_a_while(LWLock *lock, pg_atomic_uint64 *valptr, uint64 oldval);

/* queue.c */
extern LWLockWaitStep pgsweep_lwlock_acquire_or_queue(LWLock *lock, LWLockMode mode,
													  bool woken, bool overdue);
extern LWLockWaitStep pgsweep_lwlock_acquire_or_wait(LWLock *lock, LWLockMode mode);
extern LWLockWakeStep pgsweep_lwlock_lock_list_or_leave(LWLock *lock, uint64 *state);

/*
 * counts.c.  The first two are called by the waiting process, anywhere; the
 * others with PgSweep->lock held.
 */
extern PgSweepLwlockCounts *pgsweep_lwlock_counts(uint16 tranche, LWLockMode mode);
extern void pgsweep_lwlock_note_wait(PgSweepLwlockCounts *counts, uint64 before_ns, uint64 ns);
extern int	pgsweep_lwlock_sum(PgSweepLwlockEntry *totals);
extern void pgsweep_lwlock_reset(void);

/* tranches.c */
extern const char *pgsweep_lwlock_tranche_name(uint16 tranche);
extern PgSweepLwlockPolicyId pgsweep_lwlock_policy_of(uint16 tranche);
extern PgSweepLwlockPolicyId pgsweep_lwlock_set_default(PgSweepLwlockPolicyId policy,
														bool by_reload);
extern bool pgsweep_lwlock_set_tranche(const char *tranche, uint8 policy,
									   PgSweepLwlockPolicyId *before);

/*
 * Defaults and limits of the parameters.
 *
 * 100 tries take 2.5 us on an AMD EPYC (25 ns for a read and a pause; on some
 * CPUs a pause takes several times as long).  That is less than sleeping and
 * waking up.  Most often the learnt bound decides, which is lower.
 *
 * 20 ms is several time slices of the kernel's scheduler: a process that only
 * waited for a CPU is then not overdue.  With 64 processes on one lock (2
 * CPUs), 1, 5 and 20 ms had the same rate and longest wait within noise:
 * moving to the front of the queue bounds the wait there.
 */
#define PGSWEEP_LWLOCK_HANDOFF_WAKEUPS	2
#define PGSWEEP_LWLOCK_TRIES			100
#define PGSWEEP_LWLOCK_MAX_TRIES		10000
#define PGSWEEP_LWLOCK_HANDOFF_MS		20
#define PGSWEEP_LWLOCK_MAX_HANDOFF_MS	(3600 * 1000)

/* gucs.c */
extern const struct config_enum_entry pgsweep_lwlock_policy_options[];
extern int	pgsweep_lwlock_policy;	/* PgSweepLwlockPolicyId */
extern int	pgsweep_lwlock_spin_tries;
extern int	pgsweep_lwlock_handoff_after;	/* milliseconds; 0 = never */
extern bool pgsweep_lwlock_track_waits;
extern void pgsweep_lwlock_define_gucs(void);
extern const char *pgsweep_lwlock_policy_name(PgSweepLwlockPolicyId id);

/* views.c */
extern void pgsweep_lwlock_put_status(struct PgSweepRow *row);

#pragma GCC visibility pop

#endif							/* PGSWEEP_LWLOCK_H */
