/*-------------------------------------------------------------------------
 *
 * sim/engine/main.c
 *	  One run: read the configuration, play it, report.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "engine.h"

/* Made by the build: checksums of the sources that are played */
extern const char *const sim_sources[];

static void
print_version(void)
{
	for (int i = 0; sim_sources[i] != NULL; i++)
		printf("%s\n", sim_sources[i]);
	for (int i = 0; sim_loads[i] != NULL; i++)
		printf("load %s\n", sim_loads[i]->name);
	for (int i = 0; sim_strategies[i] != NULL; i++)
		printf("strategy %s\n", sim_strategies[i]->name);
}

static const SimLoad *
find_load(void)
{
	const char *name = sim_config_text("load", NULL);

	for (int i = 0; sim_loads[i] != NULL; i++)
		if (strcmp(sim_loads[i]->name, name) == 0)
			return sim_loads[i];
	sim_fail("there is no load \"%s\"", name);
}

/*
 * What the run took of this machine's memory; apart from the report, which is
 * the same each time.
 */
static void
print_memory(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) == 0)
		fprintf(stderr, "memory_kb %ld\n", usage.ru_maxrss);
}

int
main(int argc, char **argv)
{
	const SimLoad *load;
	bool		memory = argc == 2 && strcmp(argv[1], "--memory") == 0;

	if (argc == 2 && strcmp(argv[1], "--version") == 0)
	{
		print_version();
		return 0;
	}
	if (argc > 1 && !memory)
		sim_fail("usage: sim [--memory] < configuration, or sim --version");

	sim_config_read();
	sim_machine_setup();
	sim_arena_setup();
	sim_fiber_setup();
	sim_cpus_setup();
	sim_schedule_setup();
	sim_cache_setup();
	load = find_load();
	load->setup();
	sim_config_check();
	sim_schedule_run();
	if (load->report != NULL)
		load->report();
	if (sim_strategy() != NULL)
	{
		sim_result("bgwriter_cycles", sim_bgwriter_cycles());
		if (sim_strategy()->report != NULL)
			sim_strategy()->report();
	}
	sim_report();
	if (memory)
		print_memory();
	return 0;
}
