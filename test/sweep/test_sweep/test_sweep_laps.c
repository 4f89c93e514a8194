/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/test_sweep_laps.c
 *	  Property tests of the balance of partitions: pools that virtual backends
 *	  allocate from, by pg_sweep's own leases and its own choice.
 *
 * What one clock would do is the oracle: a partition of n buffers that have
 * usage count u when they are looked at anew serves in proportion to
 * n / (u + 1).
 *
 * laps_mutants.h	the code under test, and broken variants of it
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "sweep/batch.h"
#include "sweep/lease.h"

#include "laps_mutants.h"
#include "property.h"

PG_MODULE_MAGIC_EXT(
					.name = "test_sweep_laps",
					.version = "1.0"
);

PG_FUNCTION_INFO_V1(test_sweep_laps);
PG_FUNCTION_INFO_V1(test_sweep_laps_codes);

#define MAX_BACKENDS_HERE	256
#define MIN_PARTITION		128
#define MAX_PARTITION		4096
#define WARM_LAPS			2
#define MEASURED_LAPS		12

/* The promise of laps.h */
#define BOUND				0.25
#define SHARE_TOLERANCE		0.02
#define LOCAL_TOLERANCE		0.04
#define EVEN_TOLERANCE		0.01	/* with the same load for all homes */

/* ---- pools ---- */

/* What was exercised; int64 each, as the SQL function's columns */
typedef struct LapsCounts
{
	int64		cases;
	int64		even;			/* the same load for all, no page used again */
	int64		one;			/* one home has all of it */
	int64		hot;			/* pages of some partitions are used again */
	int64		unequal;		/* sizes differ */
	int64		late;			/* balancing begins with hands apart */
	int64		pinned;			/* pins have taken some hands laps ahead */
	int64		remote;			/* leases from another partition */
	int64		worst_spread;	/* thousandths of a lap */
	int64		worst_share;	/* hundredths of a point */
} LapsCounts;

typedef struct Pool
{
	uint32		nparts;
	uint32		nbuffers;
	uint32		nbackends;
	uint32		batch;
	bool		unequal;		/* sizes */
	uint32		nhot;			/* partitions whose pages are used again */
	bool		even;			/* the same load for all, nothing unequal or hot */
	PgSweepPartition parts[PGSWEEP_MAX_PARTITIONS];
	uint32		nnodes;
	PgSweepOrder order[PGSWEEP_MAX_PARTITIONS];
	uint8		hot[PGSWEEP_MAX_PARTITIONS];	/* usage count of its pages */
	uint8	   *usage;			/* of each buffer */
	uint64		start[PGSWEEP_MAX_PARTITIONS];	/* hands when laps were counted
												 * anew */
	PgSweepLaps laps;
	PgSweepLease leases[MAX_BACKENDS_HERE];
	uint32		home[MAX_BACKENDS_HERE];
	uint64		served[PGSWEEP_MAX_PARTITIONS];
	uint64		asked[PGSWEEP_MAX_PARTITIONS];
	uint64		local;
	uint64		total;
	uint64		epochs;
	uint64		looks;
	double		least;
	double		spread;
} Pool;

static LapsCounts counts;
static Pool pool;

/* Own node first; other nodes are equally far */
static void
make_orders(void)
{
	for (uint32 home = 0; home < pool.nparts; home++)
	{
		PgSweepOrder *order = &pool.order[home];
		uint32		far = pool.nparts;

		for (uint32 i = pool.nparts; i > 0; i--)
		{
			uint32		part = (home + i - 1) % pool.nparts;

			if (pool.parts[part].node != pool.parts[home].node)
				order->part[--far] = part;
		}
		for (uint32 i = 0; i < pool.nparts; i++)
		{
			uint32		part = (home + i) % pool.nparts;

			if (pool.parts[part].node == pool.parts[home].node)
				order->part[order->near++] = part;
		}
	}
}

