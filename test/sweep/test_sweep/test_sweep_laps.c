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
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "sweep/batch.h"
#include "sweep/laps.h"
#include "sweep/lease.h"

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

/*
 * What is tested: pg_sweep's own code, or a broken variant of it.
 */
typedef struct LapsCode
{
	const char *name;
	void		(*publish) (PgSweepLaps *laps, uint32 i, const PgSweepPartition *part);
	bool		(*changing) (const PgSweepLaps *laps, uint32 i);
	void		(*look) (PgSweepLaps *laps, uint32 n);
	uint32		(*serving) (const PgSweepLaps *laps, const PgSweepOrder *order, uint32 n);
} LapsCode;

/* ---- mutants ---- */

/* Never looks: each home serves its own */
static bool
changing_never(const PgSweepLaps *laps, uint32 i)
{
	return false;
}

/* Looks while none is ahead: then some are for ever */
static bool
changing_ahead(const PgSweepLaps *laps, uint32 i)
{
	return pgsweep_read_u64(&laps->ahead) == 0 &&
		pgsweep_laps_changing(laps, i);
}

/* Looks only while some are ahead: none ever is */
static bool
changing_slowest(const PgSweepLaps *laps, uint32 i)
{
	return pgsweep_read_u64(&laps->ahead) != 0 &&
		pgsweep_laps_changing(laps, i);
}

/* Positions are not compared from a common base */
static void
publish_without_base(PgSweepLaps *laps, uint32 i, const PgSweepPartition *part)
{
	static const PgSweepLaps no_base;

	pgsweep_laps_write(&laps->done[i],
					   pgsweep_laps_done(&no_base, i, part,
										 pgsweep_read_u64(&part->epoch) << part->epoch_shift));
}

/* Compares ways without regard to sizes */
static void
publish_without_sizes(PgSweepLaps *laps, uint32 i, const PgSweepPartition *part)
{
	PgSweepPartition same = *part;

	same.num_buffers = MAX_PARTITION;
	pgsweep_laps_publish(laps, i, &same);
}

/* The last partition is overlooked */
static void
look_short(PgSweepLaps *laps, uint32 n)
{
	pgsweep_laps_look(laps, n - 1);
}

/* The next one serves, wherever its hand is */
static uint32
serving_next(const PgSweepLaps *laps, const PgSweepOrder *order, uint32 n)
{
	return order->part[pgsweep_read_u64(&laps->ahead) >> order->part[0] & 1];
}

/* Of other nodes, too, any that is not ahead, which takes it from its own */
static uint32
serving_not_ahead(const PgSweepLaps *laps, const PgSweepOrder *order, uint32 n)
{
	PgSweepOrder one_node = *order;

	one_node.near = n;
	return pgsweep_laps_serving(laps, &one_node, n);
}

/* Of the own node, too, only those that are behind */
static uint32
serving_behind(const PgSweepLaps *laps, const PgSweepOrder *order, uint32 n)
{
	PgSweepOrder no_node = *order;

	no_node.near = 1;
	return pgsweep_laps_serving(laps, &no_node, n);
}

/* All serve the same, the slowest */
static uint32
serving_slowest(const PgSweepLaps *laps, const PgSweepOrder *order, uint32 n)
{
	uint64		behind = pgsweep_read_u64(&laps->behind);

	for (uint32 i = 0; i < n; i++)
		if (behind >> i & 1)
			return i;
	return order->part[0];
}

/* Looks at each epoch */
static bool
changing_always(const PgSweepLaps *laps, uint32 i)
{
	return true;
}

static const LapsCode laps_codes[] = {
	{"pg_sweep", pgsweep_laps_publish, pgsweep_laps_changing,
	pgsweep_laps_look, pgsweep_laps_serving},
	{"never looks", pgsweep_laps_publish, changing_never,
	pgsweep_laps_look, pgsweep_laps_serving},
	{"looks always", pgsweep_laps_publish, changing_always,
	pgsweep_laps_look, pgsweep_laps_serving},
	{"looks only if it is ahead", pgsweep_laps_publish, changing_ahead,
	pgsweep_laps_look, pgsweep_laps_serving},
	{"looks only while others are ahead", pgsweep_laps_publish, changing_slowest,
	pgsweep_laps_look, pgsweep_laps_serving},
	{"has no base", publish_without_base, pgsweep_laps_changing,
	pgsweep_laps_look, pgsweep_laps_serving},
	{"ignores sizes", publish_without_sizes, pgsweep_laps_changing,
	pgsweep_laps_look, pgsweep_laps_serving},
	{"overlooks the last", pgsweep_laps_publish, pgsweep_laps_changing,
	look_short, pgsweep_laps_serving},
	{"takes the next", pgsweep_laps_publish, pgsweep_laps_changing,
	pgsweep_laps_look, serving_next},
	{"takes from others' own", pgsweep_laps_publish, pgsweep_laps_changing,
	pgsweep_laps_look, serving_not_ahead},
	{"leaves its node early", pgsweep_laps_publish, pgsweep_laps_changing,
	pgsweep_laps_look, serving_behind},
	{"takes the slowest", pgsweep_laps_publish, pgsweep_laps_changing,
	pgsweep_laps_look, serving_slowest},
};

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
	uint64		start[PGSWEEP_MAX_PARTITIONS];	/* hands when balancing began */
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

/* Hands have gone their ways before balancing begins */
static void
begin_late(void)
{
	for (uint32 i = 0; i < pool.nparts; i++)
	{
		uint64		ticket = (uint64) pool.parts[i].num_buffers * random_in(0, 100);

		pg_atomic_write_u64(&pool.parts[i].hand.ticket, ticket);
		pg_atomic_write_u64(&pool.parts[i].epoch, ticket >> pool.parts[i].epoch_shift);
		pool.laps.base[i] = pool.start[i] = ticket;
	}
	counts.late++;
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

static bool
check_case(const void *entry)
{
	const LapsCode *code = entry;
	uint64		laps = 0;
	uint32		smallest = MAX_PARTITION;

	make_pool();
	if (random_in(0, 1) == 0)
		begin_late();
	make_load();
	for (uint32 i = 0; i < pool.nparts; i++)
	{
		laps += pool.parts[i].num_buffers / (pool.hot[i] + 1);
		smallest = Min(smallest, pool.parts[i].num_buffers);
	}
	for (uint64 k = 0; k < (WARM_LAPS + MEASURED_LAPS) * laps; k++)
		allocate(code, random_in(0, pool.nbackends - 1), k > WARM_LAPS * laps);
	pfree(pool.usage);

	counts.worst_spread = Max(counts.worst_spread, (int64) (pool.spread * 1000));
	if (pool.spread > BOUND)
		return violated("%u partitions of %u buffers or more, leases of %u: hands are %.3f laps apart",
						pool.nparts, smallest, pool.batch, pool.spread);
	if (pool.even && pool.batch <= smallest / 64 && pool.looks > pool.epochs / 4 * 3)
		return violated("%u partitions: " UINT64_FORMAT " looks in " UINT64_FORMAT " epochs of an even load",
						pool.nparts, pool.looks, pool.epochs);
	return check_shares((2.0 * pool.batch + 8) / smallest);
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
