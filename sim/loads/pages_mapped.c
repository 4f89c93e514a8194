/*-------------------------------------------------------------------------
 *
 * pages_mapped.c
 *	  Pages in the pool, found as the server finds them.
 *
 * bufmgr.c's BufferAlloc(), restated: a page is looked up in the table that maps
 * pages to buffers, under the lock of its partition; one that is not there gets a
 * victim's buffer, whose old page is taken out of the table first.  The table is
 * the server's own (glue/mapping.c), and so are the locks.
 *
 * IDENTIFICATION
 *	  sim/loads/pages_mapped.c
 *
 *-------------------------------------------------------------------------
 */
#include "pages.h"

#include "glue/mapping.h"
#include "storage/bufmgr.h"
#include "storage/lwlock.h"

/* A relation's number changes each gigabyte; none of it matters but the hash */
#define FIRST_RELATION	16384
#define DATABASE		5
#define TABLESPACE		1663
#define RELATION_PAGES	131072

static void
setup(int64 npages)
{
	sim_mapping_setup();
}

static BufferTag
tag_of(int64 page)
{
	RelFileLocator locator = {TABLESPACE, DATABASE, FIRST_RELATION + page / RELATION_PAGES};
	BufferTag	tag;

	InitBufferTag(&tag, &locator, MAIN_FORKNUM, page % RELATION_PAGES);
	return tag;
}

static void
fill(int64 page, BufferDesc *buf)
{
	buf->tag = tag_of(page);
	BufTableInsert(&buf->tag, BufTableHashCode(&buf->tag), buf->buf_id);
}

/*
 * Take the old page of a buffer, which the caller has pinned, out of the table.
 * false if somebody has pinned it meanwhile.
 */
static bool
invalidate(BufferDesc *buf)
{
	BufferTag	tag = buf->tag;
	uint32		hash = BufTableHashCode(&tag);
	LWLock	   *lock = BufMappingPartitionLock(hash);
	uint32		state;

	LWLockAcquire(lock, LW_EXCLUSIVE);
	state = LockBufHdr(buf);
	if (BUF_STATE_GET_REFCOUNT(state) != 1)
	{
		UnlockBufHdr(buf, state);
		LWLockRelease(lock);
		return false;
	}
	ClearBufferTag(&buf->tag);
	UnlockBufHdr(buf, state & ~(BUF_FLAG_MASK | BUF_USAGECOUNT_MASK));
	BufTableDelete(&tag, hash);
	LWLockRelease(lock);
	return true;
}

/*
 * A buffer without a page, pinned.
 */
static BufferDesc *
get_empty(void)
{
	for (;;)
	{
		uint32		state;
		BufferDesc *buf = sim_get_victim(&state);

		UnlockBufHdr(buf, state + BUF_REFCOUNT_ONE);
		if (!(state & BM_TAG_VALID) || invalidate(buf))
			return buf;
		pages_unpin(buf);
	}
}

/*
 * The page's buffer, pinned.  One that was not found is the caller's to read; it
 * is called valid at once, so that others who look for it meanwhile do not wait
 * for him, as they would in the server.  Each of the header's locks for the read
 * itself (StartBufferIO(), TerminateBufferIO()) is a hit on a line that is here,
 * and left out.
 */
static BufferDesc *
get(int64 page, bool *found)
{
	BufferTag	tag = tag_of(page);
	uint32		hash = BufTableHashCode(&tag);
	LWLock	   *lock = BufMappingPartitionLock(hash);
	BufferDesc *buf;
	int			there;
	uint32		state;

	LWLockAcquire(lock, LW_SHARED);
	there = BufTableLookup(&tag, hash);
	*found = there >= 0;
	if (there >= 0)
	{
		buf = GetBufferDescriptor(there);
		pages_pin(buf);
		LWLockRelease(lock);
		return buf;
	}
	LWLockRelease(lock);

	buf = get_empty();
	LWLockAcquire(lock, LW_EXCLUSIVE);
	there = BufTableInsert(&tag, hash, buf->buf_id);
	if (there >= 0)
	{
		/* somebody was faster */
		pages_unpin(buf);
		buf = GetBufferDescriptor(there);
		pages_pin(buf);
		LWLockRelease(lock);
		*found = true;
		return buf;
	}
	state = LockBufHdr(buf);
	buf->tag = tag;
	UnlockBufHdr(buf, state | BM_TAG_VALID | BM_VALID | BUF_USAGECOUNT_ONE);
	LWLockRelease(lock);
	return buf;
}

const PagesTable pages_mapped = {setup, fill, get};
