/*-------------------------------------------------------------------------
 *
 * test/ring/test_ring/hold.c
 *	  Other users of a ring's buffers.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "portability/instr_time.h"
#include "storage/dsm_registry.h"
#include "storage/latch.h"
#include "utils/wait_event.h"

#include "test_ring.h"

PG_FUNCTION_INFO_V1(test_ring_touch);
PG_FUNCTION_INFO_V1(test_ring_hold);
PG_FUNCTION_INFO_V1(test_ring_holding);
PG_FUNCTION_INFO_V1(test_ring_let_go);

/* Locks held at once; core has room for 200 per process */
#define MAX_HELD		100

/* If the test dies, the server must go on */
#define MAX_HOLD_MS		60000

static const char *const how_names[] = {
	"pin", "shared", "exclusive", "shared unpinned", "exclusive unpinned", "io unpinned"
};

typedef struct How
{
	bool		pinned;
	bool		io;
	bool		locked;
	LWLockMode	mode;			/* of the lock */
} How;

static const How hows[lengthof(how_names)] = {
	{true, false, false, LW_SHARED},
	{true, false, true, LW_SHARED},
	{true, false, true, LW_EXCLUSIVE},
	{false, false, true, LW_SHARED},
	{false, false, true, LW_EXCLUSIVE},
	{false, true, false, LW_SHARED},
};

static void
init_shared(void *address)
{
	TestRingShared *shared = address;

	pg_atomic_init_u32(&shared->holding, 0);
	pg_atomic_init_u32(&shared->let_go, 0);
	pg_atomic_init_u32(&shared->stopped, 0);
	pg_atomic_init_u32(&shared->go, 0);
}

TestRingShared *
test_ring_shared(void)
{
	bool		found;

	return GetNamedDSMSegment("test_ring", sizeof(TestRingShared), init_shared, &found);
}

static void
nap(void)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 2,
					 PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
}

/*
 * Wait until a counter changes.  With a lock held, no interrupt is served
 * meanwhile.
 */
void
test_ring_wait_for(pg_atomic_uint32 *counter, uint32 before)
{
	instr_time	start;

	INSTR_TIME_SET_CURRENT(start);
	while (pg_atomic_read_u32(counter) == before)
	{
		instr_time	now;

		INSTR_TIME_SET_CURRENT(now);
		INSTR_TIME_SUBTRACT(now, start);
		if (INSTR_TIME_GET_MILLISEC(now) > MAX_HOLD_MS)
			break;
		nap();
	}
}

/*
 * The elements of an array, which must be numbers of existing blocks.
 */
BlockNumber *
test_ring_blocks(Relation rel, ArrayType *array, int *n)
{
	BlockNumber there = RelationGetNumberOfBlocks(rel);
	BlockNumber *blocks;
	int32	   *values;

	if (ARR_NDIM(array) > 1 || ARR_HASNULL(array))
		elog(ERROR, "blocks must be an array of one dimension without nulls");
	*n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	values = (int32 *) ARR_DATA_PTR(array);
	blocks = palloc_array(BlockNumber, Max(*n, 1));
	for (int i = 0; i < *n; i++)
	{
		if (values[i] < 0 || values[i] >= there)
			elog(ERROR, "\"%s\" has no block %d",
				 RelationGetRelationName(rel), values[i]);
		blocks[i] = values[i];
	}
	return blocks;
}

Datum
test_ring_touch(PG_FUNCTION_ARGS)
{
	Relation	rel = test_open_relation(PG_GETARG_OID(0), AccessShareLock);
	int32		times = PG_GETARG_INT32(2);
	int			n;
	BlockNumber *blocks = test_ring_blocks(rel, PG_GETARG_ARRAYTYPE_P(1), &n);

	for (int32 time = 0; time < times; time++)
		for (int i = 0; i < n; i++)
			ReleaseBuffer(ReadBuffer(rel, blocks[i]));
	relation_close(rel, NoLock);
	PG_RETURN_VOID();
}

Datum
test_ring_hold(PG_FUNCTION_ARGS)
{
	Relation	rel = test_open_relation(PG_GETARG_OID(0), AccessShareLock);
	const How  *how = &hows[test_find_name(how_names, lengthof(how_names),
										   PG_GETARG_TEXT_PP(2), "way to hold a buffer")];
	TestRingShared *shared = test_ring_shared();
	uint32		let_go = pg_atomic_read_u32(&shared->let_go);
	Buffer	   *buffers;
	int			n;
	BlockNumber *blocks = test_ring_blocks(rel, PG_GETARG_ARRAYTYPE_P(1), &n);

	if (n > MAX_HELD)
		elog(ERROR, "%d blocks cannot be held at once", n);
	buffers = palloc_array(Buffer, Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		buffers[i] = test_ring_find(rel, blocks[i]);
		if (!BufferIsValid(buffers[i]))
			elog(ERROR, "block %u is not in the pool", blocks[i]);
	}

	for (int i = 0; i < n; i++)
	{
		BufferDesc *desc = GetBufferDescriptor(buffers[i] - 1);

		if (how->pinned && test_ring_pin(rel, blocks[i]) != buffers[i])
			elog(ERROR, "block %u has moved", blocks[i]);
		if (how->locked)
			LWLockAcquire(BufferDescriptorGetContentLock(desc), how->mode);
		if (how->io && !StartBufferIO(desc, false, true))
			elog(ERROR, "block %u is not dirty", blocks[i]);
	}
	pg_atomic_fetch_add_u32(&shared->holding, 1);

	test_ring_wait_for(&shared->let_go, let_go);

	for (int i = 0; i < n; i++)
	{
		BufferDesc *desc = GetBufferDescriptor(buffers[i] - 1);

		if (how->io)
			TerminateBufferIO(desc, false, 0, true, false);
		if (how->locked)
			LWLockRelease(BufferDescriptorGetContentLock(desc));
		if (how->pinned)
			ReleaseBuffer(buffers[i]);
	}
	pg_atomic_fetch_sub_u32(&shared->holding, 1);
	relation_close(rel, NoLock);
	PG_RETURN_VOID();
}

Datum
test_ring_holding(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(pg_atomic_read_u32(&test_ring_shared()->holding));
}

Datum
test_ring_let_go(PG_FUNCTION_ARGS)
{
	TestRingShared *shared = test_ring_shared();

	pg_atomic_fetch_add_u32(&shared->let_go, 1);
	while (pg_atomic_read_u32(&shared->holding) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		nap();
	}
	PG_RETURN_VOID();
}
