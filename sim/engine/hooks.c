/*-------------------------------------------------------------------------
 *
 * sim/engine/hooks.c
 *	  The calls that the compiler makes: of each access to memory
 *	  (-fsanitize=thread) and of each basic block (-fsanitize-coverage).
 *
 * An access to shared memory is played first, which may let others run; then
 * it is done, before another fiber runs.  So the value that it sees is that of
 * the moment at which the line arrives.
 *
 * fetch-or and fetch-and are a load and a compare-and-swap loop, as x86 has no
 * instruction that would return the old value.
 *
 *-------------------------------------------------------------------------
 */
#include "engine.h"

/*
 * Private work is counted in tenths of instructions: per basic block and per access
 * to private memory.  These are the least squares to bench/instructions, stock and
 * batched, usage 0 and 2: 107.0, 225.1, 95.9 and 164.9 instructions per allocation
 * come out as 98, 228, 102 and 162.
 */
#define BLOCK_TENTHS	25
#define ACCESS_TENTHS	28

SimFiber   *sim_me;
SimTime		sim_limit;

/*
 * Let the counted private work take its time.
 */
static inline void
settle(void)
{
	if (sim_me->tenths != 0)
	{
		SimTime		ps = sim_me->tenths * sim_machine()->instruction_ps / 10;

		sim_me->tenths = 0;
		sim_me->clock += sim_jittered(sim_me, ps);
	}
}

static inline bool
is_shared(const volatile void *address)
{
	return (size_t) ((const volatile char *) address - sim_arena) < SIM_ARENA_BYTES;
}

static inline void
access_line(const volatile void *address, SimAccess what)
{
	size_t		offset = (const volatile char *) address - sim_arena;
	SimLine    *line;

	if (unlikely(offset >= SIM_ARENA_BYTES))
		return;
	if (unlikely(sim_me == NULL))
		return;					/* while shared memory is made */
	line = &sim_lines[offset >> SIM_LINE_SHIFT];
	if (unlikely(line->region == 0))
		sim_fail("fiber %d uses memory that was not allocated", sim_self());
	settle();
	switch (what)
	{
		case SIM_LOAD:
			sim_counts[line->region].loads++;
			break;
		case SIM_STORE:
			sim_counts[line->region].stores++;
			break;
		default:
			sim_counts[line->region].atomics++;
	}
	sim_access_slow(line, what);
}

static inline void
private_access(const volatile void *address, bool write)
{
	if (unlikely(sim_me == NULL))
		return;
	sim_me->tenths += ACCESS_TENTHS;
	if (unlikely((size_t) ((const volatile char *) address - sim_large_start) < sim_large_size))
		sim_large_touched((const char *) address, write);
	if (write && unlikely((size_t) ((const volatile char *) address - sim_private_start) < sim_private_size))
		sim_private_written((const char *) address);
}

static inline void
access(const volatile void *address, SimAccess what)
{
	if (is_shared(address))
		access_line(address, what);
	else
		private_access(address, what != SIM_LOAD);
}

#define READ(name)		void __tsan_##name(const volatile void *p); \
	void __tsan_##name(const volatile void *p) { access(p, SIM_LOAD); }
#define WRITE(name)		void __tsan_##name(volatile void *p); \
	void __tsan_##name(volatile void *p) { access(p, SIM_STORE); }

READ(read1) READ(read2) READ(read4) READ(read8) READ(read16)
READ(volatile_read1) READ(volatile_read2) READ(volatile_read4) READ(volatile_read8) READ(volatile_read16)
READ(unaligned_read2) READ(unaligned_read4) READ(unaligned_read8) READ(unaligned_read16)
READ(unaligned_volatile_read2) READ(unaligned_volatile_read4)
READ(unaligned_volatile_read8) READ(unaligned_volatile_read16)
WRITE(write1) WRITE(write2) WRITE(write4) WRITE(write8) WRITE(write16)
WRITE(volatile_write1) WRITE(volatile_write2) WRITE(volatile_write4)
WRITE(volatile_write8) WRITE(volatile_write16)
WRITE(unaligned_write2) WRITE(unaligned_write4) WRITE(unaligned_write8) WRITE(unaligned_write16)
WRITE(unaligned_volatile_write2) WRITE(unaligned_volatile_write4)
WRITE(unaligned_volatile_write8) WRITE(unaligned_volatile_write16)

