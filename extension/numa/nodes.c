/*-------------------------------------------------------------------------
 *
 * extension/numa/nodes.c
 *	  Chooses the NUMA nodes to use, of those that have memory and are allowed.
 *
 * pg_sweep.numa_nodes names them.  By default all are used but far memory: a
 * node without CPUs that is farther from each CPU than any two nodes with CPUs
 * are from each other, and than HBM is from its CPUs.  Distances are the only
 * thing that all kernels tell.  By them, memory on CXL mostly is far.  The
 * kernel gives out far memory when the other nodes are full.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>
#ifdef USE_LIBNUMA
#include <numa.h>
#endif
#include <unistd.h>

#include "lib/stringinfo.h"
#include "numa/numa.h"
#include "storage/fd.h"

/*
 * Parse a list as the kernel and numactl write it, "0-3,5"; empty: no nodes.
 * Spaces may surround numbers.  Returns what is wrong with it, or NULL.
 */
const char *
pgsweep_numa_parse_nodes(const char *list, bool *named)
{
	const char *p = list;

	memset(named, 0, PGSWEEP_NUMA_MAX_NODE_IDS * sizeof(bool));
	while (isspace((unsigned char) *p))
		p++;
	if (*p == '\0')
		return NULL;
	for (;;)
	{
		long		bounds[2];

		for (int i = 0; i < 2; i++)
		{
			char	   *end;

			while (isspace((unsigned char) *p))
				p++;
			if (!isdigit((unsigned char) *p))
				return "A list of node numbers and ranges is expected, such as \"0-3,5\".";
			errno = 0;
			bounds[i] = strtol(p, &end, 10);
			if (errno != 0 || bounds[i] >= PGSWEEP_NUMA_MAX_NODE_IDS)
				return "Node numbers must be less than 1024.";
			for (p = end; isspace((unsigned char) *p); p++)
				;
			if (i == 0 && *p != '-')
			{
				bounds[1] = bounds[0];
				break;
			}
			p += (i == 0);
		}
		if (bounds[1] < bounds[0])
			return "A range ends before it begins.";
		for (long id = bounds[0]; id <= bounds[1]; id++)
			named[id] = true;
		if (*p == '\0')
			return NULL;
		if (*p++ != ',')
			return "Nodes and ranges are separated by commas.";
	}
}

/*
 * Bytes that a node has left for pages of this size, or -1 if the kernel does
 * not tell.  The page cache gives way, other memory does not.  *unused becomes
 * what nothing has to give way for.
 */
int64
pgsweep_numa_room(uint32 node, Size page_size, int64 *unused)
{
	bool		huge = page_size > sysconf(_SC_PAGESIZE);
	int			id = pgsweep_numa_topology.node_id[node];
	int64		room = -1;
	char		path[MAXPGPATH];
	char		line[128];
	FILE	   *file;

	*unused = 0;
	if (huge)
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/hugepages/hugepages-%zukB/free_hugepages",
				 id, page_size / 1024);
	else
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/meminfo", id);

	file = AllocateFile(path, "r");
	if (file == NULL)
		return -1;
	while (fgets(line, sizeof(line), file) != NULL)
	{
		char		what[64];
		long long	n;

		if (huge && sscanf(line, "%lld", &n) == 1)
			*unused = room = n * page_size;
		else if (!huge && sscanf(line, "Node %*d %63[^:]: %lld kB", what, &n) == 2 &&
				 (strcmp(what, "MemFree") == 0 || strcmp(what, "Active(file)") == 0 ||
				  strcmp(what, "Inactive(file)") == 0))
		{
			room = Max(room, 0) + n * 1024;
			if (strcmp(what, "MemFree") == 0)
				*unused = n * 1024;
		}
	}
	FreeFile(file);
	return room;
}

#ifdef USE_LIBNUMA

/*
 * No node is far at this distance: HBM of Xeon Max is at 13 of its CPUs, and
 * the nearest memory on CXL at 14.  Between nodes of one socket it is 12, and
 * a single node with CPUs has no other to compare with.
 */
#define NEAR_DISTANCE	13

/*
 * The inverse of pgsweep_numa_parse_nodes().  Returns NULL if there are none.
 */