static void
make_pool(void)
{
	uint32		size = random_in(MIN_PARTITION, MAX_PARTITION);
	uint32		first = 0;

	memset(&pool, 0, sizeof(pool));
	pool.unequal = random_in(0, 2) == 0;
	pool.nparts = 1 << random_in(1, 6);
	if (random_in(0, 1) == 0)
		pool.nparts = random_in(2, 64);
	pool.nnodes = random_in(0, 1) == 0 ? pool.nparts : random_in(1, pool.nparts);
	pool.laps.balanced = true;
	pool.nhot = random_in(0, 1) == 0 ? random_in(1, pool.nparts - 1) : 0;
	for (uint32 i = 0; i < pool.nparts; i++)
	{
		uint32		n = pool.unequal ? random_in(size / 8, size) : size;

		pgsweep_partition_init(&pool.parts[i], first, n);
		first += n;
		pool.hot[i] = i < pool.nhot ? random_in(1, 5) : 0;
		pool.parts[i].node = i * pool.nnodes / pool.nparts;
	}
	make_orders();
	pool.nbuffers = first;
	pool.usage = palloc(first);

	/* any count: if all had the same, whole laps would have no victim */
	for (uint32 i = 0; i < pool.nparts; i++)
		for (uint32 k = 0; k < pool.parts[i].num_buffers; k++)
			pool.usage[pool.parts[i].first_buffer + k] = random_in(0, pool.hot[i]);
	counts.hot += pool.nhot > 0;
	counts.unequal += pool.unequal;
}

/* Hands go on by up to 100 laps, as without balance or past pins */
static void
move_hands(uint32 from, double least)
{
	for (uint32 i = 0; i < pool.nparts; i++)
	{
		PgSweepPartition *part = &pool.parts[i];
		uint64		ticket = pgsweep_hand_read(part);

		if (i >= from)
			ticket += (uint64) (part->num_buffers * (least + random_in(0, 100)));
		pg_atomic_write_u64(&part->hand.ticket, ticket);
		pg_atomic_write_u64(&part->epoch, ticket >> part->epoch_shift);
		pool.start[i] = ticket;
	}
	pool.least = 0;
}

/*
 * Laps are counted anew by a cycle of the background writer.  Meanwhile one
 * process publishes a position, another stores a look, both by the laps of
 * before.  The next cycle mends that.
 */
static void
count_anew(const LapsCode *code)
{
	PgSweepLaps before = pool.laps;
	uint32		late = random_in(0, pool.nparts - 1);

	code->cycle(&pool.laps, pool.parts, pool.nparts, true);
	for (uint32 i = 0; i < pool.nparts; i++)
		code->publish(&before, i, &pool.parts[i]);
	pool.laps.done[late] = before.done[late];
	code->look(&before, pool.nparts);
	pool.laps.slowest = before.slowest;
	pool.laps.behind = before.behind;
	pool.laps.ahead = before.ahead;
	code->cycle(&pool.laps, pool.parts, pool.nparts, true);
}

/*
 * Hands have gone their ways before balancing begins, or while all buffers of
 * some partitions were pinned.
 */
static void
begin_late(const LapsCode *code)
{
	pool.laps.balanced = false;
	move_hands(0, 0);
	count_anew(code);
	counts.late++;
}

static void
stop_pinning(const LapsCode *code)
{
	move_hands(random_in(1, pool.nparts - 1), 1);
	pool.laps.passed_on = true;
	count_anew(code);
	counts.pinned++;
}

/* The first partition of a node */
static uint32
first_of(uint32 node)
{
	uint32		i = 0;

	while (pool.parts[i].node != node)
		i++;
	return i;
}

