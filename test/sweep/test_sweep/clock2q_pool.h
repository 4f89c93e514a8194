/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/clock2q_pool.h
 *	  The pool that the test of "clock2q" simulates, what the test knows of it,
 *	  and the pages that processes load.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CLOCK2Q_POOL_H
#define CLOCK2Q_POOL_H

#define MIN_POOL			16
#define MAX_POOL			4096
#define MAX_PROCESSES		16
#define MAX_PAGES			(4 * MAX_POOL)
#define MOST_LOADS			(24 * MAX_POOL + 2000)
#define MAX_DEPTH			3
#define NOTHING				PG_UINT32_MAX
#define STRANGER			PGSWEEP_C2Q_STRANGER

/* Which cases had what; int64 each, as the SQL function's columns */
typedef struct Clock2qCounts
{
	int64		cases;
	int64		alone;			/* one process, compared with the model */
	int64		whole;			/* several, one miss after the other */
	int64		between;		/* they stop between operations */
	int64		within;			/* they stop within operations */
	int64		tiny;			/* no window */
	int64		part;			/* a partition: its slots are not the pool's first */
	int64		young;			/* a victim from probation */
	int64		old;			/* from the main part */
	int64		stayed;			/* judged, and stays */
	int64		windows;
	int64		missed;			/* judged before the window ended */
	int64		from_probation; /* a page returned that left there */
	int64		from_main;
	int64		forgotten;		/* returned too late */
	int64		soon;			/* returned soon */
	int64		late;			/* returned, but not soon */
	int64		longer;
	int64		shorter;
	int64		most;			/* length at its bounds, after a change */
	int64		least;
	int64		behind;			/* more than one slot judged for a miss */
	int64		overtaken;		/* a number stayed for a lap of the slots */
	int64		extensions;		/* several victims before the first load */
	int64		exits;			/* a process ends, with slots that it has leased */
	int64		worst_age;		/* thousandths of the pool, in misses */
} Clock2qCounts;

typedef enum SimMode
{
	ALONE,
	WHOLE,
	BETWEEN,
	WITHIN
} SimMode;

typedef enum Step
{
	BEGIN,
	END_WINDOW,
	JUDGE,
	LOOK,
	LEAVE,
	LOAD
} Step;

typedef struct Process
{
	PgSweepC2qLease lease;
	Step		step;
	uint32		page;			/* to be loaded */
	uint32		victim;
	PgSweepC2qSide side;
	uint32		judged;			/* for this miss */
	uint32		looks;
	uint64		asleep;			/* until this step of all */
	bool		busy;			/* within a step */
} Process;

static Clock2qCounts counts;
static const Clock2qCode *code;

/* The pool, and what the test knows */
static struct
{
	SimMode		mode;
	uint32		n;
	uint32		first;			/* slot */
	uint32		npages;
	uint32		nprocs;
	uint32		batch;
	uint32		salt;
	uint32		kind;			/* of load */
	uint32		cursor;			/* of loops */
	uint32		loop;
	uint32		latest;			/* page that left probation */
	uint32		nrefs;
	uint64		hand;			/* of the main part */
	uint64		loads;
	uint64		unfilled;		/* slots, leased by processes that ended */
	uint64		steps;
	uint64		last_step;
	int			depth;
	bool		failed;
	Clock2qCounts had;			/* in this case */
	Process		procs[MAX_PROCESSES];
	uint32		page[MAX_POOL]; /* of each buffer */
	uint8		usage[MAX_POOL];
	bool		locked[MAX_POOL];	/* someone's victim */
	uint64		put_at[MAX_POOL];	/* load */
	uint32		content[2 * MAX_POOL];	/* of each slot */
	bool		ended[2 * MAX_POOL];	/* its window */
	uint64		filled_at[2 * MAX_POOL];	/* load */
	uint32		where[MAX_PAGES];	/* buffer of each page */
	bool		coming[MAX_PAGES];	/* is loaded by someone */
	PgSweepC2qSide ghost[MAX_PAGES];	/* where it left from */
	uint32		nth[MAX_PAGES]; /* it left as the nth of its set and side */
	uint32		gone[2][MAX_POOL];	/* of each set */
	uint32		ref[2 * MAX_POOL];	/* latest references */
} sim;

static PgSweepClock2q c2q;
static pg_atomic_uint32 slots[2 * MAX_POOL];
static pg_atomic_uint32 places[MAX_POOL];
static PgSweepC2qSet sets[MAX_POOL];

#define HAD(what) (sim.had.what = 1)

static bool
fails(bool good)
{
	sim.failed |= !good;
	return !good;
}

#define REQUIRE(condition, ...) \
	do { \
		if (!sim.failed && !(condition)) \
			(void) fails(violated(__VA_ARGS__)); \
	} while (0)

/* By definition: part of n, rounded down */
static uint32
part_of(uint32 n, uint32 times, uint32 divisor)
{
	return (uint32) ((uint64) n * times / divisor);
}

static uint32
least_length(void)
{
	return Max(part_of(sim.n, 1, 10), 1);
}

static uint32
most_length(void)
{
	return part_of(sim.n, 9, 10);
}

