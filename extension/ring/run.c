/*-------------------------------------------------------------------------
 *
 * extension/ring/run.c
 *	  Writing neighbouring blocks by one call.
 *
 * The rules are those of core's FlushBuffer(), for several buffers.  Before a
 * buffer gets here, it is pinned and share-locked, its I/O has begun, and WAL
 * is flushed up to its LSN.  If writing fails, core's error cleanup ends the
 * I/O of all buffers, which stay dirty, and releases locks and pins.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "executor/instrument.h"
#include "ring/ring.h"
#include "storage/bufpage.h"
#include "utils/memutils.h"

/* Copies for checksums: others may set hint bits in the pool's pages */
static char *copies = NULL;
static int	num_copies = 0;

/*
 * Returns io_combine_limit, after allocating memory for so many copies if
 * they are needed.  Returns a smaller number, possibly 0, if out of memory.
 */
static int
prepare_copies(void)
{
	int			wanted = Min(io_combine_limit, MAX_IO_COMBINE_LIMIT);

	if (!DataChecksumsEnabled() || wanted <= num_copies)
		return wanted;

	if (copies)
		pfree(copies);
	num_copies = 0;
	copies = MemoryContextAllocAligned(TopMemoryContext, (Size) wanted * BLCKSZ,
									   PG_IO_ALIGN_SIZE, MCXT_ALLOC_NO_OOM);
	if (copies)
		num_copies = wanted;
	return num_copies;
}

/*
 * Start with an empty run.  Returns false if out of memory.
 */
bool
pgsweep_ring_run_prepare(PgSweepRingRun *run, BufferDesc *victim, IOContext io_context,
						 uint64 *counts)
{
	if (prepare_copies() == 0)
		return false;

	run->victim = victim;
	run->io_context = io_context;
	run->counts = counts;
	run->nblocks = 0;
	return true;
}

/*
 * Would a block be the next one of this run?
 */
bool
pgsweep_ring_run_would_grow(const PgSweepRingRun *run, const BufferTag *tag)
{
	RelFileLocator rlocator = BufTagGetRelFileLocator(tag);

	return run->nblocks > 0 &&
		run->nblocks < run->max_blocks &&
		tag->blockNum == run->first + run->nblocks &&
		BufTagGetForkNum(tag) == run->fork &&
		RelFileLocatorEquals(rlocator, run->reln->smgr_rlocator.locator);
}

/*
 * Add a buffer to an empty run, or one that makes the run grow.
 */
void
pgsweep_ring_run_add(PgSweepRingRun *run, BufferDesc *buf)
{
	Assert(run->nblocks == 0 || pgsweep_ring_run_would_grow(run, &buf->tag));

	if (run->nblocks == 0)
	{
		int			limit = Min(io_combine_limit, MAX_IO_COMBINE_LIMIT);

		if (DataChecksumsEnabled())
			limit = Min(limit, num_copies);

		/* the victim is pinned in any case */
		limit = Min(limit, (int) GetAdditionalPinLimit());

		run->reln = smgropen(BufTagGetRelFileLocator(&buf->tag), INVALID_PROC_NUMBER);
		run->fork = BufTagGetForkNum(&buf->tag);
		run->first = buf->tag.blockNum;
		run->max_blocks = Min(Max(limit, 1),
							  (int) smgrmaxcombine(run->reln, run->fork, run->first));
	}
	run->buffers[run->nblocks++] = buf;
}

static void
write_error_callback(void *arg)
{
	const PgSweepRingRun *run = arg;
	RelPathStr	path = relpathperm(run->reln->smgr_rlocator.locator, run->fork);

	if (run->nblocks == 1)
		errcontext("writing block %u of relation \"%s\"", run->first, path.str);
	else
		errcontext("writing blocks %u..%u of relation \"%s\"",
				   run->first, run->first + run->nblocks - 1, path.str);
}

static void
push_context(ErrorContextCallback *callback, PgSweepRingRun *run)
{
	callback->callback = write_error_callback;
	callback->arg = run;
	callback->previous = error_context_stack;
	error_context_stack = callback;
}

/*
 * Flush WAL, which must precede writing the blocks of the run.
 */
void
pgsweep_ring_run_flush_wal(PgSweepRingRun *run, XLogRecPtr lsn)
{
	ErrorContextCallback callback;

	push_context(&callback, run);
	XLogFlush(lsn);
	error_context_stack = callback.previous;
}

/*
 * The data to write for a buffer: its page, or a copy with a checksum.
 */
static const void *
page_to_write(BufferDesc *buf, int i)
{
	Page		page = BufferGetPage(BufferDescriptorGetBuffer(buf));
	char	   *copy;

	/* a page without an LSN is not protected by WAL; see core's FlushBuffer() */
	Assert(!(pg_atomic_read_u32(&buf->state) & BM_PERMANENT) ||
		   !XLogNeedsFlush(PageGetLSN(page)));

	if (PageIsNew(page) || !DataChecksumsEnabled())
		return page;

	copy = copies + (Size) i * BLCKSZ;
	memcpy(copy, page, BLCKSZ);
	PageSetChecksumInplace((Page) copy, buf->tag.blockNum);
	return copy;
}

/*
 * The blocks have been written: mark all of them clean and release them,
 * before anything that may take time.
 */
static void
release(PgSweepRingRun *run)
{
	BufferTag	tags[MAX_IO_COMBINE_LIMIT];
	int			ntags = 0;

	/* LWLockRelease() finds the lock taken last first */
	for (int i = run->nblocks - 1; i >= 0; i--)
	{
		BufferDesc *buf = run->buffers[i];
		bool		is_victim = buf == run->victim;

		run->counts[is_victim ? PGSWEEP_RING_VICTIMS : PGSWEEP_RING_EAGER]++;
		if (!is_victim)
			tags[ntags++] = buf->tag;
		TerminateBufferIO(buf, true, 0, true, false);
		if (is_victim)
			continue;			/* the caller releases it */
		LWLockRelease(BufferDescriptorGetContentLock(buf));
		ReleaseBuffer(BufferDescriptorGetBuffer(buf));
	}
	while (ntags > 0)
		ScheduleBufferTagForWriteback(&BackendWritebackContext, run->io_context,
									  &tags[--ntags]);
}

/*
 * Write the run unless it is empty, and start an empty one.
 */
void
pgsweep_ring_run_write(PgSweepRingRun *run)
{
	const void *pages[MAX_IO_COMBINE_LIMIT];
	ErrorContextCallback callback;
	instr_time	io_start;
	int			nblocks = run->nblocks;

	if (nblocks == 0)
		return;

	push_context(&callback, run);
	for (int i = 0; i < nblocks; i++)
		pages[i] = page_to_write(run->buffers[i], i);

	io_start = pgstat_prepare_io_time(track_io_timing);
	smgrwritev(run->reln, run->fork, run->first, pages, nblocks, false);
	pgstat_count_io_op_time(IOOBJECT_RELATION, run->io_context, IOOP_WRITE,
							io_start, 1, (uint64) nblocks * BLCKSZ);
	pgBufferUsage.shared_blks_written += nblocks;

	error_context_stack = callback.previous;

	run->counts[PGSWEEP_RING_WRITES]++;
	release(run);
	run->nblocks = 0;
}
