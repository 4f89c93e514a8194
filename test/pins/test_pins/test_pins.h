/*-------------------------------------------------------------------------
 *
 * test/pins/test_pins/test_pins.h
 *	  A backend's own pins, as seen from outside bufmgr.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_PINS_H
#define TEST_PINS_H

#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "utils/resowner.h"

#include "test_module.h"

/*
 * How many processes have pinned a buffer.  No header lock is needed: no other
 * process uses the tables of these tests.
 */
static inline uint32
test_pins_shared(Buffer buffer)
{
	return BUF_STATE_GET_REFCOUNT(pg_atomic_read_u32(&GetBufferDescriptor(buffer - 1)->state));
}

/* As an abort does */
static inline void
test_pins_delete_owner(ResourceOwner owner)
{
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_BEFORE_LOCKS, false, false);
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_LOCKS, false, false);
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_AFTER_LOCKS, false, false);
	ResourceOwnerDelete(owner);
}

extern int32 test_pins_private(Buffer buffer);
extern void test_pins_check_blocks(Relation rel, BlockNumber first, int32 blocks);

#endif							/* TEST_PINS_H */
