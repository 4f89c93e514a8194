/*-------------------------------------------------------------------------
 *
 * test/hooks/abi/abi_probe.c
 *	  An extension as there are many: it embeds an LWLock, reads buffer
 *	  descriptors, and knows nothing of pg_sweep.
 *
 * t/hooks/abi.pl compiles it with the headers of an unpatched server and loads it
 * into a patched one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "replication/slot.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/dsm_registry.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/pgstat_internal.h"
#include "utils/rel.h"
#include "utils/resowner.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(abi_probe_layout);
PG_FUNCTION_INFO_V1(abi_probe_buffers);
PG_FUNCTION_INFO_V1(abi_probe_count);
PG_FUNCTION_INFO_V1(abi_probe_counted);

/*
 * A lock at a 4-byte boundary, as a field after a uint32; those around it show
 * whether the server takes it for larger than these headers say.
 */
typedef struct ProbeShared
{
	uint32		before;
	LWLock		lock;
	uint32		after;
	int64		count;			/* protected by lock */
} ProbeShared;

#define GUARD	0xA5A5A5A5

/*
 * abi_probe_layout() returns text: sizes, alignments and offsets as the
 * compiler saw them
 */
Datum
abi_probe_layout(PG_FUNCTION_ARGS)
{
	StringInfoData out;

	initStringInfo(&out);
#define TYPE(t) \
	appendStringInfo(&out, #t " size %zu alignment %zu\n", sizeof(t), (size_t) __alignof__(t))
#define FIELD(t, f) \
	appendStringInfo(&out, #t "." #f " at %zu size %zu\n", offsetof(t, f), sizeof(((t *) 0)->f))

	TYPE(LWLock);
	FIELD(LWLock, tranche);
	TYPE(LWLockPadded);
	TYPE(NamedLWLockTranche);
	TYPE(BufferTag);
	TYPE(BufferDesc);
	FIELD(BufferDesc, tag);
	FIELD(BufferDesc, buf_id);
	FIELD(BufferDesc, state);
	FIELD(BufferDesc, wait_backend_pgprocno);
	FIELD(BufferDesc, freeNext);
	FIELD(BufferDesc, io_wref);
	FIELD(BufferDesc, content_lock);
	TYPE(BufferDescPadded);
	TYPE(PendingWriteback);
	TYPE(WritebackContext);
	TYPE(CkptSortItem);
	TYPE(PGPROC);
	FIELD(PGPROC, pid);
	FIELD(PGPROC, lwWaiting);
	FIELD(PGPROC, lwWaitMode);
	FIELD(PGPROC, lwWaitLink);
	FIELD(PGPROC, waitLock);
	FIELD(PGPROC, fpInfoLock);
	FIELD(PGPROC, lockGroupLink);
	TYPE(PROC_HDR);
	TYPE(PgStatShared_Common);
	FIELD(PgStatShared_Common, lock);
	TYPE(PgStatShared_Relation);
	FIELD(PgStatShared_Relation, stats);
	TYPE(PgStatShared_BgWriter);
	FIELD(PgStatShared_BgWriter, stats);
	TYPE(PgStatShared_IO);
	FIELD(PgStatShared_IO, stats);
	TYPE(PgStatShared_Backend);
	FIELD(PgStatShared_Backend, stats);
	TYPE(PgStat_ShmemControl);
	FIELD(PgStat_ShmemControl, custom_data);
	TYPE(ReplicationSlot);
	FIELD(ReplicationSlot, io_in_progress_lock);
	FIELD(ReplicationSlot, active_cv);
	TYPE(RelationData);
	PG_RETURN_TEXT_P(cstring_to_text(out.data));
}

/*
 * abi_probe_buffers() returns text: what the descriptors say, read with these
 * headers; "buffers with a page / their usage counts / pins"
 */
Datum
abi_probe_buffers(PG_FUNCTION_ARGS)
{
	int64		pages = 0;
	int64		usage = 0;
	int64		pins = 0;

	for (int i = 0; i < NBuffers; i++)
	{
		BufferDesc *buf = GetBufferDescriptor(i);
		uint32		state = LockBufHdr(buf);

		if (buf->buf_id != i)
			elog(ERROR, "descriptor %d says that it is %d", i, buf->buf_id);
		if (state & BM_TAG_VALID)
		{
			pages++;
			usage += BUF_STATE_GET_USAGECOUNT(state);
			pins += BUF_STATE_GET_REFCOUNT(state);
		}
		UnlockBufHdr(buf, state);
	}
	PG_RETURN_TEXT_P(cstring_to_text(psprintf(INT64_FORMAT "/" INT64_FORMAT "/" INT64_FORMAT,
											  pages, usage, pins)));
}

static void
init_shared(void *address)
{
	ProbeShared *shared = address;

	shared->before = shared->after = GUARD;
	shared->count = 0;
	LWLockInitialize(&shared->lock, LWLockNewTrancheId());
}

static ProbeShared *
attach(void)
{
	bool		found;
	ProbeShared *shared = GetNamedDSMSegment("abi_probe", sizeof(ProbeShared),
											 init_shared, &found);

	LWLockRegisterTranche(shared->lock.tranche, "abi_probe");
	return shared;
}

/*
 * abi_probe_count(times): count up under the lock, not atomically, the way
 * that loses counts if two processes ever hold it at once
 */
Datum
abi_probe_count(PG_FUNCTION_ARGS)
{
	ProbeShared *shared = attach();

	for (int32 times = PG_GETARG_INT32(0); times > 0; times--)
	{
		volatile int64 *count = &shared->count;

		if (times % 8 == 0)
		{
			while (!LWLockConditionalAcquire(&shared->lock, LW_EXCLUSIVE))
				CHECK_FOR_INTERRUPTS();
		}
		else
			LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
		if (!LWLockHeldByMeInMode(&shared->lock, LW_EXCLUSIVE))
			elog(ERROR, "the lock that was acquired is not held");
		*count = *count + 1;
		LWLockRelease(&shared->lock);
	}
	PG_RETURN_VOID();
}

/* abi_probe_counted() returns int8 */
Datum
abi_probe_counted(PG_FUNCTION_ARGS)
{
	ProbeShared *shared = attach();
	int64		count;

	LWLockAcquire(&shared->lock, LW_SHARED);
	count = shared->count;
	LWLockRelease(&shared->lock);
	if (shared->before != GUARD || shared->after != GUARD)
		elog(ERROR, "the lock has run over its neighbours: %x %x",
			 shared->before, shared->after);
	PG_RETURN_INT64(count);
}
