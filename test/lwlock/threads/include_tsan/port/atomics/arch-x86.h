/*-------------------------------------------------------------------------
 *
 * test/lwlock/threads/include_tsan/port/atomics/arch-x86.h
 *	  In place of PostgreSQL's file of this name, under ThreadSanitizer.
 *
 * ThreadSanitizer does not see inline assembly.  Without it, generic-gcc.h uses the
 * compiler's builtins, which ThreadSanitizer sees, for all operations.
 *
 *-------------------------------------------------------------------------
 */
#define PG_HAVE_8BYTE_SINGLE_COPY_ATOMICITY
