/*-------------------------------------------------------------------------
 *
 * stress.c
 *	  What the backends of the harness do, and what must be true of it.
 *
 * In rounds: a few backends do a number of random operations with a few locks
 * each; then everything must be as it was: locks free, queues empty, semaphores
 * at what was posted for no reason, sums exact.
 *
 * test/lwlock/threads/stress.c
 *
 *-------------------------------------------------------------------------
 */
#include "shim.h"

#include <getopt.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

#include "storage/lwlock_queue.h"

#undef clock_gettime

extern const LWLockWaitRoutine *LWLockWait_of[];	/* as per_backend makes it */
extern PGPROC harness_procs[];
extern void harness_stubs_init(void);

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
	uint64		expected;		/* sum of what everybody has added */
} Protected;

/*
 * However slow or busy the machine is.  Fibers count the CPU's time, so that what
 * they come to see does not depend on what else is run.
 */
#define LEAST_ROUNDS	50
#ifdef HARNESS_FIBERS
#define RUN_CLOCK	CLOCK_PROCESS_CPUTIME_ID
#else
#define RUN_CLOCK	CLOCK_MONOTONIC
#endif

static char space[HARNESS_MAX_LOCKS][64] pg_attribute_aligned(64);
static Protected locks[HARNESS_MAX_LOCKS];

/* This round */
static int	nbackends;
static int	nlocks;
static int	operations;
static uint32 sleep_inside;		/* points inside a hold, at most */
static bool use_library;
static bool spurious;
static bool disown;
static uint32 weights[8];

/* Locks that were disowned, on their way to the last backend: atomic */
static Protected *disowned[HARNESS_MAX_BACKENDS];
static int	still_working;		/* relaxed atomic */

