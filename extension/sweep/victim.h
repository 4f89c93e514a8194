/*-------------------------------------------------------------------------
 *
 * extension/sweep/victim.h
 *	  One look at one buffer: in use, used of late, or a victim.
 *
 * Core locks the header of every buffer that the hand passes, pinned or not:
 * an atomic fetch-or and a store for each.  A plain read is enough for
 * buffers in use.  Otherwise one compare-and-swap takes one usage count, or
 * the header lock of the victim, and proves that the state is unchanged since
 * the read (PostgreSQL 19 also needs one CAS per look: commit 5e89985928).
 *
 * The rule of buf_internals.h is kept: without the header lock, state changes
 * only by compare-and-swap from a value without BM_LOCKED.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_VICTIM_H
#define PGSWEEP_VICTIM_H

#include "storage/buf_internals.h"

typedef enum PgSweepLook
{
	PGSWEEP_LOOK_VICTIM,		/* header locked; *buf_state is set */
	PGSWEEP_LOOK_USED,			/* took one usage count */
	PGSWEEP_LOOK_PINNED,		/* pinned, or its header locked by another */
	PGSWEEP_LOOK_RACED,			/* it changed meanwhile: in use */
	PGSWEEP_LOOK_NONE			/* another hand's: not looked at */
} PgSweepLook;

/*
 * A buffer with this state is a victim.
 */
static inline bool
pgsweep_state_is_free(uint32 state)
{
	return (state & (BUF_REFCOUNT_MASK | BUF_USAGECOUNT_MASK | BM_LOCKED)) == 0;
}

/*
 * Does a buffer with this state hold a page, which a new one would evict?
 * Without a branch: 1 or 0.
 */
static inline uint32
pgsweep_state_has_page(uint32 state)
{
	return (state / BM_TAG_VALID) & 1;
}

/*
 * Lock the header of a free buffer whose state was old_state, if it still is.
 * Full barrier.
 */
static inline bool
pgsweep_lock_victim(BufferDesc *buf, uint32 old_state, uint32 *buf_state)
{
	uint32		expected = old_state;

	if (unlikely(!pg_atomic_compare_exchange_u32(&buf->state, &expected,
												 old_state | BM_LOCKED)))
		return false;
	*buf_state = old_state | BM_LOCKED;
	return true;
}

/*
 * Never waits.  A buffer that changes between the read and the CAS is left
 * alone: another process is using it, and it will come round again.
 *
 * Full barrier for PGSWEEP_LOOK_VICTIM (it takes a lock), none otherwise.
 */
static inline PgSweepLook
pgsweep_look(BufferDesc *buf, uint32 *buf_state)
{
	uint32		state = pg_atomic_read_u32(&buf->state);

	if (BUF_STATE_GET_REFCOUNT(state) != 0 || (state & BM_LOCKED))
		return PGSWEEP_LOOK_PINNED;

	if (BUF_STATE_GET_USAGECOUNT(state) != 0)
	{
		if (likely(pg_atomic_compare_exchange_u32(&buf->state, &state,
												  state - BUF_USAGECOUNT_ONE)))
			return PGSWEEP_LOOK_USED;
		return PGSWEEP_LOOK_RACED;
	}

	if (likely(pgsweep_lock_victim(buf, state, buf_state)))
		return PGSWEEP_LOOK_VICTIM;
	return PGSWEEP_LOOK_RACED;
}

/*
 * The same under the header lock, for the last round before "no unpinned
 * buffers available", which must be certain.
 */
static inline PgSweepLook
pgsweep_look_locked(BufferDesc *buf, uint32 *buf_state)
{
	uint32		state = LockBufHdr(buf);

	if (BUF_STATE_GET_REFCOUNT(state) != 0)
	{
		UnlockBufHdr(buf, state);
		return PGSWEEP_LOOK_PINNED;
	}
	if (BUF_STATE_GET_USAGECOUNT(state) != 0)
	{
		UnlockBufHdr(buf, state - BUF_USAGECOUNT_ONE);
		return PGSWEEP_LOOK_USED;
	}
	*buf_state = state;
	return PGSWEEP_LOOK_VICTIM;
}

#endif							/* PGSWEEP_VICTIM_H */
