/*-------------------------------------------------------------------------
 *
 * extension/sweep/hooks.c
 *	  The table of strategies, and the routines that core calls.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "feature.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "sweep/strategy.h"
#include "sweep/tag_hash.h"

#define STRATEGY_ROW(id, name) [PGSWEEP_##id] = &pgsweep_##name##_strategy,

const PgSweepStrategyRoutine *const pgsweep_strategies[] = {
	PGSWEEP_STRATEGIES(STRATEGY_ROW)
};

/* Set while StrategySyncStart() must give core's own answers */
static bool ask_core_only = false;

static BufferDesc *attach_and_get_victim(BufferAccessStrategy strategy,
										 uint32 *buf_state);

static inline PgSweepStrategyId
active_strategy(void)
{
	return PGSWEEP_ACTIVE_ID(pgsweep_read_u64(&PgSweepPool->active));
}

/*
 * Let core call what this strategy has, and tell loads to advice.c if it wants to
 * know.
 */
void
pgsweep_activate(PgSweepStrategyId id)
{
	ActivateBufferReplacement(id != PGSWEEP_STOCK,
							  pgsweep_strategies[id]->loaded != NULL || PgSweepPool->advise);
}

/*
 * The word is read once: one allocation is made by one strategy.  No barrier:
 * a backend that reads the old value makes one more allocation by the old
 * strategy, and all strategies keep the rules of the buffer header.
 */
static BufferDesc *
pgsweep_get_victim(BufferAccessStrategy strategy, uint32 *buf_state)
{
	PgSweepSlot *slot = pgsweep_my_slot;
	PgSweepStrategyId id;
	uint64		active;

	if (unlikely(slot == NULL))
		return attach_and_get_victim(strategy, buf_state);

	active = pgsweep_read_u64(&PgSweepPool->active);
	id = PGSWEEP_ACTIVE_ID(active);
	if (unlikely(id == PGSWEEP_STOCK))
		return NULL;			/* switched since core looked */
	return pgsweep_strategies[id]->get_victim(slot, buf_state, active);
}

/*
 * The first allocation of a process.  A function of its own, because the
 * others then need no stack frame.
 */
static pg_noinline BufferDesc *
attach_and_get_victim(BufferAccessStrategy strategy, uint32 *buf_state)
{
	if (active_strategy() == PGSWEEP_STOCK || !pgsweep_take_slot())
		return NULL;			/* switched, or exiting: core can do it */
	return pgsweep_get_victim(strategy, buf_state);
}

/*
 * Core calls this while the active strategy has a routine for loads, or there is
 * advice on the size of the pool, which needs no slot.  A switch may come
 * between, also between a victim and its load.  A process that has no slot has
 * not chosen a victim by any strategy yet: it has only reused buffers of a ring,
 * or core chose, or it is exiting.  The pin keeps the tag.
 */
static void
pgsweep_loaded(BufferDesc *buf, BufferAccessStrategy ring)
{
	PgSweepSlot *slot = pgsweep_my_slot;
	uint64		active = pgsweep_read_u64(&PgSweepPool->active);
	const PgSweepStrategyRoutine *strategy = pgsweep_strategies[PGSWEEP_ACTIVE_ID(active)];
	uint64		hash = pgsweep_hash_tag(&buf->tag);

	if (PgSweepPool->advise)
		pgsweep_advice_tell(buf, (uint32) hash, ring != NULL);
	if (slot != NULL && strategy->loaded != NULL)
		strategy->loaded(slot, buf, hash, ring, active);
}

/*
 * Only "stock" needs the freelist.  A freed buffer has no usage count, so the
 * sweep takes it when it comes by (as in PostgreSQL 19, commit 2c78940527).
 */
static bool
pgsweep_free_buffer(BufferDesc *buf)
{
	PgSweepStrategyId id = active_strategy();

	if (pgsweep_strategies[id]->freed)
		pgsweep_strategies[id]->freed(buf->buf_id);
	return id != PGSWEEP_STOCK;
}

