/*-------------------------------------------------------------------------
 *
 * bench/policies/pool.h
 *	  A pool of buffers without pages: victims by core's clock, by "batched"
 *	  and by "clock2q".
 *
 * player.c plays any trace with it, and replay.c what one server has done.  So
 * the second one shows how far the first one's figures are the server's.
 *
 * Leases, slots and ghosts are by the strategies' own files.  What is by buffer
 * headers in the server is here once more, in plain arrays: looks, usage counts,
 * the order of a load (strategy_clock2q.c), and the first lap.
 *
 *-------------------------------------------------------------------------
 */
#ifndef POOL_H
#define POOL_H

/* The programs are not linked with the server's libraries */
#undef printf
#undef strerror
#undef fprintf
#undef vfprintf

#include "port/atomics.h"
#include "sweep/batch.h"
#include "sweep/clock2q.h"
#include "sweep/lease.h"

#define NONE			PG_UINT32_MAX
#define MAX_BACKENDS	1024

/* As BM_MAX_USAGE_COUNT, and what a page is loaded with */
#define CORE_MAX_USAGE	5
#define CORE_FIRST		1

/* Laps after which a hand cannot find a victim: each count is taken by then */
#define MAX_LAPS		16

/* As in strategy_clock2q.c: victims without a load; parts of the pool */
#define VICTIMS			64
#define FREED_PART		16
#define FOUND_PART		64

typedef enum Policy
{
	CLOCK,						/* core's */
	BATCHED,					/* the same with leases */
	CLOCK2Q
} Policy;

typedef struct Victim
{
	uint32		buffer;
	uint64		hash;
	PgSweepC2qSide side;		/* none (stranger) if there was no page */
} Victim;

typedef struct Pool
{
	Policy		policy;
	uint32		buffers;
	uint32	   *page;			/* of each buffer, or NONE */
	uint64	   *hash;			/* of this page */
	uint8	   *usage;			/* of each buffer */
	bool	   *pinned;			/* each buffer */
	uint64		looks;			/* of hands */
	uint64		passed_pins;	/* of these, at pinned buffers */
	uint32		hand;			/* CLOCK */

	/* each virtual backend's leases */
	PgSweepPartition part;
	PgSweepLease lease[MAX_BACKENDS];
	uint32		batch;
	PgSweepClock2q c2q;
	PgSweepC2qLease slots[MAX_BACKENDS];
	uint32		slot_batch;

	/* CLOCK2Q; here one backend's victims are loaded before another's */
	Victim		victim[VICTIMS];
	uint32		victims;
	uint64		from[2];		/* victims by what they were part of */
	uint64		returned[2];	/* pages that had left there */
	uint64		windows;		/* ended */
	uint64		first_laps;		/* begun, without that of the start */
	uint32		longest;		/* that probation has been */
	int64		free_buffers;
	int64		lap_free;
	uint64		lap_end;		/* 0: no first lap */
} Pool;

/* What assertions call, if the headers are those of a server with assertions */
void
ExceptionalCondition(const char *condition, const char *file, int line)
{
	fprintf(stderr, "%s:%d: %s\n", file, line, condition);
	abort();
}

pg_noreturn extern void fail(const char *format,...) pg_attribute_printf(1, 2);

static void *
allocate(size_t number, size_t size)
{
	void	   *memory = calloc(Max(number, 1), size);

	if (memory == NULL)
		fail("out of memory");
	return memory;
}

static uint32 *
nones(uint32 number)
{
	uint32	   *array = allocate(number, sizeof(uint32));

	memset(array, 0xff, sizeof(uint32) * (size_t) number);
	return array;
}

/*
 * batch is the size of a lease of the hand.
 */
