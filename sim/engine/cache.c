/*-------------------------------------------------------------------------
 *
 * sim/engine/cache.c
 *	  What an access to a line of shared memory costs.
 *
 * A line has an owner, which may read and write it, or sharers, which may read it.
 * All other CPUs send a request.  Requests are served in their order, so the time
 * of service is known at once: a line keeps only the state after the last request,
 * and the CPUs that have it before that remember when (their windows).  A transfer
 * is one event, the end of the wait.
 *
 * README.md says what is modelled, and why.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "engine.h"

static SimMachine machine;
static SimTime hit_cost[4];
static SimTime transfer[5];		/* by distance */
static uint32_t llc_lines;		/* 0 = no limit */
static uint32_t *group_traffic; /* lines brought into a group so far */

void
sim_cache_setup(void)
{
	int			groups = 0;

	machine = *sim_machine();
	hit_cost[SIM_LOAD] = machine.load_hit;
	hit_cost[SIM_STORE] = machine.store_hit;
	hit_cost[SIM_RMW] = machine.rmw_hit;
	hit_cost[SIM_CAS] = machine.cas_hit;
	transfer[SAME_CORE] = machine.latency_same_core;
	transfer[SAME_GROUP] = machine.latency_group;
	transfer[SAME_NODE] = machine.latency_node;
	transfer[SAME_SOCKET] = machine.latency_socket;
	transfer[OTHER_SOCKET] = machine.latency_other_socket;
	llc_lines = Min(machine.llc_bytes / SIM_CACHE_LINE, INT32_MAX);
	for (int i = 0; i < sim_ncpus_all; i++)
		groups = Max(groups, sim_cpu_table[i].group + 1);
	if (groups > SIM_MAX_GROUPS)
		sim_fail("machine: more than %d groups", SIM_MAX_GROUPS);
	group_traffic = calloc(groups, sizeof(*group_traffic));
	if (group_traffic == NULL)
		sim_fail("out of memory");
}

/* ---- distances ---- */

static SimTime
memory_latency(const SimCpu *cpu, uint32_t line)
{
	int			home = sim_home_node(line);

	if (home == cpu->node)
		return machine.memory_local;
	return home / machine.nodes_per_socket == cpu->socket ?
		machine.memory_socket : machine.memory_other;
}

/* ---- windows ---- */

static SimWindow *
find_window(SimCpu *cpu, uint32_t line)
{
	for (int i = 0; i < SIM_WINDOWS; i++)
		if (cpu->windows[i].line == line + 1)
			return &cpu->windows[i];
	return NULL;
}

/*
 * How long a CPU keeps a line: keep_ps on average.  What is in its pipeline is
 * not the same each time, and if it were, a loop that just fits or just does
 * not would be decided by a picosecond.
 */
static SimTime
draw_keep(void)
{
	if (sim_jitter == 0)
		return machine.keep_ps;
	return machine.keep_ps / 2 +
		((machine.keep_ps * (SimTime) (sim_random_step(&sim_me->random) >> 16)) >> 16);
}

static SimWindow *
add_window(SimCpu *cpu, uint32_t line, bool exclusive, SimTime served, SimTime from)
{
	SimWindow  *window = find_window(cpu, line);

	if (window == NULL)
		window = &cpu->windows[cpu->next_window++ % SIM_WINDOWS];
	window->line = line + 1;
	window->exclusive = exclusive;
	window->served = served;
	window->from = from;
	window->until = from + draw_keep();
	return window;
}

/* ---- the last-level cache ---- */

/*
 * Has so much come into the cache of the group that touched the line last that it
 * is in memory only?
 */
static inline bool
is_evicted(const SimLine *line)
{
	return llc_lines != 0 &&
		(uint32_t) (group_traffic[line->touched_by] - line->touched) > llc_lines;
}

static inline void
touch(SimLine *line, const SimCpu *at)
{
	line->touched = group_traffic[at->group];
	line->touched_by = at->group;
}

void
sim_cache_traffic(int cpu, int64_t bytes)
{
	group_traffic[sim_cpu_table[cpu].group] += bytes / SIM_CACHE_LINE;
}

/* ---- requests ---- */

