/*-------------------------------------------------------------------------
 *
 * extension/sweep/tag_hash.h
 *	  A hash of a page's tag.
 *
 * For what remembers pages: ghosts, and samples of pages.  Core's own hash takes
 * 92 instructions and has 32 bits, which is few for the pages of large pools.
 * This one takes two dozen.  It is stable: what was recorded from a server can be
 * played again (bench/policies/replay.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_TAG_HASH_H
#define PGSWEEP_TAG_HASH_H

#include "common/hashfn.h"

/*
 * Different pages of one relation have different hashes, those of its forks, too:
 * each step can be undone.  Two relations of different databases share all their
 * hashes with a probability of 2^-32.  The number is that of a Fibonacci hash:
 * 2^64 by the golden ratio.
 */
static inline uint64
pgsweep_hash_page(uint32 tablespace, uint32 database, uint32 relation,
				  uint32 fork, uint32 block)
{
	uint64		page = (uint64) relation << 32 | block;
	uint64		space = ((uint64) database << 32 | tablespace) ^ (uint64) fork << 60;

	return murmurhash64(page ^ space * UINT64_C(0x9E3779B97F4A7C15));
}

/* Only for those that have included storage/buf_internals.h */
#define pgsweep_hash_tag(tag) \
	pgsweep_hash_page((tag)->spcOid, (tag)->dbOid, (tag)->relNumber, \
					  (uint32) (tag)->forkNum, (tag)->blockNum)

#endif							/* PGSWEEP_TAG_HASH_H */
