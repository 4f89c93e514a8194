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

#include "numa/topology.h"
#include "sweep/partitions.h"
#include "utils/timestamp.h"

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
