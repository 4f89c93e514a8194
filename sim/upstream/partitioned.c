/*-------------------------------------------------------------------------
 *
 * sim/upstream/partitioned.c
 *	  The partitioned clock sweep of Vondra, "Adding basic NUMA awareness",
 *	  pgsql-hackers 2025 to 2026, with adaptive balancing.
 *
 * This is a later version than that of August 2025, which was measured in the
 * thread, and has no partitioned freelists.  Headers are locked at each tick.  To
 * ask the system for CPU and node, at each tick, costs nothing here.
 *
 * Each partition has its own hand, which moves by one buffer.  The home of a process
 * is a partition of its node: the CPU modulo their number.  The counters
 * (allocations, and at each tick the requests of the home partition) are beside the
 * hand.  Partitions follow each other without padding.
 *
 * The background writer gives each partition weights: the share of its requests that
 * each partition serves, in per cent.  Home serves the fair share, and the others
 * serve the rest in proportion to what they are short of theirs.  Old and new weights
 * are averaged.  (What rounding leaves is home's here.)  The weights stay if there is
 * little to do.  A process takes its ticks from all partitions in turn, by weight.
 *
 * "partitions" is a multiple of the number of nodes; 0: one per node, and at least 4.
 *
 *-------------------------------------------------------------------------
 */
#include "upstream/core.h"

#define MAX_PARTITIONS	32
#define MIN_PARTITIONS	4
#define WHOLE			100

/* Little to do: so few requests a partition, or so little of them to be moved */
#define LEAST_REQUESTS	100
#define LEAST_MOVED		0.1

typedef struct Sweep
{
	slock_t		lock;
	int			node;
	int			first_buffer;
	int			num_buffers;
	pg_atomic_uint32 hand;		/* taken modulo num_buffers */
	uint32		passes;
	pg_atomic_uint32 allocations;	/* counted in the home partition */
	pg_atomic_uint32 requests;	/* the same, of ticks */
	pg_atomic_uint64 total_allocations;
	pg_atomic_uint64 total_requests;
	uint8		weight[MAX_PARTITIONS];
} Sweep;

typedef struct Control
{
	slock_t		lock;
	int			bgwriter;
	int			num_nodes;
	int			num_partitions;
	int			per_node;
	Sweep		sweeps[FLEXIBLE_ARRAY_MEMBER];
} Control;

static SIM_COMMON Control *control = NULL;

/* Of this process: where it is at home, which partition's turn it is, and how
 * many ticks that has left */
static int	home_then = -1;
static int	turn = -1;
static int	left = 0;

static void
setup(void)
{
	int			nodes = sim_nodes();
	int			n = sim_config_int("partitions", 0, MAX_PARTITIONS, 0);

	if (n == 0)
		n = (Max(MIN_PARTITIONS, nodes) + nodes - 1) / nodes * nodes;
	if (n % nodes != 0 || n > MAX_PARTITIONS)
		sim_fail("partitions must be a multiple of the %d nodes, at most %d", nodes, MAX_PARTITIONS);
	control = sim_shared_alloc("hands", offsetof(Control, sweeps) + n * sizeof(Sweep),
							   PG_CACHE_LINE_SIZE, SIM_INTERLEAVE);
	control->bgwriter = -1;
	control->num_nodes = nodes;
	control->num_partitions = n;
	control->per_node = n / nodes;
	for (int i = 0; i < n; i++)
	{
		Sweep	   *sweep = &control->sweeps[i];

		sweep->node = i / control->per_node;
		sweep->first_buffer = (int64) NBuffers * i / n;
		sweep->num_buffers = (int64) NBuffers * (i + 1) / n - sweep->first_buffer;
		sweep->weight[i] = WHOLE;
	}
}

static inline int
home_partition(void)
{
	int			cpu = sim_cpu() % sim_cpus();
	int			node = sim_node_of_cpu(cpu) % control->num_nodes;

	if (control->per_node == 1)
		return node;
	return node * control->per_node + cpu % control->per_node;
}

