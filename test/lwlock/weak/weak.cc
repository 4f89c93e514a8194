/*-------------------------------------------------------------------------
 *
 * weak.cc
 *	  Run one pattern under Relacy.
 *
 * weak PATTERN [--bound N | --random N] [--history] [--without WHAT]...
 *
 * WHAT is a mutant of mutants.txt or FUNCTION:PRIMITIVE=ORDER, which leaves a
 * primitive of that function only ORDER (acquire, release, relaxed).
 *
 * Prints "PATTERN: RESULT, N executions", where RESULT is Relacy's name of the
 * error, or SUCCESS.  --bound tries all executions with at most N preemptions.
 * Exit status: 0 if there was no error, 1 if there was one, 2 for wrong usage.
 *
 *-------------------------------------------------------------------------
 */
#include "weak.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

#include "code.inc"
#include "pattern.h"
#include "admit.cc"
#include "push_link.cc"
#include "grant_wake.cc"
#include "update_var.cc"
#include "release_clear_var.cc"
#include "reuse.cc"
#include "no_total_order.cc"

PGPROC	   *procs;
Backend		backends[NUM_PROCS];

/*
 * What is switched off, and whether it was met.  Not std::string: within a test,
 * Relacy checks allocations.
 */
#define MAX_CHANGES		64
static struct
{
	const char *what;
	bool		met;
}			changes[MAX_CHANGES];
static int	num_changes;

bool
mutant_chosen(const char *name)
{
	for (int i = 0; i < num_changes; i++)
		if (strcmp(changes[i].what, name) == 0)
			return changes[i].met = true;
	return false;
}

rl::memory_order
order_at(const char *function, const char *primitive)
{
	for (int i = 0; i < num_changes; i++)
	{
		const char *what = changes[i].what;
		size_t		length = strlen(function);

		if (strncmp(what, function, length) != 0 || what[length] != ':')
			continue;
		what += length + 1;
		length = strlen(primitive);
		if (strncmp(what, primitive, length) != 0 || what[length] != '=')
			continue;
		what += length + 1;
		changes[i].met = true;
		return strcmp(what, "acquire") == 0 ? rl::mo_acquire :
			strcmp(what, "release") == 0 ? rl::mo_release : rl::mo_relaxed;
	}
	return rl::mo_acq_rel;
}

/* Swallows output.  Relacy's operators new and delete break those of iostreams. */
struct Nowhere : std::streambuf
{
	int overflow(int c)
	{
		return c;
	}
};

template<typename T>
static int
run(const char *name, rl::test_params &params, bool history)
{
	Nowhere		nowhere;
	std::ostream out(&nowhere);

	params.output_stream = history ? &std::cout : &out;
	params.progress_stream = &out;
	rl::simulate<T>(params);
	printf("%s: %s, %lu executions\n", name, rl::test_result_str(params.test_result),
		   (unsigned long) params.stop_iteration);
	for (int i = 0; i < num_changes; i++)
		printf("%s: %s\n", changes[i].met ? "changed" : "never reached", changes[i].what);
	return params.test_result != rl::test_result_success;
}

int
main(int argc, char **argv)
{
	rl::test_params params;
	std::string pattern;
	bool		history = false;

	params.search_type = rl::fair_context_bound_scheduler_type;
	params.context_bound = 2;
	params.execution_depth_limit = 2000;
	for (int i = 1; i < argc; i++)
	{
		std::string arg = argv[i];

		if (arg == "--history")
			history = true;
		else if (arg.compare(0, 2, "--") != 0)
			pattern = arg;
		else if (++i == argc)
			return 2;
		else if (arg == "--bound")
			params.context_bound = atoi(argv[i]);
		else if (arg == "--random")
		{
			params.search_type = rl::random_scheduler_type;
			params.iteration_count = atol(argv[i]);
		}
		else if (arg == "--without" && num_changes < MAX_CHANGES)
			changes[num_changes++].what = argv[i];
		else
			return 2;
	}

#define RUN(name) \
	if (pattern == #name) \
		return run<name>(#name, params, history)
	RUN(admit);
	RUN(push_link);
	RUN(grant_wake);
	RUN(update_var);
	RUN(release_clear_var);
	RUN(reuse);
	RUN(no_total_order);
	return 2;
}
