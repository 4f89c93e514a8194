/*-------------------------------------------------------------------------
 *
 * extension/sweep/strategy_batched.c
 *	  Strategy "batched": one hand for the whole pool, taken in leases.
 *
 * After Mlodgenski and Burd, "Batched clock sweep to reduce cross-socket
 * atomic contention" (pgsql-hackers, 2026).  Different from it: the hand is a
 * 64-bit ticket, leases expire, allocations are counted in per-backend slots,
 * and a buffer costs at most one compare-and-swap.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sweep/walk.h"

static PgSweepPartition *
batched_choose(PgSweepSlot *slot, uint32 pinned_run)
{
	return &PgSweepPool->whole;
}

static BufferDesc *
batched_get_victim(PgSweepSlot *slot, uint32 *buf_state, uint64 active)
{
	return pgsweep_walk(slot, buf_state, active, PGSWEEP_BATCHED, &PgSweepPool->whole,
						batched_choose, NULL);
}

static void
batched_position(int *hand, uint64 *passes)
{
	pgsweep_hand_position(&PgSweepPool->whole, hand, passes);
}

static bool
batched_lru_scan(struct WritebackContext *wb_context, bool fresh,
				 uint32 recent_alloc, int max_pages, int *wrote)
{
	static PgSweepLruState lru;
	PgSweepPartition *whole = &PgSweepPool->whole;

	pgsweep_lru_begin(&lru, fresh, pgsweep_lru_buffer, whole, pgsweep_hand_read(whole),
					  whole->num_buffers, recent_alloc);
	return pgsweep_lru_clean(&lru, 1, wb_context, max_pages, wrote);
}

const PgSweepStrategyRoutine pgsweep_batched_strategy = {
	.position = batched_position,
	.get_victim = batched_get_victim,
	.lru_scan = batched_lru_scan,
};
