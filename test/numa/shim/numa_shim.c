/*
 * numa_shim.c
 *
 * For LD_PRELOAD: emulates other NUMA nodes, or a kernel that refuses the system
 * calls for them.  By the environment:
 *
 * SHIM_NODES=N		N nodes with memory, all CPUs on the first
 * SHIM_SPLIT=K		the same, but the CPUs are on the first K nodes in turn
 * SHIM_LISTS=A;B;..	the same, but these lists have the CPUs of each node
 * SHIM_MEMORY=M;N;..	megabytes of memory of each node (1024)
 * SHIM_FAR=N:D	node N is at distance D of the others, which are at 21
 * SHIM_CPUS=N		the process may use N CPUs, and runs on the first
 * SHIM_RUNS_ON=FILE	it runs on the CPU, and the node, whose numbers are in there
 * SHIM_SYSFS=FOLDER	what the kernel says of CPUs is there
 * SHIM_POLICY=MODE:MASK	the memory policy that the server was started with
 * SHIM_DENY=CALL	that call fails with EPERM; mbind:K and set_mempolicy:K only
 *			the K-th time in a process, numa_move_pages:1 only about another one
 * SHIM_HUGE=1	a mapping of huge pages succeeds, and has small ones
 * SHIM_NODE_FILES=FOLDER	what the kernel says of nodes is there
 * SHIM_LOG=FILE	log each mbind(), which then succeeds and does nothing
 * SHIM_SET_LOG=FILE	the same for set_mempolicy(), which does nothing with
 *			SHIM_NODES, either
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <numa.h>
#include <numaif.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int
denied(const char *call, int count)
{
	const char *deny = getenv("SHIM_DENY");
	size_t		len = strlen(call);

	if (deny == NULL || strncmp(deny, call, len) != 0)
		return 0;
	return deny[len] == '\0' || (deny[len] == ':' && atoi(deny + len + 1) == count);
}

#define FORWARD(type, name, parameters, arguments) \
	type name parameters \
	{ \
		if (denied(#name, 0)) \
		{ \
			errno = EPERM; \
			return -1; \
		} \
		return ((type (*) parameters) dlsym(RTLD_NEXT, #name)) arguments; \
	}

long
get_mempolicy(int *mode, unsigned long *nodes, unsigned long max, void *address, unsigned flags)
{
	const char *policy = getenv("SHIM_POLICY");

	/* 3: the question for the node of a page */
	if (denied("get_mempolicy", flags))
	{
		errno = EPERM;
		return -1;
	}
	if (policy != NULL && mode != NULL && nodes != NULL && flags == 0)
	{
		memset(nodes, 0, (max - 1) / 8);
		return sscanf(policy, "%d:%lx", mode, nodes) == 2 ? 0 : -1;
	}
	/* bench/numa/hits.py measures calls of it */
	static long (*real) (int *, unsigned long *, unsigned long, void *, unsigned);

	if (real == NULL)
		real = (long (*) (int *, unsigned long *, unsigned long, void *, unsigned))
			dlsym(RTLD_NEXT, "get_mempolicy");
	return real(mode, nodes, max, address, flags);
}

long
set_mempolicy(int mode, const unsigned long *nodes, unsigned long max)
{
	static int	count = 0;
	const char *name = getenv("SHIM_SET_LOG");
	int			fails = denied("set_mempolicy", ++count);

	if (name == NULL && getenv("SHIM_NODES") == NULL && !fails)
		return ((long (*) (int, const unsigned long *, unsigned long))
				dlsym(RTLD_NEXT, "set_mempolicy")) (mode, nodes, max);
	if (name != NULL)
	{
		FILE	   *log = fopen(name, "a");

		fprintf(log, "%d %d %lx %s\n", (int) getpid(), mode, nodes ? nodes[0] : 0,
				fails ? "fails" : "works");
		fclose(log);
	}
	if (fails)
	{
		errno = EPERM;
		return -1;
	}
	return 0;
}

