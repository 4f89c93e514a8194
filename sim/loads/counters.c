/*-------------------------------------------------------------------------
 *
 * sim/loads/counters.c
 *	  Threads that increment a counter in a loop, all the same one or each its
 *	  own: the benchmark of Freund, "Lockless queue of waiters in LWLock",
 *	  pgsql-hackers 2022-11-04.
 *
 * backends			threads, one per CPU by "placement"
 * load.op			cmpxchg, lock_add, xadd
 * load.bits		32 or 64, default 64
 * load.shared		1: all have one counter; 0: each has a line of its own
 * load.ms			1 .. 10000, default 16: time that is measured, ms, 5 rounds in each
 *
 * Results: ops_per_s of all together.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/atomics.h"

#define TURN			8		/* increments between two looks at the clock */
#define ROUND			(200 * SIM_US)	/* steady after 50 us */
#define PAUSE			(100 * SIM_US)	/* between rounds, until no thread waits */
#define START_SPREAD	(4 * SIM_US)	/* of the threads, at the start of a round */

typedef union Counter
{
	volatile uint32 u32;
	volatile uint64 u64;
	char		line[2 * SIM_CACHE_LINE];
} Counter;

static Counter *counters;
static bool shared;
static int	rounds;
static void (*increment) (Counter *counter);

static SIM_COMMON int64 operations = 0;

/*
 * cmpxchg: read once, then compare and swap until it is done; a failed try brings
 * the value for the next.  xadd: with or without the old value, the line's way is
 * the same.
 */
#define OPERATIONS(bits) \
static void \
cmpxchg_##bits(Counter *counter) \
{ \
	uint##bits	old = counter->u##bits; \
	while (!__atomic_compare_exchange_n(&counter->u##bits, &old, old + 1, false, \
										__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) \
		; \
} \
static void \
xadd_##bits(Counter *counter) \
{ \
	(void) __atomic_fetch_add(&counter->u##bits, 1, __ATOMIC_SEQ_CST); \
}

OPERATIONS(32)
OPERATIONS(64)

static const struct
{
	const char *name;
	void		(*increment[2]) (Counter *counter);
}			ops[] = {
	{"cmpxchg", {cmpxchg_32, cmpxchg_64}},
	{"lock_add", {xadd_32, xadd_64}},
	{"xadd", {xadd_32, xadd_64}},
};

/*
 * Many rounds stand for a run of some seconds, in which an interrupted thread comes
 * back in another place.  Without them the order of the queue would never change.
 * Each thread begins a round at a time of its own.
 */
static void
thread(void *arg)
{
	Counter    *counter = &counters[shared ? 0 : sim_self()];

	for (int i = 0; i < rounds; i++)
	{
		SimTime		from = i * (ROUND + PAUSE) + PAUSE;

		sim_wait_until(from - START_SPREAD + sim_random_below(START_SPREAD));
		while (sim_now() < from)
			increment(counter);
		while (sim_now() < from + ROUND)
		{
			for (int turn = 0; turn < TURN; turn++)
				increment(counter);
			operations += TURN;
		}
	}
}

static void
setup(void)
{
	int			threads = sim_backends();
	const char *op = sim_config_text("load.op", NULL);
	int64		bits = sim_config_int("load.bits", 32, 64, 64);

	shared = sim_config_int("load.shared", 0, 1, -1);
	rounds = sim_config_int("load.ms", 1, 10000, 16) * (SIM_MS / ROUND);
	if (bits != 32 && bits != 64)
		sim_fail("load.bits must be 32 or 64, not %d", (int) bits);
	for (int i = 0; i < lengthof(ops); i++)
		if (strcmp(ops[i].name, op) == 0)
			increment = ops[i].increment[bits == 64];
	if (increment == NULL)
		sim_fail("load.op must be cmpxchg, lock_add or xadd, not \"%s\"", op);

	counters = sim_shared_alloc("counters", threads * sizeof(Counter), sizeof(Counter),
								SIM_INTERLEAVE);
	for (int i = 0; i < threads; i++)
		sim_spawn("thread", thread, NULL, SIM_BY_PLACEMENT);
}

static void
report(void)
{
	sim_result("ops_per_s", (double) operations * SIM_S / (rounds * ROUND));
}

const SimLoad sim_load_counters = {"counters", setup, report};
