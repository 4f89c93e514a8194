/*-------------------------------------------------------------------------
 *
 * pages_unmapped.c
 *	  Pages in the pool, found at no cost.
 *
 * Headers are simulated: a page is found by pinning its buffer, and put into the
 * pool by allocating one.  The table that maps pages to buffers is not, nor the
 * locks of its partitions: what finding a page costs is part of the load's private
 * time.
 *
 * IDENTIFICATION
 *	  sim/loads/pages_unmapped.c
 *
 *-------------------------------------------------------------------------
 */
#include "pages.h"

#define NO_BUFFER	(-1)
#define NO_PAGE		(-1)

/* by page, and by buffer; the same for all processes, and not simulated */
static SIM_COMMON int *buffer_of;
static SIM_COMMON int64 *page_of;

static void
setup(int64 npages)
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

static void
fill(int64 page, BufferDesc *buf)
{
	buffer_of[page] = buf->buf_id;
	page_of[buf->buf_id] = page;
}

/*
 * NULL if the page is in no buffer, or was evicted before the pin.
 */
static BufferDesc *
find(int64 page)
{
	int			buffer = buffer_of[page];
	BufferDesc *buf;

	if (buffer == NO_BUFFER)
		return NULL;
	buf = GetBufferDescriptor(buffer);
	pages_pin(buf);
	if (buffer_of[page] == buffer)
		return buf;
	pages_unpin(buf);
	return NULL;
}

/*
 * bufmgr.c locks the header once more in between, to take the old page out of the
 * mapping; nobody else looks at the line meanwhile (nothing else is written by the
 * next one who comes by than a fruitless look), so that is a hit on a line that is
 * here, and left out.
 */
static BufferDesc *
get(int64 page, bool *found)
{
	uint32		state;
	BufferDesc *buf = find(page);
	int			buffer;

	*found = buf != NULL;
	if (*found)
		return buf;
	buf = sim_get_victim(&state);
	buffer = buf->buf_id;

	/* Two that miss the same page at once both read it here; the later wins. */
	if (page_of[buffer] != NO_PAGE && buffer_of[page_of[buffer]] == buffer)
		buffer_of[page_of[buffer]] = NO_BUFFER;
	fill(page, buf);
	pg_atomic_write_u32(&buf->state, BM_VALID | BM_TAG_VALID |
						BUF_USAGECOUNT_ONE | BUF_REFCOUNT_ONE);
	return buf;
}

const PagesTable pages_unmapped = {setup, fill, get};
