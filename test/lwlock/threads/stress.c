/*-------------------------------------------------------------------------
 *
 * test/lwlock/threads/stress.c
 *	  Rounds of random operations, and what must be true after each.
 *
 * In a round, a few backends do some operations each with a few locks (ops.c).
 * Afterwards locks must be free, queues empty, semaphores at what was posted for
 * no reason, and sums exact.
 *
 *-------------------------------------------------------------------------
 */
#include "stress.h"

#include <getopt.h>

#undef clock_gettime

extern const LWLockWaitRoutine *LWLockWait_of[];	/* as per_backend makes it */
extern PGPROC harness_procs[];
extern void harness_stubs_init(void);

/*
 * However slow or busy the machine is.  Fibers count CPU time: other load on the
 * machine does not change what they do.
 */
#define LEAST_ROUNDS	50
#ifdef HARNESS_FIBERS
#define RUN_CLOCK	CLOCK_PROCESS_CPUTIME_ID
#else
#define RUN_CLOCK	CLOCK_MONOTONIC
#endif

HarnessRound harness_round;
Protected	harness_locks[HARNESS_MAX_LOCKS];
Protected  *harness_disowned[HARNESS_MAX_BACKENDS];
int			harness_working;

static char space[HARNESS_MAX_LOCKS][64] pg_attribute_aligned(64);

/*
 * After all backends have ended: nothing may be left.
 */
static void
check_all_quiet(void)
{
	for (int i = 0; i < harness_round.nlocks; i++)
	{
		Protected  *p = &harness_locks[i];

		FAIL_IF(LWLockState(p->lock)->value != LW_FLAG_RELEASE_OK);
		FAIL_IF(p->data[0] != p->data[1] || p->data[0] != p->expected);
		FAIL_IF(p->holders != 0);
		FAIL_IF(p->begun != p->ended);
	}
	for (int i = 0; i < harness_round.nbackends; i++)
	{
		HarnessBackend *backend = &harness_backends[i];

		FAIL_IF(harness_procs[i].lwWaiting != LW_WS_NOT_WAITING);
		FAIL_IF(harness_procs[i].lwWaitLink.next != 0 || harness_procs[i].lwWaitLink.prev != 0);
		FAIL_IF(harness_sem_value(i) != (int) (backend->posted - backend->taken));
		FAIL_IF(backend->holdoff != 0);
		harness_self = i;
		FAIL_IF(LWLockHeldByMe(harness_locks[0].lock));
	}
	harness_self = 0;
}

static void
sum_counts(PgSweepLwlockCounts *total)
{
	memset(total, 0, sizeof(*total));
	for (uint32 b = 0; b < PgSweepLwlock->num_slots; b++)
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

/*
 * Choose how the round is set up.  In a "hot" one there are one lock, few waiters,
 * and impatience.
 */
static void
choose_round(bool *track, bool *hot)
{
	HarnessRound *r = &harness_round;

	r->nbackends = 2 + harness_random(harness_random(4) ? 6 : 15);
	r->nlocks = 1 + harness_random(harness_random(2) ? 1 : HARNESS_MAX_LOCKS);
	r->operations = 20 + harness_random(200);
	r->sleep_inside = harness_random(2) ? 0 : 1 << harness_random(8);
	r->use_library = harness_random(5) != 0;
	r->spurious = harness_random(3) == 0;
	r->disown = r->nbackends > 2 && harness_random(3) == 0;
	*track = harness_random(4) != 0;
	harness_switch_one_in = 1 << harness_random(7);
	harness_ns_per_point = 500 << harness_random(8);
	for (int i = 1; i < lengthof(r->weights); i++)
		r->weights[i] = harness_random(3) == 0 ? 0 : 1 + harness_random(8);
	r->weights[OP_EXCLUSIVE] += 3;

	harness_gone_one_in = 4 << harness_random(5);

	*hot = harness_random(4) == 0;
	if (*hot)
	{
		r->nbackends = 3 + harness_random(3);
		r->nlocks = 1;
		r->sleep_inside = harness_random(8);
		r->use_library = true;
		r->disown = false;
		harness_switch_one_in = 1 << harness_random(3);
		harness_ns_per_point = 200000;
		memset(r->weights, 0, sizeof(r->weights));
		r->weights[OP_EXCLUSIVE] = 1 + harness_random(4);
		r->weights[OP_SHARED] = 1 + harness_random(4);
		r->weights[OP_CONDITIONAL] = harness_random(4);
	}
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
	choose_round(&track, &hot);

	memset(harness_locks, 0, sizeof(harness_locks));
	for (int i = 0; i < HARNESS_MAX_LOCKS; i++)
	{
		Protected  *p = &harness_locks[i];

		/* at 8-byte boundaries and between them: the word's place differs */
		p->lock = (LWLock *) (space[i] + (i & 1 ? 4 : 8));
		LWLockInitialize(p->lock, LWTRANCHE_FIRST_USER_DEFINED + (i & 2 ? 300 : 0));
		pg_atomic_init_u64(&p->var, 0);
		harness_lock_place(i, i < harness_round.nlocks ? p->lock : NULL);
	}
	for (int i = 0; i < harness_round.nbackends; i++)
	{
		HarnessBackend *b = &harness_backends[i];

		memset(&harness_procs[i], 0, sizeof(PGPROC));
		b->posted = b->taken = 0;
		b->spin_tries = !hot && harness_random(3) ? harness_random(50) : 0;
		b->handoff_after = hot || harness_random(4) != 0;
		b->track = track;
		/* some processes may be without it */
		LWLockWait_of[i] = harness_round.use_library && harness_random(hot ? 3 : 10) ? &pgsweep_lwlock_wait_routine : NULL;
		harness_disowned[i] = NULL;
	}
	harness_working = harness_round.nbackends - (harness_round.disown ? 1 : 0);
	memset(PgSweepLwlock->tranche_policy, PGSWEEP_LWLOCK_DEFAULT, PGSWEEP_LWLOCK_NUM_TRANCHES);
	PgSweepLwlock->default_policy = harness_random(PGSWEEP_LWLOCK_NUM_POLICIES);

	harness_run(harness_round.nbackends, harness_backend_main);
	check_all_quiet();
	check_counts(track, before.granted, granted);
	harness_count(HC_ROUNDS);
}

static void
print_counts(void)
{
	static const char *const names[] = {
#define X(name) #name,
		HARNESS_COUNTS(X)
#undef X
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
#ifdef HARNESS_FIBERS
		{"script", required_argument, NULL, 'r'},
#endif
		{NULL}
	};
	double		seconds = 5;
	uint64		rounds = 0;
	const char *scripted pg_attribute_unused() = NULL;	/* fibers */
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
			case 'r':
				scripted = optarg;
				break;
			default:
				return 2;
		}

	harness_stubs_init();
#ifdef HARNESS_FIBERS
	if (scripted)
		return harness_run_scripted(scripted) ? 0 : 2;
#endif
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
