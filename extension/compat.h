/*-------------------------------------------------------------------------
 *
 * extension/compat.h
 *	  What differs between servers; the only place that asks which one it is.
 *
 * A shim has the name and signature of the newest supported server.  A major
 * that has not been checked must not compile by accident.
 *
 * The symbols that the core patches add are weak references: on a server
 * without the patch they are NULL, the library can still be loaded, and
 * support.c says what is missing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_COMPAT_H
#define PGSWEEP_COMPAT_H

#if PG_VERSION_NUM < 180000 || PG_VERSION_NUM >= 190000
#error "pg_sweep supports PostgreSQL 18 only"
#endif

#ifdef EXEC_BACKEND
#error "pg_sweep needs children that inherit its state by fork: no EXEC_BACKEND"
#endif

#if SIZEOF_VOID_P < 8
#error "pg_sweep needs a 64-bit machine: its counters must be read in one piece"
#endif

/* ELF only, like every platform that PostgreSQL has NUMA support on */
#pragma weak sweep_hooks_api
#pragma weak ActivateBufferReplacement
#pragma weak GetAccessStrategyRing
#pragma weak GetBufferReplacement
#pragma weak LWLockWait
#pragma weak PinBufferToWrite
#pragma weak ProcPlacement
#pragma weak RingFlush
#pragma weak SetBufferReplacement
#pragma weak ShowPrivateRefCount
#pragma weak StrategyEmptyFreelist
#pragma weak SyncOneBuffer

#include "storage/buf_ring.h"
#include "storage/private_refcount.h"
#include "storage/sweep_hooks.h"

/*
 * Fetch a cache line that will be written soon, and must not be read: it may
 * lie outside of anything.  Compilers use the x86 instruction for it only when
 * told that the CPU has it; those that do not have it take it for a no-op.
 */
static inline void
pgsweep_prefetch_for_write(const void *address)
{
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
	__asm__ __volatile__("prefetchw %0" : : "m" (*(const char *) address));
#elif defined(__GNUC__) || defined(__clang__)
	__builtin_prefetch(address, 1);
#endif
}

#endif							/* PGSWEEP_COMPAT_H */
