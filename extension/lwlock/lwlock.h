/*-------------------------------------------------------------------------
 *
 * lwlock.h
 *	  What a policy of waiting for LWLocks is, and what is counted of it.
 *
 * To add one: write lwlock/policy_NAME.c with one const PgSweepLwlockPolicy, and
 * add a line to PGSWEEP_LWLOCK_POLICIES below.
 *
 * A policy knows one lock, its state word and its queue (core's
 * storage/lwlock_queue.h).  It knows nothing of SQL, nor of the buffer pool.
 * All of this is on the slow path: a lock that is free is acquired and released
 * without any of it.
 *
 *	 lwlock.c		the feature: what pg_sweep.c calls
 *	 hooks.c		core's hooks: which policy, and counting
 *	 policy_stock.c	core's way
 *	 policy_spin.c	tries for a while, then core's way
 *	 policy_lockless.c	into the queue by one compare-and-swap
 *	 policy_lockless_spin.c	tries for a while, then the same
 *	 tries.c		trying for a while, and how long
 *	 queue.c		the compare-and-swap, and which waiters are woken
 *	 counts.c		what each process counts, and adding it up
 *	 tranches.c		which tranche has which policy
 *	 gucs.c, views.c
 *
 * extension/lwlock/lwlock.h
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
 * The policies: id and name, in SQL and in pg_sweep.lwlock_policy.  The routine is
 * pgsweep_lwlock_NAME_policy.
 */
#define PGSWEEP_LWLOCK_POLICIES(POLICY) \
	POLICY(STOCK, stock) \
	POLICY(SPIN, spin) \
	POLICY(LOCKLESS, lockless) \
	POLICY(LOCKLESS_SPIN, lockless_spin) \
	/* end of the list */

/* The number is what shared memory holds */
#define PGSWEEP_LWLOCK_POLICY_ID(id, name) PGSWEEP_LWLOCK_##id,

typedef enum PgSweepLwlockPolicyId
{
	PGSWEEP_LWLOCK_POLICIES(PGSWEEP_LWLOCK_POLICY_ID)
	PGSWEEP_LWLOCK_NUM_POLICIES
} PgSweepLwlockPolicyId;

/* in tranche_policy[]: has none of its own */
#define PGSWEEP_LWLOCK_DEFAULT		0xFF

/* Tranche ids are uint16 in LWLock */
#define PGSWEEP_LWLOCK_NUM_TRANCHES		65536

/*
 * Any member may be NULL.
 */
typedef struct PgSweepLwlockPolicy
{
	/*
	 * As the members of LWLockWaitRoutine (sweep_hooks.h) of the same names,
	 * and under the same rules.  NULL leaves it to core.
	 *
	 * "overdue" is true for a process that had a spurious wakeup and has then
	 * waited for longer than pg_sweep.lwlock_handoff_after.
	 */
	LWLockWaitStep (*acquire) (LWLock *lock, LWLockMode mode, bool woken, bool overdue);
	LWLockWaitStep (*acquire_or_wait) (LWLock *lock, LWLockMode mode);
	LWLockWaitStep (*wait_for_var) (LWLock *lock, pg_atomic_uint64 *valptr, uint64 oldval);
	LWLockWakeStep (*wake) (LWLock *lock);
} PgSweepLwlockPolicy;

/*
 * Waits are counted by length: element 0 those below 1 microsecond, element i
 * those from 2^(i-1) to 2^i, the last one all from 4 s on.
 */
#define PGSWEEP_LWLOCK_BUCKETS		24

/*
 * What is counted of one tranche in one mode: LW_EXCLUSIVE, LW_SHARED, or
 * LW_WAIT_UNTIL_FREE (LWLockAcquireOrWait and LWLockWaitForVar).
 *
 * contended = those that got it without sleeping + those that slept.  A wait is
 * one that slept; its time runs from the first failure to the last wake-up.
 */
typedef struct PgSweepLwlockCounts
{
	uint64		contended;		/* acquisitions that found the lock taken */
	uint64		spun;			/* of them, those that got it by trying again,
								 * never queued */
	uint64		queued;			/* times put into the queue */
	uint64		slept;			/* times gone to sleep */
	uint64		vain;			/* wake-ups after which another was quicker */
	uint64		overtaken;		/* acquisitions that this happened to */
	uint64		granted;		/* of them, those that were then handed the
								 * lock */
	uint64		wait_ns;		/* total of waits */
	uint64		longest_ns;		/* since the reset of longest_epoch */
	uint32		longest_epoch;	/* PgSweepLwlockShared.epoch when it was noted */
	uint64		histogram[PGSWEEP_LWLOCK_BUCKETS];	/* a wait that goes on
													 * moves from one to the
													 * next */
} PgSweepLwlockCounts;

/*
 * Entry of one process' table: open addressing, keys are never taken out.
 * Written by the process with that ProcNumber only; others read 64-bit words
 * without a lock.
 */
typedef struct PgSweepLwlockEntry
{
	uint32		key;			/* pgsweep_lwlock_key(), 0 = unused */
	PgSweepLwlockCounts counts;
} PgSweepLwlockEntry;

/*
 * A process waits for few tranches; what finds no place is counted in "other",
 * so that nothing is lost.
 */
#define PGSWEEP_LWLOCK_ENTRIES		48

/*
 * Zeroed by its process at the first wait (has_waited), so that it takes no
 * memory before.
 */
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

/* Totals at the last reset; as many combinations as can be told apart */
#define PGSWEEP_LWLOCK_BASE			1024

typedef struct PgSweepLwlockShared
{
	/*
	 * Read at each contended acquisition, without a lock: either policy is a
	 * right one at any moment.  Written under PgSweep->lock.
	 */
	uint8		default_policy;
	uint8		tranche_policy[PGSWEEP_LWLOCK_NUM_TRANCHES];

	/* Constant after start */
	uint32		num_slots;
	PgSweepLwlockSlotPadded *slots; /* not zeroed */
	bool	   *has_waited;		/* of each slot: is in use.  Written by its
								 * process, read without a lock. */

	/* Protected by PgSweep->lock */
	PgSweepLwlockPolicyId configured;	/* pg_sweep.lwlock_policy as last
										 * applied */
	uint32		nbase;
	PgSweepLwlockEntry base[PGSWEEP_LWLOCK_BASE];	/* the first one, key 0,
													 * is "other" */

	/* Counts resets; read without a lock where a longest wait is noted */
	uint32		epoch;
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
extern uint8 pgsweep_lwlock_waitmode(LWLockMode mode, bool woken, bool overdue);
extern LWLockWaitStep pgsweep_lwlock_acquire_or_queue(LWLock *lock, LWLockMode mode,
													  uint8 waitmode, bool reserve);
extern LWLockWaitStep pgsweep_lwlock_queue_for_var(LWLock *lock);
extern LWLockWakeStep pgsweep_lwlock_lock_list_or_leave(LWLock *lock);

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
 * Defaults and bounds of the parameters.
 *
 * 100 tries are 2.5 us on the CPUs that this was measured on (AMD EPYC, 25 ns for
 * a read and a pause; a pause takes several times as long on some others), less
 * than to sleep and be woken takes.  The learnt bound is what decides most often.
 *
 * 20 ms is several time slices of the kernel's scheduler, so that who only had to
 * wait for a CPU does not count as overtaken for too long.  With 64 processes on
 * one lock, 1, 5 and 20 ms made no difference to rate or longest wait beyond noise
 * (2 CPUs): what bounds the wait there is to go to the front of the queue.
 */
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
