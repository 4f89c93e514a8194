/*-------------------------------------------------------------------------
 *
 * sim/glue/strategies.c
 *	  The strategies that there are, the pool that they work on, and the
 *	  background writer.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "glue/glue.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/proc.h"

extern const SimStrategy sim_strategy_stock, sim_strategy_batched,
			sim_strategy_partitioned, sim_strategy_clock2q, sim_strategy_clock2q_partitioned,
			sim_strategy_upstream_batched, sim_strategy_upstream_partitioned;

const SimStrategy *const sim_strategies[] = {
	&sim_strategy_stock,
	&sim_strategy_upstream_batched,
	&sim_strategy_batched,
	&sim_strategy_partitioned,
	&sim_strategy_clock2q,
	&sim_strategy_clock2q_partitioned,
	&sim_strategy_upstream_partitioned,
	NULL
};

static SIM_COMMON const SimStrategy *strategy = NULL;
static SIM_COMMON SimTime cycle_time = 0;
static SIM_COMMON int64 cycles = 0;

/* Processes besides backends that may have a slot: see NUM_AUXILIARY_PROCS */
#define OTHER_FIBERS	8

const SimStrategy *
sim_strategy(void)
{
	return strategy;
}

static const SimStrategy *
find_strategy(void)
{
	const char *name = sim_config_text("strategy", NULL);

	for (int i = 0; sim_strategies[i] != NULL; i++)
		if (strcmp(sim_strategies[i]->name, name) == 0)
			return sim_strategies[i];
	sim_fail("there is no strategy \"%s\"", name);
}

/*
 * Descriptors as InitBufferPool() leaves them.
 */
static void
make_buffers(void)
{
	NBuffers = sim_config_int("buffers", 16, INT64CONST(8) << 20, 16384);
	BufferDescriptors = sim_shared_alloc("descriptors", NBuffers * sizeof(BufferDescPadded),
										 4096, SIM_INTERLEAVE);
	for (int i = 0; i < NBuffers; i++)
	{
		BufferDesc *buf = GetBufferDescriptor(i);

		pg_atomic_init_u32(&buf->state, 0);
		buf->buf_id = i;
		buf->freeNext = FREENEXT_NOT_IN_LIST;
		buf->wait_backend_pgprocno = INVALID_PROC_NUMBER;
	}
}

void
sim_pool_setup(void)
{
	strategy = find_strategy();
	if (strategy->loaded != NULL && strcmp(sim_config_text("load", ""), "alloc") != 0)
		sim_fail("strategy \"%s\" needs a load that loads pages: alloc", strategy->name);
	sim_allocations_setup();
	cycle_time = sim_config_int("bgwriter_ms", 0, 100000, 200) * SIM_MS;
	MaxBackends = sim_backends() + OTHER_FIBERS;
	make_buffers();
	sim_procs_setup(MaxBackends + NUM_AUXILIARY_PROCS);
	strategy->setup();
}

/*
 * It sleeps, asks for the load, and plans.  (It would write pages, too, but
 * there are none here.)
 */
static void
bgwriter(void *arg)
{
	for (;;)
	{
		sim_sleep(cycle_time);
		strategy->bgwriter_cycle();
		cycles++;
	}
}

/* Of the whole run; scans need some of them */
int64_t
sim_bgwriter_cycles(void)
{
	return cycles;
}

void
sim_bgwriter_spawn(void)
{
	if (cycle_time > 0 && strategy->bgwriter_cycle != NULL)
		sim_daemon(sim_spawn("background writer", bgwriter, NULL, SIM_NO_CPU));
}

BufferDesc *
sim_get_victim(uint32 *buf_state)
{
	BufferDesc *buf;

	sim_allocation_begins();
	buf = strategy->get_victim(buf_state);
	sim_allocation_ends();
	return buf;
}
