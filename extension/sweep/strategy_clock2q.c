/*-------------------------------------------------------------------------
 *
 * extension/sweep/strategy_clock2q.c
 *	  Strategy "clock2q": new pages on probation, and a clock for all others.
 *	  Also what the same with partitions has in common with it.
 *
 * The rule is in clock2q.h, and docs/design/0020 says why it is as it is.  Here
 * it meets buffer headers, and the way in which core asks for victims.
 *
 * - A victim is looked for in two places: among the slots that have to be judged
 *	 now, and then by the hand of "batched", which passes over buffers on
 *	 probation.
 * - When a page is loaded, the page that it has replaced gets its ghost, a
 *	 window ends, and a slot is used.  So a victim that no page gets leaves no
 *	 trace.  An extension of a relation needs up to 64 victims before its first
 *	 load: they are written down in this process.
 * - A page that is loaded for a ring uses no slot: it is the main part's, with
 *	 the usage count that core gave it.
 * - While there may be free buffers, no page leaves from probation (first lap).
 *	 So they are used before any page leaves that is still wanted.
 *
 * What processes share: the two hands of the slots and the length (a line, twice
 * for each lease), slots and places (64 bytes are 16 of them, two plain stores
 * into each for a load), and ghosts (64 bytes for each page that comes or goes).
 * While there are free buffers, their number is shared, too.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/bufmgr.h"
#include "sweep/probation.h"
#include "sweep/tag_hash.h"

/*
 * The most victims that core takes before it loads a page: an extension's
 * (MAX_BUFFERS_TO_EXTEND_BY in hio.c).  A power of 2.
 */
#define PGSWEEP_C2Q_VICTIMS		64

/*
 * A victim of this process that has had no load yet, and the hash of the page
 * that was in it: two dozen instructions under the header lock, where copying the
 * tag would be ten.
 */
typedef struct Victim
{
	uint64		hash;
	int			buffer;
	PgSweepC2qSide side;		/* none (stranger) if there was no page */
} Victim;

/* In their order; not shared, and not needed by any view */
static Victim victims[PGSWEEP_C2Q_VICTIMS];
static uint32 first_victim = 0;
static uint32 num_victims = 0;

static inline Victim *
victim_at(uint32 i)
{
	return &victims[(first_victim + i) % PGSWEEP_C2Q_VICTIMS];
}

static inline void
forget_victims(uint32 number)
{
	num_victims -= number;

	/* most often there is one: in the same lines each time */
	first_victim = num_victims > 0 ? (first_victim + number) % PGSWEEP_C2Q_VICTIMS : 0;
}

static inline void
remember_victim(PgSweepClock2q *c, BufferDesc *buf, uint32 state, PgSweepC2qSide side)
{
	Victim	   *victim;

	if (unlikely(num_victims == PGSWEEP_C2Q_VICTIMS))
		forget_victims(1);
	victim = victim_at(num_victims++);
	victim->buffer = buf->buf_id;
	victim->side = PGSWEEP_C2Q_STRANGER;
	if (pgsweep_state_has_page(state))
	{
		victim->hash = pgsweep_hash_tag(&buf->tag);
		victim->side = side;
		/* its ghost comes with the load, most often after a read */
		pgsweep_prefetch_for_write(pgsweep_c2q_set(c, victim->hash));
	}
}

/*
 * A page has been loaded into this buffer: the page that was there has left.
 * Victims before it were given up.  It is none of ours if a ring had it.
 */
static inline void
leave_ghost(PgSweepClock2q *c, int buffer)
{
	for (uint32 i = 0; i < num_victims; i++)
	{
		Victim	   *victim = victim_at(i);

		if (victim->buffer != buffer)
			continue;
		if (victim->side != PGSWEEP_C2Q_STRANGER)
			pgsweep_c2q_left(c, victim->hash, victim->side);
		forget_victims(i + 1);
		return;
	}
}

/*
 * Bring a usage count between these two.  Never waits: if the header is locked
 * or changes meanwhile, the page is in use, and its count matters less.
 */
static inline void
limit_usage(BufferDesc *buf, uint32 least, uint32 most)
{
	uint32		state = pg_atomic_read_u32(&buf->state);
	uint32		usage = BUF_STATE_GET_USAGECOUNT(state);
	uint32		wanted = Max(Min(usage, most), least);

	if (usage != wanted && !(state & BM_LOCKED))
		(void) pg_atomic_compare_exchange_u32(&buf->state, &state,
											  state + wanted * BUF_USAGECOUNT_ONE - usage * BUF_USAGECOUNT_ONE);
}

