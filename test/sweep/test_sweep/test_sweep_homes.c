/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/test_sweep_homes.c
 *	  Property tests of the homes of CPUs: on random machines, and on machines
 *	  whose sysfs a test has made.
 *
 * homes_machines.h	random machines
 * homes_mutants.h	the code under test, and broken variants of it
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "portability/instr_time.h"
#include "utils/array.h"

/* pg_sweep's own code, with its static functions */
#include "numa/caches.c"
#include "sweep/homes.c"

#include "homes_mutants.h"
#include "property.h"

PG_MODULE_MAGIC_EXT(
					.name = "test_sweep_homes",
					.version = "1.0"
);

PG_FUNCTION_INFO_V1(test_sweep_homes);
PG_FUNCTION_INFO_V1(test_sweep_homes_codes);
PG_FUNCTION_INFO_V1(test_sweep_machine);

#define MAX_PARTS		64
#define MOST_CPUS		1024
#define UNTOUCHED		0xEE

/* What was exercised; int64 each, as the SQL function's columns */
typedef struct HomesCounts
{
	int64		cases;
	int64		threads;		/* some core has two usable threads */
	int64		hybrid;			/* cores of one and of two threads */
	int64		whole;			/* partitions with several caches */
	int64		cut;			/* caches with several partitions */
	int64		shared;			/* cores with several partitions */
	int64		unusable;		/* some CPUs of the node */
	int64		without;		/* the node has no usable CPU */
	int64		uneven;			/* caches of different numbers of cores */
	int64		unknown;		/* CPUs of no known node, or no known cache */
	int64		across;			/* caches of several nodes */
	int64		even;			/* as many as make caches even */
	int64		unequal;		/* partitions have different cores at home */
} HomesCounts;

static HomesCounts counts;
static PgSweepNumaTopology machine;

/* ---- what must be true ---- */

/* A node's caches, by their usable cores */
typedef struct NodeTruth
{
	uint32		ncaches;
	uint32		cores[MOST_CPUS];	/* of each cache, in the order of CPUs */
	uint16		cache_of[PGSWEEP_NUMA_MAX_CPUS];	/* of each CPU; NONE: no
													 * usable CPU shares it */
	bool		first_of_core[PGSWEEP_NUMA_MAX_CPUS];	/* among usable ones */
} NodeTruth;

static NodeTruth truth;

static void
find_truth(const PgSweepNumaTopology *t, uint32 node)
{
	static uint16 seen_cache[PGSWEEP_NUMA_NO_CACHE + 1];
	static bool seen_core[PGSWEEP_NUMA_MAX_CPUS];

	memset(&truth, 0, sizeof(truth));
	memset(seen_cache, 0xFF, sizeof(seen_cache));
	memset(seen_core, 0, sizeof(seen_core));
	for (uint32 cpu = 0; cpu < t->cpu_limit; cpu++)
	{
		uint16	   *number = &seen_cache[t->cpu_cache[cpu]];

		if (t->cpu_node[cpu] != node || !t->cpu_usable[cpu])
			continue;
		if (*number == NONE)
			*number = truth.ncaches++;
		if (!seen_core[t->cpu_core[cpu]])
		{
			seen_core[t->cpu_core[cpu]] = true;
			truth.first_of_core[cpu] = true;
			truth.cores[*number]++;
		}
	}
	for (uint32 cpu = 0; cpu < t->cpu_limit; cpu++)
		truth.cache_of[cpu] = seen_cache[t->cpu_cache[cpu]];
}

/* The fewest partitions of whole caches, at most "most" cores each */
static uint32
fewest(uint32 most)
{
	uint32		best[MOST_CPUS + 1] = {0};	/* for the first i caches */

	for (uint32 i = 1; i <= truth.ncaches; i++)
	{
		uint32		cores = 0;

		best[i] = PG_UINT32_MAX;
		for (uint32 k = i; k > 0; k--)
		{
			cores += truth.cores[k - 1];
			if (cores > most)
				break;
			if (best[k - 1] != PG_UINT32_MAX)
				best[i] = Min(best[i], best[k - 1] + 1);
		}
	}
	return best[truth.ncaches];
}

/* The fewest partitions of parts of one cache, at most "most" cores each */
static uint32
fewest_parts(uint32 most)
{
	uint32		n = 0;

	for (uint32 i = 0; i < truth.ncaches; i++)
		n += (truth.cores[i] + most - 1) / most;
	return n;
}

static uint32
largest_cache(void)
{
	uint32		largest = 0;

	for (uint32 i = 0; i < truth.ncaches; i++)
		largest = Max(largest, truth.cores[i]);
	return largest;
}