void		__tsan_init(void);
void		__tsan_read_range(const void *p, size_t size);
void		__tsan_write_range(void *p, size_t size);
void		__sanitizer_cov_trace_pc(void);

void
__tsan_init(void)
{
}

/* word by word, as a copy does */
static void
access_range(const char *p, size_t size, SimAccess what)
{
	const char *end = p + size;

	while (p < end)
	{
		access(p, what);
		p += 8 - (uintptr_t) p % 8;
	}
}

void
__tsan_read_range(const void *p, size_t size)
{
	access_range(p, size, SIM_LOAD);
}

void
__tsan_write_range(void *p, size_t size)
{
	access_range(p, size, SIM_STORE);
}

void
__sanitizer_cov_trace_pc(void)
{
	if (likely(sim_me != NULL))
		sim_me->tenths += BLOCK_TENTHS;
}

/* ---- atomics; the last arguments are memory orders: on x86 all the same ---- */

#define ATOMIC(bits) \
typedef uint##bits##_t u##bits; \
u##bits __tsan_atomic##bits##_load(const volatile u##bits *p, int order); \
void	__tsan_atomic##bits##_store(volatile u##bits *p, u##bits v, int order); \
u##bits __tsan_atomic##bits##_exchange(volatile u##bits *p, u##bits v, int order); \
u##bits __tsan_atomic##bits##_fetch_add(volatile u##bits *p, u##bits v, int order); \
u##bits __tsan_atomic##bits##_fetch_sub(volatile u##bits *p, u##bits v, int order); \
u##bits __tsan_atomic##bits##_fetch_or(volatile u##bits *p, u##bits v, int order); \
u##bits __tsan_atomic##bits##_fetch_and(volatile u##bits *p, u##bits v, int order); \
int		__tsan_atomic##bits##_compare_exchange_strong(volatile u##bits *p, u##bits *expected, \
													  u##bits v, int order, int failed); \
int		__tsan_atomic##bits##_compare_exchange_weak(volatile u##bits *p, u##bits *expected, \
													u##bits v, int order, int failed); \
u##bits __tsan_atomic##bits##_compare_exchange_val(volatile u##bits *p, u##bits expected, \
												   u##bits v, int order, int failed); \
u##bits \
__tsan_atomic##bits##_load(const volatile u##bits *p, int order) \
{ \
	access(p, SIM_LOAD); \
	return *p; \
} \
void \
__tsan_atomic##bits##_store(volatile u##bits *p, u##bits v, int order) \
{ \
	access(p, order == __ATOMIC_SEQ_CST ? SIM_RMW : SIM_STORE); \
	*p = v; \
} \
u##bits \
__tsan_atomic##bits##_exchange(volatile u##bits *p, u##bits v, int order) \
{ \
	u##bits		old; \
	access(p, SIM_RMW); \
	old = *p; \
	*p = v; \
	return old; \
} \
u##bits \
__tsan_atomic##bits##_fetch_add(volatile u##bits *p, u##bits v, int order) \
{ \
	u##bits		old; \
	access(p, SIM_RMW); \
	old = *p; \
	*p = old + v; \
	return old; \
} \
u##bits \
__tsan_atomic##bits##_fetch_sub(volatile u##bits *p, u##bits v, int order) \
{ \
	return __tsan_atomic##bits##_fetch_add(p, -v, order); \
} \
u##bits \
__tsan_atomic##bits##_compare_exchange_val(volatile u##bits *p, u##bits expected, \
										   u##bits v, int order, int failed) \
{ \
	u##bits		old; \
	access(p, SIM_CAS); \
	old = *p; \
	if (old == expected) \
		*p = v; \
	return old; \
} \
int \
__tsan_atomic##bits##_compare_exchange_strong(volatile u##bits *p, u##bits *expected, \
											  u##bits v, int order, int failed) \
{ \
	u##bits		old = __tsan_atomic##bits##_compare_exchange_val(p, *expected, v, order, failed); \
	if (old == *expected) \
		return 1; \
	*expected = old; \
	return 0; \
} \
int \
__tsan_atomic##bits##_compare_exchange_weak(volatile u##bits *p, u##bits *expected, \
											u##bits v, int order, int failed) \
{ \
	return __tsan_atomic##bits##_compare_exchange_strong(p, expected, v, order, failed); \
} \
FETCH(bits, or, |) \
FETCH(bits, and, &)

