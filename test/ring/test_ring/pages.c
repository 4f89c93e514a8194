/*-------------------------------------------------------------------------
 *
 * test/ring/test_ring/pages.c
 *	  A ring of this session, and operations on pages through it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xloginsert.h"
#include "catalog/storage.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/pg_lsn.h"

#include "test_ring.h"

PG_MODULE_MAGIC_EXT(
					.name = "test_ring",
					.version = "1.0"
);

PG_FUNCTION_INFO_V1(test_ring_extend);
PG_FUNCTION_INFO_V1(test_ring_make);
PG_FUNCTION_INFO_V1(test_ring_read);
PG_FUNCTION_INFO_V1(test_ring_read_interrupted);
PG_FUNCTION_INFO_V1(test_ring_write);
PG_FUNCTION_INFO_V1(test_ring_buffers);
PG_FUNCTION_INFO_V1(test_ring_truncate);

/* Beyond any LSN that a test reaches */
#define FAKE_LSN		UINT64CONST(0x7F00000000000000)

BufferAccessStrategy test_ring = NULL;

/*
 * The buffer that a block is in, not pinned; InvalidBuffer if it is in none.
 */
Buffer
test_ring_find(Relation rel, BlockNumber block)
{
	BufferTag	tag;
	uint32		hash;
	LWLock	   *partition_lock;
	int			id;

	InitBufferTag(&tag, &rel->rd_locator, MAIN_FORKNUM, block);
	hash = BufTableHashCode(&tag);
	partition_lock = BufMappingPartitionLock(hash);
	LWLockAcquire(partition_lock, LW_SHARED);
	id = BufTableLookup(&tag, hash);
	LWLockRelease(partition_lock);
	return id < 0 ? InvalidBuffer : id + 1;
}

/*
 * Pin a block as a ring does: a usage count of 1 stays 1, and only the pin is seen.
 */
Buffer
test_ring_pin(Relation rel, BlockNumber block)
{
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKREAD);
	Buffer		buffer = ReadBufferExtended(rel, MAIN_FORKNUM, block, RBM_NORMAL, strategy);

	FreeAccessStrategy(strategy);
	return buffer;
}

Datum
test_ring_extend(PG_FUNCTION_ARGS)
{
	return test_extend_relation(fcinfo);
}

Datum
test_ring_make(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"bulkwrite", "vacuum", "bulkread"};
	static const BufferAccessStrategyType types[] = {BAS_BULKWRITE, BAS_VACUUM, BAS_BULKREAD};
	int			kind = test_find_name(names, lengthof(names), PG_GETARG_TEXT_PP(0), "ring of kind");
	int32		buffers = PG_GETARG_INT32(1);
	MemoryContext before;

	if (buffers < 1 || buffers > MAX_KILOBYTES / (BLCKSZ / 1024))
		elog(ERROR, "a ring cannot have %d buffers", buffers);

	if (test_ring != NULL)
		FreeAccessStrategy(test_ring);
	test_ring = NULL;
	before = MemoryContextSwitchTo(TopMemoryContext);
	test_ring = GetAccessStrategyWithSize(types[kind], buffers * (BLCKSZ / 1024));
	MemoryContextSwitchTo(before);
	PG_RETURN_INT32(GetAccessStrategyBufferCount(test_ring));
}

/*
 * Change a page that is locked exclusively.
 */
void
test_ring_fill_page(Buffer buffer, HowDirty how, int32 version)
{
	Page		page = BufferGetPage(buffer);
	uint64	   *word = (uint64 *) (page + MAXALIGN(SizeOfPageHeaderData));
	uint64	   *end = (uint64 *) (page + BLCKSZ);
	XLogRecPtr	lsn = PageGetLSN(page);

	START_CRIT_SECTION();
	PageInit(page, BLCKSZ, 0);
	/* no free space: no process may put a tuple there */
	((PageHeader) page)->pd_upper = ((PageHeader) page)->pd_lower;
	while (word < end)
		*word++ = ((uint64) BufferGetBlockNumber(buffer) << 32) | (uint32) version;
	PageSetLSN(page, how == UNLOGGED_FAKE_LSN ? FAKE_LSN : lsn);
	MarkBufferDirty(buffer);
	if (how == LOGGED)
		log_newpage_buffer(buffer, false);
	END_CRIT_SECTION();
}

/*
 * Read blocks through the ring and perhaps make them dirty.  Returns how many were
 * not in the pool.
 */
static int
use_blocks(Relation rel, int32 first, int32 blocks, HowDirty how, int32 version)
{
	int			read = 0;

	if (test_ring == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("this session has no ring"),
				 errhint("Call test_ring_make().")));

	/*
	 * The blocks may not exist: the test may have put another file in the
	 * table's place.
	 */
	for (int32 block = first; block < first + blocks; block++)
	{
		Buffer		buffer;

		CHECK_FOR_INTERRUPTS();
		if (!BufferIsValid(test_ring_find(rel, block)))
			read++;
		buffer = ReadBufferExtended(rel, MAIN_FORKNUM, block, RBM_NORMAL, test_ring);
		if (how != NOT_DIRTY)
		{
			LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
			test_ring_fill_page(buffer, how, version);
			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		}
		ReleaseBuffer(buffer);
	}
	return read;
}