/*
 * The buffer that a turn to come will look at, some slots ahead, as the walk
 * does.  left is what the lease has from this slot on.  Fetches the header.
 */
static inline uint32
prefetch_ahead(PgSweepClock2q *c, uint32 slot, uint32 left)
{
	uint32		entry = PGSWEEP_C2Q_NONE;

	if (left > PGSWEEP_PREFETCH_AHEAD && slot + PGSWEEP_PREFETCH_AHEAD < c->first_slot + c->num_buffers)
		entry = pg_atomic_read_u32(&c->slot[slot + PGSWEEP_PREFETCH_AHEAD]);
	if (entry != PGSWEEP_C2Q_NONE)
	{
		entry &= ~PGSWEEP_C2Q_ENDED;
		pgsweep_prefetch_for_write(pgsweep_descriptor(entry));
	}
	return entry;
}

/*
 * A buffer of p has lost its page.
 */
void
pgsweep_probation_freed(PgSweepProbation *p, int buffer)
{
	bool		given_up = false;

	for (uint32 i = 0; i < num_victims && !given_up; i++)
		given_up = victim_at(i)->buffer == buffer;
	pgsweep_first_lap_freed(p, given_up);
}

static void
clock2q_freed(int buffer)
{
	pgsweep_probation_freed(&PgSweepPool->whole_probation, buffer);
}

static bool
clock2q_may_have_free(void)
{
	return pgsweep_first_lap(&PgSweepPool->whole_probation);
}

static void
clock2q_activated(void)
{
	pgsweep_first_lap_activated(&PgSweepPool->whole_probation);
}

/*
 * Give up the lease.  Buffers in slots that this process should have judged are
 * the main part's from now on: otherwise its hand would pass over them for a
 * lap of the slots.
 */
static void
leave_slots(PgSweepSlot *slot)
{
	PgSweepC2qLease *lease = &slot->c2q.lease;
	PgSweepClock2q *c = &slot->c2q.probation->c2q;
	uint32		unused;

	while (lease->judge_left > 0)
		(void) pgsweep_c2q_judge(c, lease, &unused);
	pgsweep_c2q_adapt(c, lease);
	memset(lease, 0, sizeof(*lease));
}

/*
 * The process exits, or a switch has come.
 */
void
pgsweep_c2q_leave(PgSweepSlot *slot)
{
	if (slot->c2q.active != 0)
		leave_slots(slot);
	slot->c2q.active = 0;
	forget_victims(num_victims);
}

/*
 * From now on, this process fills and judges slots of p.
 */
static pg_noinline void
move_to(PgSweepProbation *p, PgSweepSlot *slot, uint64 active)
{
	if (slot->c2q.active != active)
		pgsweep_c2q_leave(slot);
	else
	{
		/* begin anew only if slots are left empty */
		uint32		size = slot->c2q.lease.fill_left == 0 ? slot->c2q.lease.size : 0;

		leave_slots(slot);
		slot->c2q.lease.size = size;
	}
	slot->c2q.active = active;
	slot->c2q.probation = p;
}

/*
 * Take slots to fill if there are none left.  A process begins with one, and
 * goes on with twice as many: it never leaves more unused than it has used
 * (lease.h says why).  What it has from before a switch, or of another
 * partition, is given up.
 */
static inline void
refill(PgSweepProbation *p, PgSweepSlot *slot, uint64 active)
{
	PgSweepC2qLease *lease = &slot->c2q.lease;

	if (unlikely(slot->c2q.active != active || slot->c2q.probation != p))
		move_to(p, slot, active);
	if (unlikely(lease->fill_left == 0))
	{
		uint32		most = Min(pg_atomic_read_u32(&PgSweepPool->c2q_batch), p->c2q.batch);

		pgsweep_c2q_take_slots(&p->c2q, lease, Max(Min(lease->size * 2, most), 1));
	}
}

/*
 * Take the next buffer off probation.  Returns it if it is the victim: locked,
 * and without the usage count that a page comes with, which it still has if
 * nothing has ended its window.
 */
