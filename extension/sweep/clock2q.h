/*-------------------------------------------------------------------------
 *
 * extension/sweep/clock2q.h
 *	  Which page has to go, a new one or an old one: the rule of "clock2q".
 *
 * A page that is read for the first time is on probation.  If it is not used
 * again while a tenth of the pool is loaded, it is the victim.  If it is, it
 * stays in its buffer and is one of the main part, for which a clock like
 * core's chooses victims.  Pages that left are remembered for a while (ghosts).
 * One of them that returns is loaded into the main part at once.  (S3-FIFO,
 * SOSP 2023; Clock2Q+, arXiv 2511.21958.)
 *
 * Nothing moves.  The newest pages are in a ring of slots, each with the number
 * of a buffer.  Two hands go round it: one fills slots, the other judges what
 * is in them.  Their distance is the length of probation, in misses.  A third
 * position, behind the filling hand, ends each page's window: what used the
 * page until then was the burst of its first use, and is not counted.
 *
 * The length adapts.  A page that returns soon after it left probation would
 * have been found there if that were longer.  One that returns soon after it
 * left the main part would have been found there if probation were shorter.
 * Each such return moves the length by a step.  docs/design/0020 has what else
 * was tried, and the figures.
 *
 * Races only cost precision.  A buffer is on probation if the slot that is its
 * place has its number: two words, each written by plain stores in any order.
 * So no buffer is passed over forever.  Each slot gets another number or none
 * within a lap, or two if a process leaves slots of its lease unused.  Stores
 * that meet can lose a buffer's number: then it is the main part's, unjudged.
 * Or it gets into two slots: only that which is its place counts.  If a process
 * stops between its look at the place and its look at the header, for a whole
 * life of a page, it can take a victim out of probation.  So can the last round
 * of a pool whose other buffers are all pinned, and a strategy that knows no
 * probation, if a switch comes before the load.
 *
 * So leases do not expire.  A process that uses one after others have gone round
 * overwrites what they have put there.  Those buffers are the main part's,
 * unjudged.  Its own pages are judged early or, if the slot has been judged in
 * this lap, stay until it is filled again: a lease of each side at most.
 *
 * Nothing here knows processes, buffer headers or shared memory: the caller
 * looks at usage counts and locks victims.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_CLOCK2Q_H
#define PGSWEEP_CLOCK2Q_H

#include "sweep/hand.h"

/*
 * Bounds of probation's length, as parts of the pool's buffers, and where it
 * begins.  The least is best for most loads; with a 20th, pages of a growing
 * table left too early in large pools.  More than the most would leave the main
 * part without victims.
 */
#define PGSWEEP_C2Q_LEAST		(1.0 / 10)
#define PGSWEEP_C2Q_MOST		(9.0 / 10)

/*
 * By how many buffers the length changes for each page that returns soon, and
 * the most as a part of the pool.  Results are the same with 16 to 128.  It is a
 * number and no part of the pool, so a lap teaches as much in any pool.
 */
#define PGSWEEP_C2Q_STEP		32
#define PGSWEEP_C2Q_STEP_PART	(1.0 / 128)

/*
 * The window.  With a 100th, TPC-C in the smallest pools reads 2 % more.  With
 * a 20th, it reads 1 % less there, and a growing table half a per cent more.
 */
#define PGSWEEP_C2Q_WINDOW		(1.0 / 32)

/*
 * Ghosts of each side, as a part of the pool's buffers.  With as many as
 * buffers, pages come back to the main part that are used too seldom.
 */
#define PGSWEEP_C2Q_GHOSTS		(1.0 / 2)

/*
 * A page returns soon if fewer than this many of its set and side have left
 * since: 2 of 15 of a half of the pool, a fifteenth of it.  3 and 4 give nearly
 * the same; with all 15, pools of 20 to 40 % read up to 8 % more.
 */
#define PGSWEEP_C2Q_SOON		2

