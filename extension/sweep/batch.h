/*-------------------------------------------------------------------------
 *
 * extension/sweep/batch.h
 *	  How many tickets a lease may have.
 *
 * Two forces decide.  A larger batch means less traffic on the hand's cache
 * line.  But leased buffers are out of the common order: with too many, the
 * hand comes round to buffers that an earlier lease has not reached yet.  So
 * there is a wish, from the machine, and a limit, from the pool:
 *
 *	 wish  = pg_sweep.batch_size, or if that is 0, 64 with more than one CPU,
 *			 else 16
 *	 limit = NBuffers / 8, shared by the backends that allocate now
 *	 batch = wish, but at most limit / backends, and at least 1
 *
 * Two CPUs already gain by 64: 18.7 ns per allocation, against 24.2 with 32
 * and 31.6 with 16 (table in docs/results.md).  Many CPUs do not need more.
 * If moving the hand's line costs 200 ns, as between sockets, one line gives
 * out 64 x 5 million tickets per second.  That is more than the buffers that
 * 384 CPUs could read pages into.  The batched clock sweep was measured with
 * 64 on such a machine (pgsql-hackers 2026).  One CPU has no contention on
 * the line; with 16 tickets the fetch-add itself costs nearly nothing.
 *
 * The number of NUMA nodes does not matter, and neither does libnuma: one
 * socket with many cores gets 64.
 *
 * The limit: the thread's version of April 2026 allows half of the pool.
 * With an eighth, usage counts keep their meaning: seven of eight buffers are
 * visited in order.
 *
 * "Backends" are processes that have allocated and not exited, not
 * max_connections: 16 connections on a server that permits 2000 share the
 * limit by 16.  When more come, the size shrinks, and so do existing leases
 * at their next use (lease.h).  The sum of all unused tickets stays within
 * the limit, or at one ticket per backend if there are more backends than
 * that.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_BATCH_H
#define PGSWEEP_BATCH_H

#define PGSWEEP_BATCH_MAX			1024	/* upper bound of the GUC */
#define PGSWEEP_BATCH_AUTO			64
#define PGSWEEP_BATCH_AUTO_ONE_CPU	16
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
 * The wish: configured is pg_sweep.batch_size, ncpus is at least 1.
 */
static inline uint32
pgsweep_batch_wish(uint32 configured, uint32 ncpus)
{
	if (configured != 0)
		return configured;
	return ncpus > 1 ? PGSWEEP_BATCH_AUTO : PGSWEEP_BATCH_AUTO_ONE_CPU;
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