static inline BufferDesc *
judge(PgSweepProbation *p, PgSweepSlot *slot, PgSweepC2qCounters *count, uint32 *buf_state)
{
	PgSweepClock2q *c = &p->c2q;
	PgSweepC2qLease *lease = &slot->c2q.lease;
	uint32		ahead = prefetch_ahead(c, lease->judge_slot, lease->judge_left);
	uint32		unused;
	uint32		id;
	BufferDesc *buf;
	uint32		state;

	if (ahead != PGSWEEP_C2Q_NONE)
		pgsweep_prefetch_for_write(&c->place[ahead]);
	id = pgsweep_c2q_judge(c, lease, &unused);
	if (id == PGSWEEP_C2Q_NONE)
		return NULL;
	buf = pgsweep_descriptor(id);
	state = pg_atomic_read_u32(&buf->state);
	count->judged++;

	if (BUF_STATE_GET_REFCOUNT(state) == 0 && !(state & BM_LOCKED) &&
		BUF_STATE_GET_USAGECOUNT(state) <= unused &&
		!(pgsweep_state_has_page(state) && pgsweep_first_lap(p)))
	{
		*buf_state = (state & ~BUF_USAGECOUNT_MASK) | BM_LOCKED;
		if (likely(pg_atomic_compare_exchange_u32(&buf->state, &state, *buf_state)))
			return buf;
	}
	limit_usage(buf, 0, PGSWEEP_C2Q_USES);
	count->stayed++;
	return NULL;
}

/*
 * get_victim of both strategies, in p; id is the strategy's own.  part and choose
 * are as for pgsweep_walk().
 */
static pg_attribute_always_inline BufferDesc *
get_victim(PgSweepProbation *p, PgSweepSlot *slot, uint32 *buf_state, uint64 active,
		   PgSweepStrategyId id, const PgSweepPartition *part,
		   PgSweepChoosePartition choose)
{
	PgSweepClock2q *c = &p->c2q;
	PgSweepC2qCounters *own = &slot->c2q.counters[pgsweep_c2q_kind(id)];
	PgSweepC2qLease *lease = &slot->c2q.lease;
	PgSweepC2qSide side = PGSWEEP_C2Q_PROBATION;
	BufferDesc *buf = NULL;

	refill(p, slot, active);
	pgsweep_c2q_miss(c, lease, num_victims);
	while (buf == NULL && pgsweep_c2q_has_to_judge(c, lease))
		buf = judge(p, slot, own, buf_state);

	if (buf != NULL)
	{
		PgSweepCounters *count = &slot->counters[id];

		count->allocations++;
		count->evictions += pgsweep_state_has_page(*buf_state);
	}
	else
	{
		side = PGSWEEP_C2Q_MAIN;
		buf = pgsweep_walk(slot, buf_state, active, id, part, choose, c);
	}
	if (unlikely(!pgsweep_state_has_page(*buf_state)))
		pgsweep_first_lap_found(pgsweep_probation_with(p, buf->buf_id));
	own->victims[side]++;
	remember_victim(c, buf, *buf_state, side);
	return buf;
}

/*
 * loaded of both strategies.  The page whose window ends is that of a slot: with
 * each slot that is used, one ends.
 */
static pg_attribute_always_inline void
loaded(PgSweepProbation *p, PgSweepSlot *slot, BufferDesc *buf, uint64 hash,
	   BufferAccessStrategy ring, uint64 active, PgSweepStrategyId id)
{
	PgSweepClock2q *c = &p->c2q;
	PgSweepC2qLease *lease = &slot->c2q.lease;
	PgSweepC2qCounters *count = &slot->c2q.counters[pgsweep_c2q_kind(id)];
	PgSweepC2qSide side;
	int32		change;
	uint32		ended;

	pgsweep_prefetch_for_write(pgsweep_c2q_set(c, hash));
	leave_ghost(c, buf->buf_id);
	if (ring != NULL)
		return;

	refill(p, slot, active);
	(void) prefetch_ahead(c, pgsweep_c2q_window_slot(c, lease), lease->fill_left);
	ended = pgsweep_c2q_end_window(c, lease);
	if (ended != PGSWEEP_C2Q_NONE)
	{
		limit_usage(pgsweep_descriptor(ended), 0, 0);
		count->windows++;
	}

	change = lease->change;
	side = pgsweep_c2q_loaded(c, lease, buf->buf_id, hash);
	if (side == PGSWEEP_C2Q_STRANGER)
	{
		count->entered++;
		return;
	}
	count->returned[side]++;
	count->returned_soon[side] += lease->change != change;
	if (side == PGSWEEP_C2Q_MAIN)
		limit_usage(buf, PGSWEEP_C2Q_USES, BM_MAX_USAGE_COUNT);
}

static PgSweepPartition *
clock2q_choose(PgSweepSlot *slot, uint32 pinned_run)
{
	return &PgSweepPool->whole;
}

static BufferDesc *
clock2q_get_victim(PgSweepSlot *slot, uint32 *buf_state, uint64 active)
{
	return get_victim(&PgSweepPool->whole_probation, slot, buf_state, active,
					  PGSWEEP_CLOCK2Q, &PgSweepPool->whole, clock2q_choose);
}

