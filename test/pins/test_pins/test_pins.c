/*-------------------------------------------------------------------------
 *
 * test/pins/test_pins/test_pins.c
 *	  Holds pins for others to see, leaks pins, runs out of memory.
 *
 * The comparison with a model is in random.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/resource.h>

#include "access/xact.h"
#include "common/pg_prng.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "test_pins.h"

PG_MODULE_MAGIC_EXT(
					.name = "test_pins",
					.version = "1.0"
);

PG_FUNCTION_INFO_V1(test_pins_extend);
PG_FUNCTION_INFO_V1(test_pins_hold);
PG_FUNCTION_INFO_V1(test_pins_again);
PG_FUNCTION_INFO_V1(test_pins_release);
PG_FUNCTION_INFO_V1(test_pins_leak);
PG_FUNCTION_INFO_V1(test_pins_count);
PG_FUNCTION_INFO_V1(test_pins_out_of_memory);

/* Pins that make a resource owner large: a few on each of some buffers */
#define OWNER_PINS		32
#define OWNER_BUFFERS	512

/*
 * What test_pins_hold() holds, in the order of pinning.  The pins belong to the
 * transaction's resource owner, and outlive the statement.
 */
typedef struct HeldPins
{
	Buffer	   *buffers;
	int			n;
	int			room;
	Oid			relid;
	BlockNumber next;
} HeldPins;

static HeldPins held;

/*
 * How often this process has pinned a buffer: the last number of the text that
 * core prints for a leak.
 */
int32
test_pins_private(Buffer buffer)
{
	char	   *line = DebugPrintBufferRefcount(buffer);
	char	   *last = strrchr(line, ' ');
	int32		count;

	if (last == NULL)
		elog(ERROR, "cannot read \"%s\"", line);
	count = atoi(last + 1);
	pfree(line);
	return count;
}

void
test_pins_check_blocks(Relation rel, BlockNumber first, int32 blocks)
{
	BlockNumber there = RelationGetNumberOfBlocks(rel);

	if (blocks < 0 || (uint64) first + blocks > there)
		elog(ERROR, "\"%s\" has %u blocks: there are not %d from block %u on",
			 RelationGetRelationName(rel), there, blocks, first);
}

Datum
test_pins_extend(PG_FUNCTION_ARGS)
{
	return test_extend_relation(fcinfo);
}

/* ---- pins that are held from statement to statement ---- */

static int
release_held(void)
{
	ResourceOwner owner = CurrentResourceOwner;
	int			n = held.n;

	CurrentResourceOwner = TopTransactionResourceOwner;
	while (held.n > 0)
		ReleaseBuffer(held.buffers[--held.n]);
	CurrentResourceOwner = owner;
	return n;
}

/*
 * A commit would warn about remaining pins.  An abort releases them with their
 * owner.
 */
static void
end_of_transaction(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE)
		release_held();
	else if (event == XACT_EVENT_ABORT)
		held.n = 0;
}

Datum
test_pins_hold(PG_FUNCTION_ARGS)
{
	static bool registered = false;
	int32		blocks = PG_GETARG_INT32(1);
	Relation	rel = test_open_relation(PG_GETARG_OID(0), AccessShareLock);
	ResourceOwner owner = CurrentResourceOwner;

	if (!registered)
	{
		RegisterXactCallback(end_of_transaction, NULL);
		registered = true;
	}
	if (held.n == 0 || held.relid != RelationGetRelid(rel))
	{
		held.relid = RelationGetRelid(rel);
		held.next = 0;
	}
	test_pins_check_blocks(rel, held.next, blocks);
	if (held.room < held.n + blocks)
	{
		int			room = held.n + blocks;

		held.buffers = held.buffers == NULL
			? MemoryContextAlloc(TopMemoryContext, sizeof(Buffer) * room)
			: repalloc(held.buffers, sizeof(Buffer) * room);
		held.room = room;
	}

	for (int i = 0; i < blocks; i++)
	{
		Buffer		buffer;

		CHECK_FOR_INTERRUPTS();
		/* a failure ends the transaction: nothing needs to be restored */
		CurrentResourceOwner = TopTransactionResourceOwner;
		buffer = ReadBuffer(rel, held.next);
		CurrentResourceOwner = owner;
		held.buffers[held.n++] = buffer;
		held.next++;
	}
	relation_close(rel, NoLock);
	PG_RETURN_INT32(held.n);
}

