/*
 * numa_shim.c
 *
 * For LD_PRELOAD: emulates other NUMA nodes, or a kernel that refuses the system
 * calls for them.  By the environment:
 *
 * SHIM_NODES=N		N nodes with memory, all CPUs on the first
 * SHIM_DENY=CALL	that call fails with EPERM; mbind:K only the K-th time
 * SHIM_LOG=FILE	log each mbind(), which then succeeds and does nothing
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <numa.h>
#include <numaif.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

FORWARD(long, get_mempolicy,
		(int *mode, unsigned long *nodes, unsigned long max, void *address, unsigned flags),
		(mode, nodes, max, address, flags))
FORWARD(long, set_mempolicy,
		(int mode, const unsigned long *nodes, unsigned long max),
		(mode, nodes, max))
FORWARD(int, numa_move_pages,
		(int pid, unsigned long n, void **pages, const int *nodes, int *status, int flags),
		(pid, n, pages, nodes, status, flags))
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
emulated_nodes(void)
{
	const char *nodes = getenv("SHIM_NODES");

	return nodes ? atoi(nodes) : 1;
}

int
numa_max_node(void)
{
	return emulated_nodes() - 1;
}

long long
numa_node_size64(int node, long long *free)
{
	if (free)
		*free = 0;
	return node < emulated_nodes() ? 1LL << 30 : -1;
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
	/* the firmware says nothing */
	return 0;
}
