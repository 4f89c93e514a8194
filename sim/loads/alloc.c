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
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/buf_internals.h"

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

static void
allocate(void)
{
	BufferDesc *buf;
	uint32		buf_state;

	sim_allocation_begins();
	buf = sim_strategy()->get_victim(&buf_state);
	UnlockBufHdr(buf, buf_state | usage_bits);
	sim_allocation_ends();
}

static void
backend(void *arg)
{
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

		pg_atomic_write_u32(&GetBufferDescriptor(i)->state,
							BM_TAG_VALID | BM_VALID | now << BUF_USAGECOUNT_SHIFT);
	}
	for (int i = 0; i < backends; i++)
		sim_spawn("backend", backend, NULL, SIM_BY_PLACEMENT);
	sim_bgwriter_spawn();
}

const SimLoad sim_load_alloc = {"alloc", setup, NULL};
