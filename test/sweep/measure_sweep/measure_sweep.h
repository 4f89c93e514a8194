/*-------------------------------------------------------------------------
 *
 * test/sweep/measure_sweep/measure_sweep.h
 *	  The allocating loop.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MEASURE_SWEEP_H
#define MEASURE_SWEEP_H

#include "storage/buf_internals.h"

/*
 * Turn a usage count from SQL into the bits of a buffer's state word.
 */
static inline uint32
usage_to_bits(int32 usage)
{
	if (usage < 0 || usage > BM_MAX_USAGE_COUNT)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("usage count must be between 0 and %d",
						BM_MAX_USAGE_COUNT)));

	return (uint32) usage << BUF_USAGECOUNT_SHIFT;
}

/*
 * Allocate one victim, and give it back with the usage count that usage_bits
 * holds.
 */
static inline BufferDesc *
cycle_victim(uint32 usage_bits)
{
	BufferDesc *buf;
	uint32		buf_state;
	bool		from_ring;

	buf = StrategyGetBuffer(NULL, &buf_state, &from_ring);

	/*
	 * A victim has usage count 0, so the bits can be or'ed in.
	 */
	Assert(buf_state & BM_LOCKED);
	Assert(BUF_STATE_GET_REFCOUNT(buf_state) == 0);
	Assert(BUF_STATE_GET_USAGECOUNT(buf_state) == 0);

	UnlockBufHdr(buf, buf_state | usage_bits);
	return buf;
}

static inline void
cycle_victims(int64 allocations, uint32 usage_bits)
{
	for (int64 i = 0; i < allocations; i++)
		(void) cycle_victim(usage_bits);
}

#endif							/* MEASURE_SWEEP_H */
