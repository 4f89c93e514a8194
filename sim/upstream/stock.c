/*-------------------------------------------------------------------------
 *
 * sim/upstream/stock.c
 *	  The clock sweep of PostgreSQL 18.
 *
 *-------------------------------------------------------------------------
 */
#include "upstream/core.h"

UpstreamControl *upstream_control = NULL;

void
upstream_setup(void)
{
	upstream_control = sim_shared_alloc("hand", sizeof(UpstreamControl), PG_CACHE_LINE_SIZE, 0);
	SpinLockInit(&upstream_control->lock);
	pg_atomic_init_u32(&upstream_control->hand, 0);
	pg_atomic_init_u32(&upstream_control->allocations, 0);
	upstream_control->first_free = -1;
	upstream_control->bgwriter = -1;
}

/*
 * The process that takes the hand to a multiple of NBuffers puts it back into the
 * range and counts the pass, both under the lock: a reader of both finds that they
 * agree.  Others may move the hand on meanwhile: try again.
 */
static pg_noinline void
count_pass(uint32 hand)
{
	uint32		expected = hand + 1;
	bool		done = false;

	while (!done)
	{
		SpinLockAcquire(&upstream_control->lock);
		done = pg_atomic_compare_exchange_u32(&upstream_control->hand, &expected,
											  expected % NBuffers);
		if (done)
			upstream_control->passes++;
		SpinLockRelease(&upstream_control->lock);
	}
}

static inline uint32
tick(void)
{
	uint32		hand = pg_atomic_fetch_add_u32(&upstream_control->hand, 1);
	uint32		buffer = hand;

	if (hand >= NBuffers)
	{
		buffer = hand % NBuffers;
		if (buffer == 0)
			count_pass(hand);
	}
	return buffer;
}

static BufferDesc *
get_victim(uint32 *buf_state)
{
	return upstream_get_victim(buf_state, tick);
}

/*
 * What the background writer asks at the start of each cycle.  Where the hand
 * is, and how often it has gone round, under the lock; and the number of
 * allocations, which begins again at zero.
 */
void
upstream_bgwriter_cycle(void)
{
	uint32		hand;

	SpinLockAcquire(&upstream_control->lock);
	hand = pg_atomic_read_u32(&upstream_control->hand);
	(void) (upstream_control->passes + hand / NBuffers);
	(void) pg_atomic_exchange_u32(&upstream_control->allocations, 0);
	SpinLockRelease(&upstream_control->lock);
}

void
upstream_woken_bgwriter(void)
{
	/* it never sleeps for longer than a cycle under load */
}

const SimStrategy sim_strategy_stock = {
	"stock", upstream_setup, get_victim, upstream_bgwriter_cycle
};