/*
 * The usage count that a page has at most when it comes to the main part from
 * probation, and has if it returns there.  All other pages are loaded with 1,
 * as in core.  Without a limit, pages of a first burst stay for up to five laps:
 * TPC-C reads up to 3 % more in pools of 60 %.  With 1, loads that are all
 * recency read 1 % more.
 */
#define PGSWEEP_C2Q_USES		2

/*
 * Slots that one lease has at most, and as a part of the window.  What all
 * processes together have leased should be less than that: a window ends at a
 * slot that has to be filled by then.  With partitions it is, unless most
 * processes are served by a few: then windows are missed.
 */
#define PGSWEEP_C2Q_BATCH		16
#define PGSWEEP_C2Q_BATCH_PART	(1.0 / 16)

/*
 * How many times as many slots as are filled may be judged, until the judging
 * hand has caught up.  Not tuned.
 */
#define PGSWEEP_C2Q_CATCH_UP	4

/* Prints of each side that a cache line has room for */
#define PGSWEEP_C2Q_WAYS		15

/* A slot: none, or a buffer's number, with a bit if its window has ended */
#define PGSWEEP_C2Q_NONE		PG_UINT32_MAX
#define PGSWEEP_C2Q_ENDED		(UINT32_C(1) << 31)

/* What a page was part of when it left */
typedef enum PgSweepC2qSide
{
	PGSWEEP_C2Q_PROBATION,
	PGSWEEP_C2Q_MAIN,
	PGSWEEP_C2Q_STRANGER		/* it did not leave, or too long ago */
} PgSweepC2qSide;

/*
 * The ghosts of one set: a cache line, half of it for each side.  Prints are
 * parts of the tag's hash, 0 for none; next is where the next one goes.  So the
 * order of those that left is known without a time.  Processes write here
 * without a lock: a lost print is a ghost less.
 */
typedef struct PgSweepC2qSet
{
	struct
	{
		uint16		next;
		uint16		print[PGSWEEP_C2Q_WAYS];
	}			side[2];
} PgSweepC2qSet;

StaticAssertDecl(sizeof(PgSweepC2qSet) == 64, "a set of ghosts is a cache line");

typedef struct PgSweepClock2q
{
	/* Written at each lease */
	pg_atomic_uint64 fill;		/* next slot to be filled: ticket */
	pg_atomic_uint64 judge;		/* next slot to be judged: ticket */
	pg_atomic_uint32 length;	/* of probation, in tickets */
	char		pad[PG_CACHE_LINE_SIZE - 2 * sizeof(pg_atomic_uint64) - sizeof(pg_atomic_uint32)];

	/* Constant after start */
	uint32		first_slot;		/* of the pool's: it has num_buffers */
	uint32		num_buffers;
	uint32		least;
	uint32		most;
	uint32		step;
	uint32		window;
	uint32		batch;
	uint32		num_sets;
	pg_atomic_uint32 *slot;		/* of the pool: as many as buffers */
	pg_atomic_uint32 *place;	/* of each buffer: its slot, or none */
	PgSweepC2qSet *set;
} PgSweepClock2q;

/*
 * A process' lease of slots to fill, and of slots to judge.  The two are for
 * as many misses, but each has its own count: a process may need many victims
 * before it loads the first page, or give a victim up.  All zeroes at first.
 */
typedef struct PgSweepC2qLease
{
	uint32		fill_slot;
	uint32		fill_left;
	uint32		size;			/* slots to fill, when it was taken */
	uint32		judge_slot;
	uint32		judge_left;
	uint32		victims_left;	/* misses that may_judge is for */
	uint32		may_judge;		/* slots, for these misses */
	int32		beyond;			/* slots that these misses and the victims
								 * before them will need besides fill_left */
	int32		change;			/* of the length, not applied yet */
} PgSweepC2qLease;

static inline uint32
pgsweep_c2q_part(uint32 num_buffers, double part)
{
	return Max((uint32) (num_buffers * part), 1);
}

