/*-------------------------------------------------------------------------
 *
 * sim/loads/lwlock.c
 *	  Load "lwlock": processes that want one LWLock.
 *
 *	 load.policy	unpatched: PostgreSQL's own lwlock.c; none (nothing loaded),
 *					stock, lockless, lockless_spin: the patched one and the
 *					library's policies; v2: the thread's (upstream/lwlock_v2.c)
 *	 load.kind		hot: think, acquire, hold, release;
 *					procarray: transactions that want ProcArrayLock, see
 *					transaction()
 *	 load.think_ps	0 .. 1 s, default 1 us: mean time between two acquisitions (hot),
 *					mean private time of a transaction (procarray)
 *	 load.hold_ps	0 .. 1 s, default 100 ns: the lock is held exclusively
 *	 load.hold_shared_ps	the same, shared; default load.hold_ps
 *	 load.shared_percent	0 .. 100, default 0: acquisitions in shared mode (hot)
 *	 load.snapshots_percent	0 .. 1000, default 200: shared acquisitions for 100
 *					transactions (procarray)
 *	 load.spin_tries	0 .. 10000, default 100: pg_sweep.lwlock_spin_tries
 *	 load.handoff_ms	0 .. 3600000, default 20: pg_sweep.lwlock_handoff_after
 *	 load.acquisitions	1 .. 100 million, default 100,000: of all together, measured
 *	 load.warmup	0 .. 100 million, default a tenth of it: before that
 *
 * Think times are spread evenly from nothing to twice their mean, so processes do
 * not keep step.
 *
 * Results: acquisitions, for each mode share0, share1, share2 (those that slept that
 * often on the semaphore, 2: or more), contended acquisitions and sleeps for each,
 * mean and longest wait; the longest of those that had not ended; CPU time of an
 * acquisition, with all that is done between two; spun of library.contended;
 * group_members (procarray).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "glue/glue.h"
#include "upstream/lwlock_v2.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/wait_event.h"

#define TRANCHE		LWTRANCHE_FIRST_USER_DEFINED
#define MAX_SLEEPS	2
#define MAX_COUNT	INT64_C(100000000)

typedef struct Way
{
	const char *name;
	int			policy;			/* PgSweepLwlockPolicyId; -1: not the library */
	void		(*acquire) (LWLockMode mode);
	bool		(*conditional) (LWLockMode mode);
	void		(*release) (LWLockMode mode);
} Way;

/* What is counted of acquisitions in one mode */
typedef struct ModeCounts
{
	int64		slept[MAX_SLEEPS + 1];
	int64		sleeps;
	int64		waits;			/* those that took longer than without others */
	SimTime		wait;
	SimTime		longest;
} ModeCounts;

static LWLock *lock;
static LWLock *unpatched_lock;
static V2Lock *v2_lock;
static const Way *way;
static SimTime think;
static SimTime hold[2];			/* LW_EXCLUSIVE, LW_SHARED */
static int	shared_percent;
static int	snapshots_percent;
static int64 warmup;
static int64 wanted;

static SIM_COMMON ModeCounts counts[2];
static SIM_COMMON int holders[2];	/* exclusive and shared, at this moment */
static SIM_COMMON SimTime held_until[2];	/* by processes that have released it */
static SIM_COMMON SimTime *waits_since; /* of each process; 0: does not */
static SIM_COMMON int64 acquired;
static SIM_COMMON int64 transactions;
static SIM_COMMON int64 conditional_failed;
static SIM_COMMON int64 group_members;
static SIM_COMMON SimTime cpu_time; /* of all, within what is measured */
static SIM_COMMON SimTime began;
static SIM_COMMON SimTime ended;

/* ---- ways to acquire ---- */

/* as the patched one's: a lock is opaque here, and as large */
extern bool unpatched_LWLockAcquire(LWLock *lock, LWLockMode mode);
extern bool unpatched_LWLockConditionalAcquire(LWLock *lock, LWLockMode mode);
extern void unpatched_LWLockRelease(LWLock *lock);
extern void unpatched_LWLockInitialize(LWLock *lock, int tranche_id);

