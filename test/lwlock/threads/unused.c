/*-------------------------------------------------------------------------
 *
 * test/lwlock/threads/unused.c
 *	  Functions of the server that lwlock.c refers to in code that the harness
 *	  does not reach, or only after a failure.
 *
 * No header is included: their true types do not matter.
 *
 *-------------------------------------------------------------------------
 */
extern void harness_fail(const char *fmt,...) __attribute__((noreturn));

#define NOT_HERE(name) \
	void		name(void); \
	void		name(void) {harness_fail("called %s()", #name);}

NOT_HERE(MemoryContextAlloc)
NOT_HERE(MemoryContextAllocZero)
NOT_HERE(ShmemAlloc)
NOT_HERE(add_size)
NOT_HERE(errfinish)
NOT_HERE(errmsg_internal)
NOT_HERE(errstart)
NOT_HERE(errstart_cold)
NOT_HERE(mul_size)
NOT_HERE(repalloc)
NOT_HERE(repalloc0)
NOT_HERE(s_lock)
NOT_HERE(strlcpy)
NOT_HERE(pg_fprintf)
NOT_HERE(pg_snprintf)