/*
 * The partition whose turn it is; a process with a new home begins there.
 */
static inline Sweep *
choose(bool tick)
{
	int			home = home_partition();
	Sweep	   *sweep = &control->sweeps[home];

	if (home != home_then)
	{
		home_then = turn = home;
		left = sweep->weight[home];
	}
	if (tick)
	{
		while (left == 0)
		{
			turn = (turn + 1) % control->num_partitions;
			left = sweep->weight[turn];
		}
		left--;
		pg_atomic_fetch_add_u32(&sweep->requests, 1);
	}
	return &control->sweeps[turn];
}

/* As in stock.c, of one partition */
static pg_noinline void
count_pass(Sweep *sweep, uint32 hand)
{
	uint32		expected = hand + 1;
	bool		done = false;

	while (!done)
	{
		SpinLockAcquire(&sweep->lock);
		done = pg_atomic_compare_exchange_u32(&sweep->hand, &expected,
											  expected % sweep->num_buffers);
		if (done)
			sweep->passes++;
		SpinLockRelease(&sweep->lock);
	}
}

static inline uint32
tick(void)
{
	Sweep	   *sweep = choose(true);
	uint32		hand = pg_atomic_fetch_add_u32(&sweep->hand, 1);
	uint32		buffer = hand;

	if (hand >= sweep->num_buffers)
	{
		buffer = hand % sweep->num_buffers;
		if (buffer == 0)
			count_pass(sweep, hand);
	}
	return sweep->first_buffer + buffer;
}

static BufferDesc *
get_victim(uint32 *buf_state)
{
	if (*(volatile int *) &control->bgwriter != -1)
		control->bgwriter = -1;
	pg_atomic_fetch_add_u32(&choose(false)->allocations, 1);
	return upstream_walk(buf_state, tick);
}

/*
 * The new weights of one partition, averaged with the old.  What rounding leaves
 * over is its own: the sum is never zero.
 */
static void
set_weights(int home, const int64 *requests, int64 fair, int64 missing)
{
	Sweep	   *sweep = &control->sweeps[home];
	int64		keep = WHOLE;
	int			others = 0;

	if (requests[home] > fair)
		keep = WHOLE * fair / requests[home];
	for (int i = 0; i < control->num_partitions; i++)
	{
		int64		weight = 0;

		if (i == home)
			continue;
		if (missing > 0 && requests[i] < fair)
			weight = (WHOLE - keep) * (fair - requests[i]) / missing;
		sweep->weight[i] = (sweep->weight[i] + weight) / 2;
		others += sweep->weight[i];
	}
	sweep->weight[home] = Max(WHOLE - others, 0);
}

static void
bgwriter_cycle(void)
{
	int64		requests[MAX_PARTITIONS];
	int64		sum = 0;
	int64		missing = 0;
	int64		excess = 0;
	int			n = control->num_partitions;

	for (int i = 0; i < n; i++)
	{
		Sweep	   *sweep = &control->sweeps[i];

		SpinLockAcquire(&sweep->lock);
		(void) pg_atomic_read_u32(&sweep->hand);
		pg_atomic_fetch_add_u64(&sweep->total_allocations,
								pg_atomic_exchange_u32(&sweep->allocations, 0));
		SpinLockRelease(&sweep->lock);
		requests[i] = pg_atomic_exchange_u32(&sweep->requests, 0);
		pg_atomic_fetch_add_u64(&sweep->total_requests, requests[i]);
		sum += requests[i];
	}
	for (int i = 0; i < n; i++)
	{
		missing += Max(sum / n - requests[i], 0);
		excess += Max(requests[i] - sum / n, 0);
	}
	if (sum / n < LEAST_REQUESTS || excess < LEAST_MOVED * (sum / n))
		return;
	for (int i = 0; i < n; i++)
		set_weights(i, requests, sum / n, missing);
}

const SimStrategy sim_strategy_upstream_partitioned = {
	"upstream_partitioned", setup, get_victim, bgwriter_cycle
};
