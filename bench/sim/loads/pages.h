/*-------------------------------------------------------------------------
 *
 * pages.h
 *	  Which page is in which buffer, for loads that read pages.
 *
 * What is simulated are the buffers' headers: a page is found in the pool by
 * pinning its buffer, and put into it by allocating one, as in bufmgr.c.  The
 * table that maps pages to buffers is not: its partitions are 128, their locks
 * are taken by different clients for different pages, and what finding a page
 * costs is part of the load's private time.  So the hit ratio is what the
 * replacement makes of it, and no constant.
 *
 * bench/sim/loads/pages.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAGES_H
#define PAGES_H

#include "postgres.h"

#include "engine/sim.h"
#include "storage/buf_internals.h"

#define NO_BUFFER	(-1)
#define NO_PAGE		(-1)

/* pages.c */
extern void pages_setup(int64 npages);
extern int	pages_pin(int64 page);
extern int	pages_read(int64 page);
extern void pages_unpin(int buffer);
extern void pages_fill(int64 page, int buffer, uint32 usage);

#endif							/* PAGES_H */
