/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/test_loads.c
 *	  Preloaded instead of pg_sweep: writes down the pages that core says have
 *	  been loaded, and checks what sweep_hooks.h promises of each call.
 *
 * Leaves all else to core.  One process can be stopped while it looks for a
 * victim, so that another one loads the same page first.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "storage/sweep_hooks.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/rel.h"

PG_MODULE_MAGIC_EXT(
					.name = "test_loads",
					.version = "1.0"
);

#define MAX_LOADS	65536
#define STOP_MS		60000		/* if the test dies, the server must go on */

typedef struct Load
{
	BufferTag	tag;
	bool		ring;			/* there was an access strategy */
	bool		io;				/* I/O had been started */
	BackendType backend_type;
	const char *wrong;			/* what is not as promised, or NULL */
} Load;

typedef struct Shared
{
	pg_atomic_uint32 loads;
	pg_atomic_uint32 freed;
	pg_atomic_uint32 stop;		/* process to be stopped, 0 for none */
	pg_atomic_uint32 stopped;	/* 1 while it is */
	Load		load[MAX_LOADS];
} Shared;

static Shared *shared;
static shmem_request_hook_type prev_request;
static shmem_startup_hook_type prev_startup;

static BufferDesc *
get_victim(BufferAccessStrategy strategy, uint32 *buf_state)
{
	if (pg_atomic_read_u32(&shared->stop) == (uint32) MyProcPid)
	{
		pg_atomic_write_u32(&shared->stopped, 1);
		for (int ms = 0; ms < STOP_MS && pg_atomic_read_u32(&shared->stop) != 0; ms++)
			pg_usleep(1000);
		pg_atomic_write_u32(&shared->stopped, 0);
	}
	return NULL;
}

/*
 * Locks what must not be held by then: if the header is, this does not return.
 */
static const char *
what_is_wrong(BufferDesc *buf)
{
	uint32		hash = BufTableHashCode(&buf->tag);
	LWLock	   *partition = BufMappingPartitionLock(hash);
	uint32		state;
	int			found;

	for (int i = 0; i < NUM_BUFFER_PARTITIONS; i++)
		if (LWLockHeldByMe(BufMappingPartitionLockByIndex(i)))
			return "a lock of the mapping table is held";

	LWLockAcquire(partition, LW_SHARED);
	found = BufTableLookup(&buf->tag, hash);
	LWLockRelease(partition);
	if (found != buf->buf_id)
		return "other processes do not find the page here";

	state = LockBufHdr(buf);
	UnlockBufHdr(buf, state);
	if (!(state & BM_TAG_VALID))
		return "the buffer has no page";
	if (BUF_STATE_GET_REFCOUNT(state) == 0)
		return "the buffer is not pinned";
	if (BUF_STATE_GET_USAGECOUNT(state) == 0)
		return "the usage count is zero";
	if (state & BM_VALID)
		return "the contents are valid already";
	CheckBufferIsPinnedOnce(BufferDescriptorGetBuffer(buf));
	return NULL;
}

static void
loaded(BufferDesc *buf, BufferAccessStrategy strategy)
{
	uint32		i = pg_atomic_fetch_add_u32(&shared->loads, 1);

	if (i >= MAX_LOADS)
		return;
	shared->load[i].tag = buf->tag;
	shared->load[i].ring = strategy != NULL;
	shared->load[i].io = (pg_atomic_read_u32(&buf->state) & BM_IO_IN_PROGRESS) != 0;
	shared->load[i].backend_type = MyBackendType;
	shared->load[i].wrong = what_is_wrong(buf);
}

static bool
free_buffer(BufferDesc *buf)
{
	pg_atomic_fetch_add_u32(&shared->freed, 1);
	return false;
}

static bool
any_free_buffer(bool core_answer)
{
	return core_answer;
}

static int
sync_start(int buf_id, uint32 *complete_passes, uint32 *num_buf_alloc)
{
	return buf_id;
}

static bool
lru_pass(struct WritebackContext *wb_context, bool *can_hibernate)
{
	return false;
}

static const BufferReplacementRoutine routine = {
	.get_victim = get_victim,
	.loaded = loaded,
	.free_buffer = free_buffer,
	.have_free_buffer = any_free_buffer,
	.sync_start = sync_start,
	.lru_pass = lru_pass,
};

