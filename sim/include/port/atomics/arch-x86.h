/*-------------------------------------------------------------------------
 *
 * sim/include/port/atomics/arch-x86.h
 *	  In place of PostgreSQL's file of this name, in the simulator.
 *
 * The compiler tells of no access that inline assembly makes.  Without it,
 * generic-gcc.h takes the compiler's builtins, of which it tells.  Barriers are
 * what they are on x86: the full one is a locked instruction, the others keep
 * the compiler from moving things.
 *
 *-------------------------------------------------------------------------
 */
extern void sim_full_fence(void);

#define pg_memory_barrier_impl()	sim_full_fence()
#define pg_read_barrier_impl()		pg_compiler_barrier_impl()
#define pg_write_barrier_impl()		pg_compiler_barrier_impl()

#define PG_HAVE_8BYTE_SINGLE_COPY_ATOMICITY