/* As many backends on each home, a part of them or all on one, or one home per node */
static void
make_load(void)
{
	uint32		kind;
	uint32		busy;

	pool.nbackends = random_in(0, 3) == 0 ? random_in(2, 4) :
		Min(MAX_BACKENDS_HERE, random_in(1, 4) * pool.nparts);
	pool.batch = pgsweep_batch_size_for(random_in(1, PGSWEEP_BATCH_AUTO), pool.nbuffers, pool.nbackends);
	kind = random_in(0, 3);
	busy = kind == 1 ? pool.nbackends : kind == 2 ? random_in(1, pool.nbackends - 1) : 0;
	for (uint32 b = 0; b < pool.nbackends; b++)
		pool.home[b] = b < busy ? 0 : kind < 3 ? b % pool.nparts : first_of(b % pool.nnodes);
	pool.even = kind == 0 && pool.nhot == 0 && !pool.unequal && pool.nbackends >= pool.nparts;
	counts.even += pool.even;
	counts.one += kind == 1;
}

static double
way_of_hand(uint32 i)
{
	return (double) (pgsweep_hand_read(&pool.parts[i]) - pool.start[i]) / pool.parts[i].num_buffers;
}

/*
 * The largest distance of two hands, in laps since balancing began.  "moved"
 * has gone on.  pool.least is where the slowest was when that mattered last.
 */
static void
note_spread(uint32 moved)
{
	double		way = way_of_hand(moved);

	if (way - pool.least <= pool.spread)
		return;
	pool.least = DBL_MAX;
	for (uint32 i = 0; i < pool.nparts; i++)
		pool.least = Min(pool.least, way_of_hand(i));
	pool.spread = Max(pool.spread, way - pool.least);
}

static void
take_lease(const LapsCode *code, PgSweepLease *lease, uint32 home)
{
	uint32		target = code->serving(&pool.laps, &pool.order[home], pool.nparts);
	PgSweepPartition *part = &pool.parts[target];
	uint64		epoch = pgsweep_read_u64(&part->epoch);

	pgsweep_lease_take(lease, part, 1,
					   Min(pool.batch, pgsweep_longest_lease(part)));
	if (pgsweep_read_u64(&part->epoch) != epoch)
	{
		code->publish(&pool.laps, target, part);
		if (code->changing(&pool.laps, target))
		{
			code->look(&pool.laps, pool.nparts);
			pool.looks++;
		}
		pool.epochs++;
	}
	note_spread(target);
	counts.remote += target != home;
}

/* One allocation; whether it is counted */
static void
allocate(const LapsCode *code, uint32 backend, bool warm)
{
	PgSweepLease *lease = &pool.leases[backend];
	uint32		home = pool.home[backend];
	uint32		part;

	for (;;)
	{
		uint32		buffer;

		(void) pgsweep_lease_expire(lease, 1, pool.batch);
		if (lease->left == 0)
			take_lease(code, lease, home);
		part = lease->part - pool.parts;
		buffer = pgsweep_lease_tick(lease);
		if (pool.usage[buffer] == 0)
		{
			pool.usage[buffer] = pool.hot[part];
			break;
		}
		pool.usage[buffer]--;
	}
	if (warm)
	{
		pool.served[part]++;
		pool.asked[home]++;
		pool.local += pool.parts[part].node == pool.parts[home].node;
		pool.total++;
	}
}

/* ---- properties ---- */

/*
 * Each partition serves what one clock would take from it, and each request is
 * served on its node, as far as that allows.
 */
