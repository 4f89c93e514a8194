/*-------------------------------------------------------------------------
 *
 * sim/upstream/lwlock_v2.h
 *	  The lock of "Lockless queue of waiters in LWLock", second version.
 *
 *-------------------------------------------------------------------------
 */
#ifndef LWLOCK_V2_H
#define LWLOCK_V2_H

#include "port/atomics.h"
#include "storage/lwlock.h"

typedef struct V2Lock
{
	pg_atomic_uint64 state;
} V2Lock;

extern void v2_init(V2Lock *lock);
extern void v2_acquire(V2Lock *lock, LWLockMode mode);
extern bool v2_conditional_acquire(V2Lock *lock, LWLockMode mode);
extern void v2_release(V2Lock *lock, LWLockMode mode);

#endif							/* LWLOCK_V2_H */
