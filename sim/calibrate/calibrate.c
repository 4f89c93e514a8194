/*-------------------------------------------------------------------------
 *
 * sim/calibrate/calibrate.c
 *	  Takes one sample of one measurement on given CPUs and prints it, in
 *	  picoseconds.
 *
 *	calibrate MEASUREMENT CPU...
 *
 * Repeats, their order and medians are the caller's (py/calibrate.py): one sample
 * says nothing alone.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_CPUS 4096
#define LINE 128				/* two lines: prefetchers may treat them as one */

typedef struct Line
{
	volatile uint64_t word;
	char		pad[LINE - sizeof(uint64_t)];
} __attribute__((aligned(LINE))) Line;

/* ---- what the measurements share ---- */

static void
fail(const char *what)
{
	fprintf(stderr, "calibrate: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void
bind_to(int cpu)
{
	cpu_set_t  *set = CPU_ALLOC(MOST_CPUS);
	size_t		size = CPU_ALLOC_SIZE(MOST_CPUS);

	if (set == NULL)
		fail("memory");
	CPU_ZERO_S(size, set);
	CPU_SET_S(cpu, size, set);
	if (sched_setaffinity(0, size, set) != 0)
		fail("cannot run on this CPU");
	CPU_FREE(set);
}

static int64_t
now_ns(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_MONOTONIC, &t) != 0)
		fail("clock_gettime");
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int
compare(const void *a, const void *b)
{
	double		x = *(const double *) a;
	double		y = *(const double *) b;

	return (x > y) - (x < y);
}

static double
middle_of(double *samples, int n)
{
	qsort(samples, n, sizeof(double), compare);
	return samples[n / 2];
}

typedef struct Start
{
	void	   *(*run) (void *);
	void	   *arg;
	int			cpu;
} Start;

static void *
start_bound(void *arg)
{
	Start	   *start = arg;

	bind_to(start->cpu);
	return start->run(start->arg);
}

/* Two threads, each bound to a CPU; returns when both have ended. */
static void
run_pair(void *(*one) (void *), int cpu_one, void *(*other) (void *), int cpu_other, void *arg)
{
	pthread_t	threads[2];
	Start		starts[2] = {{one, arg, cpu_one}, {other, arg, cpu_other}};

	for (int i = 0; i < 2; i++)
	{
		errno = pthread_create(&threads[i], NULL, start_bound, &starts[i]);
		if (errno != 0)
			fail("pthread_create");
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

/* ---- an operation on a line that this CPU has ---- */

/*
 * Atomic operations are measured as chains, each of which needs the result of the
 * one before: nothing after a locked instruction is done before it.  Loads and
 * stores overlap, so their throughput counts.
 */
#define TURNS 2000
#define CHUNKS 201
#define SIXTEEN(x) x x x x x x x x x x x x x x x x

static Line own;

/*
 * The median of many short chunks: an interruption spoils only some of them.
 */
static double
middle(void (*chunk) (int turns), int operations)
{
	double		spent[CHUNKS];

	chunk(TURNS);
	for (int i = 0; i < CHUNKS; i++)
	{
		int64_t		from = now_ns();

		chunk(TURNS);
		spent[i] = (now_ns() - from) * 1000.0 / ((double) TURNS * operations);
	}
	return middle_of(spent, CHUNKS);
}

static void
loads(int turns)
{
	for (int i = 0; i < turns; i++)
	{
		SIXTEEN((void) own.word;
			)
	}
}

static void
stores(int turns)
{
	for (int i = 0; i < turns; i++)
	{
		SIXTEEN(own.word = i;
			)
	}
}

static void
xadds(int turns)
{
	uint64_t	value = 1;

	for (int i = 0; i < turns; i++)
		value = __atomic_fetch_add(&own.word, value | 1, __ATOMIC_SEQ_CST);
}

static void
swaps(int turns)
{
	uint64_t	value = own.word;

	for (int i = 0; i < turns; i++)
	{
		if (__atomic_compare_exchange_n(&own.word, &value, value + 1, false,
										__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			value++;
	}
}

static void
pauses(int turns)
{
	for (int i = 0; i < turns; i++)
		__builtin_ia32_pause();
}

/* ---- a line that another CPU has ---- */

#define TURN_CHUNKS 201
#define TURNS_EACH 500

/*
 * The usual measure, for comparison with published ones: two CPUs change the
 * same word by compare-and-swap in turn; half of the round trip.
 */
static Line ball;
static double turns[TURN_CHUNKS];

static void *
ping(void *arg)
{
	uint64_t	i = 0;

	for (int chunk = 0; chunk < TURN_CHUNKS; chunk++)
	{
		int64_t		from = now_ns();

		for (int j = 0; j < TURNS_EACH; j++, i++)
		{
			uint64_t	expected;

			do
				expected = 2 * i;
			while (!__atomic_compare_exchange_n(&ball.word, &expected, 2 * i + 1, false,
												__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
		}
		turns[chunk] = (now_ns() - from) * 1000.0 / (2 * TURNS_EACH);
	}
	return NULL;
}

static void *
pong(void *arg)
{
	for (uint64_t i = 0; i < TURN_CHUNKS * TURNS_EACH; i++)
	{
		uint64_t	expected;

		do
			expected = 2 * i + 1;
		while (!__atomic_compare_exchange_n(&ball.word, &expected, 2 * i + 2, false,
											__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	}
	return NULL;
}

static double
ping_pong(const int *cpus)
{
	ball.word = 0;
	run_pair(ping, cpus[0], pong, cpus[1], NULL);
	return middle_of(turns, TURN_CHUNKS);
}

/* ---- main ---- */

static const struct
{
	const char *name;
	void		(*chunk) (int turns);	/* of operations on one CPU; or: */
	int			operations;		/* per turn */
	double		(*sample) (const int *cpus);	/* of two CPUs */
}			measurements[] =
{
	{"load_hit", loads, 16},
	{"store_hit", stores, 16},
	{"xadd_hit", xadds, 1},
	{"cas_hit", swaps, 1},
	{"pause", pauses, 1},
	{"ping_pong", NULL, 0, ping_pong},
};

int
main(int argc, char **argv)
{
	for (size_t i = 0; argc > 2 && i < sizeof(measurements) / sizeof(measurements[0]); i++)
	{
		int			cpus[2] = {atoi(argv[2]), argc > 3 ? atoi(argv[3]) : -1};

		if (strcmp(measurements[i].name, argv[1]) != 0)
			continue;
		if (argc != (measurements[i].chunk != NULL ? 3 : 4))
			break;
		bind_to(cpus[0]);
		printf("%.3f\n", measurements[i].chunk != NULL ?
			   middle(measurements[i].chunk, measurements[i].operations) :
			   measurements[i].sample(cpus));
		return 0;
	}
	fprintf(stderr, "usage: calibrate MEASUREMENT CPU...\n");
	return 2;
}