static bool
check_shares(double granularity)
{
	double		sum = 0;
	double		local = 0;
	double		tolerance;
	double		fair_of[PGSWEEP_MAX_PARTITIONS] = {0};	/* each node's */
	double		asked_of[PGSWEEP_MAX_PARTITIONS] = {0};

	for (uint32 i = 0; i < pool.nparts; i++)
		sum += (double) pool.parts[i].num_buffers / (pool.hot[i] + 1);
	for (uint32 i = 0; i < pool.nparts; i++)
	{
		double		fair = pool.parts[i].num_buffers / (pool.hot[i] + 1.0) / sum;
		double		share = (double) pool.served[i] / pool.total;

		counts.worst_share = Max(counts.worst_share, (int64) (fabs(share - fair) * 10000));
		if (fabs(share - fair) > SHARE_TOLERANCE)
			return violated("partition %u of %u serves %.3f of all, one clock takes %.3f from it",
							i, pool.nparts, share, fair);
		fair_of[pool.parts[i].node] += fair;
		asked_of[pool.parts[i].node] += (double) pool.asked[i] / pool.total;
	}
	for (uint32 node = 0; node < pool.nnodes; node++)
		local += Min(asked_of[node], fair_of[node]);

	/* leases are large for a small partition, and random loads uneven */
	tolerance = granularity + (pool.even ? EVEN_TOLERANCE : LOCAL_TOLERANCE);
	if ((double) pool.local / pool.total < local - tolerance)
		return violated("%u partitions, %u nodes: %.3f are local, %.3f could be", pool.nparts, pool.nnodes,
						(double) pool.local / pool.total, local);
	return true;
}

/*
 * Without balance each home serves its own, though a process may store late
 * that all are ahead.
 */
static bool
check_unbalanced(const LapsCode *code)
{
	code->cycle(&pool.laps, pool.parts, pool.nparts, false);
	pg_atomic_write_u64(&pool.laps.ahead, PG_UINT64_MAX);
	code->cycle(&pool.laps, pool.parts, pool.nparts, false);
	for (uint32 home = 0; home < pool.nparts; home++)
	{
		uint32		target = code->serving(&pool.laps, &pool.order[home], pool.nparts);

		if (target != home)
			return violated("partition %u serves home %u without balance", target, home);
	}
	return true;
}

static bool
check_case(const void *entry)
{
	const LapsCode *code = entry;
	uint64		laps = 0;
	uint64		cycle;
	bool		pins = random_in(0, 1) == 0;
	uint32		smallest = MAX_PARTITION;

	make_pool();
	if (random_in(0, 1) == 0)
		begin_late(code);
	make_load();
	for (uint32 i = 0; i < pool.nparts; i++)
	{
		laps += pool.parts[i].num_buffers / (pool.hot[i] + 1);
		smallest = Min(smallest, pool.parts[i].num_buffers);
	}
	cycle = laps * random_in(1, 40) / 10;
	if (pins)
		stop_pinning(code);
	for (uint64 k = 0; k < (WARM_LAPS + MEASURED_LAPS) * laps; k++)
	{
		allocate(code, random_in(0, pool.nbackends - 1), k > WARM_LAPS * laps);
		if (k % cycle == 0)
		{
			/* a walk has found pins, which took no hand far */
			pool.laps.passed_on = pins;
			code->cycle(&pool.laps, pool.parts, pool.nparts, true);
		}
	}
	pfree(pool.usage);

	counts.worst_spread = Max(counts.worst_spread, (int64) (pool.spread * 1000));
	if (pool.spread > BOUND)
		return violated("%u partitions of %u buffers or more, leases of %u: hands are %.3f laps apart",
						pool.nparts, smallest, pool.batch, pool.spread);
	if (pool.even && pool.batch <= smallest / 64 && pool.looks > pool.epochs / 4 * 3)
		return violated("%u partitions: " UINT64_FORMAT " looks in " UINT64_FORMAT " epochs of an even load",
						pool.nparts, pool.looks, pool.epochs);
	return check_shares((2.0 * pool.batch + 8) / smallest) && check_unbalanced(code);
}

/*
 * test_sweep_laps(seed, cases, code)
 */
Datum
test_sweep_laps(PG_FUNCTION_ARGS)
{
	return run_cases(fcinfo, check_case, FIND_CODE(laps_codes, 2), &counts.cases, sizeof(counts));
}

Datum
test_sweep_laps_codes(PG_FUNCTION_ARGS)
{
	return code_names(fcinfo, laps_codes, sizeof(laps_codes[0]), lengthof(laps_codes));
}