static void
make_pool(Pool *pool, Policy policy, uint32 n, uint32 backends, uint32 batch)
{
	memset(pool, 0, sizeof(Pool));
	pool->policy = policy;
	pool->buffers = n;
	pool->page = nones(n);
	pool->hash = allocate(n, sizeof(uint64));
	pool->usage = allocate(n, 1);
	pool->pinned = allocate(n, sizeof(bool));
	pgsweep_partition_init(&pool->part, 0, n);
	pool->batch = Min(batch, pgsweep_longest_lease(&pool->part));

	pgsweep_c2q_init(&pool->c2q, n, allocate(n, sizeof(pg_atomic_uint32)),
					 allocate(n, sizeof(pg_atomic_uint32)),
					 allocate(pgsweep_c2q_num_sets(n), sizeof(PgSweepC2qSet)));
	pool->slot_batch = pgsweep_c2q_batch(&pool->c2q, backends);
	pool->free_buffers = pool->lap_free = n;
	pool->lap_end = n;
}

static void
free_pool(Pool *pool)
{
	free(pool->page);
	free(pool->hash);
	free(pool->usage);
	free(pool->pinned);
	free(pool->c2q.slot);
	free(pool->c2q.place);
	free(pool->c2q.set);
}

/*
 * The next buffer of a backend's lease.
 */
static inline uint32
tick(Pool *pool, uint32 backend)
{
	PgSweepLease *lease = &pool->lease[backend];

	pgsweep_lease_expire(lease, 0, pool->batch);
	if (lease->left == 0)
		pgsweep_lease_take(lease, &pool->part, 0, pool->batch);
	return (uint32) pgsweep_lease_tick(lease);
}

/*
 * A victim by the clock: the first unused buffer.  Each other one that it looks
 * at, and that is not pinned, has a count less.
 */
static inline uint32
sweep(Pool *pool, uint32 backend)
{
	for (uint64 look = 0; look < (uint64) MAX_LAPS * pool->buffers; look++)
	{
		uint32		buffer;

		if (pool->policy != CLOCK)
			buffer = tick(pool, backend);
		else
		{
			buffer = pool->hand;
			pool->hand = buffer + 1 == pool->buffers ? 0 : buffer + 1;
		}
		pool->looks++;
		if (pgsweep_c2q_passes(&pool->c2q, buffer))
			continue;
		if (pool->pinned[buffer])
			pool->passed_pins++;
		else if (pool->usage[buffer] == 0)
			return buffer;
		else
			pool->usage[buffer]--;
	}
	fail("no victim in %d laps of %u buffers", MAX_LAPS, pool->buffers);
}

/* ---- clock2q's first lap ---- */

static inline int64
part_of_pool(const Pool *pool, int part)
{
	return Max(pool->buffers / part, 1);
}

static inline void
begin_first_lap(Pool *pool, int64 free_buffers)
{
	pool->first_laps++;
	pool->free_buffers = pool->lap_free = free_buffers;
	pool->lap_end = pgsweep_hand_read(&pool->part) + pool->buffers;
}

static inline bool
first_lap(Pool *pool)
{
	PgSweepPartition *part = &pool->part;
	bool		goes_on;

	if (pool->lap_end == 0)
		return false;
	if (pool->free_buffers > 0 &&
		pgsweep_read_u64(&part->epoch) << part->epoch_shift < pool->lap_end)
		return true;
	goes_on = pool->free_buffers > 0 &&
		pool->lap_free - pool->free_buffers >= part_of_pool(pool, FOUND_PART);
	pool->lap_end = goes_on ? pgsweep_hand_read(part) + pool->buffers : 0;
	pool->lap_free = pool->free_buffers;
	if (!goes_on)
		pool->free_buffers = 0;
	return goes_on;
}

/*
 * A buffer has lost its page.  If it was a victim, that is given up: these begin
 * no first lap.
 */
static inline void
clock2q_freed(Pool *pool, uint32 buffer)
{
	pool->free_buffers++;
	for (uint32 i = 0; i < pool->victims; i++)
		if (pool->victim[i].buffer == buffer)
			return;
	if (pool->free_buffers >= part_of_pool(pool, FREED_PART) && pool->lap_end == 0)
		begin_first_lap(pool, pool->free_buffers);
}

/* ---- victims and loads ---- */

static inline void
refill(Pool *pool, PgSweepC2qLease *slots)
{
	if (slots->fill_left == 0)
		pgsweep_c2q_take_slots(&pool->c2q, slots,
							   Max(Min(slots->size * 2, pool->slot_batch), 1));
}

