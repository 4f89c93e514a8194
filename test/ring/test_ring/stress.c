/*-------------------------------------------------------------------------
 *
 * test/ring/test_ring/stress.c
 *	  Rings at work, and other processes that change the same pages.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "portability/instr_time.h"

#include "test_ring.h"

PG_FUNCTION_INFO_V1(test_ring_work);
PG_FUNCTION_INFO_V1(test_ring_disturb);
PG_FUNCTION_INFO_V1(test_ring_wrong);

static bool
is_over(instr_time start, int32 milliseconds)
{
	instr_time	now;

	CHECK_FOR_INTERRUPTS();
	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, start);
	return INSTR_TIME_GET_MILLISEC(now) >= milliseconds;
}

Datum
test_ring_work(PG_FUNCTION_ARGS)
{
	Relation	rel = test_open_relation(PG_GETARG_OID(0), RowExclusiveLock);
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	BlockNumber block = pg_prng_uint64_range(&pg_global_prng_state, 0, Max(nblocks, 1) - 1);
	int64		filled = 0;
	instr_time	start;

	if (test_ring == NULL || nblocks == 0)
		elog(ERROR, "there is no ring, or no block");

	INSTR_TIME_SET_CURRENT(start);
	while (!is_over(start, PG_GETARG_INT32(1)))
	{
		Buffer		buffer = ReadBufferExtended(rel, MAIN_FORKNUM, block, RBM_NORMAL, test_ring);

		LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
		test_ring_fill_page(buffer, LOGGED, pg_prng_int32p(&pg_global_prng_state));
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		ReleaseBuffer(buffer);
		filled++;
		block = (block + 1) % nblocks;
	}
	relation_close(rel, NoLock);
	PG_RETURN_INT64(filled);
}

Datum
test_ring_disturb(PG_FUNCTION_ARGS)
{
	Relation	rel = test_open_relation(PG_GETARG_OID(0), RowExclusiveLock);
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	int64		changed = 0;
	instr_time	start;

	INSTR_TIME_SET_CURRENT(start);
	while (nblocks > 0 && !is_over(start, PG_GETARG_INT32(1)))
	{
		BlockNumber block = pg_prng_uint64_range(&pg_global_prng_state, 0, nblocks - 1);
		Buffer		buffer;

		/* if it is replaced in between, it is read into a ring of ours */
		if (!BufferIsValid(test_ring_find(rel, block)))
			continue;
		buffer = test_ring_pin(rel, block);
		if (pg_prng_bool(&pg_global_prng_state))
		{
			LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
			test_ring_fill_page(buffer, LOGGED, pg_prng_int32p(&pg_global_prng_state));
		}
		else
		{
			LockBuffer(buffer, BUFFER_LOCK_SHARE);
			if (!PageIsNew(BufferGetPage(buffer)))
				MarkBufferDirtyHint(buffer, false);
		}
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		ReleaseBuffer(buffer);
		changed++;
	}
	relation_close(rel, NoLock);
	PG_RETURN_INT64(changed);
}

/*
 * Is it a page of zeros, or filled with the block's number and one version?
 */
static bool
is_filled(Page page, BlockNumber block)
{
	const uint64 *first = (uint64 *) (page + MAXALIGN(SizeOfPageHeaderData));
	const uint64 *end = (uint64 *) (page + BLCKSZ);

	if (PageIsNew(page))
		return true;
	if (*first >> 32 != block)
		return false;
	for (const uint64 *word = first; word < end; word++)
		if (*word != *first)
			return false;
	return true;
}

Datum
test_ring_wrong(PG_FUNCTION_ARGS)
{
	Relation	rel = test_open_relation(PG_GETARG_OID(0), AccessShareLock);
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	PGIOAlignedBlock file;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	for (BlockNumber block = 0; block < nblocks; block++)
	{
		Buffer		buffer;
		uint64		word;
		uint64		file_word;
		bool		dirty;
		bool		nulls[1] = {false};
		Datum		values[1] = {Int64GetDatum(block)};

		CHECK_FOR_INTERRUPTS();
		buffer = test_ring_pin(rel, block);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		dirty = (pg_atomic_read_u32(&GetBufferDescriptor(buffer - 1)->state) & BM_DIRTY) != 0;
		memcpy(&word, BufferGetPage(buffer) + BLCKSZ - sizeof(word), sizeof(word));
		smgrread(RelationGetSmgr(rel), MAIN_FORKNUM, block, &file);
		memcpy(&file_word, file.data + BLCKSZ - sizeof(file_word), sizeof(file_word));

		if (!is_filled(BufferGetPage(buffer), block) || !is_filled((Page) file.data, block) ||
			(!dirty && word != file_word))
			tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		ReleaseBuffer(buffer);
	}
	relation_close(rel, NoLock);
	return (Datum) 0;
}
