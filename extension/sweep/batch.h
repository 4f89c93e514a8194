/*-------------------------------------------------------------------------
 *
 * batch.h
 *	  How many tickets a lease may have.
 *
 * Two forces.  The batch divides the traffic on the hand's cache line, which
 * grows with the number of CPUs that can ask at the same moment.  And all
 * leases together are buffers that are out of the common order: too many, and
 * the hand comes round to buffers that an earlier lease has not reached yet.
 * So there is a wish, from the machine, and a limit, from the pool:
 *
 *	 wish  = pg_sweep.batch_size, or if that is 0, 8 tickets a CPU rounded up
 *			 to a power of two, between 16 and 64; 64 where there are several
 *			 NUMA nodes
 *	 limit = NBuffers / 8, shared by the backends that allocate now
 *	 batch = wish, but at most limit / backends, and at least 1
 *
 * 64 is what the batched clock sweep was measured with (pgsql-hackers 2026: 384
 * CPUs, 6 nodes), and the 4 kB of descriptors that one lease covers is as far as
 * the hardware's prefetching follows a stride.  16 is where a machine of two
 * CPUs stops gaining (docs/batch-size.md has the table).  That
 * thread's April 2026 version allows half of the pool; an eighth leaves the
 * usage counts their meaning: seven of eight buffers are visited in order.
 *
 * Without libnuma, or where it may not ask the kernel, the number of nodes is
 * unknown and the number of CPUs decides alone: one socket with many cores
 * still gets 64.
 *
 * "Backends" are those that have allocated and not exited yet, not
 * max_connections: 16 connections on a server that permits 2000 share the
 * limit by 16.  When more come, the size shrinks, and leases already given out
 * shrink with it at their next use (lease.h), so the sum over all backends
 * of what they may still use stays within the limit, or one ticket each if
 * there are more backends than that.
 *
 * extension/sweep/batch.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_BATCH_H
#define PGSWEEP_BATCH_H

#include "port/pg_bitutils.h"

#define PGSWEEP_BATCH_MAX			1024	/* upper bound of the GUC */
#define PGSWEEP_BATCH_AUTO_MIN		16
#define PGSWEEP_BATCH_AUTO_MAX		64
#define PGSWEEP_BATCH_PER_CPU		8
#define PGSWEEP_LEASED_FRACTION		8	/* all leases: 1/8 of the pool */

/*
 * All leases together, in tickets.
 */
static inline uint32
pgsweep_lease_limit(uint32 nbuffers)
{
	return Max(nbuffers / PGSWEEP_LEASED_FRACTION, 1);
}

/*
 * What the machine would like: configured is pg_sweep.batch_size, ncpus and
 * nnodes are at least 1 (nnodes also if it is not known).
 */
static inline uint32
pgsweep_batch_wish(uint32 configured, uint32 ncpus, uint32 nnodes)
{
	if (configured != 0)
		return configured;
	if (nnodes > 1 || ncpus >= PGSWEEP_BATCH_AUTO_MAX / PGSWEEP_BATCH_PER_CPU)
		return PGSWEEP_BATCH_AUTO_MAX;
	return Max(PGSWEEP_BATCH_AUTO_MIN,
			   pg_nextpower2_32(ncpus * PGSWEEP_BATCH_PER_CPU));
}

/*
 * The size in force for nbackends backends that allocate (0 counts as 1).
 */
static inline uint32
pgsweep_batch_size_for(uint32 wish, uint32 nbuffers, uint32 nbackends)
{
	uint32		share = pgsweep_lease_limit(nbuffers) / Max(nbackends, 1);

	return Max(1, Min(wish, share));
}

#endif							/* PGSWEEP_BATCH_H */