#define FAIL_IF(cond) \
	do { \
		if (cond) \
			harness_fail("%s:%d: %s", __FILE__, __LINE__, #cond); \
	} while (0)

static void
begin_op(HarnessOp op, int with)
{
	relaxed_write(&HARNESS_ME->doing, op);
	relaxed_write(&HARNESS_ME->with, with);
	HARNESS_ME->pushed = false;
}

static void
stay(void)
{
	if (sleep_inside > 0)
		for (uint32 n = harness_random(sleep_inside); n > 0; n--)
			harness_point();
}

/* Just acquired exclusively */
static void
enter_exclusive(Protected *p)
{
	relaxed_add(&p->begun, 1);
	FAIL_IF(__atomic_exchange_n(&p->holders, -1, __ATOMIC_RELAXED) != 0);
	FAIL_IF(p->data[0] != p->data[1]);
	p->data[0]++;
	stay();
	p->data[1]++;
	FAIL_IF(p->data[0] != p->data[1]);
	relaxed_add(&p->expected, 1);
	harness_count(HC_EXCLUSIVE);
}

static void
leave_exclusive(Protected *p)
{
	FAIL_IF(__atomic_exchange_n(&p->holders, 0, __ATOMIC_RELAXED) != -1);
	relaxed_add(&p->waking, 1);
	relaxed_add(&p->ended, 1);
}

static void
enter_shared(Protected *p)
{
	uint64		seen;

	FAIL_IF(relaxed_add(&p->holders, 1) < 0);
	seen = p->data[0];
	stay();
	FAIL_IF(seen != p->data[1] || seen != p->data[0]);
	harness_count(HC_SHARED);
}

static void
leave_shared(Protected *p)
{
	FAIL_IF(relaxed_add(&p->holders, -1) < 1);
	relaxed_add(&p->waking, 1);
}

/*
 * Change the variable.  Those who wait for the old value must come back while
 * the lock is still held.
 */
static void
update_var(Protected *p)
{
	uint64		value = ++p->next_value;
	uint64		waiting_since[HARNESS_MAX_BACKENDS] = {0};
	bool		wait = harness_random(4) == 0;
	int			with = p - locks;

	if (wait)
		for (int i = 0; i < nbackends; i++)
		{
			HarnessBackend *other = &harness_backends[i];
			int			call = __atomic_load_n(&other->var_call, __ATOMIC_ACQUIRE);

			if ((call & 1) && relaxed_read(&other->with) == with &&
				relaxed_read(&other->var_oldval) != value &&
				__atomic_load_n(&other->var_call, __ATOMIC_ACQUIRE) == call)
				waiting_since[i] = call;
		}

	relaxed_add(&p->waking, 1);
	LWLockUpdateVar(p->lock, &p->var, value);
	relaxed_add(&p->woken, 1);
	harness_count(HC_VAR_UPDATES);

	for (int i = 0; i < nbackends; i++)
	{
		int			pauses = 0;

		if (waiting_since[i] == 0)
			continue;
		while (relaxed_read(&harness_backends[i].var_call) == waiting_since[i])
		{
			harness_pause();
#ifdef HARNESS_FIBERS
			if (++pauses > 1000000)
				harness_fail("backend %d is not woken by LWLockUpdateVar()", i);
#else
			(void) pauses;
#endif
		}
		harness_count(HC_VAR_ACKNOWLEDGED);
	}
}

static void
release_exclusive(Protected *p)
{
	bool		var = harness_random(4) == 0;

	if (var)
		for (uint32 n = harness_random(3); n > 0; n--)
			update_var(p);
	leave_exclusive(p);
	if (var)
		LWLockReleaseClearVar(p->lock, &p->var, 0);
	else
		LWLockRelease(p->lock);
	relaxed_add(&p->woken, 1);
}

static void
hold_exclusive(Protected *p)
{
	enter_exclusive(p);
	release_exclusive(p);
}

static void
hold_shared(Protected *p)
{
	enter_shared(p);
	leave_shared(p);
	LWLockRelease(p->lock);
	relaxed_add(&p->woken, 1);
}

static void
op_conditional(Protected *p)
{
	bool		exclusive = harness_random(2);

	if (!LWLockConditionalAcquire(p->lock, exclusive ? LW_EXCLUSIVE : LW_SHARED))
	{
		harness_count(HC_CONDITIONAL_FAILED);
		return;
	}
	harness_count(HC_CONDITIONAL_GOT);
	if (exclusive)
		hold_exclusive(p);
	else
		hold_shared(p);
}

static void
op_or_wait(Protected *p)
{
	uint64		woken = relaxed_read(&p->woken);

	/* as WALWriteLock is used; shared is never */
	if (LWLockAcquireOrWait(p->lock, LW_EXCLUSIVE))
	{
		harness_count(HC_OR_WAIT_GOT);
		hold_exclusive(p);
	}
	else
	{
		harness_count(HC_OR_WAIT_WAITED);

		/*
		 * Somebody who was there when we came has gone, or is still waking
		 * others for an earlier release.  With the library, that may be done
		 * by another.
		 */
		FAIL_IF(!use_library && relaxed_read(&p->waking) == woken);
	}
}

static void
op_wait_for_var(Protected *p)
{
	HarnessBackend *me = HARNESS_ME;
	uint64		ended = relaxed_read(&p->ended);
	uint64		begun = relaxed_read(&p->begun);
	uint64		oldval = relaxed_read((uint64 *) &p->var.value);
	uint64		newval = oldval;
	bool		is_free;

	relaxed_write(&me->var_oldval, oldval);
	__atomic_fetch_add(&me->var_call, 1, __ATOMIC_RELEASE);
	is_free = LWLockWaitForVar(p->lock, &p->var, oldval, &newval);
	__atomic_fetch_add(&me->var_call, 1, __ATOMIC_RELEASE);

	harness_count(is_free ? HC_VAR_FREE : HC_VAR_CHANGED);
	FAIL_IF(!is_free && newval == oldval);

	/* if one held it when we came, he must have gone since */
	FAIL_IF(is_free && begun > ended && relaxed_read(&p->ended) < begun);
}

static void
op_disown(Protected *p)
{
	LWLockAcquire(p->lock, LW_EXCLUSIVE);
	enter_exclusive(p);
	leave_exclusive(p);
	LWLockDisown(p->lock);
	harness_count(HC_DISOWNED);
	while (relaxed_read(&disowned[harness_self]) != NULL)
		harness_pause();		/* until the one before is taken */
	__atomic_store_n(&disowned[harness_self], p, __ATOMIC_RELEASE);
}

/* The last backend, if somebody disowns, does nothing but release for others */
static void
release_for_others(void)
{
	for (;;)
	{
		bool		last = __atomic_load_n(&still_working, __ATOMIC_ACQUIRE) == 0;

		for (int i = 0; i < nbackends; i++)
		{
			Protected  *p = __atomic_load_n(&disowned[i], __ATOMIC_ACQUIRE);

			if (p == NULL)
				continue;
			/* he may have the lock again as soon as it is released */
			relaxed_write(&disowned[i], NULL);
			LWLockReleaseDisowned(p->lock, LW_EXCLUSIVE);
			relaxed_add(&p->woken, 1);
		}
		if (last)
			return;
		harness_pause();
	}
}

static void
op_nested(int i)
{
	Protected  *p = &locks[i];
	bool		exclusive = harness_random(2);

	LWLockAcquire(p->lock, exclusive ? LW_EXCLUSIVE : LW_SHARED);
	if (exclusive)
		enter_exclusive(p);
	else
		enter_shared(p);
	if (i + 1 < nlocks)
	{
		Protected  *q = &locks[i + 1 + harness_random(nlocks - i - 1)];

		LWLockAcquire(q->lock, LW_EXCLUSIVE);
		harness_count(HC_NESTED);
		hold_exclusive(q);
	}
	if (exclusive)
		release_exclusive(p);
	else
	{
		leave_shared(p);
		LWLockRelease(p->lock);
		relaxed_add(&p->woken, 1);
	}
}

/* Any process may switch, at any moment, and nobody stops for it */
static void
switch_policy(void)
{
	uint8		policy = harness_random(PGSWEEP_LWLOCK_NUM_POLICIES);
	int			tranche = locks[harness_random(nlocks)].lock->tranche;

	if (harness_random(2))
		relaxed_write(&PgSweepLwlock->default_policy, policy);
	else
		relaxed_write(&PgSweepLwlock->tranche_policy[tranche],
					  harness_random(3) ? policy : PGSWEEP_LWLOCK_DEFAULT);
	harness_count(HC_POLICY_SWITCHES);
}

/*
 * A semaphore is posted for other reasons, too; whoever sleeps on it for a lock
 * must count these and give them back.  Here they are taken between operations.
 */
static void
post_for_no_reason(void)
{
	HarnessBackend *other = &harness_backends[harness_random(nbackends)];

	relaxed_add(&other->posted, 1);
	harness_count(HC_SPURIOUS);
	PGSemaphoreUnlock(harness_my_proc[other - harness_backends]->sem);
}

static void
take_posts(void)
{
	while (harness_sem_try(harness_self))
		relaxed_add(&HARNESS_ME->taken, 1);
}

static HarnessOp
choose_op(void)
{
	uint32		total = 0;
	uint32		draw;

	for (int i = 1; i < lengthof(weights); i++)
		total += weights[i];
	draw = harness_random(total);
	for (int i = 1; i < lengthof(weights); i++)
	{
		if (draw < weights[i])
			return i;
		draw -= weights[i];
	}
	pg_unreachable();
}

static void
one_operation(void)
{
	int			i = harness_random(nlocks);
	Protected  *p = &locks[i];
	HarnessOp	op = choose_op();

	begin_op(op, i);
	switch (op)
	{
		case OP_EXCLUSIVE:
			LWLockAcquire(p->lock, LW_EXCLUSIVE);
			hold_exclusive(p);
			break;
		case OP_SHARED:
			LWLockAcquire(p->lock, LW_SHARED);
			hold_shared(p);
			break;
		case OP_CONDITIONAL:
			op_conditional(p);
			break;
		case OP_OR_WAIT:
			op_or_wait(p);
			break;
		case OP_WAIT_FOR_VAR:
			op_wait_for_var(p);
			break;
		case OP_DISOWN:
			if (disown)
				op_disown(p);
			break;
		case OP_NESTED:
			op_nested(i);
			break;
		case OP_NONE:
			pg_unreachable();
	}
	FAIL_IF(HARNESS_ME->holdoff != 0);
	relaxed_write(&HARNESS_ME->doing, OP_NONE);
	relaxed_add(&HARNESS_ME->steps, 1);
	harness_count(HC_OPERATIONS);
}

static void
backend_main(void)
{
	if (disown && harness_self == nbackends - 1)
	{
		release_for_others();
		return;
	}
	for (int n = 0; n < operations; n++)
	{
		one_operation();
		if (use_library && harness_random(8) == 0)
			switch_policy();
		if (use_library && harness_random(64) == 0)
		{
			HARNESS_ME->spin_tries = harness_random(2) ? 0 : harness_random(20);
			HARNESS_ME->handoff_after = harness_random(4) != 0;
		}
		if (spurious && harness_random(4) == 0)
			post_for_no_reason();
		if (harness_random(4) == 0)
			take_posts();
	}
	__atomic_fetch_sub(&still_working, 1, __ATOMIC_RELEASE);
}

/*
 * Everybody has gone: nothing may be left.
 */
static void
check_all_quiet(void)
{
	for (int i = 0; i < nlocks; i++)
	{
		Protected  *p = &locks[i];

		FAIL_IF(LWLockState(p->lock)->value != LW_FLAG_RELEASE_OK);
		FAIL_IF(p->data[0] != p->data[1] || p->data[0] != p->expected);
		FAIL_IF(p->holders != 0);
		FAIL_IF(p->begun != p->ended);
	}
	for (int i = 0; i < nbackends; i++)
	{
		HarnessBackend *backend = &harness_backends[i];

		FAIL_IF(harness_procs[i].lwWaiting != LW_WS_NOT_WAITING);
		FAIL_IF(harness_procs[i].lwWaitLink.next != 0 || harness_procs[i].lwWaitLink.prev != 0);
		FAIL_IF(harness_sem_value(i) != (int) (backend->posted - backend->taken));
		FAIL_IF(backend->holdoff != 0);
		harness_self = i;
		FAIL_IF(LWLockHeldByMe(locks[0].lock));
	}
	harness_self = 0;
}

static void
sum_counts(PgSweepLwlockCounts *total)
{
	memset(total, 0, sizeof(*total));
	for (int b = 0; b < HARNESS_MAX_BACKENDS; b++)
		for (int e = 0; e < PGSWEEP_LWLOCK_ENTRIES; e++)
		{
			PgSweepLwlockCounts *c = &PgSweepLwlock->slots[b].slot.entries[e].counts;

			total->contended += c->contended;
			total->spun += c->spun;
			total->queued += c->queued;
			total->slept += c->slept;
			total->vain += c->vain;
			total->overtaken += c->overtaken;
			total->granted += c->granted;
		}
}

/*
 * What the library has counted must fit together, and to what the harness has
 * seen: "granted" is what it had before.
 */
static void
check_counts(bool track, uint64 library_granted, uint64 granted)
{
	PgSweepLwlockCounts now;

	sum_counts(&now);
	FAIL_IF(now.spun > now.contended);
	FAIL_IF(now.slept > now.queued);
	FAIL_IF(now.overtaken > now.vain);
	FAIL_IF(now.granted > now.overtaken);
	FAIL_IF(now.granted - library_granted !=
			(track ? harness_counted(HC_GRANTED) - granted : 0));
}

static void
one_round(uint64 seed)
{
	bool		track;
	bool		hot;
	uint64		granted = harness_counted(HC_GRANTED);
	PgSweepLwlockCounts before;

	sum_counts(&before);
	harness_round_seed = seed;
	harness_self = 0;
	HARNESS_ME->random = (seed + 1) * UINT64CONST(0xD1342543DE82EF95) | 1;
	for (int i = 0; i < 8; i++)
		harness_random(2);

	nbackends = 2 + harness_random(harness_random(4) ? 6 : 15);
	nlocks = 1 + harness_random(harness_random(2) ? 1 : HARNESS_MAX_LOCKS);
	operations = 20 + harness_random(200);
	sleep_inside = harness_random(2) ? 0 : 1 << harness_random(8);
	use_library = harness_random(5) != 0;
	spurious = harness_random(3) == 0;
	disown = nbackends > 2 && harness_random(3) == 0;
	track = harness_random(4) != 0;
	harness_switch_one_in = 1 << harness_random(7);
	harness_ns_per_point = 500 << harness_random(8);
	for (int i = 1; i < lengthof(weights); i++)
		weights[i] = harness_random(3) == 0 ? 0 : 1 + harness_random(8);
	weights[OP_EXCLUSIVE] += 3;

	harness_gone_one_in = 4 << harness_random(5);

	/* now and then one lock, a few in its queue, and impatience */
	hot = harness_random(4) == 0;
	if (hot)
	{
		nbackends = 3 + harness_random(3);
		nlocks = 1;
		sleep_inside = harness_random(8);
		use_library = true;
		disown = false;
		harness_switch_one_in = 1 << harness_random(3);
		harness_ns_per_point = 200000;
		memset(weights, 0, sizeof(weights));
		weights[OP_EXCLUSIVE] = 1 + harness_random(4);
		weights[OP_SHARED] = 1 + harness_random(4);
		weights[OP_CONDITIONAL] = harness_random(4);
	}

	memset(locks, 0, sizeof(locks));
	for (int i = 0; i < HARNESS_MAX_LOCKS; i++)
	{
		Protected  *p = &locks[i];

		/* at 8-byte boundaries and between them: the word's place differs */
		p->lock = (LWLock *) (space[i] + (i & 1 ? 4 : 8));
		LWLockInitialize(p->lock, LWTRANCHE_FIRST_USER_DEFINED + (i & 2 ? 300 : 0));
		pg_atomic_init_u64(&p->var, 0);
		harness_lock_place(i, i < nlocks ? p->lock : NULL);
	}
	for (int i = 0; i < nbackends; i++)
	{
		HarnessBackend *b = &harness_backends[i];

		memset(&harness_procs[i], 0, sizeof(PGPROC));
		b->posted = b->taken = 0;
		b->spin_tries = !hot && harness_random(3) ? harness_random(50) : 0;
		b->handoff_after = hot || harness_random(4) != 0;
		b->track = track;
		/* some processes may be without it */
		LWLockWait_of[i] = use_library && harness_random(hot ? 3 : 10) ? &pgsweep_lwlock_wait_routine : NULL;
		disowned[i] = NULL;
	}
	still_working = nbackends - (disown ? 1 : 0);
	memset(PgSweepLwlock->tranche_policy, PGSWEEP_LWLOCK_DEFAULT, PGSWEEP_LWLOCK_NUM_TRANCHES);
	PgSweepLwlock->default_policy = harness_random(PGSWEEP_LWLOCK_NUM_POLICIES);

	harness_run(nbackends, backend_main);
	check_all_quiet();
	check_counts(track, before.granted, granted);
	harness_count(HC_ROUNDS);
}

static void
print_counts(void)
{
	static const char *const names[] = {
		[HC_ROUNDS] = "rounds",
		[HC_OPERATIONS] = "operations",
		[HC_EXCLUSIVE] = "exclusive",
		[HC_SHARED] = "shared",
		[HC_CONDITIONAL_GOT] = "conditional_got",
		[HC_CONDITIONAL_FAILED] = "conditional_failed",
		[HC_OR_WAIT_GOT] = "or_wait_got",
		[HC_OR_WAIT_WAITED] = "or_wait_waited",
		[HC_VAR_FREE] = "var_free",
		[HC_VAR_CHANGED] = "var_changed",
		[HC_VAR_UPDATES] = "var_updates",
		[HC_VAR_ACKNOWLEDGED] = "var_acknowledged",
		[HC_DISOWNED] = "disowned",
		[HC_NESTED] = "nested",
		[HC_POLICY_SWITCHES] = "policy_switches",
		[HC_SLEPT] = "slept",
		[HC_SPURIOUS] = "spurious",
		[HC_PUSHED_LOCKED] = "pushed_locked",
		[HC_PUSHED_LOCKLESS] = "pushed_lockless",
		[HC_PUSHED_FRONT] = "pushed_front",
		[HC_PUSHED_UNTIL_FREE] = "pushed_until_free",
		[HC_UNDONE] = "undone",
		[HC_WAKE_WANTED] = "wake_wanted",
		[HC_RESERVED] = "reserved",
		[HC_GRANTED] = "granted",
	};

	for (int i = 0; i < HC_NUM; i++)
		printf("%s=%llu\n", names[i], (unsigned long long) harness_counted(i));
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{"seconds", required_argument, NULL, 't'},
		{"rounds", required_argument, NULL, 'n'},
		{"seed", required_argument, NULL, 's'},
		{"watchdog", required_argument, NULL, 'w'},
		{"unchecked-steps", no_argument, NULL, 'u'},
		{NULL}
	};
	double		seconds = 5;
	uint64		rounds = 0;
	struct timespec begin;
	int			opt;

	harness_seed = 1;
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (opt)
		{
			case 't':
				seconds = atof(optarg);
				break;
			case 'n':
				rounds = strtoull(optarg, NULL, 10);
				break;
			case 's':
				harness_seed = strtoull(optarg, NULL, 10);
				break;
			case 'w':
				harness_watchdog_seconds = atoi(optarg);
				break;
			case 'u':
				harness_check_steps = false;
				break;
			default:
				return 2;
		}

	harness_stubs_init();
	clock_gettime(RUN_CLOCK, &begin);
	for (uint64 n = 0;; n++)
	{
		struct timespec now;

		clock_gettime(RUN_CLOCK, &now);
		if (rounds > 0 ? n >= rounds :
			n >= LEAST_ROUNDS &&
			(now.tv_sec - begin.tv_sec) + (now.tv_nsec - begin.tv_nsec) / 1e9 >= seconds)
			break;
		one_round(harness_seed + n);
	}
	print_counts();
	return 0;
}