Datum
test_ring_read(PG_FUNCTION_ARGS)
{
	Relation	rel = test_open_relation(PG_GETARG_OID(0), AccessShareLock);
	int			read = use_blocks(rel, PG_GETARG_INT32(1), PG_GETARG_INT32(2), NOT_DIRTY, 0);

	relation_close(rel, NoLock);
	PG_RETURN_INT32(read);
}

/*
 * An interrupt is pending, as if another process had asked for something.
 */
Datum
test_ring_read_interrupted(PG_FUNCTION_ARGS)
{
	Relation	rel = test_open_relation(PG_GETARG_OID(0), AccessShareLock);
	int			read;

	HOLD_INTERRUPTS();
	InterruptPending = true;
	read = use_blocks(rel, PG_GETARG_INT32(1), 1, NOT_DIRTY, 0);
	RESUME_INTERRUPTS();
	relation_close(rel, NoLock);
	PG_RETURN_INT32(read);
}

Datum
test_ring_write(PG_FUNCTION_ARGS)
{
	Relation	rel = test_open_relation(PG_GETARG_OID(0), RowExclusiveLock);
	static const char *const names[] = {
		[LOGGED] = "logged", [UNLOGGED] = "unlogged", [UNLOGGED_FAKE_LSN] = "fake lsn"
	};
	HowDirty	how = LOGGED + test_find_name(&names[LOGGED], lengthof(names) - LOGGED,
											  PG_GETARG_TEXT_PP(3), "way to make a page dirty");
	int			read;

	/* the server could never flush WAL that far */
	if ((how == LOGGED) != RelationIsPermanent(rel) && how != UNLOGGED)
		elog(ERROR, "pages of \"%s\" cannot be made dirty by \"%s\"",
			 RelationGetRelationName(rel), names[how]);

	read = use_blocks(rel, PG_GETARG_INT32(1), PG_GETARG_INT32(2), how, PG_GETARG_INT32(4));
	relation_close(rel, NoLock);
	PG_RETURN_INT32(read);
}

Datum
test_ring_buffers(PG_FUNCTION_ARGS)
{
	Relation	rel = test_open_relation(PG_GETARG_OID(0), AccessShareLock);
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (int id = 0; id < NBuffers; id++)
	{
		BufferDesc *desc = GetBufferDescriptor(id);
		LWLock	   *content_lock = BufferDescriptorGetContentLock(desc);
		uint32		state = LockBufHdr(desc);
		BufferTag	tag = desc->tag;
		XLogRecPtr	lsn = InvalidXLogRecPtr;
		bool		ours = (state & BM_VALID) && BufTagGetForkNum(&tag) == MAIN_FORKNUM &&
			BufTagMatchesRelFileLocator(&tag, &rel->rd_locator);
		bool		locked;
		Datum		values[9];
		bool		nulls[9] = {0};

		if (ours)
			lsn = PageGetLSN(BufferGetPage(id + 1));
		UnlockBufHdr(desc, state);
		if (!ours)
			continue;

		locked = !LWLockConditionalAcquire(content_lock, LW_SHARED);
		if (!locked)
			LWLockRelease(content_lock);
		values[0] = Int64GetDatum(tag.blockNum);
		values[1] = BoolGetDatum((state & BM_DIRTY) != 0);
		values[2] = Int32GetDatum(BUF_STATE_GET_REFCOUNT(state));
		values[3] = Int32GetDatum(BUF_STATE_GET_USAGECOUNT(state));
		values[4] = BoolGetDatum((state & BM_PERMANENT) != 0);
		values[5] = BoolGetDatum((state & BM_IO_IN_PROGRESS) != 0);
		values[6] = BoolGetDatum((state & BM_IO_ERROR) != 0);
		values[7] = BoolGetDatum(locked);
		values[8] = LSNGetDatum(lsn);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	relation_close(rel, AccessShareLock);
	return (Datum) 0;
}

Datum
test_ring_truncate(PG_FUNCTION_ARGS)
{
	Relation	rel = test_open_relation(PG_GETARG_OID(0), AccessExclusiveLock);
	int32		blocks = PG_GETARG_INT32(1);
	BlockNumber there = RelationGetNumberOfBlocks(rel);

	if (blocks < 0 || blocks > there)
		elog(ERROR, "\"%s\" has %u blocks, and cannot be cut to %d",
			 RelationGetRelationName(rel), there, blocks);
	RelationTruncate(rel, blocks);
	relation_close(rel, NoLock);
	PG_RETURN_VOID();
}
