/*-------------------------------------------------------------------------
 *
 * stock.c
 *	  The clock sweep of PostgreSQL 18, restated.
 *
 * sim/upstream/stock.c
 *
 *-------------------------------------------------------------------------
 */
#include "restated/core.h"

RestatedControl *restated_control = NULL;

void
restated_setup(void)
{
	restated_control = sim_shared_alloc("hand", sizeof(RestatedControl), PG_CACHE_LINE_SIZE, 0);
	SpinLockInit(&restated_control->lock);
	pg_atomic_init_u32(&restated_control->hand, 0);
	pg_atomic_init_u32(&restated_control->allocations, 0);
	restated_control->first_free = -1;
	restated_control->bgwriter = -1;
}

/*
 * Whoever takes the hand to a multiple of NBuffers puts it back into the range
 * and counts the pass, both under the lock, so that a reader of both finds
 * them agree.  Others may move the hand on meanwhile: try again.
 */
static pg_noinline void
count_pass(uint32 hand)
{
	uint32		expected = hand + 1;
	bool		done = false;

	while (!done)
	{
		SpinLockAcquire(&restated_control->lock);
		done = pg_atomic_compare_exchange_u32(&restated_control->hand, &expected,
											  expected % NBuffers);
		if (done)
			restated_control->passes++;
		SpinLockRelease(&restated_control->lock);
	}
}

static inline uint32
tick(void)
{
	uint32		hand = pg_atomic_fetch_add_u32(&restated_control->hand, 1);
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
	return restated_get_victim(buf_state, tick);
}

/*
 * What the background writer asks at the start of each cycle.  Where the hand
 * is, and how often it has gone round, under the lock; and the number of
 * allocations, which begins again at zero.
 */
void
restated_bgwriter_cycle(void)
{
	uint32		hand;

	SpinLockAcquire(&restated_control->lock);
	hand = pg_atomic_read_u32(&restated_control->hand);
	(void) (restated_control->passes + hand / NBuffers);
	(void) pg_atomic_exchange_u32(&restated_control->allocations, 0);
	SpinLockRelease(&restated_control->lock);
}

void
restated_woken_bgwriter(void)
{
	/* it never sleeps for longer than a cycle under load */
}

const SimStrategy sim_strategy_stock = {
	"stock", restated_setup, get_victim, restated_bgwriter_cycle
};