/*
 * When a CPU that asks for the line can be served.  Threads of a core have its
 * cache in common, so one need not wait until the other has no more use for it.
 */
static SimTime
service_begins(const SimLine *line, SimCpu *me)
{
	if (line->owner != 0 && sim_cpu_table[line->owner - 1].core == me->core)
	{
		SimWindow  *window = find_window(&sim_cpu_table[line->owner - 1], line - sim_lines);
		SimTime		start = sim_me->clock;

		if (window != NULL && line->owner - 1 != me - sim_cpu_table)
		{
			start = Max(start, window->from);
			window->until = Min(window->until, start);
		}
		return start;
	}
	return Max(sim_me->clock, line->free_at);
}

/*
 * Ask for the line to write it.  Returns when it comes.
 */
static SimTime
request_exclusive(SimLine *line, int cpu)
{
	SimCpu	   *me = &sim_cpu_table[cpu];
	uint32_t	number = line - sim_lines;
	SimTime		start = service_begins(line, me);
	SimTime		latency = 0;
	SimWindow  *window;

	if (line->owner != 0)
	{
		const SimCpu *owner = &sim_cpu_table[line->owner - 1];

		latency = is_evicted(line) ?
			memory_latency(me, number) : transfer[distance(me, owner)];
	}
	else if (line->nsharers != 0)
	{
		bool		shares = is_sharer(line, cpu);

		if (line->nsharers > shares)
		{
			Distance	nearest;
			Distance	farthest;

			sim_sharer_distances(line, cpu, &nearest, &farthest);
			latency = transfer[farthest];
		}
		if (!shares && is_evicted(line))
			latency = Max(latency, memory_latency(me, number));
		sim_clear_sharers(line);
	}
	else
		latency = memory_latency(me, number);

	group_traffic[me->group]++;
	touch(line, me);
	line->owner = cpu + 1;
	window = add_window(me, number, true, start, start + latency);
	sim_counts[line->region].transfers++;
	line->free_at = line->read_at = window->until;
	return start + latency;
}

/*
 * Ask for the line to read it.  Readers that wait are served together: by the
 * nearest sharer, if all of them have it by then, else by the last owner.
 */
static SimTime
request_shared(SimLine *line, int cpu)
{
	SimCpu	   *me = &sim_cpu_table[cpu];
	uint32_t	number = line - sim_lines;
	SimTime		start;
	SimTime		latency;

	if (line->owner == 0 && line->nsharers == 0)
		return request_exclusive(line, cpu);	/* a write after it is a hit */

	if (line->owner != 0)
	{
		if (is_evicted(line))
		{
			line->owner = 0;
			return request_exclusive(line, cpu);
		}
		start = service_begins(line, me);
		latency = transfer[distance(me, &sim_cpu_table[line->owner - 1])];
		line->read_at = start;
		sim_add_sharer(line, line->owner - 1);
		line->owner = 0;
	}
	else
	{
		start = Max(sim_me->clock, line->read_at);
		latency = transfer[distance(me, &sim_cpu_table[first_sharer(line)])];
		if (start >= line->free_at)
		{
			Distance	nearest;
			Distance	farthest;

			sim_sharer_distances(line, cpu, &nearest, &farthest);
			latency = transfer[nearest];
		}
		if (is_evicted(line) && latency > machine.memory_local)
			latency = memory_latency(me, number);
	}
	sim_add_sharer(line, cpu);
	group_traffic[me->group]++;
	touch(line, me);
	add_window(me, number, false, start, start + latency);
	sim_counts[line->region].transfers++;
	line->free_at = Max(line->free_at, start + latency);
	return start + latency;
}

/*
 * The fiber goes on when the line is there.
 */
static void
wait_until(SimLine *line, SimTime when)
{
	SimTime		wait = when - sim_me->clock;

	if (wait <= 0)
		return;
	sim_me->stall += wait;
	sim_counts[line->region].stall += wait;
	sim_me->clock = when;
	if (when > sim_limit)
		sim_yield();
}

/*
 * A locked instruction, or a fence, ends when all stores before it have.
 */
