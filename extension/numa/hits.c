/*-------------------------------------------------------------------------
 *
 * extension/numa/hits.c
 *	  The feature "numa_hits": from which node to which node the buffer hits
 *	  go, as a sample shows.
 *
 * Each hit is sampled with the same probability, 1 / pg_sweep.numa_sample_hits,
 * whatever was sampled before: the distances between sampled hits are
 * geometric.  So the shares of the sample are unbiased under any load, and their
 * error is that of a binomial distribution.  A fixed distance would see only
 * every k-th step of a loop.  A timer would see most what lasts longest.
 * Core counts the distance down (storage/hit_sample.h), if the server has the
 * optional patch for that.
 *
 * The geometric distribution has no memory: the distance can be drawn anew at any
 * hit.  That happens in a new process, and whenever the parameter is set.
 *
 * Where a page is, the kernel says, at the moment of the hit: one system call
 * for each sampled hit.  It needs no placement, and no trust in it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef USE_LIBNUMA
#include <numaif.h>
#endif
#include <math.h>

#include "common/pg_prng.h"
#include "feature.h"
#include "fmgr.h"
#include "funcapi.h"
#include "numa/numa.h"
#include "shared.h"
#include "sql.h"
#include "storage/bufmgr.h"
#include "storage/hit_sample.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/guc.h"

/* As those in compat.h; here, because no other file reads its header */
#pragma weak SampleHits

PG_FUNCTION_INFO_V1(pg_sweep_get_numa_hits);

/* One in 16 million hits; the longest distance drawn is 37 times as much */
#define MAX_SAMPLE_HITS	(1 << 24)

/*
 * Sampled hits by the nodes of the process and of the page.  The column after the
 * last node is for pages on nodes that the server does not use, or if the kernel
 * does not tell.
 *
 * A row is written by the CPUs of its node only, and has its own cache lines.
 * At one in thousands of hits, a table per process would save nothing.
 */
typedef struct PgSweepNumaHits
{
	uint32		stride;			/* counters in a row, constant after start */
	pg_attribute_aligned(PG_CACHE_LINE_SIZE)
	pg_atomic_uint64 counts[FLEXIBLE_ARRAY_MEMBER]; /* only grow; then as many
													 * of the last reset,
													 * protected by
													 * PgSweep->lock */
} PgSweepNumaHits;

static PgSweepNumaHits *hits = NULL;

/* pg_sweep.numa_sample_hits */
static int	sample_hits = 0;

/* Its value when the present distance was drawn; 0: it was not */
static int	drawn_for = 0;

/* Is core asked to call us, in the postmaster and so in each child? */
static bool installed = false;

static uint32
num_nodes(void)
{
	return pgsweep_numa_topology.nnodes;
}

static uint32
row_stride(void)
{
	return TYPEALIGN(PG_CACHE_LINE_SIZE / sizeof(uint64), num_nodes() + 1);
}

static Size
hits_shmem_size(void)
{
	return offsetof(PgSweepNumaHits, counts) +
		2 * num_nodes() * row_stride() * sizeof(pg_atomic_uint64);
}

static void
hits_shmem_init(void)
{
	bool		found;

	hits = ShmemInitStruct("pg_sweep numa hits", hits_shmem_size(), &found);
	if (found)
		return;
	memset(hits, 0, hits_shmem_size());
	hits->stride = row_stride();
	for (uint32 i = 0; i < 2 * num_nodes() * hits->stride; i++)
		pg_atomic_init_u64(&hits->counts[i], 0);
}

static pg_atomic_uint64 *
counter(uint32 from, uint32 to)
{
	return &hits->counts[from * hits->stride + to];
}

/* Of the last reset */
static pg_atomic_uint64 *
base(uint32 from, uint32 to)
{
	return counter(num_nodes() + from, to);
}

/*
 * The node that this process is on now.  Emulated ones as in pgsweep_home().
 */
static uint32
node_of_process(void)
{
	if (unlikely(pgsweep_numa_topology.emulated))
		return (pgsweep_numa_debug_node >= 0 ? pgsweep_numa_debug_node :
				Max(MyProcNumber, 0)) % num_nodes();
	return pgsweep_numa_current_node();
}

/*
 * The node of a buffer, or num_nodes() if it is not known.  A buffer may lie on
 * several pages of memory, which alternate between nodes if interleaved: one of
 * them, at random, stands for all.  An emulated node has the buffers of its
 * partitions.
 */
static uint32
node_of_buffer(Buffer buffer)
{
	if (unlikely(pgsweep_numa_topology.emulated))
		return pgsweep_numa_wanted_node(buffer - 1);

#ifdef USE_LIBNUMA
	{
		char	   *byte = (char *) BufferGetBlock(buffer) +
			pg_prng_uint32(&pg_global_prng_state) % BLCKSZ;
		int			save_errno = errno;
		int			id;

		if (get_mempolicy(&id, NULL, 0, byte, MPOL_F_NODE | MPOL_F_ADDR) != 0)
		{
			errno = save_errno;
			return num_nodes();
		}
		for (uint32 node = 0; node < num_nodes(); node++)
			if (pgsweep_numa_topology.node_id[node] == id)
				return node;
	}
#endif
	return num_nodes();
}

