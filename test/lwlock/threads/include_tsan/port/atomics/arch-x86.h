/*-------------------------------------------------------------------------
 *
 * arch-x86.h
 *	  In place of PostgreSQL's file of this name, under ThreadSanitizer.
 *
 * ThreadSanitizer does not see what inline assembly does.  Without it,
 * generic-gcc.h takes the compiler's builtins, which it sees, for all of the
 * operations.
 *
 * test/lwlock/threads/include_tsan/port/atomics/arch-x86.h
 *
 *-------------------------------------------------------------------------
 */
#define PG_HAVE_8BYTE_SINGLE_COPY_ATOMICITY
