/*-------------------------------------------------------------------------
 *
 * sim/loads/uneven.c
 *	  Backends that allocate where pages are not used alike everywhere, or that
 *	  do not all allocate: what each partition serves, against one clock.
 *
 * load.hot			0 .. 64, default 0: pages of the first so many partitions are
 *					used again, up to load.usage between two passes of a hand;
 *					others are not
 * load.usage		0 .. 5, default 0
 * load.busy_nodes	0 .. 64, default 0: only the backends of so many nodes
 *					allocate; 0: all do
 * load.shift_ps	1 us .. 1 s, default 1 s: after this time, those of the next
 *					nodes allocate instead
 * load.work_ps		0 .. 1 s, default 0: private work between two allocations
 *
 * One clock takes n / (u + 1) buffers per lap from n whose pages are used u
 * times.  The oracle is that: share_error is the largest difference of a
 * partition's share, in points.  laps_apart is the largest distance of two hands
 * that was seen.  With "batched", partitions are only where pages are used.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "storage/buf_internals.h"
#include "sweep/sweep.h"

static uint32 usage;
static uint32 hot;
static int	busy_nodes;
static SimTime shift;
static SimTime work;

static SIM_COMMON uint8 *part_of_buffer = NULL;
static SIM_COMMON uint64 served[PGSWEEP_MAX_PARTITIONS];
static SIM_COMMON uint64 nserved = 0;
static SIM_COMMON double apart = 0;
static SIM_COMMON int nready = 0;

#define LOOK_AGAIN	(100 * SIM_US)
#define LAPS_EVERY	64			/* allocations between two looks at the hands */

static uint32
usage_of(uint32 part)
{
	return part < hot ? usage : 0;
}

/*
 * The largest distance of two hands, in laps.  Looking takes no time, so that
 * it changes nothing.
 */
static void __attribute__((no_sanitize_thread))
note_laps(void)
{
	double		least = INFINITY;
	double		most = 0;

	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
	{
		const PgSweepPartition *part = &PgSweepPool->parts[i];
		double		lap = (double) part->hand.ticket.value / part->num_buffers;

		least = Min(least, lap);
		most = Max(most, lap);
	}
	apart = Max(apart, most - least);
}

static void
allocate(void)
{
	BufferDesc *buf;
	uint32		buf_state;
	uint32		part;

	sim_allocation_begins();
	buf = sim_strategy()->get_victim(&buf_state);
	part = part_of_buffer[buf->buf_id];
	UnlockBufHdr(buf, buf_state | usage_of(part) << BUF_USAGECOUNT_SHIFT);
	sim_allocation_ends();

	if (sim_measuring())
	{
		served[part]++;
		if (nserved++ % LAPS_EVERY == 0)
			note_laps();
	}
}

/*
 * Wait until this node's turn comes.
 */
static void
wait_for_turn(int node)
{
	while (busy_nodes > 0)
	{
		int			nodes = sim_nodes();
		int			phase = (int) (sim_now() / shift);
		int			distance = (node + nodes - phase * busy_nodes % nodes) % nodes;

		if (distance < busy_nodes)
			return;
		sim_wait_until((phase + 1) * shift);
	}
}

static void
backend(void *arg)
{
	int			node = sim_node_of_cpu(sim_cpu());

	allocate();					/* which takes the slot */
	nready++;
	while (nready < sim_backends())
		sim_sleep(LOOK_AGAIN);
	for (;;)
	{
		wait_for_turn(node);
		allocate();
		if (work > 0)
			sim_work(work);
	}
}

static void
setup(void)
{
	hot = sim_config_int("load.hot", 0, PGSWEEP_MAX_PARTITIONS, 0);
	usage = sim_config_int("load.usage", 0, BM_MAX_USAGE_COUNT, 0);
	busy_nodes = sim_config_int("load.busy_nodes", 0, 64, 0);
	shift = sim_config_int("load.shift_ps", SIM_US, SIM_S, SIM_S);
	work = sim_config_int("load.work_ps", 0, SIM_S, 0);
	sim_pool_setup();
	if (PgSweepPool == NULL)
		sim_fail("load uneven: strategy must be batched or partitioned");

	part_of_buffer = malloc(NBuffers);
	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
	{
		const PgSweepPartition *part = &PgSweepPool->parts[i];

		memset(part_of_buffer + part->first_buffer, i, part->num_buffers);
	}
	for (int i = 0; i < NBuffers; i++)
	{
		/* any of them: if all had the same, whole laps would have no victim */
		uint32		now = ((uint32) i * 2654435761u >> 16) % (usage_of(part_of_buffer[i]) + 1);

		pg_atomic_write_u32(&GetBufferDescriptor(i)->state,
							BM_TAG_VALID | BM_VALID | now << BUF_USAGECOUNT_SHIFT);
	}
	for (int i = 0; i < sim_backends(); i++)
		sim_spawn("backend", backend, NULL, SIM_BY_PLACEMENT);
	sim_bgwriter_spawn();
}

static void
report(void)
{
	double		sum = 0;
	double		error = 0;
	uint64		of_hot = 0;

	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
		sum += (double) PgSweepPool->parts[i].num_buffers / (usage_of(i) + 1);
	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
	{
		double		fair = PgSweepPool->parts[i].num_buffers / (usage_of(i) + 1.0) / sum;

		error = Max(error, fabs((double) served[i] / nserved - fair));
		if (i < hot)
			of_hot += served[i];
	}
	sim_result("hot_percent", 100.0 * of_hot / nserved);
	sim_result("share_error", 100 * error);
	sim_result("laps_apart", apart);
}

const SimLoad sim_load_uneven = {"uneven", setup, report};
