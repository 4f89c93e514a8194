/*-------------------------------------------------------------------------
 *
 * extension/ring/lap.c
 *	  One lap through a ring, when a dirty victim from it must be written.
 *
 * A process that fills a table through a ring meets, in each lap, buffers
 * that it has dirtied itself.  Core writes each when its turn comes, and
 * first flushes WAL up to its LSN.  With several such processes, each waits
 * between any two writes for WAL that another is flushing.  But WAL is
 * flushed as far as it has been written.  After the first victim, most of the
 * ring can therefore be written without waiting for WAL.  Blocks next to each
 * other in the ring are mostly neighbours in the file, too.
 *
 * The only waits here are those of core for writing the victim: for its WAL,
 * and for I/O on it begun by another process.  They come before any other
 * buffer is touched, so other processes cannot wait for such a buffer
 * meanwhile.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "ring/ring.h"

/*
 * The LSN of a page whose content is share-locked, and the state of its
 * buffer; clears the flags in take_away.
 *
 * Another process may set hint bits meanwhile, which changes the LSN of clean
 * pages only (MarkBufferDirtyHint).  I/O begun on a dirty page keeps other
 * processes from making it clean, so its LSN then stays the same.
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
 * Begin to write the victim, like FlushBuffer().
 */
static void
begin_victim(PgSweepRingRun *run)
{
	uint32		buf_state;
	XLogRecPtr	lsn;

	/* false: another process has written it meanwhile */
	if (!StartBufferIO(run->victim, false, false))
		return;

	pgsweep_ring_run_add(run, run->victim);

	/* changes from now on are not written */
	lsn = page_lsn(run->victim, BM_JUST_DIRTIED, &buf_state);

	/* LSNs of other buffers are fake or missing; see FlushBuffer() */
	if (buf_state & BM_PERMANENT)
	{
		if (XLogNeedsFlush(lsn))
			run->counts[PGSWEEP_RING_WAL_FLUSHES]++;
		pgsweep_ring_run_flush_wal(run, lsn);
	}
}

/*
 * Is a buffer in this state worth writing (PGSWEEP_RING_EAGER)?  If not, why?
 */
static PgSweepRingCount
worth_writing(uint32 buf_state)
{
	if ((buf_state & (BM_VALID | BM_DIRTY)) != (BM_VALID | BM_DIRTY))
		return PGSWEEP_RING_CLEAN;
	if (BUF_STATE_GET_REFCOUNT(buf_state) != 0 ||
		BUF_STATE_GET_USAGECOUNT(buf_state) > PGSWEEP_RING_MAX_USAGE)
		return PGSWEEP_RING_IN_USE;

	/* leave it to core, which reports the error */
	if (buf_state & BM_IO_ERROR)
		return PGSWEEP_RING_IN_USE;
	return PGSWEEP_RING_EAGER;
}

/*
 * Begin I/O on a buffer that we have pinned and share-locked.  Returns
 * PGSWEEP_RING_EAGER, or the reason why that was not possible.
 */
static PgSweepRingCount
begin_other(BufferDesc *buf)
{
	uint32		buf_state;
	XLogRecPtr	lsn = page_lsn(buf, 0, &buf_state);

	if ((buf_state & BM_PERMANENT) && XLogNeedsFlush(lsn))
		return PGSWEEP_RING_NEEDS_WAL;
	if (!StartBufferIO(buf, false, true))
		return PGSWEEP_RING_IN_USE;

	/*
	 * Before that, another process may have written it, and set a hint bit
	 * and another LSN.
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
 * Try to add a buffer of the ring to the run.  Returns PGSWEEP_RING_EAGER, or
 * the reason why that was not possible.
 */
static PgSweepRingCount
try_buffer(PgSweepRingRun *run, BufferDesc *buf)
{
	LWLock	   *content_lock = BufferDescriptorGetContentLock(buf);
	BufferTag	tag = buf->tag;
	uint32		buf_state = pg_atomic_read_u32(&buf->state);
	PgSweepRingCount result = worth_writing(buf_state);

	/* to skip a buffer, a look without the header lock is enough */
	if (result != PGSWEEP_RING_EAGER)
		return result;

	/*
	 * Write a run that cannot grow at once, before this buffer is pinned.
	 * Check the tag twice, because it may change until the buffer is pinned.
	 */
	if (!pgsweep_ring_run_would_grow(run, &tag))
		pgsweep_ring_run_write(run);
	if (!PinBufferToWrite(buf, PGSWEEP_RING_MAX_USAGE, &buf_state))
		return worth_writing(buf_state);
	if (!pgsweep_ring_run_would_grow(run, &buf->tag))
		pgsweep_ring_run_write(run);

	if (!LWLockConditionalAcquire(content_lock, LW_SHARED))
		result = PGSWEEP_RING_IN_USE;
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
 * Go once through the ring, from the slot after the victim's.
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

		/* the ring is not full yet, or an interrupt is pending */
		if (buffer == InvalidBuffer || InterruptPending)
			break;

		/* may be there twice, if another process gave it up in between */
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
 * Set *kind to the kind of ring.  Returns false if core should write it.
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
flush(BufferAccessStrategy strategy, struct BufferDesc *victim, IOContext io_context)
{
	PgSweepRingKind kind;
	PgSweepRingCounts counts = {0};
	PgSweepRingRun run;
	instr_time	start;
	instr_time	end;

	if (!pgsweep_ring_eager_flush || !kind_of(io_context, &kind))
		return false;

	/* this process already has its share of the pool pinned */
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