static inline uint32
pgsweep_c2q_num_sets(uint32 num_buffers)
{
	return pgsweep_c2q_part(num_buffers, PGSWEEP_C2Q_GHOSTS / PGSWEEP_C2Q_WAYS);
}

/*
 * Set up what has these slots of the pool's.
 */
static inline void
pgsweep_c2q_init_part(PgSweepClock2q *c, uint32 first_slot, uint32 num_buffers)
{
	c->first_slot = first_slot;
	c->num_buffers = num_buffers;
	c->least = pgsweep_c2q_part(num_buffers, PGSWEEP_C2Q_LEAST);
	c->most = pgsweep_c2q_part(num_buffers, PGSWEEP_C2Q_MOST);
	c->step = Min(pgsweep_c2q_part(num_buffers, PGSWEEP_C2Q_STEP_PART), PGSWEEP_C2Q_STEP);
	c->window = (uint32) (num_buffers * PGSWEEP_C2Q_WINDOW);
	c->batch = Min(pgsweep_c2q_part(c->window, PGSWEEP_C2Q_BATCH_PART), PGSWEEP_C2Q_BATCH);

	pg_atomic_init_u64(&c->fill, 0);
	pg_atomic_init_u64(&c->judge, 0);
	pg_atomic_init_u32(&c->length, c->least);
}

/*
 * Set up the whole pool's.  The arrays are the caller's: num_buffers of the first
 * two, and pgsweep_c2q_num_sets() sets.
 */
static inline void
pgsweep_c2q_init(PgSweepClock2q *c, uint32 num_buffers, pg_atomic_uint32 *slot,
				 pg_atomic_uint32 *place, PgSweepC2qSet *set)
{
	pgsweep_c2q_init_part(c, 0, num_buffers);
	c->num_sets = pgsweep_c2q_num_sets(num_buffers);
	c->slot = slot;
	c->place = place;
	c->set = set;
	for (uint32 i = 0; i < num_buffers; i++)
	{
		pg_atomic_init_u32(&slot[i], PGSWEEP_C2Q_NONE);
		pg_atomic_init_u32(&place[i], PGSWEEP_C2Q_NONE);
	}
	memset(set, 0, sizeof(PgSweepC2qSet) * c->num_sets);
}

/*
 * Give a partition the slots of its buffers' numbers.  Ghosts are the pool's: a
 * page returns to any partition.
 */
static inline void
pgsweep_c2q_init_partition(PgSweepClock2q *c, const PgSweepClock2q *whole,
						   uint32 first_buffer, uint32 num_buffers)
{
	pgsweep_c2q_init_part(c, first_buffer, num_buffers);
	c->num_sets = whole->num_sets;
	c->slot = whole->slot;
	c->place = whole->place;
	c->set = whole->set;
}

static inline uint32
pgsweep_c2q_slot(const PgSweepClock2q *c, uint64 ticket)
{
	return c->first_slot + (uint32) (ticket % c->num_buffers);
}

static inline uint32
pgsweep_c2q_next_slot(const PgSweepClock2q *c, uint32 slot)
{
	return slot + 1 == c->first_slot + c->num_buffers ? c->first_slot : slot + 1;
}

/*
 * Buffers of this partition that are in slots of others are the main part's.
 */
static inline void
pgsweep_c2q_only_own_slots(PgSweepClock2q *c)
{
	for (uint32 buf = c->first_slot; buf < c->first_slot + c->num_buffers; buf++)
	{
		uint32		slot = pg_atomic_read_u32(&c->place[buf]);

		if (slot != PGSWEEP_C2Q_NONE && slot - c->first_slot >= c->num_buffers)
			pg_atomic_write_u32(&c->place[buf], PGSWEEP_C2Q_NONE);
	}
}

/*
 * The size of a lease if this many processes have one: all of them together
 * have at most half of the window.
 */
