/*-------------------------------------------------------------------------
 *
 * test/lwlock/threads/tsan.c
 *	  How ThreadSanitizer is told about volatile accesses and barriers.
 *
 * The server reads atomics by plain volatile accesses, and orders them by barriers
 * (fences).  ThreadSanitizer models neither.  The compiler calls the functions
 * below for volatile accesses (--param=tsan-distinguish-volatile=1), and they are
 * treated as relaxed atomics.  lwWaiting, which is read while another process
 * writes it, is made volatile for this (per_backend --volatile).
 *
 * Barriers are modelled like this:
 *
 *	- The next volatile write after a write barrier releases.
 *	- A read barrier, or an atomic operation other than a read, acquires the values
 *	  of the latest volatile reads of this thread.
 *	- A read of lwWaiting acquires by itself.  A control dependency orders later
 *	  writes of the process, and the server relies on it where it queues for a
 *	  variable.  It does not order later reads: a missing read barrier would not be
 *	  reported there.
 *
 * So a missing barrier shows as a race on the plain fields that it orders.  A real
 * fence also orders later writes, but nothing here depends on that.
 *
 * This file is compiled without instrumentation.
 *
 *-------------------------------------------------------------------------
 */
#include <stdbool.h>
#include <stdint.h>
#include <sanitizer/tsan_interface.h>

/* Of libtsan; gcc does not install the header that has them (C11's orders) */
#define ATOMIC_OF(bits, type) \
extern type __tsan_atomic##bits##_load(const volatile type *p, int order); \
extern type __tsan_atomic##bits##_fetch_add(volatile type *p, type add, int order);

ATOMIC_OF(8, uint8_t)
ATOMIC_OF(16, uint16_t)
ATOMIC_OF(32, uint32_t)
ATOMIC_OF(64, uint64_t)

#define RECENT	8

static __thread void *recent[RECENT];
static __thread unsigned nrecent;
static __thread bool release_next;

void		harness_read_barrier(void);
void		harness_write_barrier(void);

void
harness_read_barrier(void)
{
	unsigned	n = nrecent < RECENT ? nrecent : RECENT;

	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < n; i++)
		__tsan_acquire(recent[i]);
	nrecent = 0;
}

void
harness_write_barrier(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	release_next = true;
}

static void
note_read(void *p, int size)
{
	if (size == sizeof(uint8_t))	/* lwWaiting is the only one */
		__tsan_acquire(p);
	recent[nrecent++ % RECENT] = p;
}

static void
note_write(void *p)
{
	if (release_next)
		__tsan_release(p);
	release_next = false;
}

/*
 * Called before the access itself.  ThreadSanitizer sees an atomic read, or for a
 * write an atomic addition of 0; the access itself is hidden from it.
 */
#define VOLATILE(size, bits) \
void		__tsan_volatile_read##size(void *p); \
void		__tsan_volatile_write##size(void *p); \
void \
__tsan_volatile_read##size(void *p) \
{ \
	(void) __tsan_atomic##bits##_load(p, __ATOMIC_RELAXED); \
	note_read(p, size); \
} \
void \
__tsan_volatile_write##size(void *p) \
{ \
	note_write(p); \
	(void) __tsan_atomic##bits##_fetch_add(p, 0, __ATOMIC_RELAXED); \
}

VOLATILE(1, 8)
VOLATILE(2, 16)
VOLATILE(4, 32)
VOLATILE(8, 64)
