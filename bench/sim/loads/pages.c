/*-------------------------------------------------------------------------
 *
 * pages.c
 *	  Which page is in which buffer, for loads that read pages.
 *
 * IDENTIFICATION
 *	  bench/sim/loads/pages.c
 *
 *-------------------------------------------------------------------------
 */
#include "pages.h"

#include "storage/bufmgr.h"

/* by page, and by buffer; the same for all processes, and not simulated */
static SIM_COMMON int *buffer_of;
static SIM_COMMON int64 *page_of;

void
pages_setup(int64 npages)
{
	buffer_of = malloc(npages * sizeof(int));
	page_of = malloc(NBuffers * sizeof(int64));
	if (buffer_of == NULL || page_of == NULL)
		sim_fail("out of memory");
	for (int64 i = 0; i < npages; i++)
		buffer_of[i] = NO_BUFFER;
	for (int i = 0; i < NBuffers; i++)
		page_of[i] = NO_PAGE;
}

/*
 * Put a page into a buffer before the start.
 */
void
pages_fill(int64 page, int buffer, uint32 usage)
{
	uint32		state = BM_VALID | BM_TAG_VALID | usage * BUF_USAGECOUNT_ONE;

	pg_atomic_write_u32(&GetBufferDescriptor(buffer)->state, state);
	buffer_of[page] = buffer;
	page_of[buffer] = page;
}

/*
 * Pin the buffer of a page, as PinBuffer() does: one compare-and-swap adds the pin
 * and, up to its limit, one usage count.  Waits while the header is locked.
 * NO_BUFFER if the page is in none, or was evicted before the pin.
 */
int
pages_pin(int64 page)
{
	int			buffer = buffer_of[page];
	BufferDesc *buf;
	uint32		old;

	if (buffer == NO_BUFFER)
		return NO_BUFFER;
	buf = GetBufferDescriptor(buffer);
	old = pg_atomic_read_u32(&buf->state);
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
			break;
	}
	if (buffer_of[page] != buffer)
	{
		pages_unpin(buffer);
		return NO_BUFFER;
	}
	return buffer;
}

void
pages_unpin(int buffer)
{
	BufferDesc *buf = GetBufferDescriptor(buffer);
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

/*
 * Allocate a buffer for a page that is in none, and pin it.  The caller has it
 * read.
 *
 * bufmgr.c locks the header once more in between, to take the old page out of the
 * mapping; nobody else looks at the line meanwhile (nothing else is written by the
 * next one who comes by than a fruitless look), so that is a hit on a line that is
 * here, and left out.
 */
int
pages_read(int64 page)
{
	uint32		state;
	BufferDesc *buf = sim_get_victim(&state);
	int			buffer = buf->buf_id;

	/* Two that miss the same page at once both read it here; the later wins. */
	if (page_of[buffer] != NO_PAGE && buffer_of[page_of[buffer]] == buffer)
		buffer_of[page_of[buffer]] = NO_BUFFER;
	page_of[buffer] = page;
	buffer_of[page] = buffer;
	pg_atomic_write_u32(&buf->state, BM_VALID | BM_TAG_VALID |
						BUF_USAGECOUNT_ONE | BUF_REFCOUNT_ONE);
	return buffer;
}