/*
 * From the definition: the fewest partitions of at most 12 cores.  If caches
 * are equal, and some partitions would have less than three quarters of the
 * cores of others, the fewest of equally many caches that have 8 to 12 cores
 * each, if there are any.
 */
static uint32
expected_wanted(void)
{
	uint32		cores = 0;
	uint32		any = largest_cache() <= 12 ? fewest(12) : fewest_parts(12);
	bool		equal = largest_cache() <= 12;

	for (uint32 i = 0; i < truth.ncaches; i++)
	{
		equal = equal && truth.cores[i] == truth.cores[0];
		cores += truth.cores[i];
	}
	if (any == 0 || truth.ncaches / any * 4 >= (truth.ncaches + any - 1) / any * 3)
		return any;
	for (uint32 n = 1; n <= truth.ncaches && equal; n++)
		if (truth.ncaches % n == 0 && cores >= 8 * n && cores <= 12 * n)
		{
			counts.even++;
			return n;
		}
	return any;
}

static bool
check_wanted(const HomesCode *code, const PgSweepNumaTopology *t, uint32 node, uint32 *wanted)
{
	uint32		expected = expected_wanted();

	*wanted = code->wanted(t, node);
	if (*wanted != Max(expected, 1))
		return violated("%u partitions wanted instead of %u for %u caches of up to %u cores",
						*wanted, Max(expected, 1), truth.ncaches, largest_cache());
	return true;
}

/*
 * One core more or less changes the number by at most one, where each is a
 * cache.
 */
static bool
check_single_cores(const HomesCode *code)
{
	static PgSweepNumaTopology t;
	uint32		wanted[2];

	t.cpu_limit = random_in(1, MOST_CPUS - 1);
	for (uint32 i = 0; i < lengthof(wanted); i++, t.cpu_limit++)
	{
		for (uint32 cpu = 0; cpu < t.cpu_limit; cpu++)
		{
			t.cpu_usable[cpu] = true;
			t.cpu_core[cpu] = t.cpu_cache[cpu] = cpu;
		}
		wanted[i] = code->wanted(&t, 0);
	}
	if (wanted[1] < wanted[0] || wanted[1] > wanted[0] + 1)
		return violated("%u partitions for %u single cores, and %u for one less", wanted[1],
						t.cpu_limit - 1, wanted[0]);
	return true;
}

/* What each partition has */
typedef struct PartTruth
{
	uint32		cores;			/* usable ones at home in it */
	int			cache;			/* -1 = none, -2 = several */
	bool		shared;			/* by processes of a core with several */
	double		at_home;		/* cores, and parts of those with several */
} PartTruth;

/*
 * The cores at home that sizes follow.  This node's are added to those of
 * others.
 */
static bool
check_count(const HomesCode *code, const PgSweepNumaTopology *t, uint32 node,
			PgSweepHomes parts, const PgSweepHomes *homes, const PartTruth *part)
{
	double		cores[MAX_PARTS + 2];

	for (uint32 i = 0; i < lengthof(cores); i++)
		cores[i] = i;
	code->count(t, node, homes, cores);
	for (uint32 i = 0; i < lengthof(cores); i++)
	{
		bool		own = i >= parts.first && i < parts.first + parts.span;
		double		expected = own ? part[i - parts.first].at_home : 0;

		if (fabs(cores[i] - i - expected) > 1e-6)
			return violated("%f cores at home in partition %u of %u + %u instead of %f",
							cores[i] - i, i, parts.first, parts.span, expected);
		counts.unequal += own && expected != part[0].at_home;
	}
	return true;
}

/*
 * The homes of usable CPUs, as those of parts were filled in.
 */
static bool
check_parts(const PartTruth *part, uint32 nparts)
{
	uint32		most = 0;
	uint32		least = PG_UINT32_MAX;
	bool		equal = true;

	for (uint32 i = 1; i < truth.ncaches; i++)
		equal = equal && truth.cores[i] == truth.cores[0];
	for (uint32 i = 0; i < nparts; i++)
	{
		most = Max(most, part[i].cores);
		least = Min(least, part[i].cores);
		if (part[i].cores == 0)
			return violated("partition %u of %u is the home of no core", i, nparts);
		if (part[i].cache == -2 && nparts >= truth.ncaches)
			return violated("partition %u of %u has several of %u caches", i, nparts,
							truth.ncaches);
		if (part[i].shared && part[i].cores > 1)
			return violated("a core has several partitions, of which %u has others", i);
		counts.whole += part[i].cache == -2;
	}

	/* no other such division has fewer cores in a partition */
	if (most > 1 && nparts >= truth.ncaches && fewest_parts(most - 1) <= nparts)
		return violated("%u cores in one of %u partitions, %u caches", most, nparts,
						truth.ncaches);
	if (nparts < truth.ncaches && fewest(most - 1) <= nparts)
		return violated("%u cores in one of %u partitions of whole caches (%u)", most, nparts,
						truth.ncaches);
	if (nparts < truth.ncaches && equal && most - least > truth.cores[0])
		return violated("%u to %u cores in %u partitions, caches of %u", least, most, nparts,
						truth.cores[0]);
	return true;
}

