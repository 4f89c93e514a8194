/*-------------------------------------------------------------------------
 *
 * extension/ring/ring.h
 *	  Writing out the dirty buffers of a ring before their turn comes.
 *
 * Idea: "Eagerly evict bulkwrite strategy ring" (Melanie Plageman,
 * pgsql-hackers, 2025), and write combining from the same author.
 *
 *	 ring.c			the feature: what pg_sweep.c calls
 *	 lap.c			core's hook: choose rings, and do one lap
 *	 run.c			writing neighbouring blocks by one call
 *	 counts.c		counters
 *	 gucs.c, views.c
 *
 * This code knows access strategies, buffers and the storage manager.  It
 * knows neither the choice of victims outside of rings, nor SQL.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_RING_H
#define PGSWEEP_RING_H

#include "compat.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "storage/buf_internals.h"
#include "storage/buf_ring.h"
#include "storage/bufmgr.h"
#include "storage/smgr.h"

#pragma GCC visibility push(hidden)

/*
 * Rings that are written out eagerly.  A ring for large reads is not: it
 * gives up a dirty buffer instead of writing it.
 */
typedef enum PgSweepRingKind
{
	PGSWEEP_RING_BULKWRITE,
	PGSWEEP_RING_VACUUM,
} PgSweepRingKind;

#define PGSWEEP_RING_NUM_KINDS	(PGSWEEP_RING_VACUUM + 1)

/*
 * Above this usage count, other processes use the page: the ring leaves it at
 * 1, and core's GetBufferFromRing() gives up such a buffer.
 */
#define PGSWEEP_RING_MAX_USAGE	1

/*
 * A lap ends after so many pages that need a WAL flush, without one written
 * in between.  LSNs ascend along a ring, so the following pages need it,
 * too.  If each victim meets such a ring, a lap must not look at all of it.
 */
#define PGSWEEP_RING_MAX_NEED_WAL	64

/*
 * Maximum number of slots in a lap: those of a bulk write's ring (16 MB).
 * VACUUM's ring can be a thousand times as large, but a lap can be cancelled
 * only between two buffers.  A process that drops the victim's table loops
 * until the lap is over.
 */
#define PGSWEEP_RING_MAX_LAP	(16 * 1024 * 1024 / BLCKSZ)

/*
 * Counters of one kind of ring, summed over all processes that ever ran.
 */
typedef enum PgSweepRingCount
{
	PGSWEEP_RING_LAPS,			/* times a process went through its ring */
	PGSWEEP_RING_VICTIMS,		/* dirty victims written */
	PGSWEEP_RING_EAGER,			/* other blocks written */
	PGSWEEP_RING_WRITES,		/* write calls for both */
	PGSWEEP_RING_WAL_FLUSHES,	/* victims that needed a WAL flush */
	PGSWEEP_RING_CLEAN,			/* skipped: nothing to write */
	PGSWEEP_RING_IN_USE,		/* skipped: pinned, locked or used since, or
								 * I/O in progress, just over, or failed
								 * before */
	PGSWEEP_RING_NEEDS_WAL,		/* skipped: needs a WAL flush */
	PGSWEEP_RING_NANOSECONDS,	/* time in laps, including victims */
} PgSweepRingCount;

#define PGSWEEP_RING_NUM_COUNTS	(PGSWEEP_RING_NANOSECONDS + 1)

typedef uint64 PgSweepRingCounts[PGSWEEP_RING_NUM_COUNTS];

/*
 * A run: neighbouring blocks of one fork, in one segment, on which this
 * process has begun I/O (BM_IO_IN_PROGRESS).  We pin and share-lock all but
 * the victim, and release them after writing.
 */
typedef struct PgSweepRingRun
{
	BufferDesc *victim;			/* its pin and lock are the caller's */
	IOContext	io_context;
	uint64	   *counts;

	SMgrRelation reln;
	ForkNumber	fork;
	BlockNumber first;
	int			nblocks;		/* 0: nothing begun */
	int			max_blocks;		/* limit for a run that begins at first */
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