static void
drain_stores(void)
{
	if (sim_me->drained_at > sim_me->clock)
		wait_until(&sim_lines[sim_me->draining], sim_me->drained_at);
}

void
sim_fence(void)
{
	drain_stores();
	sim_me->clock += machine.rmw_hit;
}

/*
 * The transfer begins at served, and the line is there from then on.  A store goes
 * to the store buffer while that lasts; but not before it begins, because its
 * value is in memory when the hook returns, and CPUs that are served before must
 * not see it.  All else waits until the line is there.
 */
static void
arrives(SimLine *line, SimAccess what, SimTime served, SimTime when)
{
	if (what == SIM_STORE)
	{
		if (when > sim_me->drained_at)
		{
			sim_me->drained_at = when;
			sim_me->draining = line - sim_lines;
		}
		wait_until(line, served);
	}
	else
		wait_until(line, when);
}

/* A request of this CPU's has made a window: there is when it was served */
static void
request_to_write(SimLine *line, SimAccess what, int cpu)
{
	SimTime		when = request_exclusive(line, cpu);

	arrives(line, what, find_window(&sim_cpu_table[cpu], line - sim_lines)->served, when);
}

static void
miss(SimLine *line, SimAccess what, int cpu)
{
	SimCpu	   *me = &sim_cpu_table[cpu];
	SimWindow  *window = find_window(me, line - sim_lines);

	if (window != NULL && sim_me->clock <= window->until &&
		(window->exclusive || what == SIM_LOAD))
	{
		arrives(line, what, window->served, window->from);
		return;
	}
	if (what == SIM_LOAD)
	{
		if (is_sharer(line, cpu))
		{
			if (llc_lines == 0)
				return;
			if (!is_evicted(line))
			{
				touch(line, me);
				return;
			}
			wait_until(line, sim_me->clock + memory_latency(me, line - sim_lines));
			group_traffic[me->group]++;
			touch(line, me);
			return;
		}
		wait_until(line, request_shared(line, cpu));
		return;
	}
	request_to_write(line, what, cpu);
}

/*
 * It is ours, but may be still on its way: prefetched, or wanted by a store.
 */
static void
await_own(SimLine *line, SimAccess what, int cpu)
{
	SimWindow  *window = find_window(&sim_cpu_table[cpu], line - sim_lines);

	if (window != NULL && sim_me->clock < window->from)
		arrives(line, what, window->served, window->from);
}

/*
 * An access that is not known to be a hit, or not known to be this fiber's turn.
 */
void
sim_access_slow(SimLine *line, SimAccess what)
{
	int			cpu = sim_me->cpu - 1;

	if (what >= SIM_RMW)
		drain_stores();
	if (line->fiber != sim_me->number)
	{
		if (sim_me->clock > sim_limit)
			sim_yield();
		if (line->fiber != 0 && what != SIM_LOAD)
			sim_fail("fiber %d writes what only fiber %d may: region %s",
					 sim_self(), line->fiber - 1, sim_region_of(line->region));
	}
	cpu = sim_me->cpu - 1;
	if (line->owner != cpu + 1)
		miss(line, what, cpu);
	else if (is_evicted(line))
	{
		line->owner = 0;
		request_to_write(line, what, cpu);
	}
	else
	{
		touch(line, &sim_cpu_table[cpu]);
		if (sim_me->clock < line->free_at)
			await_own(line, what, cpu);
	}
	sim_me->clock += hit_cost[what];
}

void
sim_prefetch_for_write(const volatile void *address)
{
	size_t		offset = (const volatile char *) address - (volatile char *) sim_arena;
	SimLine    *line;
	int			cpu;

	if (offset >= SIM_ARENA_BYTES)
		return;
	line = &sim_lines[offset >> SIM_LINE_SHIFT];
	if (line->region == 0)
		return;					/* outside of anything */
	(void) sim_now();
	if (sim_me->clock > sim_limit)
		sim_yield();
	cpu = sim_me->cpu - 1;
	if (line->owner != cpu + 1)
	{
		SimWindow  *window = find_window(&sim_cpu_table[cpu], line - sim_lines);

		if (window == NULL || !window->exclusive || sim_me->clock > window->until)
			(void) request_exclusive(line, cpu);
	}
}