#define WAY(name, its_lock, acquire, conditional, release) \
static void \
name##_acquire(LWLockMode mode) \
{ \
	acquire(its_lock, mode); \
} \
static bool \
name##_conditional(LWLockMode mode) \
{ \
	return conditional(its_lock, mode); \
} \
static void \
name##_release(LWLockMode mode) \
{ \
	release; \
}

WAY(core, lock, LWLockAcquire, LWLockConditionalAcquire, LWLockRelease(lock))
WAY(unpatched, unpatched_lock, unpatched_LWLockAcquire, unpatched_LWLockConditionalAcquire,
	unpatched_LWLockRelease(unpatched_lock))
WAY(their, v2_lock, v2_acquire, v2_conditional_acquire, v2_release(v2_lock, mode))

#define CORE(name, policy) {name, policy, core_acquire, core_conditional, core_release}

static const Way ways[] = {
	{"unpatched", -1, unpatched_acquire, unpatched_conditional, unpatched_release},
	CORE("none", -1),
	CORE("stock", PGSWEEP_LWLOCK_STOCK),
	CORE("lockless", PGSWEEP_LWLOCK_LOCKLESS),
	CORE("lockless_spin", PGSWEEP_LWLOCK_LOCKLESS_SPIN),
	{"v2", -1, their_acquire, their_conditional, their_release},
};

static const Way *
find_way(const char *name)
{
	for (int i = 0; i < lengthof(ways); i++)
		if (strcmp(ways[i].name, name) == 0)
			return &ways[i];
	sim_fail("load.policy: there is no %s", name);
}

/* ---- one acquisition, counted ---- */

static void
count_acquisition(LWLockMode mode, SimTime waited, int64 sleeps)
{
	ModeCounts *mine = &counts[mode == LW_SHARED];

	if (acquired++ < warmup)
	{
		if (acquired == warmup)
		{
			sim_measure_begin();
			began = sim_now();
			cpu_time = sim_cpu_time();
			transactions = conditional_failed = group_members = 0;
		}
		return;
	}
	mine->slept[Min(sleeps, MAX_SLEEPS)]++;
	mine->sleeps += sleeps;
	mine->wait += waited;
	mine->longest = Max(mine->longest, waited);
	if (acquired == warmup + wanted)
	{
		sim_measure_end();
		ended = sim_now();
		cpu_time = sim_cpu_time() - cpu_time;
		sim_stop();
	}
}

/*
 * Two processes must not hold it at once.  A holder that touches nothing shared may
 * be ahead of others in the simulator: simulated time counts.
 */
static void
note_holder(LWLockMode mode)
{
	SimTime		now = sim_now();

	if (holders[0] > 0 || now < held_until[0] ||
		(mode == LW_EXCLUSIVE && (holders[1] > 0 || now < held_until[1])))
		sim_fail("policy %s let a process in beside holders that exclude it", way->name);
	holders[mode == LW_SHARED]++;
}

static void
acquire(LWLockMode mode)
{
	SimTime		start = sim_now();
	int64		sleeps = sim_lwlock_sleeps;

	waits_since[sim_self()] = start;
	way->acquire(mode);
	waits_since[sim_self()] = 0;
	note_holder(mode);
	count_acquisition(mode, sim_now() - start, sim_lwlock_sleeps - sleeps);
}

static void
release(LWLockMode mode)
{
	SimTime    *until = &held_until[mode == LW_SHARED];

	*until = Max(*until, sim_now());
	holders[mode == LW_SHARED]--;
	way->release(mode);
}

static void
think_for(SimTime mean)
{
	/* in 2^16 steps: a product of 64 bits is enough for a second */
	sim_work(mean / 32768 * (sim_random() >> 16));
}

/* ---- a lock that all want ---- */

static void
want_hot(void)
{
	LWLockMode	mode = sim_random_below(100) < (uint32) shared_percent ? LW_SHARED : LW_EXCLUSIVE;

	think_for(think);
	acquire(mode);
	sim_work(hold[mode == LW_SHARED]);
	release(mode);
}

