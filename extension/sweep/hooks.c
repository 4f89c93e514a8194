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

#define STRATEGY_ROW(id, name) [PGSWEEP_##id] = &pgsweep_##name##_strategy,

const PgSweepStrategyRoutine *const pgsweep_strategies[] = {
	PGSWEEP_STRATEGIES(STRATEGY_ROW)
};

/*
 * In the background writer, the strategy at the start of this cycle; -1
 * elsewhere.  A switch in the middle of a cycle must not change the answer:
 * core's BgBufferSync() would compare the position of one hand with
 * another's.
 */
static int	cycle_strategy = -1;

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
	if (id == PGSWEEP_STOCK)
	{
		slot->counters[PGSWEEP_STOCK].allocations++;
		slot->stock_active = active;
		return NULL;
	}
	return pgsweep_strategies[id]->get_victim(slot, buf_state, active);
}

/*
 * The first allocation of a process.  A function of its own, because the
 * others then need no stack frame.
 */
static pg_noinline BufferDesc *
attach_and_get_victim(BufferAccessStrategy strategy, uint32 *buf_state)
{
	if (!pgsweep_take_slot())
		return NULL;			/* exiting: core can do it */
	return pgsweep_get_victim(strategy, buf_state);
}

/*
 * Only "stock" needs the freelist.  A freed buffer has no usage count, so the
 * sweep takes it when it comes by (as in PostgreSQL 19, commit 2c78940527).
 */
static bool
pgsweep_free_buffer(BufferDesc *buf)
{
	return active_strategy() != PGSWEEP_STOCK;
}

static bool
pgsweep_have_free_buffer(bool core_answer)
{
	/*
	 * Core's freelist has all free buffers only while "stock" has been the
	 * only strategy since the server started.
	 */
	if (pgsweep_read_u64(&PgSweepPool->active) ==
		PGSWEEP_ACTIVE(PGSWEEP_FIRST_GENERATION, PGSWEEP_STOCK))
		return core_answer;
	return pgsweep_find_free_buffer();
}

/*
 * Allocations are added under any strategy: otherwise pg_stat_bgwriter would
 * lose those made before a switch and reported after it.  (Core itself counts
 * those of "stock".)
 */
static int
pgsweep_sync_start(int buf_id, uint32 *complete_passes, uint32 *num_buf_alloc)
{
	PgSweepStrategyId id;
	uint64		passes;

	if (ask_core_only)
		return buf_id;

	if (num_buf_alloc)
	{
		uint64		total = pgsweep_allocations_total();

		*num_buf_alloc += (uint32) (total - PgSweepPool->allocations_reported);
		PgSweepPool->allocations_reported = total;
	}

	id = cycle_strategy >= 0 ? (PgSweepStrategyId) cycle_strategy : active_strategy();
	if (id == PGSWEEP_STOCK)
		return buf_id;

	pgsweep_strategies[id]->position(&buf_id, &passes);
	if (complete_passes)
		*complete_passes = (uint32) passes;
	return buf_id;
}

static bool
pgsweep_lru_pass(struct WritebackContext *wb_context, bool *can_hibernate)
{
	static uint64 last_active = 0;
	uint64		active;
	uint32		recent_alloc;
	bool		fresh;
	int			wrote = 0;

	pgsweep_apply_configuration();

	active = pgsweep_read_u64(&PgSweepPool->active);
	cycle_strategy = PGSWEEP_ACTIVE_ID(active);
	fresh = (active != last_active);
	last_active = active;

	if (pgsweep_strategies[cycle_strategy]->cycle)
		pgsweep_strategies[cycle_strategy]->cycle();

	if (cycle_strategy == PGSWEEP_STOCK)
		return false;

	(void) StrategySyncStart(NULL, &recent_alloc);
	PendingBgWriterStats.buf_alloc += recent_alloc;

	if (bgwriter_lru_maxpages <= 0)
	{
		last_active = 0;		/* begin anew when the scan is turned on again */
		*can_hibernate = true;
		return true;
	}

	*can_hibernate =
		pgsweep_strategies[cycle_strategy]->lru_scan(wb_context, fresh, recent_alloc,
													 bgwriter_lru_maxpages, &wrote);
	PendingBgWriterStats.buf_written_clean += wrote;
	if (wrote >= bgwriter_lru_maxpages)
		PendingBgWriterStats.maxwritten_clean++;
	return true;
}

const BufferReplacementRoutine pgsweep_replacement_routine = {
	.get_victim = pgsweep_get_victim,
	.free_buffer = pgsweep_free_buffer,
	.have_free_buffer = pgsweep_have_free_buffer,
	.sync_start = pgsweep_sync_start,
	.lru_pass = pgsweep_lru_pass,
};

/*
 * Ticks of core's own hand since the server started (modulo 2^32 passes).
 */
uint64
pgsweep_core_ticks(void)
{
	uint32		passes;
	int			hand;

	/* Nothing in between can raise an error */
	ask_core_only = true;
	hand = StrategySyncStart(&passes, NULL);
	ask_core_only = false;

	return (uint64) passes * NBuffers + hand;
}