static bool
pgsweep_have_free_buffer(bool core_answer)
{
	const PgSweepStrategyRoutine *strategy;

	/*
	 * Core's freelist has all free buffers only while "stock" has been the
	 * only strategy since the server started.
	 */
	if (pgsweep_read_u64(&PgSweepPool->active) ==
		PGSWEEP_ACTIVE(PGSWEEP_FIRST_GENERATION, PGSWEEP_STOCK))
		return core_answer;
	strategy = pgsweep_strategies[active_strategy()];
	return strategy->may_have_free ? strategy->may_have_free() : pgsweep_find_free_buffer();
}

/*
 * The background writer wants to know the allocations since its last call.
 * Those by core are added to a total of their own, which a view may have read
 * in between (pgsweep_core_counts), so the answer is a difference of totals.
 * It includes allocations by other strategies, also those of before a switch.
 *
 * The position stays core's: core comes here only for its own scan, because
 * pgsweep_lru_pass() does that of every other strategy.
 */
static int
pgsweep_sync_start(int buf_id, uint32 *complete_passes, uint32 *num_buf_alloc)
{
	uint64		total;

	if (num_buf_alloc == NULL || ask_core_only)
		return buf_id;

	pg_atomic_fetch_add_u64(&PgSweepPool->core_allocations, *num_buf_alloc);
	total = pgsweep_allocations_total();
	*num_buf_alloc = (uint32) (total - PgSweepPool->allocations_reported);
	PgSweepPool->allocations_reported = total;
	return buf_id;
}

static bool
pgsweep_lru_pass(struct WritebackContext *wb_context, bool *can_hibernate)
{
	static uint64 last_active = 0;
	uint64		active;
	const PgSweepStrategyRoutine *strategy;
	uint32		recent_alloc;
	bool		fresh;
	int			wrote = 0;

	pgsweep_apply_configuration();

	active = pgsweep_read_u64(&PgSweepPool->active);
	strategy = pgsweep_strategies[PGSWEEP_ACTIVE_ID(active)];
	fresh = (active != last_active);
	last_active = active;

	if (strategy->cycle)
		strategy->cycle();

	if (strategy->lru_scan == NULL)
		return false;			/* core's own scan */

	(void) StrategySyncStart(NULL, &recent_alloc);
	PendingBgWriterStats.buf_alloc += recent_alloc;

	if (bgwriter_lru_maxpages <= 0)
	{
		last_active = 0;		/* begin anew when the scan is turned on again */
		*can_hibernate = true;
		return true;
	}

	*can_hibernate = strategy->lru_scan(wb_context, fresh, recent_alloc,
										bgwriter_lru_maxpages, &wrote);
	PendingBgWriterStats.buf_written_clean += wrote;
	if (wrote >= bgwriter_lru_maxpages)
		PendingBgWriterStats.maxwritten_clean++;
	return true;
}

const BufferReplacementRoutine pgsweep_replacement_routine = {
	.get_victim = pgsweep_get_victim,
	.loaded = pgsweep_loaded,
	.free_buffer = pgsweep_free_buffer,
	.have_free_buffer = pgsweep_have_free_buffer,
	.sync_start = pgsweep_sync_start,
	.lru_pass = pgsweep_lru_pass,
};

/*
 * Core's own hand, and the allocations that core has made.  In any process.
 *
 * Core can only be asked for the allocations since it was last asked.  They
 * are added to the total, from which the background writer gets its answer.
 * Each is taken from core once and added once.  Those that the background
 * writer has taken, but not yet added when a reset comes, count as later than
 * the reset: at most those of one of its cycles.
 */
void
pgsweep_core_counts(uint32 *passes, int *hand, uint64 *allocations)
{
	uint32		recent;

	/* Nothing in between can raise an error */
	ask_core_only = true;
	*hand = StrategySyncStart(passes, &recent);
	ask_core_only = false;

	*allocations = recent +
		pg_atomic_fetch_add_u64(&PgSweepPool->core_allocations, recent);
}
