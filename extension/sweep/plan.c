/*-------------------------------------------------------------------------
 *
 * extension/sweep/plan.c
 *	  Plans the balance of partitions in the background writer: count, plan,
 *	  publish.
 *
 * Called only by the background writer, except where noted.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "numa/topology.h"
#include "sweep/partitions.h"
#include "utils/timestamp.h"

/*
 * Evictions per second are averaged over about a minute: long enough for
 * bursts, short enough for a user that watches.
 */
#define PGSWEEP_EVICTION_SECONDS	60.0

/* Allocations of each partition in this cycle, and since the last plan */
static uint32 recent_allocations[PGSWEEP_MAX_PARTITIONS];
static uint64 allocations[PGSWEEP_MAX_PARTITIONS];

static void
identity(PgSweepFlowRow *row, uint32 partition)
{
	row->n = 1;
	row->upto[0] = PGSWEEP_FLOW_UNIT;
	row->target[0] = (uint8) partition;
}

/*
 * Start with the identity.  Called when shared memory is created.
 */
void
pgsweep_init_plan(void)
{
	PgSweepPool->plan.balanced = pgsweep_balance;
	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
	{
		identity(&PgSweepPool->plan.rows[i], i);
		PgSweepPool->plan.ticks_per_victim[i] = 1;
	}
}

/*
 * Update the moving average: exponential in time, because cycles differ in
 * length.  It starts at zero with weight zero; the weight says how much of
 * the average is from samples.
 */
static void
sample_rate(PgSweepEvictionRate *rate, uint64 evictions, double seconds)
{
	double		part = 1.0 - exp(-seconds / PGSWEEP_EVICTION_SECONDS);

	/* a sum can be short of the one before; see pgsweep_sum_partitions */
	if (evictions < rate->evictions)
		evictions = rate->evictions;
	rate->per_second += part * ((evictions - rate->evictions) / seconds - rate->per_second);
	rate->weight += part * (1.0 - rate->weight);
	rate->evictions = evictions;
}

static double
seconds_since(TimestampTz then, TimestampTz now)
{
	return (now - then) / (double) USECS_PER_SEC;
}

/*
 * Take a sample of evictions once a second.  Under PgSweep->lock.
 */
static void
sample_evictions(const PgSweepPartCounters *totals)
{
	TimestampTz now = GetCurrentTimestamp();
	double		seconds = seconds_since(PgSweepPool->eviction_sample_at, now);

	if (seconds >= 0 && seconds < 1.0)
		return;
	if (seconds < 0)
		seconds = 1.0;			/* the clock was set back */
	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
		sample_rate(&PgSweepPool->eviction_rate[i], totals[i].evictions, seconds);
	PgSweepPool->eviction_sample_at = now;
}

/*
 * Seconds that an unused page can expect to stay: the time in which as many
 * pages are evicted as the partition has buffers.  NaN without recent
 * evictions. evictions is the present count, which includes those after the
 * last sample.
 *
 * Called by any process, under PgSweep->lock.
 */
double
pgsweep_life_expectancy(uint32 partition, uint64 evictions, TimestampTz now)
{
	PgSweepEvictionRate rate = PgSweepPool->eviction_rate[partition];
	double		seconds = seconds_since(PgSweepPool->eviction_sample_at, now);

	if (seconds > 0)
		sample_rate(&rate, evictions, seconds);

	/* less than one page in ten averaging times counts as none */
	if (rate.weight <= 0 ||
		rate.per_second / rate.weight < 0.1 / PGSWEEP_EVICTION_SECONDS)
		return NAN;
	return PgSweepPool->parts[partition].num_buffers / (rate.per_second / rate.weight);
}

/*
 * Does this plan differ from the one in shared memory?
 */
static bool
plan_differs(const PgSweepFlowRow *rows)
{
	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
	{
		const PgSweepFlowRow *old = &PgSweepPool->plan.rows[i];

		if (old->n != rows[i].n ||
			memcmp(old->upto, rows[i].upto, rows[i].n * sizeof(rows[i].upto[0])) != 0 ||
			memcmp(old->target, rows[i].target, rows[i].n * sizeof(rows[i].target[0])) != 0)
			return true;
	}
	return false;
}

/*
 * Make the plan for these requests, or the identity without balance.
 */
