/*-------------------------------------------------------------------------
 *
 * lap.c
 *	  One lap through a ring, when a dirty victim of it must be written.
 *
 * A process that fills a table through a ring meets, lap after lap, buffers that
 * it has dirtied itself.  Core writes each when its turn comes, and before that
 * flushes WAL up to its LSN: with several such processes, each waits for WAL
 * that another is flushing, between any two writes.  WAL is flushed as far as it
 * has been written, though, so that after the first victim most of the ring can
 * be written without waiting for WAL at all; and blocks that stand in a row in the ring
 * are mostly neighbours in the file, too.
 *
 * Nothing here waits, but for what core would wait for to write the victim
 * itself: its WAL, and I/O that somebody else has begun on it.  That is done
 * before any other buffer is touched, so that there is nothing that others could
 * wait for meanwhile.
 *
 * IDENTIFICATION
 *	  extension/ring/lap.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "ring/ring.h"

/*
 * The LSN of a page whose content is share-locked, and the state of its buffer
 * without some flags, which are taken away.
 *
 * Hint bits, which others may set meanwhile, change the LSN of clean pages only
 * (MarkBufferDirtyHint).  So from when I/O was begun on a dirty page, by which
 * nobody else can make it clean, it keeps its LSN.
 */
static XLogRecPtr
page_lsn(BufferDesc *buf, uint32 take_away, uint32 *buf_state)
{
	XLogRecPtr	lsn;

	*buf_state = LockBufHdr(buf) & ~take_away;
	lsn = PageGetLSN(BufferGetPage(BufferDescriptorGetBuffer(buf)));
	UnlockBufHdr(buf, *buf_state);
	return lsn;
}

/*
 * The victim, as FlushBuffer() would do it.
 */
static void
begin_victim(PgSweepRingRun *run)
{
	uint32		buf_state;
	XLogRecPtr	lsn;

	/* false: somebody else has written it meanwhile */
	if (!StartBufferIO(run->victim, false, false))
		return;

	pgsweep_ring_run_add(run, run->victim);

	/* what is set dirty from now on is not written */
	lsn = page_lsn(run->victim, BM_JUST_DIRTIED, &buf_state);

	/* LSNs of others are made up, or there are none; see FlushBuffer() */
	if (buf_state & BM_PERMANENT)
	{
		if (XLogNeedsFlush(lsn))
			run->counts[PGSWEEP_RING_WAL_FLUSHES]++;
		pgsweep_ring_run_flush_wal(run, lsn);
	}
}

/*
 * Is a buffer in this state worth writing (PGSWEEP_RING_EAGER), and why not?
 */
static PgSweepRingCount
worth_writing(uint32 buf_state)
{
	if ((buf_state & (BM_VALID | BM_DIRTY)) != (BM_VALID | BM_DIRTY))
		return PGSWEEP_RING_CLEAN;
	if (BUF_STATE_GET_REFCOUNT(buf_state) != 0)
		return PGSWEEP_RING_PINNED;
	if (BUF_STATE_GET_USAGECOUNT(buf_state) > PGSWEEP_RING_MAX_USAGE)
		return PGSWEEP_RING_USED;

	/* core should meet it alone when its turn comes, and report it */
	if (buf_state & BM_IO_ERROR)
		return PGSWEEP_RING_IO;
	return PGSWEEP_RING_EAGER;
}

/*
 * Begin the I/O of a buffer that we have pinned and share-locked.  Returns
 * PGSWEEP_RING_EAGER if that was done, or why not.
 */
static PgSweepRingCount
begin_other(BufferDesc *buf)
{
	uint32		buf_state;
	XLogRecPtr	lsn = page_lsn(buf, 0, &buf_state);

	if ((buf_state & BM_PERMANENT) && XLogNeedsFlush(lsn))
		return PGSWEEP_RING_NEEDS_WAL;
	if (!StartBufferIO(buf, false, true))
		return PGSWEEP_RING_IO;

	/*
	 * Before that, it may have been written by somebody else, and got a hint
	 * bit and another LSN.
	 */
	lsn = page_lsn(buf, BM_JUST_DIRTIED, &buf_state);
	if ((buf_state & BM_PERMANENT) && XLogNeedsFlush(lsn))
	{
		TerminateBufferIO(buf, false, 0, true, false);
		return PGSWEEP_RING_NEEDS_WAL;
	}
	return PGSWEEP_RING_EAGER;
}

/*
 * Try to add a buffer of the ring to the run.  Returns PGSWEEP_RING_EAGER if
 * that was done, or why not.
 */