static char *
format_nodes(const bool *nodes)
{
	StringInfoData list;

	initStringInfo(&list);
	for (int id = 0; id < PGSWEEP_NUMA_MAX_NODE_IDS; id++)
	{
		int			first = id;

		if (!nodes[id])
			continue;
		while (id + 1 < PGSWEEP_NUMA_MAX_NODE_IDS && nodes[id + 1])
			id++;
		appendStringInfo(&list, "%s%d", list.len > 0 ? "," : "", first);
		if (id > first)
			appendStringInfo(&list, "-%d", id);
	}
	return list.len > 0 ? list.data : NULL;
}

/*
 * Of these, the nodes with far memory, as the top says.  A distance of 0 is not
 * known, and so not far.
 */
static void
find_far_nodes(const bool *nodes, bool *far)
{
	struct bitmask *cpus = numa_allocate_cpumask();
	bool		has_cpus[PGSWEEP_NUMA_MAX_NODE_IDS] = {0};
	int			max_node = Min(numa_max_node(), PGSWEEP_NUMA_MAX_NODE_IDS - 1);
	int			limit = NEAR_DISTANCE;

	/* whether the server may use the CPUs does not matter */
	for (int id = 0; id <= max_node; id++)
		has_cpus[id] = numa_bitmask_isbitset(numa_nodes_ptr, id) &&
			numa_node_to_cpus(id, cpus) == 0 && numa_bitmask_weight(cpus) > 0;
	numa_free_cpumask(cpus);

	for (int a = 0; a <= max_node; a++)
		for (int b = 0; has_cpus[a] && b <= max_node; b++)
			if (has_cpus[b])
				limit = Max(limit, numa_distance(a, b));

	for (int id = 0; id <= max_node; id++)
	{
		int			nearest = INT_MAX;

		if (!nodes[id] || has_cpus[id])
			continue;
		for (int cpus_of = 0; cpus_of <= max_node; cpus_of++)
			if (has_cpus[cpus_of])
				nearest = Min(nearest, numa_distance(cpus_of, id));
		far[id] = nearest > limit && nearest < INT_MAX;
	}
}

static void
add_note(char *note, Size note_size, const char *format, const char *list)
{
	char	   *text = psprintf(format, list);

	snprintf(note + strlen(note), note_size - strlen(note), "%s%s",
			 note[0] != '\0' ? "; " : "", text);
}

/*
 * Take the nodes out of *nodes that are not to be used; some remain.  Adds to
 * the note which these are, and why.
 */
void
pgsweep_numa_choose_nodes(bool *nodes, char *note, Size note_size)
{
	bool		named[PGSWEEP_NUMA_MAX_NODE_IDS];
	bool		out[PGSWEEP_NUMA_MAX_NODE_IDS];
	bool		missing[PGSWEEP_NUMA_MAX_NODE_IDS];
	bool		by_name = false;
	bool		remain = false;
	char	   *list;

	(void) pgsweep_numa_parse_nodes(pgsweep_numa_nodes, named);
	for (int id = 0; id < PGSWEEP_NUMA_MAX_NODE_IDS; id++)
	{
		missing[id] = named[id] && !nodes[id];
		out[id] = nodes[id] && !named[id];
		by_name |= named[id] && nodes[id];
	}

	list = format_nodes(missing);
	if (list)
		ereport(WARNING,
				(errmsg("pg_sweep.numa_nodes names NUMA nodes that the server cannot use: %s", list),
				 by_name ?
				 errdetail("They do not exist, have no memory, or the cpuset or memory policy of the server does not allow them.") :
				 errdetail("They do not exist, have no memory, or the cpuset or memory policy of the server does not allow them. Because it names no other node, nodes are chosen as if it were empty.")));
	if (list && !by_name)
		add_note(note, note_size, "pg_sweep.numa_nodes names none that the server can use, only %s", list);

	if (!by_name)
	{
		memset(out, 0, sizeof(out));
		find_far_nodes(nodes, out);
	}
	for (int id = 0; id < PGSWEEP_NUMA_MAX_NODE_IDS; id++)
		remain |= nodes[id] && !out[id];
	list = format_nodes(out);
	if (!remain || list == NULL)
		return;
	for (int id = 0; id < PGSWEEP_NUMA_MAX_NODE_IDS; id++)
		nodes[id] &= !out[id];
	add_note(note, note_size, by_name ? "pg_sweep.numa_nodes leaves out %s" :
			 "far memory without CPUs is not used unless pg_sweep.numa_nodes names it: %s", list);
}

#endif							/* USE_LIBNUMA */