/*
 * The homes of one node's CPUs among its partitions.
 */
static bool
check_homes(const HomesCode *code, const PgSweepNumaTopology *t, uint32 node, PgSweepHomes parts)
{
	static PgSweepHomes homes[PGSWEEP_NUMA_MAX_CPUS];
	static int	of_core[PGSWEEP_NUMA_MAX_CPUS]; /* a usable CPU, or -1 */
	PartTruth	part[MAX_PARTS];
	uint64		of_cache[MOST_CPUS];	/* partitions of each */

	memset(homes, UNTOUCHED, sizeof(homes));
	memset(of_core, 0xFF, sizeof(of_core));
	memset(of_cache, 0, truth.ncaches * sizeof(uint64));
	for (uint32 i = 0; i < parts.span; i++)
	{
		memset(&part[i], 0, sizeof(part[i]));
		part[i].cache = -1;
	}

	code->divide(t, node, parts, homes);

	for (uint32 cpu = 0; cpu < t->cpu_limit; cpu++)
	{
		PgSweepHomes home = homes[cpu];
		uint32		first = home.first - parts.first;
		int			other = of_core[t->cpu_core[cpu]];

		if (t->cpu_node[cpu] != node)
		{
			if (home.first != UNTOUCHED || home.span != UNTOUCHED)
				return violated("CPU %u of another node got a home", cpu);
			continue;
		}
		if (home.span == 0 || home.first < parts.first || first + home.span > parts.span)
			return violated("CPU %u has the homes %u + %u, its node %u + %u", cpu,
							home.first, home.span, parts.first, parts.span);
		if (!t->cpu_usable[cpu])
			continue;

		if (other >= 0 && memcmp(&homes[other], &home, sizeof(home)) != 0)
			return violated("CPUs %d and %u are one core, with homes %u and %u", other, cpu,
							homes[other].first, home.first);
		of_core[t->cpu_core[cpu]] = cpu;
		for (uint32 i = first; i < first + home.span; i++)
		{
			int			cache = truth.cache_of[cpu];

			if (part[i].cache == -1)
				part[i].cache = cache;
			else if (part[i].cache != cache)
				part[i].cache = -2;
			part[i].cores += truth.first_of_core[cpu];
			part[i].shared |= home.span > 1;
			if (truth.first_of_core[cpu])
				part[i].at_home += 1.0 / home.span;
			of_cache[cache] |= UINT64CONST(1) << i;
		}
		counts.shared += home.span > 1;
	}

	for (uint32 i = 0; i < truth.ncaches; i++)
	{
		bool		several = (of_cache[i] & (of_cache[i] - 1)) != 0;

		if (several && parts.span < truth.ncaches)
			return violated("a cache is cut, with %u partitions for %u", parts.span,
							truth.ncaches);
		counts.cut += several;
	}

	/* CPUs that may become usable: as near as can be told */
	for (uint32 cpu = 0; cpu < t->cpu_limit; cpu++)
	{
		int			other = of_core[t->cpu_core[cpu]];

		if (t->cpu_node[cpu] != node || t->cpu_usable[cpu])
			continue;
		if (other >= 0 && memcmp(&homes[other], &homes[cpu], sizeof(PgSweepHomes)) != 0)
			return violated("CPUs %d and unusable %u are one core, with homes %u and %u", other,
							cpu, homes[other].first, homes[cpu].first);
		if (truth.cache_of[cpu] == NONE)
			continue;
		for (uint32 i = 0; i < homes[cpu].span; i++)
			if ((of_cache[truth.cache_of[cpu]] >> (homes[cpu].first - parts.first + i) & 1) == 0)
				return violated("unusable CPU %u has a home that its cache has not", cpu);
	}
	return check_count(code, t, node, parts, homes, part) &&
		(truth.ncaches == 0 || check_parts(part, parts.span));
}