static PgSweepRingCount
try_buffer(PgSweepRingRun *run, BufferDesc *buf)
{
	LWLock	   *content_lock = BufferDescriptorGetContentLock(buf);
	BufferTag	tag = buf->tag;
	uint32		buf_state = pg_atomic_read_u32(&buf->state);
	PgSweepRingCount result = worth_writing(buf_state);

	/* a look without the header lock is enough to pass it over */
	if (result != PGSWEEP_RING_EAGER)
		return result;

	/*
	 * What has been begun and cannot grow is held no longer, and this one not
	 * yet.  Both looks at the tag are needed: it may change until it is
	 * pinned.
	 */
	if (!pgsweep_ring_run_would_grow(run, &tag))
		pgsweep_ring_run_write(run);
	if (!PinBufferToWrite(buf, PGSWEEP_RING_MAX_USAGE, &buf_state))
		return worth_writing(buf_state);
	if (!pgsweep_ring_run_would_grow(run, &buf->tag))
		pgsweep_ring_run_write(run);

	if (!LWLockConditionalAcquire(content_lock, LW_SHARED))
		result = PGSWEEP_RING_LOCKED;
	else
	{
		result = begin_other(buf);
		if (result == PGSWEEP_RING_EAGER)
		{
			pgsweep_ring_run_add(run, buf);
			return result;
		}
		LWLockRelease(content_lock);
	}
	ReleaseBuffer(BufferDescriptorGetBuffer(buf));
	return result;
}

/*
 * Once through the ring, from the slot after the victim's.
 */
static void
lap(PgSweepRingRun *run, BufferAccessStrategy strategy)
{
	int			nbuffers;
	int			current;
	const Buffer *ring = GetAccessStrategyRing(strategy, &nbuffers, &current);
	int			need_wal = 0;

	for (int i = 1; i < Min(nbuffers, PGSWEEP_RING_MAX_LAP); i++)
	{
		Buffer		buffer = ring[(current + i) % nbuffers];
		PgSweepRingCount result;

		/* the ring is not full yet; or the user, or DROP DATABASE, is waiting */
		if (buffer == InvalidBuffer || InterruptPending)
			break;

		/* may be there twice, if somebody else gave it up in between */
		if (GetBufferDescriptor(buffer - 1) == run->victim)
			continue;

		result = try_buffer(run, GetBufferDescriptor(buffer - 1));
		if (result != PGSWEEP_RING_EAGER)
			run->counts[result]++;

		if (result == PGSWEEP_RING_EAGER)
			need_wal = 0;
		else if (result == PGSWEEP_RING_NEEDS_WAL &&
				 ++need_wal >= PGSWEEP_RING_MAX_NEED_WAL)
			break;
	}
}

/*
 * Which kind of ring is it?  False if one that we leave to core.
 */
static bool
kind_of(IOContext io_context, PgSweepRingKind *kind)
{
	switch (io_context)
	{
		case IOCONTEXT_BULKWRITE:
			*kind = PGSWEEP_RING_BULKWRITE;
			return true;
		case IOCONTEXT_VACUUM:
			*kind = PGSWEEP_RING_VACUUM;
			return true;
		default:
			return false;
	}
}

/*
 * RingFlushRoutine.flush
 */
static bool
flush(BufferAccessStrategy strategy, struct BufferDesc *victim)
{
	IOContext	io_context;
	PgSweepRingKind kind;
	PgSweepRingCounts counts = {0};
	PgSweepRingRun run;
	instr_time	start;
	instr_time	end;

	if (!pgsweep_ring_eager_flush)
		return false;
	io_context = IOContextForStrategy(strategy);
	if (!kind_of(io_context, &kind))
		return false;

	/* this process has its share of the pool pinned already */
	if (GetAdditionalPinLimit() == 0)
		return false;
	if (!pgsweep_ring_run_prepare(&run, victim, io_context, counts))
		return false;

	INSTR_TIME_SET_CURRENT(start);
	begin_victim(&run);
	lap(&run, strategy);
	pgsweep_ring_run_write(&run);
	INSTR_TIME_SET_CURRENT(end);

	counts[PGSWEEP_RING_LAPS] = 1;
	INSTR_TIME_SUBTRACT(end, start);
	counts[PGSWEEP_RING_NANOSECONDS] = INSTR_TIME_GET_NANOSEC(end);
	pgsweep_ring_add_counts(kind, counts);
	return true;
}

const RingFlushRoutine pgsweep_ring_flush_routine = {
	.flush = flush,
};
