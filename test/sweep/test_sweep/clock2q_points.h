/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/clock2q_points.h
 *	  Atomic operations of "clock2q" at which other virtual processes may go on:
 *	  before and after each.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CLOCK2Q_POINTS_H
#define CLOCK2Q_POINTS_H

#include "port/atomics.h"

/* Other processes may go on here */
static void point(void);

static inline uint32
sim_read_u32(pg_atomic_uint32 *ptr)
{
	uint32		value;

	point();
	value = pg_atomic_read_u32(ptr);
	point();
	return value;
}

static inline void
sim_write_u32(pg_atomic_uint32 *ptr, uint32 value)
{
	point();
	pg_atomic_write_u32(ptr, value);
	point();
}

static inline bool
sim_compare_exchange_u32(pg_atomic_uint32 *ptr, uint32 *expected, uint32 value)
{
	bool		done;

	point();
	done = pg_atomic_compare_exchange_u32(ptr, expected, value);
	point();
	return done;
}

static inline uint64
sim_fetch_add_u64(pg_atomic_uint64 *ptr, int64 add)
{
	uint64		old;

	point();
	old = pg_atomic_fetch_add_u64(ptr, add);
	point();
	return old;
}

#include "sweep/hand.h"

static inline uint64
sim_read_u64(const pg_atomic_uint64 *ptr)
{
	uint64		value;

	point();
	value = pgsweep_read_u64(ptr);
	point();
	return value;
}

#define pg_atomic_read_u32 sim_read_u32
#define pg_atomic_write_u32 sim_write_u32
#define pg_atomic_compare_exchange_u32 sim_compare_exchange_u32
#define pg_atomic_fetch_add_u64 sim_fetch_add_u64
#define pgsweep_read_u64 sim_read_u64

#endif							/* CLOCK2Q_POINTS_H */
