/*
 * memory.c
 *	  How long memory takes to answer, and how fast pages are copied.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate.h"

/* More than any last-level cache that a CPU of today may use alone. */
#define CHASED_BYTES (INT64_C(256) << 20)
#define WARM_STEPS 500000		/* the first steps are slower, by far on virtual machines */
#define STEPS 2000000

#define PAGE 8192
#define COPIED_BYTES (INT64_C(256) << 20)
#define COPY_NS 100000000

/*
 * CPU 0 of the list follows a chain of random lines through memory that is on
 * the node of CPU 1 of the list.  The next line is a linear congruence of this
 * one with the full period (Hull and Dobell: odd increment, multiplier 1 modulo
 * 4, a power of two of lines), so the chain never closes early.
 */
double
memory_latency(const int *cpus, int ncpus)
{
	Line	   *lines = map_memory(CHASED_BYTES, cpus[1]);
	uint64_t	count = CHASED_BYTES / sizeof(Line);
	uint64_t	at = 1;
	int64_t		spent;

	bind_to(cpus[0]);
	for (uint64_t i = 0; i < count; i++)
		lines[i].word = (i * 1664525 + 1013904223) % count;
	/* lines that are in a cache still are the last ones of that loop */
	for (int i = 0; i < WARM_STEPS; i++)
		at = lines[at].word;
	spent = -now_ns();
	for (int i = 0; i < STEPS; i++)
		at = lines[at].word;
	spent += now_ns();
	if (at >= count)
		fail("the chain is broken");
	return spent * 1000.0 / STEPS;
}

typedef struct Copier
{
	pthread_t	thread;
	int			cpu;
	int64_t		begin;
	int64_t		bytes;
	int64_t		spent_ns;
} Copier;

/*
 * Copies random pages to random places, as backends do from the kernel's cache
 * into buffers, both much larger than any CPU's caches.
 */
static void *
copy(void *arg)
{
	Copier	   *me = arg;
	char	   *from = map_memory(COPIED_BYTES, me->cpu);
	char	   *to = map_memory(COPIED_BYTES, me->cpu);
	uint32_t	state = 777 + me->cpu;
	int64_t		begin;

	while (now_ns() < me->begin)
		;
	begin = now_ns();
	do
	{
		for (int i = 0; i < 64; i++)
		{
			uint32_t	source = next_random(&state) % (COPIED_BYTES / PAGE);
			uint32_t	target = next_random(&state) % (COPIED_BYTES / PAGE);

			memcpy(to + (int64_t) target * PAGE, from + (int64_t) source * PAGE, PAGE);
		}
		me->bytes += 64 * PAGE;
	} while (now_ns() - begin < COPY_NS);
	me->spent_ns = now_ns() - begin;
	return NULL;
}

double
copy_rate(const int *cpus, int ncpus)
{
	Copier	   *all = calloc(ncpus, sizeof(Copier));
	double		rate = 0;

	if (all == NULL)
		fail("memory");
	for (int i = 0; i < ncpus; i++)
	{
		all[i].cpu = cpus[i];
		/* touching all of it takes each about this long */
		all[i].begin = now_ns() + 600000000;
		if (pthread_create(&all[i].thread, NULL, copy, &all[i]) != 0)
			fail("pthread_create");
	}
	for (int i = 0; i < ncpus; i++)
	{
		pthread_join(all[i].thread, NULL);
		rate += all[i].bytes * 1e9 / all[i].spent_ns;
	}
	free(all);
	return rate;
}