static inline uint32
pgsweep_c2q_batch(const PgSweepClock2q *c, uint32 processes)
{
	return Max(Min(c->batch, c->window / 2 / Max(processes, 1)), 1);
}

/*
 * Apply what this process has learnt about the length with its last lease.  A
 * change that meets another process' waits for the next one.
 */
static inline void
pgsweep_c2q_adapt(PgSweepClock2q *c, PgSweepC2qLease *lease)
{
	uint32		old = pg_atomic_read_u32(&c->length);
	int64		wanted = (int64) old + lease->change;
	uint32		length = (uint32) Min(Max(wanted, c->least), c->most);

	if (length == old)
		lease->change = 0;		/* nothing, or at a bound */
	else if (pg_atomic_compare_exchange_u32(&c->length, &old, length))
		lease->change = 0;
}

/*
 * Slots that should have been judged when this many beyond the leased ones are
 * filled, less those that have been.  Below zero while probation grows.  In a
 * small pool, many victims before the first load could be more than the length:
 * no slot may be judged before it is filled.
 */
static inline int64
pgsweep_c2q_due(PgSweepClock2q *c, int32 beyond)
{
	int64		length = pg_atomic_read_u32(&c->length);

	return (int64) (pgsweep_read_u64(&c->fill) - pgsweep_read_u64(&c->judge)) +
		Min(beyond, length / 2) - length;
}

/*
 * Take a lease of slots to fill; the former one's are filled.
 */
static inline void
pgsweep_c2q_take_slots(PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 batch)
{
	uint64		ticket;

	pgsweep_c2q_adapt(c, lease);
	ticket = pg_atomic_fetch_add_u64(&c->fill, batch);
	lease->fill_slot = pgsweep_c2q_slot(c, ticket);
	lease->fill_left = batch;
	lease->size = batch;
}

/*
 * A victim is wanted.  outstanding victims of this process have had no load yet.
 * Once for as many misses as a lease has slots, this says how many slots the
 * process may judge meanwhile: most often as many, more if the judging hand is
 * behind because the length has shrunk, fewer while it grows.  lease->size > 0.
 */
static inline void
pgsweep_c2q_miss(PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 outstanding)
{
	bool		anew = lease->victims_left == 0;

	if (anew)
		lease->victims_left = lease->size;
	lease->beyond = (int32) (outstanding + lease->victims_left) - (int32) lease->fill_left;
	if (anew)
	{
		int64		due = pgsweep_c2q_due(c, lease->beyond) + lease->judge_left;

		lease->may_judge = (uint32) Min(Max(due, 0), (int64) PGSWEEP_C2Q_CATCH_UP * lease->size);
	}
	lease->victims_left--;
}

/*
 * The slot whose page's window ends when the lease's next slot is filled; that
 * slot itself if there is no window.  lease->fill_left > 0.
 */
static inline uint32
pgsweep_c2q_window_slot(const PgSweepClock2q *c, const PgSweepC2qLease *lease)
{
	uint32		slot = lease->fill_slot - c->window;

	return slot - c->first_slot < c->num_buffers ? slot : slot + c->num_buffers;
}

/*
 * The buffer whose window ends when the lease's next slot is filled, or none:
 * the caller sets its usage count to zero.
 */
static inline uint32
pgsweep_c2q_end_window(PgSweepClock2q *c, const PgSweepC2qLease *lease)
{
	uint32		slot = pgsweep_c2q_window_slot(c, lease);
	uint32		entry;

	if (unlikely(c->window == 0))
		return PGSWEEP_C2Q_NONE;
	entry = pg_atomic_read_u32(&c->slot[slot]);

	/* NONE has the bit, too */
	if (entry & PGSWEEP_C2Q_ENDED)
		return PGSWEEP_C2Q_NONE;
	pg_atomic_write_u32(&c->slot[slot], entry | PGSWEEP_C2Q_ENDED);

	/* it may have another place by now, if a process stopped for long */
	return likely(pg_atomic_read_u32(&c->place[entry]) == slot) ? entry : PGSWEEP_C2Q_NONE;
}

