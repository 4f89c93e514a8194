/*-------------------------------------------------------------------------
 *
 * sim/engine/report.c
 *	  Counts and results.
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

#define MAX_RESULTS 256

typedef struct Result
{
	const char *key;
	double		value;
} Result;

/* What is counted, at one moment */
typedef struct Snapshot
{
	SimTime		time;
	int64_t		stall;
	int64_t		events;
	SimAllocations allocations;
	SimCounts	counts[SIM_MAX_REGIONS];
} Snapshot;

SimCounts	sim_counts[SIM_MAX_REGIONS];
SimAllocations sim_allocations;

static Result results[MAX_RESULTS];
static int	nresults;
static Snapshot begin;
static Snapshot end;
static bool begun;
static bool ended;

/* Exit status of a run that was asked for what cannot be */
#define BAD_RUN 2

void
sim_fail(const char *fmt,...)
{
	va_list		args;

	fflush(stdout);
	fprintf(stderr, "sim: ");
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fprintf(stderr, "\n");
	_Exit(BAD_RUN);
}

static void
take(Snapshot *snapshot, SimTime now)
{
	snapshot->time = now;
	snapshot->events = sim_events;
	snapshot->allocations = sim_allocations;
	snapshot->stall = 0;
	for (int i = 0; i < sim_nfibers; i++)
		snapshot->stall += sim_fiber_table[i].stall;
	memcpy(snapshot->counts, sim_counts, sizeof(sim_counts));
}

void
sim_measure_begin(void)
{
	take(&begin, sim_now());
	begun = true;
	ended = false;
}

void
sim_measure_end(void)
{
	if (!begun || ended)
		sim_fail("sim_measure_end() without sim_measure_begin()");
	take(&end, sim_now());
	ended = true;
}

bool
sim_measuring(void)
{
	return begun && !ended;
}

/* ---- allocations ---- */

static int64_t warmup;
static int64_t wanted;			/* in all; 0 = the load decides */
static int64_t last_wanted;		/* the number of the last one, once it is known */
static int	nbackends;
static int	nstarted;			/* backends that have begun in earnest */

/*
 * A backend's first allocation takes its slot, which others want at the same time,
 * and can come late: all have that behind them when the measurement begins.
 */
#define FIRST_ALLOCATIONS	1
#define MOST_WARMUP			64	/* times what was asked for, or begin without */

void
sim_allocations_setup(void)
{
	nbackends = sim_backends();
	warmup = sim_config_int("warmup", 0, INT64_C(1) << 40, 20000);
	wanted = sim_config_int("allocations", 0, INT64_C(1) << 40, 0);
	if (wanted > 0 && warmup == 0)
	{
		sim_measure_begin();
		last_wanted = wanted;
	}
}

void
sim_allocation_begins(void)
{
	sim_me->allocation_began = sim_now();
	sim_me->stall_then = sim_me->stall;
}

void
sim_allocation_ends(void)
{
	sim_allocations.time += sim_now() - sim_me->allocation_began;
	sim_allocations.stall += sim_me->stall - sim_me->stall_then;
	sim_allocations.number++;
	if (++sim_me->allocations == FIRST_ALLOCATIONS)
		nstarted++;
	if (wanted == 0)
		return;
	if (last_wanted == 0)
	{
		if (sim_allocations.number >= warmup &&
			(nstarted >= nbackends || sim_allocations.number >= MOST_WARMUP * warmup))
		{
			sim_measure_begin();
			last_wanted = sim_allocations.number + wanted;
		}
	}
	else if (sim_allocations.number == last_wanted)
	{
		sim_measure_end();
		sim_stop();
	}
}

/* ---- the report ---- */

void
sim_result(const char *key, double value)
{
	if (nresults == MAX_RESULTS)
		sim_fail("more than %d results", MAX_RESULTS);
	results[nresults++] = (Result) {strdup(key), value};
}

static void
print_regions(void)
{
	for (int i = 0; i < sim_nregions(); i++)
	{
		const SimCounts *a = &begin.counts[i];
		const SimCounts *b = &end.counts[i];

		if (b->loads + b->stores + b->atomics + b->transfers == 0)
			continue;
		printf("region %s loads %lld stores %lld atomics %lld transfers %lld stall_ps %lld\n",
			   sim_region_of(i),
			   (long long) (b->loads - a->loads), (long long) (b->stores - a->stores),
			   (long long) (b->atomics - a->atomics),
			   (long long) (b->transfers - a->transfers),
			   (long long) (b->stall - a->stall));
	}
}

static void
print_allocations(SimTime elapsed)
{
	int64_t		n = end.allocations.number - begin.allocations.number;

	printf("allocations %lld\n", (long long) n);
	if (n == 0 || elapsed == 0)
		return;
	printf("allocations_per_s %.6g\n", (double) n * SIM_S / elapsed);
	printf("ps_per_allocation %.6g\n",
		   (double) (end.allocations.time - begin.allocations.time) / n);
	printf("stall_ps_per_allocation %.6g\n",
		   (double) (end.allocations.stall - begin.allocations.stall) / n);
}

/*
 * Of the part that was measured; of all, if the load did not say.
 */
void
sim_report(void)
{
	SimTime		elapsed;

	if (!begun)
		memset(&begin, 0, sizeof(begin));
	if (!ended)
	{
		SimTime		last = 0;

		for (int i = 0; i < sim_nfibers; i++)
			last = Max(last, sim_fiber_table[i].clock);
		take(&end, last);
	}
	elapsed = end.time - begin.time;

	printf("elapsed_ps %lld\n", (long long) elapsed);
	printf("stall_ps %lld\n", (long long) (end.stall - begin.stall));
	print_allocations(elapsed);
	print_regions();
	printf("events %lld\n", (long long) (end.events - begin.events));
	for (int i = 0; i < nresults; i++)
		printf("result %s %.10g\n", results[i].key, results[i].value);
}
