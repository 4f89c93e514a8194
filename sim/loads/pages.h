/*-------------------------------------------------------------------------
 *
 * pages.h
 *	  Pages in the pool, for loads that read them.
 *
 * sim/loads/pages.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAGES_H
#define PAGES_H

#include "postgres.h"

#include "engine/sim.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"

/* How pages are found; pages_NAME.c has one const table */
typedef struct PagesTable
{
	void		(*setup) (int64 npages);
	void		(*fill) (int64 page, BufferDesc *buf);	/* before the start */
	BufferDesc *(*get) (int64 page, bool *found);
} PagesTable;

extern const PagesTable pages_unmapped;
extern const PagesTable pages_mapped;

/* pages.c; after sim_pool_setup() */
extern void pages_setup(int64 npages);

/* Puts a page into a buffer before the start, with this usage count */
extern void pages_fill(int64 page, BufferDesc *buf, uint32 usage);

/*
 * The page's buffer, pinned.  One that was not found is the caller's to read; it
 * is called valid at once, so that others who look for it meanwhile do not wait
 * for him, as they would in the server.
 */
extern BufferDesc *pages_get(int64 page, bool *found);

extern void pages_pin(BufferDesc *buf);
extern void pages_unpin(BufferDesc *buf);

#endif							/* PAGES_H */