static void
clock2q_loaded(PgSweepSlot *slot, BufferDesc *buf, uint64 hash,
			   BufferAccessStrategy ring, uint64 active)
{
	loaded(&PgSweepPool->whole_probation, slot, buf, hash, ring, active, PGSWEEP_CLOCK2Q);
}

/*
 * The same with partitions, in that of p.
 */
BufferDesc *
pgsweep_probation_get_victim(PgSweepProbation *p, PgSweepSlot *slot, uint32 *buf_state,
							 uint64 active, PgSweepChoosePartition choose)
{
	return get_victim(p, slot, buf_state, active, PGSWEEP_CLOCK2Q_PARTITIONED,
					  slot->lease.part, choose);
}

void
pgsweep_probation_loaded(PgSweepProbation *p, PgSweepSlot *slot, BufferDesc *buf, uint64 hash,
						 BufferAccessStrategy ring, uint64 active)
{
	loaded(p, slot, buf, hash, ring, active, PGSWEEP_CLOCK2Q_PARTITIONED);
}

/*
 * The main part's hand: the other two pass no buffers.
 */
static void
clock2q_position(int *hand, uint64 *passes)
{
	pgsweep_hand_position(&PgSweepPool->whole, hand, passes);
}

/* ---- the background writer ---- */

static int
probation_buffer(const PgSweepPartition *part, uint64 ticket)
{
	const PgSweepClock2q *c = &pgsweep_probation_of(part)->c2q;
	uint32		entry = pg_atomic_read_u32(&c->slot[pgsweep_c2q_slot(c, ticket)]);

	return entry == PGSWEEP_C2Q_NONE ? -1 : (int) (entry & ~PGSWEEP_C2Q_ENDED);
}

static int
main_buffer(const PgSweepPartition *part, uint64 ticket)
{
	int			buffer = pgsweep_lru_buffer(part, ticket);

	return pgsweep_c2q_passes(&PgSweepPool->whole_probation.c2q, buffer) ? -1 : buffer;
}

/*
 * Two scans: ahead of the judging hand, up to the newest page whose window has
 * ended, and ahead of the main part's hand.  In its window, a page still has the
 * usage count of its load: it would not be written, and not be looked at again.
 *
 * Each scan follows the victims of its own side.
 */
void
pgsweep_probation_begin_lru(PgSweepProbation *p, PgSweepLruState *lru, bool fresh,
							const uint32 *recent)
{
	uint64		judge_hand = pgsweep_read_u64(&p->c2q.judge);
	int64		ahead = (int64) (pgsweep_read_u64(&p->c2q.fill) - p->c2q.window - judge_hand);

	pgsweep_lru_begin(&lru[PGSWEEP_C2Q_PROBATION], fresh, probation_buffer, p->part, judge_hand,
					  (uint32) Max(ahead, 0), recent[PGSWEEP_C2Q_PROBATION]);
	pgsweep_lru_begin(&lru[PGSWEEP_C2Q_MAIN], fresh, main_buffer, p->part, pgsweep_hand_read(p->part),
					  p->part->num_buffers, recent[PGSWEEP_C2Q_MAIN]);
}

/*
 * Victims of each side since the last cycle, of one of the strategies.
 */
void
pgsweep_probation_recent(int kind, bool fresh, uint32 *recent)
{
	static uint64 reported[2][2];
	PgSweepC2qCounters sum;

	pgsweep_sum_clock2q(kind, &sum);
	for (int side = 0; side < 2; side++)
	{
		recent[side] = fresh ? 0 : (uint32) (sum.victims[side] - reported[kind][side]);
		reported[kind][side] = sum.victims[side];
	}
}

static bool
clock2q_lru_scan(struct WritebackContext *wb_context, bool fresh,
				 uint32 recent_alloc, int max_pages, int *wrote)
{
	static PgSweepLruState lru[2];
	uint32		recent[2];

	pgsweep_probation_recent(pgsweep_c2q_kind(PGSWEEP_CLOCK2Q), fresh, recent);
	pgsweep_probation_begin_lru(&PgSweepPool->whole_probation, lru, fresh, recent);
	return pgsweep_lru_clean(lru, 2, wb_context, max_pages, wrote) && recent_alloc == 0;
}

const PgSweepStrategyRoutine pgsweep_clock2q_strategy = {
	.position = clock2q_position,
	.get_victim = clock2q_get_victim,
	.loaded = clock2q_loaded,
	.activated = clock2q_activated,
	.freed = clock2q_freed,
	.may_have_free = clock2q_may_have_free,
	.lru_scan = clock2q_lru_scan,
};
