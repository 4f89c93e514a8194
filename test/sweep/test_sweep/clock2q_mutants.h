/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/clock2q_mutants.h
 *	  The rule of "clock2q", and broken variants of it.
 *
 * t/sweep/clock2q.pl demands that each is caught.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CLOCK2Q_MUTANTS_H
#define CLOCK2Q_MUTANTS_H

#include "sweep/clock2q.h"

typedef struct Clock2qCode
{
	const char *name;
	void		(*init) (PgSweepClock2q *c, uint32 num_buffers, pg_atomic_uint32 *slot,
						 pg_atomic_uint32 *place, PgSweepC2qSet *set);
	void		(*take_slots) (PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 batch);
	void		(*miss) (PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 outstanding);
	uint32		(*end_window) (PgSweepClock2q *c, const PgSweepC2qLease *lease);
	bool		(*has_to_judge) (PgSweepClock2q *c, PgSweepC2qLease *lease);
	uint32		(*judge) (PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 *unused);
	bool		(*passes) (const PgSweepClock2q *c, uint32 buf);
	void		(*left) (PgSweepClock2q *c, uint64 hash, PgSweepC2qSide side);
	PgSweepC2qSide (*loaded) (PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 buf, uint64 hash);
} Clock2qCode;

/* ---- slots and places ---- */

typedef void (*Put) (PgSweepClock2q *c, uint32 slot, uint32 buf);

/* pgsweep_c2q_loaded() with another way to fill a slot */
static inline PgSweepC2qSide
loaded_by(PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 buf, uint64 hash, Put put)
{
	bool		soon = false;
	PgSweepC2qSide side = pgsweep_c2q_returns(c, hash, &soon);

	if (soon)
		lease->change += (int32) c->step * (side == PGSWEEP_C2Q_PROBATION ? 1 : -1);
	put(c, lease->fill_slot, side == PGSWEEP_C2Q_STRANGER ? buf : PGSWEEP_C2Q_NONE);
	lease->fill_left--;
	lease->fill_slot = pgsweep_c2q_next_slot(c, lease->fill_slot);
	return side;
}

#define MUTANT_OF_PUT(name) \
static PgSweepC2qSide \
loaded_##name(PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 buf, uint64 hash) \
{ \
	return loaded_by(c, lease, buf, hash, name); \
}

/* The buffer in the slot does not know it */
static inline void
no_place(PgSweepClock2q *c, uint32 slot, uint32 buf)
{
	pg_atomic_write_u32(&c->slot[slot], buf);
}
MUTANT_OF_PUT(no_place)

/* The place of what was in the slot stays */
static inline void
old_place_stays(PgSweepClock2q *c, uint32 slot, uint32 buf)
{
	pg_atomic_write_u32(&c->slot[slot], buf);
	if (buf != PGSWEEP_C2Q_NONE)
		pg_atomic_write_u32(&c->place[buf], slot);
}
MUTANT_OF_PUT(old_place_stays)

/* The place of what was in the slot goes, even if it is another by now */
static inline void
other_place_goes(PgSweepClock2q *c, uint32 slot, uint32 buf)
{
	uint32		old = pg_atomic_read_u32(&c->slot[slot]);

	if (old != PGSWEEP_C2Q_NONE)
		pg_atomic_write_u32(&c->place[old & ~PGSWEEP_C2Q_ENDED], PGSWEEP_C2Q_NONE);
	old_place_stays(c, slot, buf);
}
MUTANT_OF_PUT(other_place_goes)

/* A page that returns leaves in the slot what was there a lap ago */
static inline void
not_emptied(PgSweepClock2q *c, uint32 slot, uint32 buf)
{
	if (buf != PGSWEEP_C2Q_NONE)
		pgsweep_c2q_put(c, slot, buf);
}
MUTANT_OF_PUT(not_emptied)

/* What is judged stays in its slot */
static uint32
judge_leaves(PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 *unused)
{
	uint32		slot = lease->judge_slot;
	uint32		entry = pg_atomic_read_u32(&c->slot[slot]);
	uint32		buf = pgsweep_c2q_judge(c, lease, unused);

	pg_atomic_write_u32(&c->slot[slot], entry);
	return buf;
}

/* Its place stays */
static uint32
judge_keeps_place(PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 *unused)
{
	uint32		slot = lease->judge_slot;
	uint32		buf = pgsweep_c2q_judge(c, lease, unused);

	if (buf != PGSWEEP_C2Q_NONE)
		pg_atomic_write_u32(&c->place[buf], slot);
	return buf;
}

