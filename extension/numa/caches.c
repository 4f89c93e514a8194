/*-------------------------------------------------------------------------
 *
 * extension/numa/caches.c
 *	  Reads from Linux' sysfs which CPUs are threads of one core, and which
 *	  share a cache.
 *
 * Only lists of CPUs are read, no ids.  Cache ids are missing on most
 * machines that are not x86, core ids begin anew in each package, and in
 * virtual machines both can be anything.  A list says what is wanted: its
 * members share something.  It has online CPUs only.  (powerpc has lists of
 * caches since Linux 5.9; before, nothing is known of caches there.)
 *
 * Each list is read once, for its first CPU.  That keeps 1024 CPUs cheap, and
 * what comes out is a partition of the CPUs, whatever the files say.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "numa/caches.h"

/*
 * The caches that count are those of this level or the next lower one that
 * there is.  A fourth level, where it exists, is shared by whole packages
 * (some laptops), and is little faster than memory.
 */
#define CACHE_LEVEL		3

/* Directories of caches of one CPU: known machines have up to five */
#define MAX_INDEXES		16

/* The longest list: every other CPU, in five characters each */
#define MAX_LIST		(PGSWEEP_NUMA_MAX_CPUS / 2 * 5 + 1)

#define NONE			PG_UINT16_MAX

StaticAssertDecl(PGSWEEP_NUMA_MAX_CPUS <= PGSWEEP_NUMA_NO_CACHE &&
				 PGSWEEP_NUMA_NO_CACHE < NONE,
				 "numbers of CPUs do not go into 16 bits");

/*
 * Read a file about a CPU, as a string.  Returns false if it cannot be read,
 * or is too long.
 */
static bool
read_file(const char *root, uint32 cpu, const char *name, char *content, Size size)
{
	char		path[MAXPGPATH];
	Size		used = 0;
	ssize_t		got;
	int			fd;

	snprintf(path, sizeof(path), "%s/cpu%u/%s", root, cpu, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;

	/* the kernel gives a page at a time */
	while ((got = read(fd, content + used, size - 1 - used)) > 0)
		used += got;
	close(fd);
	content[used] = '\0';
	return got == 0 && used < size - 1;
}

/*
 * Give all CPUs of a list ("0-3,8") that have no value yet this one.  Returns
 * false if there is no such file, or nothing like a list in it.
 */
static bool
join_list(const char *root, uint32 cpu, const char *name, uint32 ncpus, uint16 *of)
{
	char		list[MAX_LIST];
	char	   *at = list;

	if (!read_file(root, cpu, name, list, sizeof(list)))
		return false;

	for (;;)
	{
		char	   *end;
		unsigned long first = strtoul(at, &end, 10);
		unsigned long last = first;

		if (end == at)
			return at > list;
		if (*end == '-')
		{
			at = end + 1;
			last = strtoul(at, &end, 10);
		}
		for (; first <= last && first < ncpus; first++)
			if (of[first] == NONE)
				of[first] = (uint16) cpu;
		if (*end != ',')
			return true;
		at = end + 1;
	}
}

static void
find_core(const char *root, uint32 cpu, uint32 ncpus, uint16 *core)
{
	/* the second is the name before Linux 5.3 */
	if (!join_list(root, cpu, "topology/core_cpus_list", ncpus, core))
		(void) join_list(root, cpu, "topology/thread_siblings_list", ncpus, core);
	core[cpu] = (uint16) cpu;
}

/*
 * Linux numbers the directories of a CPU's caches without gaps, not by their
 * levels.  Where a level has two, for data and instructions, the same CPUs
 * share them on all known machines, so either will do.
 */
static void
find_cache(const char *root, uint32 cpu, uint32 ncpus, uint16 *cache)
{
	char		name[64];
	char		content[32];
	int			best = -1;
	int			best_level = 0;

	for (int i = 0; i < MAX_INDEXES; i++)
	{
		int			level;

		snprintf(name, sizeof(name), "cache/index%d/level", i);
		if (!read_file(root, cpu, name, content, sizeof(content)))
			break;
		level = atoi(content);
		if (level <= best_level || level > CACHE_LEVEL)
			continue;
		best = i;
		best_level = level;
	}
	if (best < 0)
		return;

	snprintf(name, sizeof(name), "cache/index%d/shared_cpu_list", best);
	if (join_list(root, cpu, name, ncpus, cache))
		cache[cpu] = (uint16) cpu;
}

void
pgsweep_numa_read_caches(const char *root, uint32 ncpus, uint16 *core, uint16 *cache)
{
	memset(core, 0xFF, ncpus * sizeof(uint16));
	memset(cache, 0xFF, ncpus * sizeof(uint16));

	for (uint32 cpu = 0; cpu < ncpus; cpu++)
	{
		if (core[cpu] == NONE)
			find_core(root, cpu, ncpus, core);
		if (cache[cpu] == NONE)
			find_cache(root, cpu, ncpus, cache);
		if (cache[cpu] == NONE)
			cache[cpu] = PGSWEEP_NUMA_NO_CACHE;
	}

	/*
	 * Should the files contradict each other, the core decides.  They do on
	 * s390x, where the lists of a core's caches have one thread each.
	 */
	for (uint32 cpu = 0; cpu < ncpus; cpu++)
		cache[cpu] = cache[core[cpu]];
}
