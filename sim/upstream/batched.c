/*-------------------------------------------------------------------------
 *
 * sim/upstream/batched.c
 *	  The batched clock sweep of Mlodgenski and Burd, "Batched clock sweep to
 *	  reduce cross-socket atomic contention", pgsql-hackers 2026, as its first
 *	  message describes it.
 *
 * A backend takes consecutive buffers with one fetch-add on the hand, and keeps
 * them until they are used up.  All else is as in stock: each allocation is still
 * counted, in the hand's own line.
 *
 * The message has batches of 64 on machines with more than one NUMA node, and
 * of 1, which is stock, on others; "batch" 0 does that.
 *
 *-------------------------------------------------------------------------
 */
#include "upstream/core.h"

#define BATCH_AUTO	64

static uint32 batch_size = 1;
static uint32 batch_next = 0;	/* ours are from here ... */
static uint32 batch_end = 0;	/* ... up to here, both modulo NBuffers */

static void
setup(void)
{
	int64		batch = sim_config_int("batch", 0, 1024, 0);

	if (batch == 0)
		batch = sim_nodes() > 1 ? BATCH_AUTO : 1;
	batch_size = Min(batch, NBuffers);
	upstream_setup();
}

/*
 * The hand is out of range: the first process with the lock puts it back.
 */
static pg_noinline void
count_pass(void)
{
	uint32		hand;

	SpinLockAcquire(&upstream_control->lock);
	hand = pg_atomic_read_u32(&upstream_control->hand);
	if (hand >= NBuffers &&
		pg_atomic_compare_exchange_u32(&upstream_control->hand, &hand, hand % NBuffers))
		upstream_control->passes++;
	SpinLockRelease(&upstream_control->lock);
}

static inline uint32
tick(void)
{
	if (batch_next == batch_end)
	{
		batch_next = pg_atomic_fetch_add_u32(&upstream_control->hand, batch_size);
		batch_end = batch_next + batch_size;
		if (batch_next >= NBuffers)
			count_pass();
	}
	return batch_next++ % NBuffers;
}

static BufferDesc *
get_victim(uint32 *buf_state)
{
	return upstream_get_victim(buf_state, tick);
}

const SimStrategy sim_strategy_upstream_batched = {
	"upstream_batched", setup, get_victim, upstream_bgwriter_cycle
};
