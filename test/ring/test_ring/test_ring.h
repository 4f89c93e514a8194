/*-------------------------------------------------------------------------
 *
 * test/ring/test_ring/test_ring.h
 *	  What the parts of this module share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_RING_H
#define TEST_RING_H

#include "port/atomics.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "utils/array.h"

#include "test_module.h"

typedef enum HowDirty
{
	NOT_DIRTY,
	LOGGED,
	UNLOGGED,
	UNLOGGED_FAKE_LSN
} HowDirty;

/* Shared by the sessions of a test */
typedef struct TestRingShared
{
	pg_atomic_uint32 holding;	/* sessions in test_ring_hold() */
	pg_atomic_uint32 let_go;	/* calls of test_ring_let_go() */
	pg_atomic_uint32 stopped;	/* laps that have stopped */
	pg_atomic_uint32 go;		/* calls of test_ring_go() */
} TestRingShared;

/* of this session */
extern BufferAccessStrategy test_ring;

extern TestRingShared *test_ring_shared(void);
extern void test_ring_wait_for(pg_atomic_uint32 *counter, uint32 before);
extern void test_ring_fill_page(Buffer buffer, HowDirty how, int32 version);
extern Buffer test_ring_pin(Relation rel, BlockNumber block);
extern Buffer test_ring_find(Relation rel, BlockNumber block);
extern BlockNumber *test_ring_blocks(Relation rel, ArrayType *array, int *n);

#endif							/* TEST_RING_H */
