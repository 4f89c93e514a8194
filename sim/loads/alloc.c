/*-------------------------------------------------------------------------
 *
 * sim/loads/alloc.c
 *	  Backends that allocate victims in a loop, as bench/alloc makes them do in a
 *	  real server.
 *
 * load.usage		0 .. 5, default 0: usage count that each victim is given back
 *					with, and that all buffers have at the start
 * load.mixed		0 or 1, default 0: 1: buffers have from 0 to load.usage at the
 *					start: looks at used buffers and victims alternate as in
 *					a pool that has been in use, not lap by lap
 * load.work_ps		0 .. 1 s, default 0: private work between two allocations
 *
 * If the strategy wants to know of loads, each victim gets a page, and the strategy
 * is told.  As in test/sweep/measure_sweep/loads.c, one page of four is one that
 * this process has evicted, an eighth of the pool's number of allocations ago;
 * the others are new.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/buf_internals.h"

#define LOADS_PER_RETURN	4
#define RETURN_PART			8
#define NO_PAGE				PG_UINT32_MAX

static uint32 usage_bits;
static SimTime work;

static SIM_COMMON int nready = 0;
static SIM_COMMON SimTime start_at = 0;

/*
 * All begin together, once each has made its first allocation: that takes the
 * process' slot, for which they stand in line.
 */
#define LOOK_AGAIN	(100 * SIM_US)
#define LATE		SIM_MS		/* for processes that are asleep then */

static void
wait_for_all(void)
{
	if (++nready == sim_backends())
		start_at = sim_now() + LATE;
	while (start_at == 0)
		sim_sleep(LOOK_AGAIN);
	sim_wait_until(start_at + sim_random_below(SIM_US));
}

/* Of this process: the last victims' pages (a ring), and the next new page */
static uint32 *gone;
static uint32 num_gone;
static uint32 oldest;
static uint32 new_page;

static void
prepare_pages(void)
{
	num_gone = Max(NBuffers / RETURN_PART / sim_backends(), LOADS_PER_RETURN);
	gone = malloc(num_gone * sizeof(uint32));
	if (gone == NULL)
		sim_fail("out of memory");
	for (uint32 i = 0; i < num_gone; i++)
		gone[i] = NO_PAGE;

	/* after those that are in the pool at the start */
	new_page = NBuffers + sim_self() * ((NO_PAGE - NBuffers) / sim_backends());
}

static uint32
next_page(uint32 left)
{
	uint32		page = NO_PAGE;

	if (oldest % LOADS_PER_RETURN == 0)
		page = gone[oldest];
	gone[oldest] = left;
	if (++oldest == num_gone)
		oldest = 0;
	return page != NO_PAGE ? page : new_page++;
}

static void
allocate(void)
{
	const SimStrategy *strategy = sim_strategy();
	BufferDesc *buf;
	uint32		buf_state;

	sim_allocation_begins();
	buf = strategy->get_victim(&buf_state);
	if (strategy->loaded != NULL)
		buf->tag.blockNum = next_page(buf->tag.blockNum);
	UnlockBufHdr(buf, buf_state | usage_bits);
	if (strategy->loaded != NULL)
		strategy->loaded(buf);
	sim_allocation_ends();
}

static void
backend(void *arg)
{
	prepare_pages();
	allocate();
	wait_for_all();
	for (;;)
	{
		allocate();
		if (work > 0)
			sim_work(work);
	}
}

static void
setup(void)
{
	int			backends = sim_backends();
	uint32		usage = sim_config_int("load.usage", 0, BM_MAX_USAGE_COUNT, 0);
	bool		mixed = sim_config_int("load.mixed", 0, 1, 0);

	usage_bits = usage << BUF_USAGECOUNT_SHIFT;
	work = sim_config_int("load.work_ps", 0, SIM_S, 0);
	sim_pool_setup();
	for (int i = 0; i < NBuffers; i++)
	{
		/* any of them, in no order that a batch could fit to */
		uint32		now = mixed ? ((uint32) i * 2654435761u >> 16) % (usage + 1) : usage;

		GetBufferDescriptor(i)->tag.blockNum = i;
		pg_atomic_write_u32(&GetBufferDescriptor(i)->state,
							BM_TAG_VALID | BM_VALID | now << BUF_USAGECOUNT_SHIFT);
	}
	for (int i = 0; i < backends; i++)
		sim_spawn("backend", backend, NULL, SIM_BY_PLACEMENT);
	sim_bgwriter_spawn();
}

const SimLoad sim_load_alloc = {"alloc", setup, NULL};