/* All nodes, with up to most partitions each; wanted[] of each node */
static bool
check_machine(const HomesCode *code, const PgSweepNumaTopology *t, uint32 most, uint32 *wanted)
{
	for (uint32 node = 0; node < t->nnodes; node++)
	{
		find_truth(t, node);
		counts.without += truth.ncaches == 0;
		for (uint32 i = 1; i < truth.ncaches; i++)
			counts.uneven += truth.cores[i] != truth.cores[0];
		if (!check_wanted(code, t, node, &wanted[node]))
			return false;
		for (uint32 span = 1; span <= most; span++)
		{
			PgSweepHomes parts = {random_in(0, MAX_PARTS - span), span};

			if (!check_homes(code, t, node, parts))
				return false;
		}
	}
	return true;
}

/* ---- random machines ---- */

#include "homes_machines.h"

static bool
check_case(const void *code)
{
	uint32		wanted[PGSWEEP_NUMA_MAX_NODES];

	make_machine(&machine);
	return check_single_cores(code) &&
		check_machine(code, &machine,
					  random_in(0, 3) == 0 ? MAX_PARTS : random_in(1, 12), wanted);
}

/*
 * test_sweep_homes(seed, cases, code)
 */
Datum
test_sweep_homes(PG_FUNCTION_ARGS)
{
	return run_cases(fcinfo, check_case, FIND_CODE(homes_codes, 2), &counts.cases, sizeof(counts));
}

Datum
test_sweep_homes_codes(PG_FUNCTION_ARGS)
{
	return code_names(fcinfo, homes_codes, sizeof(homes_codes[0]), lengthof(homes_codes));
}

/* ---- machines with files ---- */

static int
numbers(ArrayType *array, int32 **values)
{
	if (ARR_NDIM(array) != 1 || ARR_HASNULL(array) || ARR_ELEMTYPE(array) != INT4OID)
		elog(ERROR, "a list of numbers is wanted");
	*values = (int32 *) ARR_DATA_PTR(array);
	return ARR_DIMS(array)[0];
}

/*
 * test_sweep_machine(root, node, usable, core, cache, code): what is below
 * root must be read as core and cache say; -1 is unknown.
 */
Datum
test_sweep_machine(PG_FUNCTION_ARGS)
{
	char	   *root = text_to_cstring(PG_GETARG_TEXT_PP(0));
	const HomesCode *code = FIND_CODE(homes_codes, 5);
	PgSweepNumaTopology *t = &machine;
	uint32		wanted[PGSWEEP_NUMA_MAX_NODES] = {0};
	int32	   *value[4];
	Datum		result[3];
	instr_time	start;
	instr_time	end;
	bool		good = true;

	memset(t, 0, sizeof(*t));
	for (int i = 0; i < 4; i++)
	{
		int			n = numbers(PG_GETARG_ARRAYTYPE_P(1 + i), &value[i]);

		if (n > MOST_CPUS || (i > 0 && n != t->cpu_limit))
			elog(ERROR, "%d CPUs", n);
		t->cpu_limit = n;
	}

	INSTR_TIME_SET_CURRENT(start);
	code->read(root, t->cpu_limit, t->cpu_core, t->cpu_cache);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);

	for (uint32 cpu = 0; cpu < t->cpu_limit && good; cpu++)
	{
		uint32		cache = value[3][cpu] < 0 ? PGSWEEP_NUMA_NO_CACHE : value[3][cpu];

		if (t->cpu_core[cpu] != value[2][cpu])
			good = violated("CPU %u is read to be of core %u, not %d", cpu, t->cpu_core[cpu],
							value[2][cpu]);
		else if (t->cpu_cache[cpu] != cache)
			good = violated("CPU %u is read to be of cache %u, not %u", cpu, t->cpu_cache[cpu],
							cache);
		t->cpu_node[cpu] = value[0][cpu] < 0 ? PGSWEEP_NUMA_NO_NODE : value[0][cpu];
		t->cpu_usable[cpu] = value[1][cpu] != 0;
		if (value[0][cpu] >= 0)
			t->nnodes = Max(t->nnodes, t->cpu_node[cpu] + 1);
	}

	pg_prng_seed(&prng, 1);
	good = good && check_machine(code, t, MAX_PARTS, wanted);

	result[0] = good ? (Datum) 0 : CStringGetTextDatum(violation_text());
	result[1] = Float8GetDatum(INSTR_TIME_GET_MILLISEC(end));
	{
		Datum		list[PGSWEEP_NUMA_MAX_NODES];

		for (uint32 i = 0; i < t->nnodes; i++)
			list[i] = Int32GetDatum(wanted[i]);
		result[2] = PointerGetDatum(construct_array_builtin(list, t->nnodes, INT4OID));
	}
	return result_row(fcinfo, result, 3, good, NULL, 0);
}
