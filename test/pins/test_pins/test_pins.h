/*-------------------------------------------------------------------------
 *
 * test_pins.h
 *	  What a backend's own pins look like from outside bufmgr.c
 *
 * test/pins/test_pins/test_pins.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_PINS_H
#define TEST_PINS_H

#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "utils/relcache.h"

/*
 * How many processes have a buffer pinned.  Read without the header lock: what
 * this process has done is in there, and nobody else does anything to the tables
 * of these tests.
 */
static inline uint32
test_pins_shared(Buffer buffer)
{
	return BUF_STATE_GET_REFCOUNT(pg_atomic_read_u32(&GetBufferDescriptor(buffer - 1)->state));
}

extern int32 test_pins_private(Buffer buffer);
extern Relation test_pins_open(Oid relid, LOCKMODE lockmode);
extern void test_pins_check_blocks(Relation rel, BlockNumber first, int32 blocks);

#endif							/* TEST_PINS_H */