static void
make_rows(const double *requests, bool balance, PgSweepFlowRow *rows)
{
	uint32		size[PGSWEEP_MAX_PARTITIONS];
	uint8		node[PGSWEEP_MAX_PARTITIONS];
	PgSweepBalanceInput input = {
		.nparts = PgSweepPool->num_partitions,
		.nnodes = pgsweep_numa_topology.nnodes,
		.size = size,
		.node = node,
		.distance = &pgsweep_numa_topology.distance[0][0],
		.stride = PGSWEEP_NUMA_MAX_NODES,
		.requests = requests
	};

	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
	{
		size[i] = PgSweepPool->parts[i].num_buffers;
		node[i] = (uint8) PgSweepPool->parts[i].node;
		identity(&rows[i], i);
	}
	if (balance)
		pgsweep_plan_flows(&input, rows);
}

/*
 * Publish a plan.  The lines that every lease reads are written only if they
 * change.  The positions of the hands are always written: hold_back()
 * compares from there on.
 */
static void
publish(const PgSweepFlowRow *rows, bool balance)
{
	PgSweepPlan *plan = &PgSweepPool->plan;

	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
	{
		uint64		hand = pgsweep_hand_read(&PgSweepPool->parts[i]);
		uint64		moved = hand - plan->base_ticket[i];

		/* half of the old value, half of the new one */
		if (allocations[i] > 0 && moved > allocations[i])
			plan->ticks_per_victim[i] += (moved / (float) allocations[i] -
										  plan->ticks_per_victim[i]) / 2;
		else if (allocations[i] > 0)
			plan->ticks_per_victim[i] = (plan->ticks_per_victim[i] + 1) / 2;
		plan->base_ticket[i] = hand;
		allocations[i] = 0;
	}
	plan->made_at = GetCurrentTimestamp();
	if (plan->balanced != balance)
		plan->balanced = balance;
	if (plan_differs(rows))
		memcpy(plan->rows, rows, PgSweepPool->num_partitions * sizeof(PgSweepFlowRow));
}

/*
 * Count requests and allocations since the last call.  Returns the sum of
 * requests since the last plan.
 */
static uint64
count_recent(PgSweepPartCounters *totals, PgSweepPartCounters *last,
			 uint64 *requests)
{
	uint64		sum = 0;

	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
	{
		/* a sum can be short of the one before */
		totals[i].requests = Max(totals[i].requests, last[i].requests);
		totals[i].allocations = Max(totals[i].allocations, last[i].allocations);

		requests[i] += totals[i].requests - last[i].requests;
		sum += requests[i];
		recent_allocations[i] = (uint32) (totals[i].allocations - last[i].allocations);
		allocations[i] += recent_allocations[i];
		last[i] = totals[i];
	}
	return sum;
}

/*
 * One cycle.  A plan is made as soon as there were enough requests since the
 * last one; under load that is in each cycle.
 *
 * A new background writer starts from the present counts: those that its
 * predecessor has not seen are not the load of one cycle.
 */
void
pgsweep_make_plan(void)
{
	static PgSweepPartCounters last[PGSWEEP_MAX_PARTITIONS];
	static uint64 requests[PGSWEEP_MAX_PARTITIONS]; /* since the last plan */
	static double smoothed[PGSWEEP_MAX_PARTITIONS];
	static bool first = true;
	PgSweepPartCounters totals[PGSWEEP_MAX_PARTITIONS];
	static PgSweepFlowRow rows[PGSWEEP_MAX_PARTITIONS];
	bool		balance = pgsweep_balance;
	uint64		sum;

	pgsweep_sum_partitions(totals);
	if (first)
		memcpy(last, totals, sizeof(last));
	first = false;
	sum = count_recent(totals, last, requests);

	LWLockAcquire(PgSweep->lock, LW_EXCLUSIVE);
	sample_evictions(totals);
	if (balance != PgSweepPool->plan.balanced ||
		sum >= (uint64) PGSWEEP_BALANCE_MIN_REQUESTS * PgSweepPool->num_partitions)
	{
		pgsweep_damp_requests(smoothed, requests, PgSweepPool->num_partitions);
		memset(requests, 0, sizeof(requests));
		make_rows(smoothed, balance, rows);
		publish(rows, balance);
	}
	LWLockRelease(PgSweep->lock);
}

/*
 * Allocations of a partition in the cycle that pgsweep_make_plan() began.
 */
uint32
pgsweep_recent_allocations(uint32 partition)
{
	return recent_allocations[partition];
}