Datum
test_pins_again(PG_FUNCTION_ARGS)
{
	int64		times = PG_GETARG_INT64(0);
	bool		cyclic = PG_GETARG_BOOL(1);
	ResourceOwner owner = CurrentResourceOwner;

	if (held.n == 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("no pins are held"),
				 errhint("Call test_pins_hold() in this transaction before.")));

	CurrentResourceOwner = TopTransactionResourceOwner;
	for (int64 i = 0; i < times; i++)
	{
		Buffer		buffer = held.buffers[cyclic ? i % held.n
										  : pg_prng_uint64_range(&pg_global_prng_state, 0, held.n - 1)];

		if (i % 4096 == 0)
			CHECK_FOR_INTERRUPTS();
		IncrBufferRefCount(buffer);
		ReleaseBuffer(buffer);
	}
	CurrentResourceOwner = owner;
	PG_RETURN_VOID();
}

Datum
test_pins_release(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(release_held());
}

Datum
test_pins_leak(PG_FUNCTION_ARGS)
{
	int32		blocks = PG_GETARG_INT32(1);
	Relation	rel = test_open_relation(PG_GETARG_OID(0), AccessShareLock);

	test_pins_check_blocks(rel, 0, blocks);
	for (int i = 0; i < blocks; i++)
		(void) ReadBuffer(rel, i);
	relation_close(rel, NoLock);
	PG_RETURN_VOID();
}

Datum
test_pins_count(PG_FUNCTION_ARGS)
{
	Relation	rel = test_open_relation(PG_GETARG_OID(0), AccessShareLock);
	Datum		values[4];
	int32		buffers = 0,
				own_buffers = 0;
	int64		processes = 0,
				own_pins = 0;

	for (Buffer b = 1; b <= NBuffers; b++)
	{
		BufferDesc *buf = GetBufferDescriptor(b - 1);
		uint32		state = LockBufHdr(buf);
		bool		ours = BufTagMatchesRelFileLocator(&buf->tag, &rel->rd_locator);
		int32		count;

		UnlockBufHdr(buf, state);
		if (ours && BUF_STATE_GET_REFCOUNT(state) > 0)
		{
			buffers++;
			processes += BUF_STATE_GET_REFCOUNT(state);
		}
		count = test_pins_private(b);
		own_buffers += count != 0;
		own_pins += count;
	}
	relation_close(rel, AccessShareLock);

	values[0] = Int32GetDatum(buffers);
	values[1] = Int64GetDatum(processes);
	values[2] = Int32GetDatum(own_buffers);
	values[3] = Int64GetDatum(own_pins);
	return test_return_row(fcinfo, values);
}

/* ---- no memory ---- */

/* The current address space of this process, in bytes */
static rlim_t
address_space(void)
{
	FILE	   *file = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	if (file == NULL || fscanf(file, "%lu", &pages) != 1)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read /proc/self/statm: %m")));
	fclose(file);
	return (rlim_t) pages * sysconf(_SC_PAGESIZE);
}

static void
address_limit(struct rlimit *limit)
{
	if (getrlimit(RLIMIT_AS, limit) != 0)
		elog(ERROR, "getrlimit: %m");
}

static void
limit_address_space(struct rlimit limit, rlim_t size)
{
	limit.rlim_cur = size;
	if (setrlimit(RLIMIT_AS, &limit) != 0)
		elog(ERROR, "setrlimit: %m");
}

/*
 * Make room for many pins in a resource owner, by few buffers that are unpinned
 * again: it must not be the owner that runs out of memory.
 */