/*
 * Is there a slot to be judged for this miss?  Ask again until there is none,
 * and the main part has to give a victim, or until one is found.
 */
static inline bool
pgsweep_c2q_has_to_judge(PgSweepClock2q *c, PgSweepC2qLease *lease)
{
	if (lease->may_judge <= lease->victims_left)
		return false;

	if (lease->judge_left == 0)
	{
		int64		due = pgsweep_c2q_due(c, lease->beyond);
		uint64		ticket;

		/* others may have judged them meanwhile */
		if (due <= 0)
		{
			lease->may_judge = 0;
			return false;
		}
		lease->judge_left = (uint32) Min(Min(due, lease->may_judge), lease->size);
		ticket = pg_atomic_fetch_add_u64(&c->judge, lease->judge_left);
		lease->judge_slot = pgsweep_c2q_slot(c, ticket);
	}
	return true;
}

/*
 * Is this buffer on probation?  Then the main part's hand passes over it.
 */
static inline bool
pgsweep_c2q_passes(const PgSweepClock2q *c, uint32 buf)
{
	uint32		slot = pg_atomic_read_u32(&c->place[buf]);

	return slot != PGSWEEP_C2Q_NONE &&
		(pg_atomic_read_u32(&c->slot[slot]) & ~PGSWEEP_C2Q_ENDED) == buf;
}

/*
 * Take the next buffer to be judged out of its slot; it is the main part's from
 * now on.  *unused is the usage count up to which it has not been used: the
 * page came with one, and the end of its window took that.  If it is used more,
 * or pinned, it stays, with at most PGSWEEP_C2Q_USES.  Returns none if the slot
 * has nothing to judge.
 *
 * The slot alone would say that the buffer is not on probation.  Without a place,
 * the main part's hand need not look at the slot.
 */
static inline uint32
pgsweep_c2q_judge(PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 *unused)
{
	uint32		slot = lease->judge_slot;
	uint32		entry = pg_atomic_read_u32(&c->slot[slot]);
	uint32		buf = entry & ~PGSWEEP_C2Q_ENDED;

	lease->may_judge--;
	lease->judge_left--;
	lease->judge_slot = pgsweep_c2q_next_slot(c, lease->judge_slot);

	if (entry == PGSWEEP_C2Q_NONE)
		return PGSWEEP_C2Q_NONE;
	pg_atomic_write_u32(&c->slot[slot], PGSWEEP_C2Q_NONE);
	if (unlikely(pg_atomic_read_u32(&c->place[buf]) != slot))
		return PGSWEEP_C2Q_NONE;	/* it has another place by now */
	pg_atomic_write_u32(&c->place[buf], PGSWEEP_C2Q_NONE);
	*unused = (entry & PGSWEEP_C2Q_ENDED) ? 0 : 1;
	return buf;
}

/*
 * Put a buffer into a slot, or none, which empties it.  What it has from a lap
 * ago, because a process that had leased it was late, is the main part's.
 */
static inline void
pgsweep_c2q_put(PgSweepClock2q *c, uint32 slot, uint32 buf)
{
	uint32		old = pg_atomic_read_u32(&c->slot[slot]);

	if (unlikely(old != PGSWEEP_C2Q_NONE))
	{
		old &= ~PGSWEEP_C2Q_ENDED;
		if (pg_atomic_read_u32(&c->place[old]) == slot)
			pg_atomic_write_u32(&c->place[old], PGSWEEP_C2Q_NONE);
	}
	pg_atomic_write_u32(&c->slot[slot], buf);
	if (buf != PGSWEEP_C2Q_NONE)
		pg_atomic_write_u32(&c->place[buf], slot);
}

/*
 * The upper half of the hash chooses the set, the lowest 16 bits are the print.
 */
static inline PgSweepC2qSet *
pgsweep_c2q_set(PgSweepClock2q *c, uint64 hash)
{
	return &c->set[(hash >> 32) * c->num_sets >> 32];
}

