/*-------------------------------------------------------------------------
 *
 * pages.c
 *	  Pages in the pool, for loads that read them.
 *
 *	 load.mapping	0 or 1: is the table that maps pages to buffers simulated, too?
 *					default 0
 *
 * IDENTIFICATION
 *	  sim/loads/pages.c
 *
 *-------------------------------------------------------------------------
 */
#include "pages.h"

static SIM_COMMON const PagesTable *table;

void
pages_setup(int64 npages)
{
	table = sim_config_int("load.mapping", 0, 1, 0) ? &pages_mapped : &pages_unmapped;
	table->setup(npages);
}

void
pages_fill(int64 page, BufferDesc *buf, uint32 usage)
{
	pg_atomic_write_u32(&buf->state, BM_VALID | BM_TAG_VALID | usage * BUF_USAGECOUNT_ONE);
	table->fill(page, buf);
}

BufferDesc *
pages_get(int64 page, bool *found)
{
	return table->get(page, found);
}

/*
 * As PinBuffer(): one compare-and-swap adds the pin and, up to its limit, one usage
 * count.  Waits while the header is locked.
 */
void
pages_pin(BufferDesc *buf)
{
	uint32		old = pg_atomic_read_u32(&buf->state);

	for (;;)
	{
		uint32		state;

		if (old & BM_LOCKED)
		{
			sim_pause();
			old = pg_atomic_read_u32(&buf->state);
			continue;
		}
		state = old + BUF_REFCOUNT_ONE;
		if (BUF_STATE_GET_USAGECOUNT(state) < BM_MAX_USAGE_COUNT)
			state += BUF_USAGECOUNT_ONE;
		if (pg_atomic_compare_exchange_u32(&buf->state, &old, state))
			return;
	}
}

void
pages_unpin(BufferDesc *buf)
{
	uint32		old = pg_atomic_read_u32(&buf->state);

	for (;;)
	{
		if (old & BM_LOCKED)
		{
			sim_pause();
			old = pg_atomic_read_u32(&buf->state);
			continue;
		}
		if (pg_atomic_compare_exchange_u32(&buf->state, &old, old - BUF_REFCOUNT_ONE))
			return;
	}
}