static void
enlarge_owner(Relation rel, ResourceOwner owner, int pins)
{
	int			buffers = Min(OWNER_BUFFERS, pins);
	int			each = Min(OWNER_PINS, pins / buffers + 1);
	Buffer	   *some = palloc_array(Buffer, buffers);

	CurrentResourceOwner = owner;
	for (int i = 0; i < buffers; i++)
	{
		some[i] = ReadBuffer(rel, i);
		for (int j = 1; j < each; j++)
			IncrBufferRefCount(some[i]);
	}
	for (int i = 0; i < buffers; i++)
		for (int j = 0; j < each; j++)
			ReleaseBuffer(some[i]);
	pfree(some);
}

/*
 * Pin block after block until there is no memory for a pin.  Returns the error,
 * or NULL if all could be pinned.
 */
static ErrorData *
pin_without_memory(Relation rel, ResourceOwner owner, Buffer *buffers, int blocks, int *pinned)
{
	MemoryContext context = CurrentMemoryContext;
	ErrorData  *volatile error = NULL;
	volatile int n = 0;
	struct rlimit granted;

	address_limit(&granted);
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	PG_TRY();
	{
		limit_address_space(granted, address_space());
		while (n < blocks)
		{
			buffers[n] = ReadBuffer(rel, n);
			n++;
		}
		limit_address_space(granted, granted.rlim_cur);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		limit_address_space(granted, granted.rlim_cur);
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	*pinned = n;
	return error;
}

static void
check_pins(Buffer *buffers, int n, int count)
{
	for (int i = 0; i < n; i++)
		if (test_pins_shared(buffers[i]) != count || test_pins_private(buffers[i]) != count)
			elog(ERROR, "pin %d of %d is wrong: buffer %d has %u shared and %d own pins",
				 i, n, buffers[i], test_pins_shared(buffers[i]), test_pins_private(buffers[i]));
}

/*
 * Only the memory of the pins themselves cannot grow: the owner has been enlarged
 * before, every page is in its buffer, and pinning it allocates nothing else.
 */
Datum
test_pins_out_of_memory(PG_FUNCTION_ARGS)
{
	Relation	rel = test_open_relation(PG_GETARG_OID(0), AccessShareLock);
	int			blocks = Min(RelationGetNumberOfBlocks(rel), NBuffers * 3 / 4);
	ResourceOwner before = CurrentResourceOwner;
	ResourceOwner owner = ResourceOwnerCreate(before, "test_pins_out_of_memory");
	Buffer	   *buffers = palloc_array(Buffer, Max(blocks, 1));
	int			n;
	ErrorData  *error;
	uint32		limit = GetAdditionalPinLimit();
	Datum		values[3] = {0};

	for (int i = 0; i < blocks; i++)
		ReleaseBuffer(ReadBuffer(rel, i));
	if (blocks > 0)
		enlarge_owner(rel, owner, blocks);
	error = pin_without_memory(rel, owner, buffers, blocks, &n);

	/* each pin is there, but for the one that failed */
	check_pins(buffers, n, 1);

	/* now the next ones can be pinned */
	CurrentResourceOwner = owner;
	for (int i = n; i < blocks; i++)
		buffers[i] = ReadBuffer(rel, i);
	check_pins(buffers, blocks, 1);
	for (int i = 0; i < blocks; i++)
		ReleaseBuffer(buffers[i]);
	CurrentResourceOwner = before;
	check_pins(buffers, blocks, 0);
	if (GetAdditionalPinLimit() != limit)
		elog(ERROR, "GetAdditionalPinLimit() is %u, not %u as before", GetAdditionalPinLimit(), limit);
	test_pins_delete_owner(owner);
	relation_close(rel, AccessShareLock);

	values[0] = Int32GetDatum(n);
	if (error != NULL)
	{
		values[1] = CStringGetTextDatum(unpack_sql_state(error->sqlerrcode));
		values[2] = CStringGetTextDatum(error->message);
	}
	return test_return_row(fcinfo, values);
}
