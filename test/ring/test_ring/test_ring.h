/*-------------------------------------------------------------------------
 *
 * test_ring.h
 *	  What the parts of this module share
 *
 * test/ring/test_ring/test_ring.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_RING_FLUSH_H
#define TEST_RING_FLUSH_H

#include "port/atomics.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "utils/array.h"
#include "utils/relcache.h"

typedef enum HowDirty
{
	NOT_DIRTY,
	LOGGED,
	UNLOGGED,
	UNLOGGED_FAKE_LSN
} HowDirty;

/*
 * What the sessions of a test tell each other.
 */
typedef struct TestRingShared
{
	pg_atomic_uint32 holding;	/* sessions in test_ring_hold() */
	pg_atomic_uint32 let_go;	/* how often test_ring_let_go() was called */
	pg_atomic_uint32 stopped;	/* laps that have stopped */
	pg_atomic_uint32 go;		/* how often test_ring_go() was called */
} TestRingShared;

/* this session's */
extern BufferAccessStrategy test_ring;

extern TestRingShared *test_ring_shared(void);
extern void test_ring_wait_for(pg_atomic_uint32 *counter, uint32 before);
extern void test_ring_fill_page(Buffer buffer, HowDirty how, int32 version);
extern Relation test_ring_open(Oid relid, LOCKMODE lockmode);
extern Buffer test_ring_find(Relation rel, BlockNumber block);
extern BlockNumber *test_ring_blocks(Relation rel, ArrayType *array, int *n);

#endif							/* TEST_RING_FLUSH_H */