#define FETCH(bits, name, op) \
u##bits \
__tsan_atomic##bits##_fetch_##name(volatile u##bits *p, u##bits v, int order) \
{ \
	u##bits		old = __tsan_atomic##bits##_load(p, order); \
	while (!__tsan_atomic##bits##_compare_exchange_strong(p, &old, old op v, order, order)) \
		; \
	return old; \
}

ATOMIC(8)
ATOMIC(32)
ATOMIC(64)

/* ---- what the compiler does not see ---- */

/*
 * memcpy() and the like, when they are calls and not in line.  The shim puts
 * these in their place.
 */
void	   *sim_memcpy(void *to, const void *from, size_t size);
void	   *sim_memset(void *to, int value, size_t size);
int			sim_memcmp(const void *a, const void *b, size_t size);
void		sim_full_fence(void);

static size_t
part_of_line(const void *address, size_t size)
{
	return Min(size, 8 - (uintptr_t) address % 8);
}

void *
sim_memcpy(void *to, const void *from, size_t size)
{
	for (size_t done = 0; done < size;)
	{
		size_t		part = Min(part_of_line((char *) to + done, size - done),
							   part_of_line((const char *) from + done, size - done));

		access((const char *) from + done, SIM_LOAD);
		access((char *) to + done, SIM_STORE);
		__builtin_memcpy((char *) to + done, (const char *) from + done, part);
		done += part;
	}
	return to;
}

void *
sim_memset(void *to, int value, size_t size)
{
	for (size_t done = 0; done < size;)
	{
		size_t		part = part_of_line((char *) to + done, size - done);

		access((char *) to + done, SIM_STORE);
		__builtin_memset((char *) to + done, value, part);
		done += part;
	}
	return to;
}

int
sim_memcmp(const void *a, const void *b, size_t size)
{
	const unsigned char *x = a;
	const unsigned char *y = b;

	for (size_t i = 0; i < size; i++)
	{
		if (i % 8 == 0)
		{
			access(x + i, SIM_LOAD);
			access(y + i, SIM_LOAD);
		}
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	}
	return 0;
}

void
sim_full_fence(void)
{
	if (sim_me == NULL)
		return;
	settle();
	sim_fence();
}

void
sim_pause(void)
{
	if (sim_me == NULL)
		return;
	settle();
	sim_me->clock += sim_jittered(sim_me, sim_machine()->pause);
}

SimTime
sim_now(void)
{
	if (sim_me == NULL)
		return 0;
	settle();
	return sim_me->clock;
}

void
sim_work(SimTime ps)
{
	SimTime		end;

	if (ps < 0)
		sim_fail("private work of less than nothing");
	end = sim_now() + sim_jittered(sim_me, ps);

	/* by turns with others on the same CPU */
	while (end > sim_me->slice_end)
	{
		SimTime		left = end - sim_me->slice_end;

		sim_me->clock = sim_me->slice_end;
		sim_yield();
		end = sim_me->clock + left;
	}
	sim_me->clock = end;
}

void
sim_wait_until(SimTime when)
{
	if (sim_now() < when)
		sim_me->clock = when;
}