/* It is judged although it has another place by now */
static uint32
judge_anywhere(PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 *unused)
{
	uint32		entry = pg_atomic_read_u32(&c->slot[lease->judge_slot]);

	if (entry != PGSWEEP_C2Q_NONE)
		pg_atomic_write_u32(&c->place[entry & ~PGSWEEP_C2Q_ENDED], lease->judge_slot);
	return pgsweep_c2q_judge(c, lease, unused);
}

/* Has a place, whatever is there */
static bool
passes_by_place(const PgSweepClock2q *c, uint32 buf)
{
	return pg_atomic_read_u32(&c->place[buf]) != PGSWEEP_C2Q_NONE;
}

/* Two processes may fill the same slots */
static void
lease_not_atomic(PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 batch)
{
	uint64		before = pgsweep_read_u64(&c->fill);

	pgsweep_c2q_take_slots(c, lease, batch);
	pg_atomic_write_u64(&c->fill, before + batch);
}

/* A partition's slots are the first ones of the pool's */
static void
lease_of_pool(PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 batch)
{
	pgsweep_c2q_take_slots(c, lease, batch);
	lease->fill_slot -= c->first_slot;
}

/* Behind a partition's last slot comes the next partition's first */
static uint32
judge_beyond(PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 *unused)
{
	uint32		slot = lease->judge_slot;
	uint32		buf = pgsweep_c2q_judge(c, lease, unused);

	lease->judge_slot = slot + 1;
	return buf;
}

static bool
passes_none(const PgSweepClock2q *c, uint32 buf)
{
	return false;
}

/* ---- windows ---- */

static uint32
window_one_late(PgSweepClock2q *c, const PgSweepC2qLease *lease)
{
	PgSweepC2qLease other = *lease;

	other.fill_slot = lease->fill_slot == c->first_slot ? c->first_slot + c->num_buffers - 1 :
		lease->fill_slot - 1;
	return pgsweep_c2q_end_window(c, &other);
}

static uint32
window_one_early(PgSweepClock2q *c, const PgSweepC2qLease *lease)
{
	PgSweepC2qLease other = *lease;

	other.fill_slot = pgsweep_c2q_next_slot(c, lease->fill_slot);
	return pgsweep_c2q_end_window(c, &other);
}

/* What came a lap ago ends a second time if the slot has not been filled yet */
static uint32
window_twice(PgSweepClock2q *c, const PgSweepC2qLease *lease)
{
	uint32		entry = c->window == 0 ? PGSWEEP_C2Q_NONE :
		pg_atomic_read_u32(&c->slot[pgsweep_c2q_window_slot(c, lease)]);

	return entry == PGSWEEP_C2Q_NONE ? entry : entry & ~PGSWEEP_C2Q_ENDED;
}

/* Nobody learns that it has ended */
static uint32
window_unnoted(PgSweepClock2q *c, const PgSweepC2qLease *lease)
{
	uint32		buf = pgsweep_c2q_end_window(c, lease);

	if (buf != PGSWEEP_C2Q_NONE)
		pg_atomic_write_u32(&c->slot[pgsweep_c2q_window_slot(c, lease)], buf);
	return buf;
}

/* That of a buffer which has another place by now */
static uint32
window_anywhere(PgSweepClock2q *c, const PgSweepC2qLease *lease)
{
	uint32		entry = c->window == 0 ? PGSWEEP_C2Q_NONE :
		pg_atomic_read_u32(&c->slot[pgsweep_c2q_window_slot(c, lease)]);

	(void) pgsweep_c2q_end_window(c, lease);
	return (entry & PGSWEEP_C2Q_ENDED) ? PGSWEEP_C2Q_NONE : entry;
}

static uint32
window_never(PgSweepClock2q *c, const PgSweepC2qLease *lease)
{
	return PGSWEEP_C2Q_NONE;
}

/* ---- judging ---- */

static bool
judges_one_fewer(PgSweepClock2q *c, PgSweepC2qLease *lease)
{
	return lease->may_judge > lease->victims_left + 1 && pgsweep_c2q_has_to_judge(c, lease);
}

static bool
judges_one_more(PgSweepClock2q *c, PgSweepC2qLease *lease)
{
	if (lease->may_judge == lease->victims_left)
		lease->may_judge++;
	return pgsweep_c2q_has_to_judge(c, lease);
}

/* As many as are filled, and no more: the hand does not catch up */
static void
miss_not_catching_up(PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 outstanding)
{
	pgsweep_c2q_miss(c, lease, outstanding);
	lease->may_judge = Min(lease->may_judge, lease->victims_left + 1);
}

