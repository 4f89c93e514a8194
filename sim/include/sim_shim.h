/*-------------------------------------------------------------------------
 *
 * sim/include/sim_shim.h
 *	  Included before each file that is played (-include): what the compiler
 *	  would not tell of, in words of which it does.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIM_SHIM_H
#define SIM_SHIM_H

#include "postgres.h"

#include "engine/sim.h"
#include "port/atomics.h"
#include "storage/s_lock.h"

/* Calls, when they are not in line */
extern void *sim_memcpy(void *to, const void *from, size_t size);
extern void *sim_memset(void *to, int value, size_t size);
extern int	sim_memcmp(const void *a, const void *b, size_t size);

#undef memcpy
#undef memset
#undef memcmp
#define memcpy(to, from, size)	sim_memcpy(to, from, size)
#define memset(to, value, size)	sim_memset(to, value, size)
#define memcmp(a, b, size)		sim_memcmp(a, b, size)

/* Spinlocks: on x86 an exchange of one byte, and a load before each new try */
static inline int
sim_test_and_set(volatile slock_t *lock)
{
	return __atomic_exchange_n(lock, 1, __ATOMIC_SEQ_CST);
}

#undef TAS
#undef TAS_SPIN
#undef SPIN_DELAY
#define TAS(lock)		sim_test_and_set(lock)
#define TAS_SPIN(lock)	(*(lock) ? 1 : TAS(lock))
#define SPIN_DELAY()	sim_pause()

/* The extension's one piece of inline assembly */
#ifdef SIM_EXTENSION
#define pgsweep_prefetch_for_write pgsweep_prefetch_by_instruction
#include "compat.h"
#undef pgsweep_prefetch_for_write

/*
 * A call from inside of an assembly statement.  Like the real one, it does not
 * clobber memory, or the compiler would load values again after it.
 */
static inline void
pgsweep_prefetch_for_write(const void *address)
{
	__asm__ __volatile__("mov %%rsp, %%rbx\n\t"
						 "sub $128, %%rsp\n\t"	/* the red zone */
						 "and $-16, %%rsp\n\t"
						 "call sim_prefetch_for_write\n\t"
						 "mov %%rbx, %%rsp"
						 : "+D" (address)
						 :
						 : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11",
						 "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
						 "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
						 "xmm15", "cc");
}
#endif

#endif							/* SIM_SHIM_H */
