/*-------------------------------------------------------------------------
 *
 * sim/engine/sharers.c
 *	  Sharers of a line: two CPUs in the line itself, more in a set.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "engine.h"

SharerSet  *sim_sharer_sets;
static uint32_t nsets;
static uint32_t allocated;
static uint32_t free_set;		/* + 1 */

static uint32_t
new_set(void)
{
	uint32_t	n = free_set;

	if (n != 0)
	{
		free_set = sim_sharer_sets[n - 1].next_free;
		memset(sim_sharer_sets[n - 1].bits, 0, sizeof(sim_sharer_sets[0].bits));
		return n - 1;
	}
	if (nsets == allocated)
	{
		allocated = Max(1024, allocated * 2);
		sim_sharer_sets = realloc(sim_sharer_sets, allocated * sizeof(*sim_sharer_sets));
		if (sim_sharer_sets == NULL)
			sim_fail("out of memory");
	}
	memset(&sim_sharer_sets[nsets], 0, sizeof(*sim_sharer_sets));
	return nsets++;
}

void
sim_clear_sharers(SimLine *line)
{
	if (line->nsharers > 2)
	{
		sim_sharer_sets[line->sharers.set].next_free = free_set;
		free_set = line->sharers.set + 1;
	}
	line->nsharers = 0;
}

void
sim_add_sharer(SimLine *line, int cpu)
{
	if (line->nsharers < 2)
		line->sharers.cpu[line->nsharers] = cpu;
	else
	{
		if (line->nsharers == 2)
		{
			int			a = line->sharers.cpu[0];
			int			b = line->sharers.cpu[1];
			uint32_t	set = new_set();

			sim_sharer_sets[set].bits[a / 64] |= UINT64_C(1) << (a % 64);
			sim_sharer_sets[set].bits[b / 64] |= UINT64_C(1) << (b % 64);
			sim_sharer_sets[set].source = a;
			line->sharers.set = set;
		}
		sim_sharer_sets[line->sharers.set].bits[cpu / 64] |= UINT64_C(1) << (cpu % 64);
	}
	line->nsharers++;
}

void
sim_sharer_distances(const SimLine *line, int cpu, Distance *nearest, Distance *farthest)
{
	const SimCpu *me = &sim_cpu_table[cpu];
	int			words = (sim_ncpus_all + 63) / 64;

	*nearest = OTHER_SOCKET;
	*farthest = SAME_CORE;
	if (line->nsharers <= 2)
	{
		for (int i = 0; i < line->nsharers; i++)
		{
			Distance	d;

			if (line->sharers.cpu[i] == cpu)
				continue;
			d = distance(me, &sim_cpu_table[line->sharers.cpu[i]]);
			*nearest = Min(*nearest, d);
			*farthest = Max(*farthest, d);
		}
		return;
	}
	for (int w = 0; w < words; w++)
	{
		uint64_t	bits = sim_sharer_sets[line->sharers.set].bits[w];

		if (w == cpu / 64)
			bits &= ~(UINT64_C(1) << (cpu % 64));
		for (; bits != 0; bits &= bits - 1)
		{
			Distance	d = distance(me, &sim_cpu_table[w * 64 + __builtin_ctzll(bits)]);

			*nearest = Min(*nearest, d);
			*farthest = Max(*farthest, d);
		}
		if (*nearest == SAME_CORE && *farthest == OTHER_SOCKET)
			break;
	}
}
