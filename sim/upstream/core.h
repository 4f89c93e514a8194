/*-------------------------------------------------------------------------
 *
 * sim/upstream/core.h
 *	  How PostgreSQL 18 finds a victim, written again: the part that strategies
 *	  share.
 *
 * As freelist.c, without rings of access strategies and without a freelist (it is
 * empty soon after the start, and only dropped tables fill it).  It reads and
 * writes the same, in the same places.  "sim/run victims" compares it with a
 * running server.
 *
 *-------------------------------------------------------------------------
 */
#ifndef UPSTREAM_CORE_H
#define UPSTREAM_CORE_H

#include "postgres.h"

#include "port/atomics.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/spin.h"

/*
 * The fields, their sizes and their order are the server's: all are in one line.
 */
typedef struct UpstreamControl
{
	slock_t		lock;			/* of passes, and of the freelist */
	pg_atomic_uint32 hand;		/* taken modulo NBuffers */
	int			first_free;		/* -1: the freelist is empty */
	int			last_free;
	uint32		passes;
	pg_atomic_uint32 allocations;
	int			bgwriter;		/* wants to be woken, or -1 */
} UpstreamControl;

StaticAssertDecl(sizeof(UpstreamControl) <= SIM_CACHE_LINE,
				 "the server has all of this in one line");

/* stock.c; common to all processes */
extern UpstreamControl *upstream_control;
extern void upstream_setup(void);
extern void upstream_bgwriter_cycle(void);
extern void upstream_woken_bgwriter(void);

/*
 * Before the search: does the background writer want to be woken?
 */
static inline void
upstream_wake_bgwriter(void)
{
	if (*(volatile int *) &upstream_control->bgwriter != -1)
	{
		upstream_control->bgwriter = -1;
		upstream_woken_bgwriter();
	}
}

/*
 * The walk to a victim; tick gives the next buffer's number.
 *
 * Each buffer that is looked at has its header locked and unlocked.  One with a
 * usage count loses one of it.  After as many pinned ones in a row as there are
 * buffers, there is no hope.
 */
static inline BufferDesc *
upstream_walk(uint32 *buf_state, uint32 (*tick) (void))
{
	int			tries = NBuffers;

	for (;;)
	{
		BufferDesc *buf = GetBufferDescriptor(tick());
		uint32		state = LockBufHdr(buf);

		if (BUF_STATE_GET_REFCOUNT(state) == 0)
		{
			if (BUF_STATE_GET_USAGECOUNT(state) == 0)
			{
				*buf_state = state;
				return buf;
			}
			state -= BUF_USAGECOUNT_ONE;
			tries = NBuffers;
		}
		else if (--tries == 0)
		{
			UnlockBufHdr(buf, state);
			elog(ERROR, "no unpinned buffers available");
		}
		UnlockBufHdr(buf, state);
	}
}

/*
 * Stock's whole way, but for the tick.
 */
static inline BufferDesc *
upstream_get_victim(uint32 *buf_state, uint32 (*tick) (void))
{
	upstream_wake_bgwriter();
	pg_atomic_fetch_add_u32(&upstream_control->allocations, 1);
	if (unlikely(upstream_control->first_free >= 0))
		elog(ERROR, "the freelist is not empty");
	return upstream_walk(buf_state, tick);
}

#endif							/* UPSTREAM_CORE_H */
