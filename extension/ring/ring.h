/*-------------------------------------------------------------------------
 *
 * ring.h
 *	  Writing out the dirty buffers of a ring before their turn comes.
 *
 * Idea: "Eagerly evict bulkwrite strategy ring" (Melanie Plageman,
 * pgsql-hackers, 2025), and write combining from the same author.
 *
 *	 ring.c			the feature: what pg_sweep.c calls
 *	 lap.c			core's hook: which rings, and one lap through one
 *	 run.c			neighbouring blocks, and writing them by one call
 *	 counts.c		what is counted
 *	 gucs.c, views.c
 *
 * This code knows access strategies, buffers and the storage manager.  It knows
 * nothing of how victims are chosen outside of rings, nor of SQL.
 *
 * extension/ring/ring.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_RING_H
#define PGSWEEP_RING_H

#include "compat.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/ring_flush.h"
#include "storage/smgr.h"

#pragma GCC visibility push(hidden)

/*
 * Rings that are written out eagerly.  A ring for large reads is not: it gives
 * up a dirty buffer rather than write it.
 */
typedef enum PgSweepRingKind
{
	PGSWEEP_RING_BULKWRITE,
	PGSWEEP_RING_VACUUM,
} PgSweepRingKind;

#define PGSWEEP_RING_NUM_KINDS	(PGSWEEP_RING_VACUUM + 1)

/*
 * Pages of this usage count are used by others than the ring, which leaves it
 * at 1: core's GetBufferFromRing() gives up such a buffer.
 */
#define PGSWEEP_RING_MAX_USAGE	1

/*
 * A lap ends when so many pages would have needed WAL to be flushed since the
 * last one that did not: LSNs ascend along a ring, so that what follows needs
 * it, too, and where each victim meets such a ring, a lap must not look at all
 * of it.
 */
#define PGSWEEP_RING_MAX_NEED_WAL	64

/*
 * Slots that a lap looks at, at most: as many as the ring of a bulk write has
 * (16 MB).  VACUUM's can be a thousand times as large, and a lap should not take
 * longer than that: it cannot be cancelled but between two buffers, and who
 * wants to drop the victim's table has to wait in a loop until it is over.
 */
#define PGSWEEP_RING_MAX_LAP	(16 * 1024 * 1024 / BLCKSZ)

/*
 * What is counted of one kind of ring, in processes that ever ran together.
 */
typedef enum PgSweepRingCount
{
	PGSWEEP_RING_LAPS,			/* times a process went through its ring */
	PGSWEEP_RING_VICTIMS,		/* dirty victims written */
	PGSWEEP_RING_EAGER,			/* other blocks written */
	PGSWEEP_RING_WRITES,		/* write calls for both */
	PGSWEEP_RING_WAL_FLUSHES,	/* victims that WAL had to be flushed for */
	PGSWEEP_RING_CLEAN,			/* passed over: nothing to write */
	PGSWEEP_RING_PINNED,		/* passed over: somebody has it pinned */
	PGSWEEP_RING_USED,			/* passed over: PGSWEEP_RING_MAX_USAGE */
	PGSWEEP_RING_NEEDS_WAL,		/* passed over: WAL would have to be flushed */
	PGSWEEP_RING_LOCKED,		/* passed over: content lock not free */
	PGSWEEP_RING_IO,			/* passed over: I/O in progress, just over, or
								 * it has failed before */
	PGSWEEP_RING_NANOSECONDS,	/* time in laps, victims included */
} PgSweepRingCount;

#define PGSWEEP_RING_NUM_COUNTS	(PGSWEEP_RING_NANOSECONDS + 1)

typedef uint64 PgSweepRingCounts[PGSWEEP_RING_NUM_COUNTS];

/*
 * A run: neighbouring blocks of one fork, in one segment, that this process has
 * begun to write (BM_IO_IN_PROGRESS).  All but the victim are pinned and
 * share-locked by us, and released when they have been written.
 */
typedef struct PgSweepRingRun
{
	BufferDesc *victim;			/* whose pin and lock are the caller's */
	IOContext	io_context;
	uint64	   *counts;

	SMgrRelation reln;
	ForkNumber	fork;
	BlockNumber first;
	int			nblocks;		/* 0: nothing begun */
	int			max_blocks;		/* of one run that begins at first */
	BufferDesc *buffers[MAX_IO_COMBINE_LIMIT];
} PgSweepRingRun;

/* gucs.c */
extern bool pgsweep_ring_eager_flush;
extern void pgsweep_ring_define_gucs(void);

/* lap.c */
extern const RingFlushRoutine pgsweep_ring_flush_routine;

/* run.c */
extern bool pgsweep_ring_run_prepare(PgSweepRingRun *run, BufferDesc *victim, IOContext io_context,
									 uint64 *counts);
extern bool pgsweep_ring_run_would_grow(const PgSweepRingRun *run, const BufferTag *tag);
extern void pgsweep_ring_run_add(PgSweepRingRun *run, BufferDesc *buf);
extern void pgsweep_ring_run_flush_wal(PgSweepRingRun *run, XLogRecPtr lsn);
extern void pgsweep_ring_run_write(PgSweepRingRun *run);

/* counts.c */
extern Size pgsweep_ring_shmem_size(void);
extern void pgsweep_ring_shmem_init(void);
extern void pgsweep_ring_add_counts(PgSweepRingKind kind, const PgSweepRingCounts counts);
extern void pgsweep_ring_get_counts(PgSweepRingKind kind, PgSweepRingCounts counts);
extern void pgsweep_ring_reset_counts(void);

#pragma GCC visibility pop

#endif							/* PGSWEEP_RING_H */