static uint32
window_length(void)
{
	return sim.n / 32;
}

static int32
step_length(void)
{
	return (int32) Min(Max(sim.n / 128, 1), 32);
}

#include "clock2q_model.h"

/* ---- pages and loads ---- */

/*
 * Prints of any two pages differ: a multiple by an odd number.  That of page 0
 * is 0.  No page has 1, which stands for 0.
 */
static uint32
print_of(uint32 page)
{
	return page * 40503 & 0xFFFF;
}

static uint32
spread_of(uint32 page)
{
	uint32		x = page ^ sim.salt;

	x = (x ^ x >> 16) * 0x85ebca6b;
	x = (x ^ x >> 13) * 0xc2b2ae35;
	return x ^ x >> 16;
}

static uint64
hash_of(uint32 page)
{
	return (uint64) spread_of(page) << 32 | (spread_of(page) & 0xFFFF0000) | print_of(page);
}

static uint32
set_of(uint32 page)
{
	return (uint32) ((uint64) spread_of(page) * c2q.num_sets >> 32);
}

static uint32
draw_page(void)
{
	uint32		last = sim.npages - 1;

	switch (random_in(0, 15) == 0 ? 0 : sim.kind)
	{
		case 0:
			return random_in(0, last);
		case 1:					/* a hot set */
			return (uint32) ((uint64) random_in(0, last) * random_in(0, last) / sim.npages);
		case 2:					/* a loop */
			return sim.cursor++ % sim.loop;
		case 3:					/* pages are used again after any distance up to the pool's */
			if (sim.nrefs > sim.n)
				return sim.ref[(sim.nrefs - random_in(1, sim.n)) % lengthof(sim.ref)];
			return random_in(0, last);
		case 4:					/* a loop beside a hot set */
			if (random_in(0, 1) == 0)
				return sim.loop / 2 + sim.cursor++ % sim.loop;
			return random_in(0, random_in(0, sim.n / 2));
		case 5:					/* what has just left probation, and new pages */
			return random_in(0, 1) == 0 ? sim.latest : random_in(0, last);
		default:				/* a hot set that moves */
			return (uint32) ((sim.loads / 4 + random_in(0, random_in(0, sim.n * 2))) % sim.npages);
	}
}

/* References until there is a miss; its page */
static uint32
next_miss(void)
{
	uint32		page = 0;

	for (int tries = 0;; tries++)
	{
		page = tries < 64 ? draw_page() % sim.npages : (page + 1) % sim.npages;
		if (print_of(page) == 1)
			continue;
		sim.ref[sim.nrefs++ % lengthof(sim.ref)] = page;
		if (sim.where[page] != NOTHING)
		{
			uint32		buf = sim.where[page];

			sim.usage[buf] = Min(sim.usage[buf] + 1, 5);
			model_used(buf);
		}
		else if (!sim.coming[page])
			return page;
	}
}

/* Its buffers have the numbers from 0 on all the same: they are not compared */
static void
init_rule(void)
{
	code->init(&c2q, sim.n, slots, places, sets);
	c2q.first_slot = sim.first;
	for (int i = 0; i < lengthof(slots); i++)
		pg_atomic_init_u32(&slots[i], NOTHING);
}

static void
make_case(void)
{
	uint32		size = MIN_POOL << random_in(0, 8);

	memset(&sim, 0, sizeof(sim));
	sim.mode = random_in(0, 3);
	sim.n = random_in(0, 3) == 0 ? size : random_in(size, Min(2 * size, MAX_POOL));
	sim.first = random_in(0, 1) == 0 ? 0 : random_in(1, MAX_POOL - 64);	/* mutants go beyond */
	sim.npages = sim.n * random_in(3, 8) / 2 + MAX_PROCESSES + 64;
	sim.npages = Min(sim.npages, MAX_PAGES);
	sim.nprocs = sim.mode == ALONE ? 1 : random_in(2, Min(Max(sim.n / 8, 2), MAX_PROCESSES));
	sim.salt = random_in(0, PG_INT32_MAX);
	sim.kind = random_in(0, 6);
	sim.loop = random_in(sim.n / 16 + 1, sim.n * 3 / 2);
	memset(sim.page, 0xFF, sizeof(sim.page));
	memset(sim.where, 0xFF, sizeof(sim.where));
	memset(sim.content, 0xFF, sizeof(sim.content));
	for (uint32 i = 0; i < sim.npages; i++)
		sim.ghost[i] = STRANGER;

	sim.depth = MAX_DEPTH;		/* no stops yet */
	init_rule();
	sim.depth = 0;
	sim.batch = Max(Min(c2q.batch, sim.n / 64 / sim.nprocs), 1);
	if (random_in(0, 1) == 0)
		sim.batch = random_in(1, sim.batch);
	make_model(sim.n, sim.batch);

	sim.had.alone = sim.mode == ALONE;
	sim.had.whole = sim.mode == WHOLE;
	sim.had.between = sim.mode == BETWEEN;
	sim.had.within = sim.mode == WITHIN;
	sim.had.tiny = sim.n < 32;
	sim.had.part = sim.first > 0;
}

#endif							/* CLOCK2Q_POOL_H */
