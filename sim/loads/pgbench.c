/*-------------------------------------------------------------------------
 *
 * pgbench.c
 *	  Load "pgbench": each transaction looks up a random row by an index, as
 *	  pgbench -S does; with a wait at its end, as pgbench's own script has for
 *	  the commit.
 *
 * A look-up pins one leaf page of the index and one page of the table, both
 * random; upper pages of the index, which are never evicted, are left out.  The
 * proportions are pgbench's: at scale 3000 the table has 39 GB and the leaves of
 * its index 6.4 GB, in a pool of 32 GB.  A leaf is then asked for as often as six
 * pages of the table, so leaves stay in the pool, and about three transactions in
 * ten allocate a buffer, each passing many that have been used of late.
 *
 * What limits the throughput of a published run may be neither the CPUs nor the
 * pool.  Such a limit can be given: transactions a second that pass one after the
 * other through something that is not simulated (network, the client's one
 * thread, a device).
 *
 *	 load.leaf_pages	1 .. 2^30, default 104858
 *	 load.heap_pages	1 .. 2^30, default 638976
 *	 load.cpu_ps		private work of a transaction, 0 .. 10^12, default 20000000
 *	 load.wait_ps		asleep at the end of each, 0 .. 10^12, default 0
 *	 load.copy			0 or 1: a page that was not in the pool is copied from the
 *						kernel's cache, default 1
 *	 load.limit_bytes	bytes that a transaction reads of the device, which has
 *						machine.device_bytes_per_s; 0 .. 2^30, default 0
 *
 * Results: transactions, hits (of two pages each).
 *
 * IDENTIFICATION
 *	  sim/loads/pgbench.c
 *
 *-------------------------------------------------------------------------
 */
#include "pages.h"

/*
 * Usage counts that the pool begins with: leaves are hot.  Pages of the table
 * have been used since the hand came by last by some; the warm-up, in which the
 * hand has to go round, brings about what is left to the right proportions.
 */
#define LEAF_USAGE	5
#define HEAP_USAGE	2

static SIM_COMMON int64 leaf_pages;
static SIM_COMMON int64 heap_pages;
static SIM_COMMON int64 cpu_ps;
static SIM_COMMON int64 wait_ps;
static SIM_COMMON bool copy_pages;
static SIM_COMMON int64 limit_bytes;

static SIM_COMMON int64 transactions;
static SIM_COMMON int64 hits;

static void
look_at(int64 page)
{
	bool		found;
	BufferDesc *buf = pages_get(page, &found);

	if (!found && copy_pages)
		sim_copy(page % sim_nodes(), BLCKSZ);
	if (found && sim_measuring())
		hits++;
	pages_unpin(buf);
}

static void
client(void *arg)
{
	/* not all at once */
	sim_sleep((int64) sim_random_below(1000) * (cpu_ps + wait_ps) / 1000);
	for (;;)
	{
		sim_work(cpu_ps / 2);
		look_at(sim_random_below(leaf_pages));
		look_at(leaf_pages + sim_random_below(heap_pages));
		sim_work(cpu_ps / 2);
		if (limit_bytes > 0)
			sim_device(limit_bytes);
		if (wait_ps > 0)
			sim_sleep(wait_ps);
		if (sim_measuring())
			transactions++;
	}
}

/*
 * Leaves first, then as many pages of the table as there is room for, mixed.
 */
static void
fill_pool(void)
{
	int64		pages = leaf_pages + heap_pages;
	int64		page = 0;

	for (int i = 0; i < NBuffers && page < pages; i++)
	{
		bool		leaf = i % (NBuffers / Min(leaf_pages, NBuffers)) == 0 && page < leaf_pages;

		if (leaf)
			pages_fill(page++, GetBufferDescriptor(i), LEAF_USAGE);
		else if (i < heap_pages)
			pages_fill(leaf_pages + i, GetBufferDescriptor(i), i % (HEAP_USAGE + 1));
	}
}

static void
pgbench_setup(void)
{
	leaf_pages = sim_config_int("load.leaf_pages", 1, 1 << 30, 104858);
	heap_pages = sim_config_int("load.heap_pages", 1, 1 << 30, 638976);
	cpu_ps = sim_config_int("load.cpu_ps", 0, SIM_S, 20 * SIM_US);
	wait_ps = sim_config_int("load.wait_ps", 0, SIM_S, 0);
	copy_pages = sim_config_int("load.copy", 0, 1, 1);
	limit_bytes = sim_config_int("load.limit_bytes", 0, 1 << 30, 0);

	sim_pool_setup();
	pages_setup(leaf_pages + heap_pages);
	fill_pool();
	for (int i = 0; i < sim_backends(); i++)
		sim_spawn("client", client, NULL, SIM_BY_PLACEMENT);
	sim_bgwriter_spawn();
}

static void
pgbench_report(void)
{
	sim_result("transactions", transactions);
	sim_result("hits", hits);
}

const SimLoad sim_load_pgbench = {"pgbench", pgbench_setup, pgbench_report};