/* ---- transactions ---- */

/*
 * The lock was taken: the first process here acquires it for all that come here
 * until it has it, as PostgreSQL's ProcArrayGroupClearXid() does.
 */
static void
end_in_group(void)
{
	pg_atomic_uint32 *group = &ProcGlobal->procArrayGroupFirst;
	uint32		next;
	uint32		wake;

	MyProc->procArrayGroupMember = true;
	next = pg_atomic_read_u32(group);
	do
		pg_atomic_write_u32(&MyProc->procArrayGroupNext, next);
	while (!pg_atomic_compare_exchange_u32(group, &next, MyProcNumber));
	group_members++;

	if (next != INVALID_PROC_NUMBER)
	{
		int			extra_waits = 0;

		for (;;)
		{
			PGSemaphoreLock(MyProc->sem);
			if (!MyProc->procArrayGroupMember)
				break;
			extra_waits++;
		}
		while (extra_waits-- > 0)
			PGSemaphoreUnlock(MyProc->sem);
		return;
	}

	acquire(LW_EXCLUSIVE);
	next = pg_atomic_exchange_u32(group, INVALID_PROC_NUMBER);
	wake = next;
	while (next != INVALID_PROC_NUMBER)
	{
		sim_work(hold[0]);
		next = pg_atomic_read_u32(&GetPGProcByNumber(next)->procArrayGroupNext);
	}
	release(LW_EXCLUSIVE);

	while (wake != INVALID_PROC_NUMBER)
	{
		PGPROC	   *member = GetPGProcByNumber(wake);

		wake = pg_atomic_read_u32(&member->procArrayGroupNext);
		pg_atomic_write_u32(&member->procArrayGroupNext, INVALID_PROC_NUMBER);
		pg_write_barrier();		/* as in ProcArrayGroupClearXid(); the member's
								 * semaphore is what it pairs with here */
		member->procArrayGroupMember = false;
		if (member != MyProc)
			PGSemaphoreUnlock(member->sem);
	}
}

/*
 * What a transaction of one INSERT does with ProcArrayLock: snapshots in shared
 * mode, then its end, exclusively.  The end tries once, and if the lock is taken,
 * joins a group.  So each exclusive acquisition follows a failed try.
 */
static void
transaction(void)
{
	int			snapshots = (snapshots_percent + (int) sim_random_below(100)) / 100;

	for (int i = 0; i < snapshots; i++)
	{
		think_for(think / (snapshots + 1));
		acquire(LW_SHARED);
		sim_work(hold[1]);
		release(LW_SHARED);
	}
	think_for(think / (snapshots + 1));

	if (way->conditional(LW_EXCLUSIVE))
	{
		note_holder(LW_EXCLUSIVE);
		sim_work(hold[0]);
		release(LW_EXCLUSIVE);
	}
	else
	{
		conditional_failed++;
		end_in_group();
	}
	transactions++;
}

/* ---- setup and report ---- */

static void
backend(void *arg)
{
	void		(*turn) (void) = arg;

	for (;;)
		turn();
}

