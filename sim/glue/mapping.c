/*-------------------------------------------------------------------------
 *
 * mapping.c
 *	  The table that maps pages to buffers, and what its code needs of the rest
 *	  of the server.
 *
 * buf_table.c and dynahash.c are the real files (lib/build.py lists them), and
 * so are the locks of its partitions: buckets, elements and the 32 freelists with
 * their spinlocks, of which several share a line, are where the server has them.
 *
 * Comparing and copying a tag is done by the C library, through pointers that
 * dynahash.c keeps, and costs nothing here.  Both are in the line of the element,
 * whose link has just been read or written.
 *
 * sim/glue/mapping.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "glue/mapping.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/shmem.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

/*
 * As StrategyInitialize() does.
 */
void
sim_mapping_setup(void)
{
	InitBufTable(NBuffers + NUM_BUFFER_PARTITIONS);
}

/* ---- shared memory: as in shmem.c, of a table that is never there yet ---- */

void *
ShmemAllocNoError(Size size)
{
	return sim_shared_alloc("mapping", size, PG_CACHE_LINE_SIZE, SIM_INTERLEAVE);
}

HTAB *
ShmemInitHash(const char *name, long init_size, long max_size, HASHCTL *infoP, int hash_flags)
{
	infoP->dsize = infoP->max_dsize = hash_select_dirsize(max_size);
	infoP->alloc = ShmemAllocNoError;
	hash_flags |= HASH_SHARED_MEM | HASH_ALLOC | HASH_DIRSIZE;
	infoP->hctl = ShmemAllocNoError(hash_get_shared_size(infoP, hash_flags));
	return hash_create(name, init_size, infoP, hash_flags);
}

/* ---- memory of the process ---- */

void *
MemoryContextAllocExtended(MemoryContext context, Size size, int flags)
{
	return MemoryContextAllocZero(context, size);
}

/* ---- what a table in shared memory has no use for ---- */

MemoryContext
AllocSetContextCreateInternal(MemoryContext parent, const char *name, Size minContextSize,
							  Size initBlockSize, Size maxBlockSize)
{
	sim_fail("called AllocSetContextCreate()");
}

void
MemoryContextDelete(MemoryContext context)
{
	sim_fail("called MemoryContextDelete()");
}

void
MemoryContextSetIdentifier(MemoryContext context, const char *id)
{
	sim_fail("called MemoryContextSetIdentifier()");
}

void
pfree(void *pointer)
{
	sim_fail("called pfree()");
}

int
GetCurrentTransactionNestLevel(void)
{
	sim_fail("called GetCurrentTransactionNestLevel()");
}
