/*-------------------------------------------------------------------------
 *
 * sim/engine/cpus.c
 *	  The machine's CPUs, where each of them is, and which one a fiber gets.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "engine.h"

/* CPUs for fibers that have one of their own */
#define OWN_CPUS	4

SimCpu	   *sim_cpu_table;
int			sim_ncpus_all;

static int *placement;			/* CPUs in the order in which they are given out */
static int	nplaced;
static int	nown_cpus;			/* of SIM_NO_CPU given out */

/*
 * Numbered as Linux does: the first thread of each core, then the second ones.
 */
static void
make_cpus(void)
{
	const SimMachine *machine = sim_machine();
	int			per_node = machine->cores_per_group * machine->groups_per_node;

	sim_ncpus_all = sim_cpus() + OWN_CPUS;
	sim_cpu_table = calloc(sim_ncpus_all, sizeof(*sim_cpu_table));
	if (sim_cpu_table == NULL)
		sim_fail("out of memory");
	for (int i = 0; i < sim_ncpus_all; i++)
	{
		SimCpu	   *cpu = &sim_cpu_table[i];
		int			core = i % machine->cores;

		if (i >= sim_cpus())
		{
			cpu->core = machine->cores + i - sim_cpus();
			core = 0;			/* beside it */
		}
		else
			cpu->core = core;
		cpu->group = core / machine->cores_per_group;
		cpu->node = core / per_node;
		cpu->socket = cpu->node / machine->nodes_per_socket;
		cpu->current = cpu->first = cpu->last = -1;
	}
}

static void
shuffle(int *cpus, int n, uint64_t *random)
{
	for (int i = n - 1; i > 0; i--)
	{
		int			j = ((uint64_t) sim_random_step(random) * (i + 1)) >> 32;
		int			swap = cpus[i];

		cpus[i] = cpus[j];
		cpus[j] = swap;
	}
}

/*
 * compact: core after core, node after node.  scatter: the nodes in turn.
 * random: any order.  Always one fiber on each core before any core gets a
 * second one, as the kernel does it.
 */
static void
make_placement(void)
{
	const SimMachine *machine = sim_machine();
	const char *how = sim_config_text("placement", "compact");
	int			nodes = sim_nodes();
	uint64_t	random = sim_random_seed(sim_seed, UINT64_C(1) << 40);

	placement = calloc(sim_cpus(), sizeof(int));
	if (placement == NULL)
		sim_fail("out of memory");
	for (int thread = 0; thread < machine->threads_per_core; thread++)
	{
		int		   *cpus = placement + thread * machine->cores;

		for (int i = 0; i < machine->cores; i++)
		{
			int			core = i;

			if (strcmp(how, "scatter") == 0)
				core = i % nodes * (machine->cores / nodes) + i / nodes;
			cpus[i] = thread * machine->cores + core;
		}
		if (strcmp(how, "random") == 0)
			shuffle(cpus, machine->cores, &random);
		else if (strcmp(how, "scatter") != 0 && strcmp(how, "compact") != 0)
			sim_fail("placement must be compact, scatter or random, not \"%s\"", how);
	}
}

void
sim_cpus_setup(void)
{
	make_cpus();
	make_placement();
}

/*
 * The CPU for a fiber that is to be on this one, or on one by what sim_spawn() was
 * asked for.
 */
int
sim_cpu_for(int cpu)
{
	if (cpu == SIM_BY_PLACEMENT)
		return placement[nplaced++ % sim_cpus()];
	if (cpu == SIM_NO_CPU)
	{
		if (nown_cpus == OWN_CPUS)
			sim_fail("more than %d fibers with CPUs of their own", OWN_CPUS);
		return sim_cpus() + nown_cpus++;
	}
	if (cpu < 0 || cpu >= sim_cpus())
		sim_fail("there is no CPU %d", cpu);
	return cpu;
}

int
sim_node_of_cpu(int cpu)
{
	return sim_cpu_table[cpu].node;
}