static void
setup(void)
{
	int			backends = sim_backends();
	const char *kind = sim_config_text("load.kind", "hot");
	bool		procarray = strcmp(kind, "procarray") == 0;

	if (!procarray && strcmp(kind, "hot") != 0)
		sim_fail("load.kind: there is no %s", kind);
	way = find_way(sim_config_text("load.policy", "none"));
	think = sim_config_int("load.think_ps", 0, SIM_S, SIM_US);
	hold[0] = sim_config_int("load.hold_ps", 0, SIM_S, 100 * SIM_NS);
	hold[1] = sim_config_int("load.hold_shared_ps", 0, SIM_S, hold[0]);
	shared_percent = sim_config_int("load.shared_percent", 0, 100, 0);
	snapshots_percent = sim_config_int("load.snapshots_percent", 0, 1000, 200);
	wanted = sim_config_int("load.acquisitions", 1, MAX_COUNT, 100000);
	warmup = sim_config_int("load.warmup", 1, MAX_COUNT, Max(wanted / 10, 1));
	pgsweep_lwlock_spin_tries = sim_config_int("load.spin_tries", 0, PGSWEEP_LWLOCK_MAX_TRIES,
											   PGSWEEP_LWLOCK_TRIES);
	pgsweep_lwlock_handoff_after = sim_config_int("load.handoff_ms", 0, PGSWEEP_LWLOCK_MAX_HANDOFF_MS,
												  PGSWEEP_LWLOCK_HANDOFF_MS);
	sim_procs_setup(backends);
	waits_since = calloc(backends, sizeof(waits_since[0]));
	if (waits_since == NULL)
		sim_fail("out of memory");
	if (way->policy >= 0)
		sim_lwlock_setup(way->policy, backends);
	lock = sim_lwlock("lock", TRANCHE);
	unpatched_lock = sim_lwlock("lock", TRANCHE);
	unpatched_LWLockInitialize(unpatched_lock, TRANCHE);
	v2_lock = sim_shared_alloc("lock", sizeof(LWLockPadded), sizeof(LWLockPadded), 0);
	v2_init(v2_lock);
	for (int i = 0; i < backends; i++)
		sim_spawn("backend", backend, procarray ? transaction : want_hot, SIM_BY_PLACEMENT);
}

static void
mode_result(const char *mode, const char *what, double value)
{
	char		key[64];

	snprintf(key, sizeof(key), "%s.%s", mode, what);
	sim_result(key, value);
}

static void
report_mode(const char *mode, const ModeCounts *of)
{
	int64		all = of->slept[0] + of->slept[1] + of->slept[2];

	if (all == 0)
		return;
	mode_result(mode, "share0", (double) of->slept[0] / all);
	mode_result(mode, "share1", (double) of->slept[1] / all);
	mode_result(mode, "share2", (double) of->slept[2] / all);
	mode_result(mode, "acquisitions", all);
	mode_result(mode, "sleeps", of->sleeps);
	mode_result(mode, "mean_wait_ns", (double) of->wait / all / SIM_NS);
	mode_result(mode, "longest_wait_ns", (double) of->longest / SIM_NS);
}

/*
 * What the library has counted, since the start.
 */
static void
report_library(void)
{
	uint64		contended = 0;
	uint64		spun = 0;
	uint64		slept = 0;

	for (int i = 0; i < sim_backends(); i++)
		for (int mode = LW_EXCLUSIVE; mode <= LW_SHARED; mode++)
		{
			PgSweepLwlockCounts of = sim_lwlock_counts(i, TRANCHE, mode);

			contended += of.contended;
			spun += of.spun;
			slept += of.slept;
		}
	sim_result("library.contended", contended);
	sim_result("library.spun_per_contended", contended ? (double) spun / contended : 0);
	sim_result("library.sleeps_per_contended", contended ? (double) slept / contended : 0);
}

/*
 * The longest wait that has not ended: a lost wakeup shows here.
 */
static void
report_waiting(void)
{
	SimTime		longest = 0;

	for (int i = 0; i < sim_backends(); i++)
		if (waits_since[i] > 0)
			longest = Max(longest, ended - waits_since[i]);
	sim_result("waiting_at_the_end_ns", (double) longest / SIM_NS);
}

static void
report(void)
{
	report_mode("exclusive", &counts[0]);
	report_mode("shared", &counts[1]);
	report_waiting();
	sim_result("cpu_ns_per_acquisition", (double) cpu_time / wanted / SIM_NS);
	sim_result("acquisitions_per_s", wanted / ((double) (ended - began) / SIM_S));
	if (transactions > 0)
	{
		sim_result("transactions_per_s", transactions / ((double) (ended - began) / SIM_S));
		sim_result("group_members", (double) group_members / transactions);
	}
	if (way->policy >= 0)
		report_library();
}

const SimLoad sim_load_lwlock = {"lwlock", setup, report};