static inline void
forget_victims(Pool *pool, uint32 number)
{
	pool->victims -= number;
	if (unlikely(pool->victims > 0))
		memmove(pool->victim, pool->victim + number, pool->victims * sizeof(Victim));
}

/*
 * Judge what is due; returns a victim of probation, or NONE.
 */
static inline uint32
judge(Pool *pool, PgSweepC2qLease *slots)
{
	uint32		unused = 0;

	while (pgsweep_c2q_has_to_judge(&pool->c2q, slots))
	{
		uint32		buffer = pgsweep_c2q_judge(&pool->c2q, slots, &unused);

		if (buffer == PGSWEEP_C2Q_NONE)
			continue;
		if (!pool->pinned[buffer] && pool->usage[buffer] <= unused &&
			!(pool->page[buffer] != NONE && first_lap(pool)))
			return buffer;
		pool->usage[buffer] = Min(pool->usage[buffer], PGSWEEP_C2Q_USES);
	}
	return NONE;
}

static inline uint32
clock2q_victim(Pool *pool, uint32 backend)
{
	PgSweepC2qLease *slots = &pool->slots[backend];
	PgSweepC2qSide side = PGSWEEP_C2Q_PROBATION;
	bool		has_page;
	uint32		buffer;

	refill(pool, slots);
	pgsweep_c2q_miss(&pool->c2q, slots, pool->victims);
	buffer = judge(pool, slots);
	if (buffer == NONE)
	{
		side = PGSWEEP_C2Q_MAIN;
		buffer = sweep(pool, backend);
	}
	pool->from[side]++;

	has_page = pool->page[buffer] != NONE;
	if (!has_page && --pool->free_buffers == -part_of_pool(pool, FOUND_PART))
		begin_first_lap(pool, pool->buffers);
	if (unlikely(pool->victims == VICTIMS))
		forget_victims(pool, 1);
	pool->victim[pool->victims++] = (Victim)
	{
		buffer, pool->hash[buffer], has_page ? side : PGSWEEP_C2Q_STRANGER
	};
	return buffer;
}

/*
 * A page with this hash is in the buffer now: the page before it has left, a
 * window ends, a slot is used.
 */
static inline void
clock2q_loaded(Pool *pool, uint32 backend, uint32 buffer, uint64 hash, bool ring)
{
	PgSweepClock2q *c2q = &pool->c2q;
	PgSweepC2qLease *slots = &pool->slots[backend];
	PgSweepC2qSide side;
	uint32		ended;

	for (uint32 i = 0; i < pool->victims; i++)
		if (pool->victim[i].buffer == buffer)
		{
			if (pool->victim[i].side != PGSWEEP_C2Q_STRANGER)
				pgsweep_c2q_left(c2q, pool->victim[i].hash, pool->victim[i].side);
			forget_victims(pool, i + 1);
			break;
		}
	if (ring)
		return;

	refill(pool, slots);
	ended = pgsweep_c2q_end_window(c2q, slots);
	if (ended != PGSWEEP_C2Q_NONE)
	{
		pool->usage[ended] = 0;
		pool->windows++;
	}
	side = pgsweep_c2q_loaded(c2q, slots, buffer, hash);
	if (side != PGSWEEP_C2Q_STRANGER)
		pool->returned[side]++;
	pool->longest = Max(pool->longest, pg_atomic_read_u32(&c2q->length));
	if (side == PGSWEEP_C2Q_MAIN)
		pool->usage[buffer] = Max(pool->usage[buffer], PGSWEEP_C2Q_USES);
}

/*
 * A victim; its page stays until the caller takes it out.
 */
static inline uint32
find_victim(Pool *pool, uint32 backend)
{
	return pool->policy == CLOCK2Q ? clock2q_victim(pool, backend) : sweep(pool, backend);
}

static inline void
load(Pool *pool, uint32 backend, uint32 buffer, uint32 page, uint64 hash, uint8 usage,
	 bool ring)
{
	pool->page[buffer] = page;
	pool->hash[buffer] = hash;
	pool->usage[buffer] = usage;
	if (pool->policy == CLOCK2Q)
		clock2q_loaded(pool, backend, buffer, hash, ring);
}

#endif							/* POOL_H */
