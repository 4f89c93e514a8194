/*-------------------------------------------------------------------------
 *
 * test/ring/test_ring/instrumented.c
 *	  A copy of pg_sweep's laps through rings, with places to stop at.
 *
 * The code is the extension's own, extension/ring/lap.c and run.c, with stops
 * before it pins, locks, begins I/O and writes.  A session can use the copy in
 * place of the extension's.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "executor/instrument.h"
#include "lib/stringinfo.h"
#include "portability/instr_time.h"
#include "ring/ring.h"
#include "storage/bufpage.h"
#include "utils/memutils.h"

#include "test_ring.h"

PG_FUNCTION_INFO_V1(test_ring_write_out);
PG_FUNCTION_INFO_V1(test_ring_hint);
PG_FUNCTION_INFO_V1(test_ring_instrument);
PG_FUNCTION_INFO_V1(test_ring_stop_at);
PG_FUNCTION_INFO_V1(test_ring_stopped);
PG_FUNCTION_INFO_V1(test_ring_go);
PG_FUNCTION_INFO_V1(test_ring_last_lap);

typedef enum StopPlace
{
	STOP_NEVER,
	STOP_PIN,
	STOP_LOCK,
	STOP_IO,
	STOP_WRITE,
} StopPlace;

static const char *const stop_names[] = {
	[STOP_NEVER] = "never",
	[STOP_PIN] = "pin",
	[STOP_LOCK] = "lock",
	[STOP_IO] = "io",
	[STOP_WRITE] = "write",
};

static StopPlace stop_place = STOP_NEVER;
static BlockNumber stop_block;
static TestRingShared *shared;
static PgSweepRingCounts last_lap;
static const RingFlushRoutine *extensions_own = NULL;

static void
stop(StopPlace place, BlockNumber block)
{
	uint32		go;

	if (stop_place != place || stop_block != block)
		return;
	stop_place = STOP_NEVER;
	go = pg_atomic_read_u32(&shared->go);
	pg_atomic_fetch_add_u32(&shared->stopped, 1);
	test_ring_wait_for(&shared->go, go);
	pg_atomic_fetch_sub_u32(&shared->stopped, 1);
}

/*
 * The copy.  It may wait for the victim's I/O, but not for that of other buffers.
 */
#define PinBufferToWrite(buf, max_usage_count, buf_state) \
	(stop(STOP_PIN, (buf)->tag.blockNum), PinBufferToWrite(buf, max_usage_count, buf_state))
#define LWLockConditionalAcquire(lock, mode) \
	(stop(STOP_LOCK, buf->tag.blockNum), LWLockConditionalAcquire(lock, mode))
#define StartBufferIO(buf, for_input, nowait) \
	(stop((nowait) ? STOP_IO : STOP_NEVER, (buf)->tag.blockNum), StartBufferIO(buf, for_input, nowait))
#define smgrwritev(reln, fork, first, pages, n, skip_fsync) \
	(stop(STOP_WRITE, first), smgrwritev(reln, fork, first, pages, n, skip_fsync))

#include "ring/lap.c"
#include "ring/run.c"

#undef PinBufferToWrite
#undef LWLockConditionalAcquire
#undef StartBufferIO
#undef smgrwritev

/* In place of ring/gucs.c */
bool		pgsweep_ring_eager_flush;

/*
 * In place of ring/counts.c
 */
void
pgsweep_ring_add_counts(PgSweepRingKind kind, const PgSweepRingCounts counts)
{
	memcpy(last_lap, counts, sizeof(last_lap));
}

Datum
test_ring_instrument(PG_FUNCTION_ARGS)
{
	if (RingFlush == NULL)
		elog(ERROR, "pg_sweep has not been preloaded");
	if (extensions_own == NULL)
		extensions_own = RingFlush;
	shared = test_ring_shared();
	pgsweep_ring_eager_flush = true;
	RingFlush = PG_GETARG_BOOL(0) ? &pgsweep_ring_flush_routine : extensions_own;
	PG_RETURN_VOID();
}

Datum
test_ring_stop_at(PG_FUNCTION_ARGS)
{
	stop_place = test_find_name(stop_names, lengthof(stop_names), PG_GETARG_TEXT_PP(0), "stop");
	stop_block = PG_GETARG_INT32(1);
	shared = test_ring_shared();
	PG_RETURN_VOID();
}

Datum
test_ring_stopped(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(pg_atomic_read_u32(&test_ring_shared()->stopped));
}

Datum
test_ring_go(PG_FUNCTION_ARGS)
{
	pg_atomic_fetch_add_u32(&test_ring_shared()->go, 1);
	PG_RETURN_VOID();
}

Datum
test_ring_last_lap(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {
		[PGSWEEP_RING_LAPS] = "laps",
		[PGSWEEP_RING_VICTIMS] = "victims",
		[PGSWEEP_RING_EAGER] = "eager",
		[PGSWEEP_RING_WRITES] = "writes",
		[PGSWEEP_RING_WAL_FLUSHES] = "wal_flushes",
		[PGSWEEP_RING_CLEAN] = "skipped_clean",
		[PGSWEEP_RING_IN_USE] = "skipped_in_use",
		[PGSWEEP_RING_NEEDS_WAL] = "skipped_wal",
	};
	StringInfoData text;

	initStringInfo(&text);
	for (int i = 0; i < lengthof(names); i++)
		if (last_lap[i] != 0 && i != PGSWEEP_RING_LAPS)
			appendStringInfo(&text, "%s%s " UINT64_FORMAT, text.len > 0 ? ", " : "",
							 names[i], last_lap[i]);
	PG_RETURN_TEXT_P(cstring_to_text(text.data));
}

/* ---- what other processes may do meanwhile ---- */

static Buffer
lock_shared(Relation rel, BlockNumber block)
{
	Buffer		buffer = test_ring_pin(rel, block);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	return buffer;
}

Datum
test_ring_write_out(PG_FUNCTION_ARGS)
{
	Relation	rel = test_open_relation(PG_GETARG_OID(0), RowExclusiveLock);
	Buffer		buffer = lock_shared(rel, PG_GETARG_INT32(1));

	FlushOneBuffer(buffer);
	UnlockReleaseBuffer(buffer);
	relation_close(rel, NoLock);
	PG_RETURN_VOID();
}

Datum
test_ring_hint(PG_FUNCTION_ARGS)
{
	Relation	rel = test_open_relation(PG_GETARG_OID(0), RowExclusiveLock);
	Buffer		buffer = lock_shared(rel, PG_GETARG_INT32(1));

	MarkBufferDirtyHint(buffer, false);
	UnlockReleaseBuffer(buffer);
	relation_close(rel, NoLock);
	PG_RETURN_VOID();
}