static void
request(void)
{
	if (prev_request)
		prev_request();
	RequestAddinShmemSpace(sizeof(Shared));
}

static void
startup(void)
{
	bool		found;

	if (prev_startup)
		prev_startup();
	shared = ShmemInitStruct("test_loads", sizeof(Shared), &found);
	if (!found)
		memset(shared, 0, sizeof(Shared));
	SetBufferReplacement(&routine);
	ActivateBufferReplacement(false, true);
}

void
_PG_init(void)
{
	static bool early = false;

	if (!process_shared_preload_libraries_in_progress)
		return;
	DefineCustomBoolVariable("test_loads.early", "Install the routine too early.", NULL, &early,
							 false, PGC_POSTMASTER, 0, NULL, NULL, NULL);
	if (early)
		SetBufferReplacement(&routine);
	prev_request = shmem_request_hook;
	shmem_request_hook = request;
	prev_startup = shmem_startup_hook;
	shmem_startup_hook = startup;
}

PG_FUNCTION_INFO_V1(test_loads_begin);
PG_FUNCTION_INFO_V1(test_loads_read);
PG_FUNCTION_INFO_V1(test_loads_seen);
PG_FUNCTION_INFO_V1(test_loads_freed);
PG_FUNCTION_INFO_V1(test_loads_stop);
PG_FUNCTION_INFO_V1(test_loads_stopped);

/* (get_victim is called, loaded is called): forget all, and begin anew */
Datum
test_loads_begin(PG_FUNCTION_ARGS)
{
	ActivateBufferReplacement(PG_GETARG_BOOL(0), PG_GETARG_BOOL(1));
	if (shared == NULL)
		PG_RETURN_VOID();		/* not preloaded: no routine is installed */
	pg_atomic_write_u32(&shared->loads, 0);
	pg_atomic_write_u32(&shared->freed, 0);
	PG_RETURN_VOID();
}

/* Read the block after the last one of a table's main fork, or make it zeroes */
Datum
test_loads_read(PG_FUNCTION_ARGS)
{
	Relation	rel = relation_open(PG_GETARG_OID(0), AccessShareLock);
	bool		zero = PG_GETARG_BOOL(1);
	Buffer		buffer = ReadBufferExtended(rel, MAIN_FORKNUM,
											RelationGetNumberOfBlocks(rel),
											zero ? RBM_ZERO_AND_LOCK : RBM_NORMAL, NULL);

	if (zero)
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	ReleaseBuffer(buffer);
	relation_close(rel, AccessShareLock);
	PG_RETURN_VOID();
}

/*
 * One row per load: relation's file, fork, block, ring?, I/O started?, kind of
 * process, fault
 */
Datum
test_loads_seen(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	uint32		n = pg_atomic_read_u32(&shared->loads);

	if (n > MAX_LOADS)
		elog(ERROR, "%u loads are too many", n);
	InitMaterializedSRF(fcinfo, 0);
	for (uint32 i = 0; i < n; i++)
	{
		const Load *load = &shared->load[i];
		Datum		values[7];
		bool		nulls[7] = {0};

		values[0] = ObjectIdGetDatum(load->tag.relNumber);
		values[1] = Int32GetDatum(load->tag.forkNum);
		values[2] = Int64GetDatum(load->tag.blockNum);
		values[3] = BoolGetDatum(load->ring);
		values[4] = BoolGetDatum(load->io);
		values[5] = CStringGetTextDatum(GetBackendTypeDesc(load->backend_type));
		nulls[6] = load->wrong == NULL;
		values[6] = nulls[6] ? (Datum) 0 : CStringGetTextDatum(load->wrong);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

Datum
test_loads_freed(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(pg_atomic_read_u32(&shared->freed));
}

/* Stop a process at its next victim; 0 lets it go on */
Datum
test_loads_stop(PG_FUNCTION_ARGS)
{
	pg_atomic_write_u32(&shared->stop, (uint32) PG_GETARG_INT32(0));
	PG_RETURN_VOID();
}

Datum
test_loads_stopped(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(pg_atomic_read_u32(&shared->stopped) != 0);
}
