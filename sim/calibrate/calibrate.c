/*
 * calibrate.c
 *	  Takes one sample of one measurement on given CPUs and prints it.
 *
 *	calibrate MEASUREMENT CPU...
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "calibrate.h"

#define MOST_CPUS 4096

typedef struct Measurement
{
	const char *name;
	int			least_cpus;
	double		(*sample) (const int *cpus, int ncpus);
} Measurement;

static const Measurement measurements[] = {
	{"load_hit", 1, load_hit},
	{"store_hit", 1, store_hit},
	{"xadd_hit", 1, xadd_hit},
	{"cas_hit", 1, cas_hit},
	{"pause", 1, pause_time},
	{"instruction", 1, instruction_time},
	{"together", 2, together},
	{"lease_spread", 1, lease_spread},
	{"transfer_load", 2, transfer_load},
	{"transfer_xadd", 2, transfer_xadd},
	{"transfer_both", 2, transfer_both},
	{"ping_pong", 2, ping_pong},
	{"contended_xadd", 2, contended_xadd},
	{"memory", 2, memory_latency},
	{"copy", 1, copy_rate},
	{"wake_call", 2, wake_call},
	{"wake_up", 2, wake_up},
	{"sleep_call", 2, sleep_call},
	{"switch", 1, context_switch},
	{"timeslice", 1, time_slice},
};

void
fail(const char *what)
{
	fprintf(stderr, "calibrate: %s: %s\n", what, strerror(errno));
	exit(1);
}

void
bind_to(int cpu)
{
	cpu_set_t  *set = CPU_ALLOC(MOST_CPUS);
	size_t		size = CPU_ALLOC_SIZE(MOST_CPUS);

	if (set == NULL)
		fail("memory");
	CPU_ZERO_S(size, set);
	CPU_SET_S(cpu, size, set);
	if (sched_setaffinity(0, size, set) != 0)
	{
		fprintf(stderr, "calibrate: cannot run on CPU %d: %s\n", cpu, strerror(errno));
		exit(1);
	}
	CPU_FREE(set);
}

int64_t
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

double
middle_of(double *samples, int n)
{
	qsort(samples, n, sizeof(double), compare);
	return samples[n / 2];
}

uint32_t
next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/*
 * Memory that is on the node of a CPU, because that CPU touched it first.  Huge
 * pages where the kernel gives them: what is measured is caches and memory, not
 * the translation of addresses.
 */
void *
map_memory(int64_t bytes, int first_touch_cpu)
{
	void	   *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
							  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		fail("mmap");
	(void) madvise(memory, bytes, MADV_HUGEPAGE);
	if (first_touch_cpu >= 0)
	{
		bind_to(first_touch_cpu);
		memset(memory, 1, bytes);
	}
	return memory;
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

void
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

int
main(int argc, char **argv)
{
	int			cpus[MOST_CPUS];
	int			ncpus = argc - 2;

	if (argc < 3 || ncpus > MOST_CPUS)
	{
		fprintf(stderr, "usage: calibrate MEASUREMENT CPU...\n");
		return 2;
	}
	for (int i = 0; i < ncpus; i++)
	{
		char	   *end;

		errno = 0;
		cpus[i] = strtol(argv[i + 2], &end, 10);
		if (errno != 0 || *end != '\0' || end == argv[i + 2] || cpus[i] < 0 || cpus[i] >= MOST_CPUS)
		{
			fprintf(stderr, "calibrate: \"%s\" is no CPU\n", argv[i + 2]);
			return 2;
		}
	}
	for (size_t i = 0; i < sizeof(measurements) / sizeof(measurements[0]); i++)
	{
		if (strcmp(measurements[i].name, argv[1]) != 0)
			continue;
		if (ncpus < measurements[i].least_cpus)
		{
			fprintf(stderr, "calibrate: %s needs %d CPUs\n", argv[1], measurements[i].least_cpus);
			return 2;
		}
		bind_to(cpus[0]);
		printf("%.3f\n", measurements[i].sample(cpus, ncpus));
		return 0;
	}
	fprintf(stderr, "calibrate: there is no measurement \"%s\"\n", argv[1]);
	return 2;
}