int
numa_move_pages(int pid, unsigned long n, void **pages, const int *nodes, int *status, int flags)
{
	if (denied("numa_move_pages", pid != 0))
	{
		errno = EPERM;
		return -1;
	}
	return ((int (*) (int, unsigned long, void **, const int *, int *, int))
			dlsym(RTLD_NEXT, "numa_move_pages")) (pid, n, pages, nodes, status, flags);
}

#define MMAP(name) \
	void *name(void *address, size_t size, int protection, int flags, int file, off_t offset) \
	{ \
		if (getenv("SHIM_HUGE") != NULL && (flags & MAP_HUGETLB)) \
			flags &= ~(MAP_HUGETLB | (MAP_HUGE_MASK << MAP_HUGE_SHIFT)); \
		return ((void *(*) (void *, size_t, int, int, int, off_t)) \
				dlsym(RTLD_NEXT, #name)) (address, size, protection, flags, file, offset); \
	}

MMAP(mmap)
MMAP(mmap64)

FORWARD(int, sched_setaffinity,
		(pid_t pid, size_t size, const cpu_set_t *set),
		(pid, size, set))

long
mbind(void *address, unsigned long size, int mode, const unsigned long *nodes,
	  unsigned long max, unsigned flags)
{
	static int	count = 0;
	const char *name = getenv("SHIM_LOG");
	int			fails = denied("mbind", ++count);

	if (name != NULL)
	{
		FILE	   *log = fopen(name, "a");

		fprintf(log, "%lu %lu %d %lx %u %s\n", (unsigned long) address, size, mode,
				nodes ? nodes[0] : 0, flags, fails ? "fails" : "works");
		fclose(log);
	}
	if (fails)
	{
		errno = EPERM;
		return -1;
	}
	return 0;
}

static int
number(const char *name, int otherwise)
{
	const char *value = getenv(name);

	return value ? atoi(value) : otherwise;
}

static int
emulated_nodes(void)
{
	return number("SHIM_NODES", 1);
}

int
sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	if (getenv("SHIM_CPUS") == NULL)
		return ((int (*) (pid_t, size_t, cpu_set_t *))
				dlsym(RTLD_NEXT, "sched_getaffinity")) (pid, size, set);
	CPU_ZERO_S(size, set);
	for (int cpu = 0; cpu < number("SHIM_CPUS", 1); cpu++)
		CPU_SET_S(cpu, size, set);
	return 0;
}

/* The CPU and the node of SHIM_RUNS_ON; returns false without it */
static int
runs_on(unsigned *cpu, unsigned *node)
{
	const char *name = getenv("SHIM_RUNS_ON");
	FILE	   *file = name ? fopen(name, "r") : NULL;
	int			found = 0;

	if (file != NULL)
	{
		found = fscanf(file, "%u %u", cpu, node) == 2;
		fclose(file);
	}
	return found;
}

int
sched_getcpu(void)
{
	unsigned	cpu;
	unsigned	node;

	if (runs_on(&cpu, &node))
		return cpu;
	return getenv("SHIM_CPUS") ? 0 : ((int (*) (void)) dlsym(RTLD_NEXT, "sched_getcpu")) ();
}

/* For getcpu */
long
syscall(long call, ...)
{
	long		arg[6];
	va_list		args;

	va_start(args, call);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(args, long);
	va_end(args);

	if (call == SYS_getcpu && runs_on((unsigned *) arg[0], (unsigned *) arg[1]))
		return 0;
	return ((long (*) (long, ...)) dlsym(RTLD_NEXT, "syscall")) (call, arg[0], arg[1], arg[2],
																 arg[3], arg[4], arg[5]);
}

/* A path of the kernel's, or its counterpart in a folder */
static const char *
path_in(const char *folder, const char *kernel, const char *path)
{
	static char other[1024];

	if (folder == NULL || strncmp(path, kernel, strlen(kernel)) != 0)
		return path;
	snprintf(other, sizeof(other), "%s/%s", folder, path + strlen(kernel));
	return other;
}

static int
open_as(const char *function, const char *path, int flags, int mode)
{
	path = path_in(getenv("SHIM_SYSFS"), "/sys/devices/system/cpu/", path);
	return ((int (*) (const char *, int, ...)) dlsym(RTLD_NEXT, function)) (path, flags, mode);
}

#define FOPEN(name) \
	FILE	   *name(const char *path, const char *mode) \
	{ \
		path = path_in(getenv("SHIM_NODE_FILES"), "/sys/devices/system/node/", path); \
		return ((FILE *(*) (const char *, const char *)) dlsym(RTLD_NEXT, #name)) (path, mode); \
	}

FOPEN(fopen)
FOPEN(fopen64)

#define OPEN(name) \
	int name(const char *path, int flags, ...) \
	{ \
		va_list		args; \
		int			mode; \
		va_start(args, flags); \
		mode = va_arg(args, int); \
		va_end(args); \
		return open_as(#name, path, flags, mode); \
	}

OPEN(open)
OPEN(open64)

int
numa_max_node(void)
{
	return emulated_nodes() - 1;
}

long long
numa_node_size64(int node, long long *free)
{
	const char *size = getenv("SHIM_MEMORY");

	if (free)
		*free = 0;
	for (int i = 0; i < node && size != NULL; i++)
		size = (size = strchr(size, ';')) ? size + 1 : NULL;
	return node < emulated_nodes() ? (size ? atoll(size) : 1024) << 20 : -1;
}

struct bitmask *
numa_get_mems_allowed(void)
{
	struct bitmask *mask = numa_allocate_nodemask();

	for (int i = 0; i < emulated_nodes(); i++)
		numa_bitmask_setbit(mask, i);
	return mask;
}

int
numa_distance(int a, int b)
{
	int			node;
	int			far;

	/* the firmware says nothing */
	if (getenv("SHIM_FAR") == NULL || sscanf(getenv("SHIM_FAR"), "%d:%d", &node, &far) != 2)
		return 0;
	return a == b ? 10 : a == node || b == node ? far : 21;
}

/*
 * libnuma's own list of nodes, of which there is one here.
 */
__attribute__((constructor))
static void
add_nodes(void)
{
	if (getenv("SHIM_SPLIT") != NULL || getenv("SHIM_LISTS") != NULL)
		for (int i = 1; i < emulated_nodes(); i++)
			numa_bitmask_setbit(numa_nodes_ptr, i);
}

/* This kernel may know fewer CPUs */
struct bitmask *
numa_allocate_cpumask(void)
{
	if (getenv("SHIM_LISTS") != NULL)
		return numa_bitmask_alloc(8192);
	return ((struct bitmask *(*) (void)) dlsym(RTLD_NEXT, "numa_allocate_cpumask")) ();
}

int
numa_node_to_cpus(int node, struct bitmask *cpus)
{
	const char *list = getenv("SHIM_LISTS");

	if (list != NULL)
	{
		numa_bitmask_clearall(cpus);
		for (int i = 0; i < node && list != NULL; i++)
			list = (list = strchr(list, ';')) ? list + 1 : NULL;
		while (list != NULL && *list != '\0' && *list != ';')
		{
			char	   *end;
			long		first = strtol(list, &end, 10);
			long		last = *end == '-' ? strtol(end + 1, &end, 10) : first;

			for (; first <= last; first++)
				numa_bitmask_setbit(cpus, first);
			list = *end == ',' ? end + 1 : end;
		}
		return 0;
	}
	if (getenv("SHIM_SPLIT") == NULL)
		return ((int (*) (int, struct bitmask *)) dlsym(RTLD_NEXT, "numa_node_to_cpus")) (node, cpus);
	numa_bitmask_clearall(cpus);
	for (int cpu = 0; cpu < number("SHIM_CPUS", numa_num_configured_cpus()); cpu++)
		if (cpu % number("SHIM_SPLIT", 1) == node)
			numa_bitmask_setbit(cpus, cpu);
	return 0;
}