static void
miss_unbounded(PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 outstanding)
{
	bool		anew = lease->victims_left == 0;

	pgsweep_c2q_miss(c, lease, outstanding);
	if (anew)
		lease->may_judge = (uint32) Max(pgsweep_c2q_due(c, lease->beyond) + lease->judge_left, 0);
}

/* Knows of no victims that have had no load yet */
static void
miss_forgets(PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 outstanding)
{
	pgsweep_c2q_miss(c, lease, 0);
}

/* Takes them for slots that are filled */
static void
miss_of_loads(PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 outstanding)
{
	pgsweep_c2q_miss(c, lease, outstanding);
	lease->victims_left = lease->fill_left - 1;
}

/* Takes a page that was used once after its window for an unused one */
static uint32
judge_generous(PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 *unused)
{
	uint32		entry = pgsweep_c2q_judge(c, lease, unused);

	*unused = 1;
	return entry;
}

/* Ignores that a page came with a usage count, if its window was missed */
static uint32
judge_strict(PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 *unused)
{
	uint32		entry = pgsweep_c2q_judge(c, lease, unused);

	*unused = 0;
	return entry;
}

/* ---- length ---- */

static void
init_too_long(PgSweepClock2q *c, uint32 num_buffers, pg_atomic_uint32 *slot,
			  pg_atomic_uint32 *place, PgSweepC2qSet *set)
{
	pgsweep_c2q_init(c, num_buffers, slot, place, set);
	c->most = num_buffers;
}

static void
init_too_short(PgSweepClock2q *c, uint32 num_buffers, pg_atomic_uint32 *slot,
			   pg_atomic_uint32 *place, PgSweepC2qSet *set)
{
	pgsweep_c2q_init(c, num_buffers, slot, place, set);
	c->least = 1;
}

static PgSweepC2qSide
loaded_contrary(PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 buf, uint64 hash)
{
	int32		before = lease->change;
	PgSweepC2qSide side = pgsweep_c2q_loaded(c, lease, buf, hash);

	lease->change = before - (lease->change - before);
	return side;
}

/* Any ghost changes the length */
static PgSweepC2qSide
loaded_always_soon(PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 buf, uint64 hash)
{
	int32		before = lease->change;
	PgSweepC2qSide side = pgsweep_c2q_loaded(c, lease, buf, hash);

	if (side != PGSWEEP_C2Q_STRANGER)
		lease->change = before + (int32) c->step * (side == PGSWEEP_C2Q_PROBATION ? 1 : -1);
	return side;
}

/* What has been learnt counts at each lease */
static void
lease_learns_again(PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 batch)
{
	int32		change = lease->change;

	pgsweep_c2q_take_slots(c, lease, batch);
	lease->change = change;
}

static void
lease_learns_nothing(PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 batch)
{
	lease->change = 0;
	pgsweep_c2q_take_slots(c, lease, batch);
}

/* ---- ghosts ---- */

static void
left_other_side(PgSweepClock2q *c, uint64 hash, PgSweepC2qSide side)
{
	pgsweep_c2q_left(c, hash, side == PGSWEEP_C2Q_MAIN ? PGSWEEP_C2Q_PROBATION : PGSWEEP_C2Q_MAIN);
}

/* Each ghost takes the place of the one before */
static void
left_on_newest(PgSweepClock2q *c, uint64 hash, PgSweepC2qSide side)
{
	pgsweep_c2q_left(c, hash, side);
	pgsweep_c2q_set(c, hash)->side[side].next = 0;
}

/* A print may be 0, as no print is */
static void
left_print_0(PgSweepClock2q *c, uint64 hash, PgSweepC2qSide side)
{
	PgSweepC2qSet *set = pgsweep_c2q_set(c, hash);

	pgsweep_c2q_left(c, hash, side);
	if ((uint16) hash == 0)
		set->side[side].print[set->side[side].next - 1] = 0;
}

static PgSweepC2qSide
loaded_print_0(PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 buf, uint64 hash)
{
	PgSweepC2qSet *set = pgsweep_c2q_set(c, hash);

	/* the first way that is empty looks as if it were this page's */
	if ((uint16) hash == 0)
		for (int way = 0; way < PGSWEEP_C2Q_WAYS; way++)
			if (set->side[0].print[way] == 0)
			{
				set->side[0].print[way] = 1;
				break;
			}
	return pgsweep_c2q_loaded(c, lease, buf, hash);
}

