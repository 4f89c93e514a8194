/*-------------------------------------------------------------------------
 *
 * extension/sweep/find_free.c
 *	  Is there a buffer that holds no page?
 *
 * Core answers from its freelist.  Other strategies have none, so this
 * examines the buffers.  The only caller is autoprewarm, which asks before
 * each block and stops at the first "no".  The cursor makes all its questions
 * together cost about one walk over the descriptors.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/bufmgr.h"
#include "sweep/strategy.h"

/*
 * Plain reads of the state: the answer is a hint, and may be stale at once.
 */
bool
pgsweep_find_free_buffer(void)
{
	static int	cursor = 0;

	for (int i = 0; i < NBuffers; i++)
	{
		BufferDesc *buf = GetBufferDescriptor(cursor);
		uint32		state = pg_atomic_read_u32(&buf->state);

		if (!(state & BM_TAG_VALID) && BUF_STATE_GET_REFCOUNT(state) == 0)
			return true;
		if (++cursor >= NBuffers)
			cursor = 0;
	}
	return false;
}