static inline uint16
pgsweep_c2q_print(uint64 hash)
{
	return (uint16) hash == 0 ? 1 : (uint16) hash;
}

/*
 * The page with this hash has left.
 */
static inline void
pgsweep_c2q_left(PgSweepClock2q *c, uint64 hash, PgSweepC2qSide side)
{
	volatile PgSweepC2qSet *set = pgsweep_c2q_set(c, hash);
	uint32		way = set->side[side].next % PGSWEEP_C2Q_WAYS;

	set->side[side].print[way] = pgsweep_c2q_print(hash);
	set->side[side].next = way + 1;
}

/*
 * Which of four prints may differ from the wanted one by nothing: zero if none
 * does.  (The lowest bit that is set is of one; others above it may be wrong.)
 */
static inline uint64
pgsweep_c2q_equal(uint64 prints, uint64 wanted)
{
	uint64		differ = prints ^ wanted;

	return (differ - UINT64_C(0x0001000100010001)) & ~differ & UINT64_C(0x8000800080008000);
}

/*
 * May this print be on this side?  Most are not, so four are looked at at a
 * time.  The first of the 16 is no print, so yes may be wrong.
 */
static inline bool
pgsweep_c2q_may_have(const volatile PgSweepC2qSet *set, int side, uint16 print)
{
	const volatile uint64 *prints = (const volatile uint64 *) &set->side[side];
	uint64		wanted = print * UINT64_C(0x0001000100010001);

	StaticAssertStmt(sizeof(set->side[side]) == 4 * sizeof(uint64), "a side has four times four");
	return (pgsweep_c2q_equal(prints[0], wanted) | pgsweep_c2q_equal(prints[1], wanted) |
			pgsweep_c2q_equal(prints[2], wanted) | pgsweep_c2q_equal(prints[3], wanted)) != 0;
}

/*
 * The page with this hash is loaded.  Had it left?  If so, the ghost goes.
 */
static inline PgSweepC2qSide
pgsweep_c2q_returns(PgSweepClock2q *c, uint64 hash, bool *soon)
{
	volatile PgSweepC2qSet *set = pgsweep_c2q_set(c, hash);
	uint16		print = pgsweep_c2q_print(hash);

	for (int side = 0; side < 2; side++)
	{
		if (likely(!pgsweep_c2q_may_have(set, side, print)))
			continue;
		for (uint32 way = 0; way < PGSWEEP_C2Q_WAYS; way++)
			if (set->side[side].print[way] == print)
			{
				uint32		later = set->side[side].next + PGSWEEP_C2Q_WAYS - 1 - way;

				set->side[side].print[way] = 0;
				*soon = later % PGSWEEP_C2Q_WAYS < PGSWEEP_C2Q_SOON;
				return (PgSweepC2qSide) side;
			}
	}
	return PGSWEEP_C2Q_STRANGER;
}

/*
 * A page has been loaded into a buffer that is the main part's.  Decide where
 * it belongs, and use one slot of the lease.  lease->fill_left > 0.  Returns
 * what it was part of before: a page of the main part gets PGSWEEP_C2Q_USES.
 */
static inline PgSweepC2qSide
pgsweep_c2q_loaded(PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 buf,
				   uint64 hash)
{
	bool		soon = false;
	PgSweepC2qSide side = pgsweep_c2q_returns(c, hash, &soon);
	int32		step = (int32) c->step;

	if (soon)
		lease->change += side == PGSWEEP_C2Q_PROBATION ? step : -step;

	pgsweep_c2q_put(c, lease->fill_slot, side == PGSWEEP_C2Q_STRANGER ? buf : PGSWEEP_C2Q_NONE);
	lease->fill_left--;
	lease->fill_slot = pgsweep_c2q_next_slot(c, lease->fill_slot);
	return side;
}

#endif							/* PGSWEEP_CLOCK2Q_H */
