/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/homes_machines.h
 *	  Random machines for the tests of homes: caches, cores, threads, nodes, and
 *	  what of them the server may use.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HOMES_MACHINES_H
#define HOMES_MACHINES_H

typedef struct Shape
{
	uint32		caches;
	uint32		cores_per_cache;
	uint32		threads;
	uint32		numbering;		/* of second threads: last, next, anywhere */
	uint32		caches_per_node;
	bool		within_cache;	/* nodes divide caches */
	bool		uneven;
	bool		hybrid;
} Shape;

static Shape
random_shape(void)
{
	Shape		s = {0};

	do
	{
		s.caches = 1 << random_in(0, 4);
		if (random_in(0, 1) == 0)
			s.caches = random_in(1, 20);
		s.cores_per_cache = random_in(0, 3) == 0 ? random_in(13, 100) : random_in(1, 16);
		s.threads = random_in(1, 2);
	} while (s.caches * s.cores_per_cache * s.threads > MOST_CPUS);
	s.numbering = random_in(0, 2);
	s.caches_per_node = random_in(1, s.caches);
	s.within_cache = random_in(0, 4) == 0;
	s.uneven = random_in(0, 2) == 0;
	s.hybrid = s.threads == 2 && random_in(0, 3) == 0;
	if (random_in(0, 15) == 0)
	{
		/* EPYC before Milan */
		s.cores_per_cache = 4;
		s.caches = s.caches_per_node = 2 * random_in(4, 10);
		s.uneven = false;
	}
	return s;
}

/*
 * A CPU for each thread of each core, in the order in which the firmware tells
 * of them.
 */
static uint32
number_threads(const Shape *s, uint32 *core_of, uint32 *cache_of)
{
	uint32		n = 0;

	for (uint32 pass = 0; pass < (s->numbering == 1 ? 1 : s->threads); pass++)
		for (uint32 cache = 0; cache < s->caches; cache++)
			for (uint32 i = 0; i < s->cores_per_cache; i++)
			{
				uint32		core = cache * s->cores_per_cache + i;
				uint32		here = s->numbering == 1 ? s->threads : 1;

				if (s->uneven && i > 0 && core % 7 >= 7 - cache % 4)
					continue;
				if (s->hybrid && core % 3 == 0)
				{
					if (pass > 0)
						continue;
					here = 1;
				}
				for (uint32 k = 0; k < here; k++)
				{
					core_of[n] = core;
					cache_of[n++] = cache;
				}
			}
	if (s->numbering == 2)
		for (uint32 i = n - 1; i > 0; i--)
		{
			uint32		k = random_in(0, i);
			uint32		core = core_of[i];
			uint32		cache = cache_of[i];

			core_of[i] = core_of[k];
			cache_of[i] = cache_of[k];
			core_of[k] = core;
			cache_of[k] = cache;
		}
	return n;
}

/* Which of them the server may use, and what is not known */
static void
limit_machine(PgSweepNumaTopology *t)
{
	uint32		kind = random_in(0, 5);
	uint32		from = random_in(0, t->cpu_limit - 1);
	uint32		until = random_in(from, t->cpu_limit - 1);

	for (uint32 cpu = 0; cpu < t->cpu_limit; cpu++)
	{
		t->cpu_usable[cpu] = kind <= 2 || (kind == 3 && cpu >= from && cpu <= until) ||
			(kind == 4 && random_in(0, 3) != 0) || (kind == 5 && random_in(0, 9) == 0);
		if (kind == 2 && random_in(0, 5) == 0)
		{
			/* offline */
			t->cpu_usable[cpu] = false;
			t->cpu_node[cpu] = PGSWEEP_NUMA_NO_NODE;
			t->cpu_cache[cpu] = PGSWEEP_NUMA_NO_CACHE;
		}
		counts.unusable += !t->cpu_usable[cpu];
		counts.unknown += t->cpu_node[cpu] == PGSWEEP_NUMA_NO_NODE;
	}
}

static void
make_machine(PgSweepNumaTopology *t)
{
	Shape		s = random_shape();
	uint32		core_of[MOST_CPUS];
	uint32		cache_of[MOST_CPUS];
	uint16		first_of_core[MOST_CPUS];
	uint16		first_of_cache[MOST_CPUS];
	bool		unknown = random_in(0, 9) == 0;

	memset(t, 0, sizeof(*t));
	memset(first_of_core, 0xFF, sizeof(first_of_core));
	memset(first_of_cache, 0xFF, sizeof(first_of_cache));
	t->cpu_limit = number_threads(&s, core_of, cache_of);
	for (uint32 cpu = 0; cpu < t->cpu_limit; cpu++)
	{
		uint16	   *core = &first_of_core[core_of[cpu]];
		uint16	   *cache = &first_of_cache[cache_of[cpu]];

		if (*core == NONE)
			*core = cpu;
		else
			counts.threads++;
		if (*cache == NONE)
			*cache = cpu;
		t->cpu_core[cpu] = *core;
		t->cpu_cache[cpu] = unknown ? PGSWEEP_NUMA_NO_CACHE : *cache;
		t->cpu_node[cpu] = s.within_cache ? core_of[cpu] % s.cores_per_cache % 3 :
			cache_of[cpu] / s.caches_per_node;
		t->nnodes = Max(t->nnodes, t->cpu_node[cpu] + 1);
	}
	counts.hybrid += s.hybrid;
	counts.across += s.within_cache && t->nnodes > 1;
	limit_machine(t);
}

#endif							/* HOMES_MACHINES_H */