static PgSweepC2qSide
loaded_ghost_stays(PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 buf, uint64 hash)
{
	PgSweepC2qSet *set = pgsweep_c2q_set(c, hash);
	PgSweepC2qSet before = *set;
	PgSweepC2qSide side = pgsweep_c2q_loaded(c, lease, buf, hash);

	*set = before;
	return side;
}

/* A page that returns is on probation again */
static PgSweepC2qSide
loaded_on_probation(PgSweepClock2q *c, PgSweepC2qLease *lease, uint32 buf, uint64 hash)
{
	uint32		slot = lease->fill_slot;
	PgSweepC2qSide side = pgsweep_c2q_loaded(c, lease, buf, hash);

	if (side != PGSWEEP_C2Q_STRANGER)
		pgsweep_c2q_put(c, slot, buf);
	return side;
}

#define REAL_CODE \
	.init = pgsweep_c2q_init, \
	.take_slots = pgsweep_c2q_take_slots, \
	.miss = pgsweep_c2q_miss, \
	.end_window = pgsweep_c2q_end_window, \
	.has_to_judge = pgsweep_c2q_has_to_judge, \
	.judge = pgsweep_c2q_judge, \
	.passes = pgsweep_c2q_passes, \
	.left = pgsweep_c2q_left, \
	.loaded = pgsweep_c2q_loaded

/* A mutant is the real code with a part replaced, of which compilers warn */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"

static const Clock2qCode clock2q_codes[] = {
	{"pg_sweep", REAL_CODE},
	{"gives no place", REAL_CODE, .loaded = loaded_no_place},
	{"old place stays", REAL_CODE, .loaded = loaded_old_place_stays},
	{"takes another place away", REAL_CODE, .loaded = loaded_other_place_goes},
	{"leaves an old number", REAL_CODE, .loaded = loaded_not_emptied},
	{"leaves what is judged", REAL_CODE, .judge = judge_leaves},
	{"keeps the place of what is judged", REAL_CODE, .judge = judge_keeps_place},
	{"judges in a former place", REAL_CODE, .judge = judge_anywhere},
	{"passes over what has any place", REAL_CODE, .passes = passes_by_place},
	{"fills without atomic tickets", REAL_CODE, .take_slots = lease_not_atomic},
	{"slots of the pool", REAL_CODE, .take_slots = lease_of_pool},
	{"judges beyond the partition", REAL_CODE, .judge = judge_beyond},
	{"main part passes over none", REAL_CODE, .passes = passes_none},
	{"window one slot late", REAL_CODE, .end_window = window_one_late},
	{"window one slot early", REAL_CODE, .end_window = window_one_early},
	{"window twice", REAL_CODE, .end_window = window_twice},
	{"window leaves no bit", REAL_CODE, .end_window = window_unnoted},
	{"window in a former place", REAL_CODE, .end_window = window_anywhere},
	{"no window", REAL_CODE, .end_window = window_never},
	{"judges one fewer", REAL_CODE, .has_to_judge = judges_one_fewer},
	{"judges one more", REAL_CODE, .has_to_judge = judges_one_more},
	{"does not catch up", REAL_CODE, .miss = miss_not_catching_up},
	{"catches up at once", REAL_CODE, .miss = miss_unbounded},
	{"forgets victims without a load", REAL_CODE, .miss = miss_forgets},
	{"judges for loads, not for victims", REAL_CODE, .miss = miss_of_loads},
	{"ignores a use after the window", REAL_CODE, .judge = judge_generous},
	{"counts the load as a use", REAL_CODE, .judge = judge_strict},
	{"longer than the most", REAL_CODE, .init = init_too_long},
	{"shorter than the least", REAL_CODE, .init = init_too_short},
	{"adapts in the wrong direction", REAL_CODE, .loaded = loaded_contrary},
	{"all ghosts are soon", REAL_CODE, .loaded = loaded_always_soon},
	{"learns the same again", REAL_CODE, .take_slots = lease_learns_again},
	{"learns nothing", REAL_CODE, .take_slots = lease_learns_nothing},
	{"ghost on the other side", REAL_CODE, .left = left_other_side},
	{"ghost on the newest", REAL_CODE, .left = left_on_newest},
	{"stores print 0", REAL_CODE, .left = left_print_0},
	{"finds print 0", REAL_CODE, .loaded = loaded_print_0},
	{"ghost stays", REAL_CODE, .loaded = loaded_ghost_stays},
	{"on probation again", REAL_CODE, .loaded = loaded_on_probation},
};

#pragma GCC diagnostic pop

#endif							/* CLOCK2Q_MUTANTS_H */