/*
 * The distance to the next sampled hit, at least 1, each further hit being
 * sampled with probability 1 / every.
 */
static uint32
draw_distance(int every)
{
	static int	scaled_for = 0;
	static double scale;

	if (every == 1)
		return 1;
	if (scaled_for != every)
	{
		scale = 1 / log1p(-1.0 / every);
		scaled_for = every;
	}
	/* the argument is in (0, 1] */
	return 1 + (uint32) (log(1.0 - pg_prng_double(&pg_global_prng_state)) * scale);
}

/*
 * Called by core, at the hit that it was told, and at the first one of a
 * process or after the parameter was set.
 */
static uint32
sample_hit(Buffer buffer)
{
	int			every = sample_hits;

	if (every != drawn_for)
	{
		uint32		distance;

		/* the distance begins before this hit, which may be its end */
		drawn_for = every;
		if (every == 0)
			return 0;
		distance = draw_distance(every);
		if (distance > 1)
			return distance - 1;
	}
	if (every == 0)
		return 0;				/* 2^32 hits later */

	pg_atomic_fetch_add_u64(counter(node_of_process(), node_of_buffer(buffer)), 1);
	return draw_distance(every);
}

/*
 * Core has no way to ask only.
 */
static const char *
hits_conflict(void)
{
	HitSampler	sampler = SampleHits(NULL);

	SampleHits(sampler);
	if (sampler == NULL || sampler == sample_hit)
		return NULL;
	return "another library samples buffer hits already";
}

/*
 * On one node, all hits are local.
 */
static void
hits_install(void)
{
	if (num_nodes() == 1)
		return;
	installed = true;
	SampleHits(sample_hit);
}

static bool
check_sample_hits(int *newval, void **extra, GucSource source)
{
	return pgsweep_check_guc(&pgsweep_numa_hits_feature, *newval != 0);
}

/*
 * The distance that core has is out of date.  Called at each reload, even if the
 * value stays the same: so the next hit must only begin a distance, and not be
 * sampled for certain.
 */
static void
assign_sample_hits(int newval, void *extra)
{
	if (!installed)
		return;
	drawn_for = 0;
	SampleHits(sample_hit);
}

static void
hits_define_gucs(void)
{
	DefineCustomIntVariable("pg_sweep.numa_sample_hits",
							"Samples one of this number of buffer hits, for pg_sweep_numa_hits.",
							"Zero samples none. Nothing is sampled on a machine with one NUMA node. Needs the optional core patch hit-sampling.",
							&sample_hits,
							0, 0, MAX_SAMPLE_HITS,
							PGC_SIGHUP,
							0,
							check_sample_hits, assign_sample_hits, NULL);
}

/*
 * The caller holds PgSweep->lock exclusively.
 */
static void
hits_reset(void)
{
	for (uint32 from = 0; from < num_nodes(); from++)
		for (uint32 to = 0; to <= num_nodes(); to++)
			pg_atomic_write_u64(base(from, to), pg_atomic_read_u64(counter(from, to)));
}

/*
 * Behind view pg_sweep_numa_hits: one row for each pair of nodes with a sampled
 * hit.
 */
Datum
pg_sweep_get_numa_hits(PG_FUNCTION_ARGS)
{
	InitMaterializedSRF(fcinfo, 0);
	if (pgsweep_state() != PGSWEEP_STATE_OK || !pgsweep_feature_works(&pgsweep_numa_hits_feature))
		return (Datum) 0;

	LWLockAcquire(PgSweep->lock, LW_SHARED);
	for (uint32 from = 0; from < num_nodes(); from++)
		for (uint32 to = 0; to <= num_nodes(); to++)
		{
			uint64		sampled = pg_atomic_read_u64(counter(from, to)) -
				pg_atomic_read_u64(base(from, to));
			PgSweepRow	row = {0};

			if (sampled == 0)
				continue;
			put(&row, Int32GetDatum(pgsweep_numa_topology.node_id[from]));
			if (to < num_nodes())
			{
				put(&row, Int32GetDatum(pgsweep_numa_topology.node_id[to]));
				put(&row, Int32GetDatum(pgsweep_numa_topology.distance[from][to]));
			}
			else
			{
				put_null(&row);
				put_null(&row);
			}
			put_int8(&row, sampled);
			pgsweep_store_row(fcinfo, &row);
		}
	LWLockRelease(PgSweep->lock);
	return (Datum) 0;
}

static void
hits_put_status(PgSweepRow *row)
{
	if (pgsweep_feature_works(&pgsweep_numa_hits_feature))
		put(row, Int32GetDatum(sample_hits));
	else
		put_null(row);
}

const PgSweepFeature pgsweep_numa_hits_feature = {
	.patch = "hit-sampling",
	.symbol = (const void *) SampleHits,
	.optional_patch = true,
	.define_gucs = hits_define_gucs,
	.shmem_size = hits_shmem_size,
	.shmem_init = hits_shmem_init,
	.conflict = hits_conflict,
	.install = hits_install,
	.reset = hits_reset,
	.put_status = hits_put_status,
};
