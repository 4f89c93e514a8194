/*-------------------------------------------------------------------------
 *
 * sim/loads/scans.c
 *	  Load "scans": clients scan tables of their own that together are larger
 *	  than the pool, as in the benchmark of "Adding basic NUMA awareness".
 *
 * Each client reads its table from a random page on, again and again.  Like a
 * read stream, it asks for up to io_combine_limit pages together.  Pages that are
 * not in the pool get buffers and are copied from the kernel's cache.  Then each page
 * is looked at, which is private work.
 *
 * Tables and pool are smaller than in the benchmark by the same factor.  A table is
 * smaller than a quarter of the pool, so it is not read through a ring.
 *
 *	 load.pages			pages of a table, 64 .. 131072, default 512
 *	 load.combine		pages read together, 1 .. 32, default 16 (io_combine_limit)
 *	 load.page_ps		private work of a page, 0 .. 10^9, default 1000000
 *	 load.pool_percent	pool in percent of all tables, 1 .. 1000, default 60.  "buffers"
 *						must be what follows from it
 *
 * Results: pages (all that were read in the measured time), hits (of them, those
 * that were in the pool).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "engine/sim.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"

#define MAX_COMBINE 32
#define NO_BUFFER	(-1)
#define NO_PAGE		(-1)

static SIM_COMMON int64 table_pages;
static SIM_COMMON int combine;
static SIM_COMMON int64 page_ps;

static SIM_COMMON int64 pages_done;
static SIM_COMMON int64 hits;

/* By page, and by buffer; common to all processes, and not simulated */
static SIM_COMMON int *buffer_of;
static SIM_COMMON int64 *page_of;

/* ---- pages in the pool ---- */

/*
 * Headers are simulated: a page is found by pinning its buffer, and put into the
 * pool by allocating one.  The table that maps pages to buffers is not, nor the
 * locks of its partitions: what finding a page costs is part of load.page_ps.
 */
static void
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
 * As PinBuffer() and UnpinBuffer(): one compare-and-swap, which waits while the
 * header is locked.  A pin adds a usage count, too, up to the limit.
 */
static void
change_pins(BufferDesc *buf, bool pin)
{
	uint32		old = pg_atomic_read_u32(&buf->state);

	for (;;)
	{
		uint32		state = pin ? old + BUF_REFCOUNT_ONE : old - BUF_REFCOUNT_ONE;

		if (old & BM_LOCKED)
		{
			sim_pause();
			old = pg_atomic_read_u32(&buf->state);
			continue;
		}
		if (pin && BUF_STATE_GET_USAGECOUNT(state) < BM_MAX_USAGE_COUNT)
			state += BUF_USAGECOUNT_ONE;
		if (pg_atomic_compare_exchange_u32(&buf->state, &old, state))
			return;
	}
}

/*
 * NULL if the page is in no buffer, or was evicted before the pin.
 */
static BufferDesc *
find_page(int64 page)
{
	int			buffer = buffer_of[page];
	BufferDesc *buf;

	if (buffer == NO_BUFFER)
		return NULL;
	buf = GetBufferDescriptor(buffer);
	change_pins(buf, true);
	if (buffer_of[page] == buffer)
		return buf;
	change_pins(buf, false);
	return NULL;
}

/*
 * The page's buffer, pinned.  One that was not found has to be read by the
 * caller.  It is marked valid at once: other processes do not wait for the read,
 * as they would in the server.
 *
 * bufmgr.c locks the header once more in between, to take the old page out of the
 * mapping.  No other process uses the line meanwhile: that is a hit, and left out.
 */
static BufferDesc *
get_page(int64 page, bool *found)
{
	uint32		state;
	BufferDesc *buf = find_page(page);
	int			buffer;

	*found = buf != NULL;
	if (*found)
		return buf;
	buf = sim_get_victim(&state);
	buffer = buf->buf_id;

	/* Two that miss the same page at once both read it here; the later wins. */
	if (page_of[buffer] != NO_PAGE && buffer_of[page_of[buffer]] == buffer)
		buffer_of[page_of[buffer]] = NO_BUFFER;
	buffer_of[page] = buffer;
	page_of[buffer] = page;
	pg_atomic_write_u32(&buf->state, BM_VALID | BM_TAG_VALID |
						BUF_USAGECOUNT_ONE | BUF_REFCOUNT_ONE);
	return buf;
}

/* ---- the scans ---- */

/*
 * One read of the stream: pages first .. first + n - 1 of a table.
 *
 * A page of the kernel's cache, and the buffer that it goes to, may be on any
 * node: pages are spread over them by number.
 */
static void
read_together(int64 first, int n)
{
	BufferDesc *buffers[MAX_COMBINE];
	int			copied = 0;

	for (int i = 0; i < n; i++)
	{
		bool		found;

		buffers[i] = get_page(first + i, &found);
		copied += !found;
	}
	if (copied > 0)
		sim_copy((first / combine) % sim_nodes(), (int64) copied * BLCKSZ);
	for (int i = 0; i < n; i++)
	{
		sim_work(page_ps);
		change_pins(buffers[i], false);
	}
	if (sim_measuring())
	{
		pages_done += n;
		hits += n - copied;
	}
}

static void
scan(void *arg)
{
	int64		table = (int64) sim_self() * table_pages;
	int64		reads = table_pages / combine;
	int64		at = sim_random_below(reads);

	for (;;)
	{
		read_together(table + at * combine, combine);
		at = (at + 1) % reads;
	}
}

static void
scans_setup(void)
{
	int			clients = sim_backends();
	int64		percent = sim_config_int("load.pool_percent", 1, 1000, 60);

	table_pages = sim_config_int("load.pages", 64, 131072, 512);
	combine = sim_config_int("load.combine", 1, MAX_COMBINE, 16);
	page_ps = sim_config_int("load.page_ps", 0, INT64CONST(1000000000), 1000000);
	if (table_pages % combine != 0)
		sim_fail("load.pages is no multiple of load.combine");

	sim_pool_setup();
	if (NBuffers != table_pages * clients * percent / 100)
		sim_fail("buffers is %d, but %d clients with tables of %d pages and a pool of %d %% need %d",
				 NBuffers, clients, (int) table_pages, (int) percent,
				 (int) (table_pages * clients * percent / 100));
	pages_setup(table_pages * clients);
	for (int i = 0; i < clients; i++)
		sim_spawn("client", scan, NULL, SIM_BY_PLACEMENT);
	sim_bgwriter_spawn();
}

static void
scans_report(void)
{
	sim_result("pages", pages_done);
	sim_result("hits", hits);
}

const SimLoad sim_load_scans = {"scans", scans_setup, scans_report};
