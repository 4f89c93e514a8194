/*
 * own.c
 *	  What an operation costs on a line that nobody else has.
 *
 * Atomic operations are measured as chains (each needs the result of the one
 * before), since that is what they are in a sweep: nothing after a locked
 * instruction is done before it.  Loads and stores overlap, so their throughput
 * counts.
 */
#include <stdbool.h>

#include "calibrate.h"

#define TURNS 2000000
#define SIXTEEN(x) x x x x x x x x x x x x x x x x

static Line own;

static double
each(int64_t from, int64_t operations)
{
	return (now_ns() - from) * 1000.0 / operations;
}

double
load_hit(const int *cpus, int ncpus)
{
	int64_t		from = now_ns();

	for (int i = 0; i < TURNS; i++)
	{
		SIXTEEN((void) own.word;
			)
	}
	return each(from, TURNS * INT64_C(16));
}

double
store_hit(const int *cpus, int ncpus)
{
	int64_t		from = now_ns();

	for (int i = 0; i < TURNS; i++)
	{
		SIXTEEN(own.word = i;
			)
	}
	return each(from, TURNS * INT64_C(16));
}

double
add_hit(const int *cpus, int ncpus)
{
	int64_t		from = now_ns();

	for (int i = 0; i < TURNS; i++)
		__asm__ __volatile__("lock addq $1, %0" : "+m"(own.word) : : "memory", "cc");
	return each(from, TURNS);
}

double
xadd_hit(const int *cpus, int ncpus)
{
	uint64_t	value = 1;
	int64_t		from = now_ns();

	for (int i = 0; i < TURNS; i++)
		value = __atomic_fetch_add(&own.word, value | 1, __ATOMIC_SEQ_CST);
	return each(from, TURNS);
}

double
cas_hit(const int *cpus, int ncpus)
{
	uint64_t	value = own.word;
	int64_t		from = now_ns();

	for (int i = 0; i < TURNS; i++)
	{
		if (__atomic_compare_exchange_n(&own.word, &value, value + 1, false,
										__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			value++;
	}
	return each(from, TURNS);
}

double
pause_time(const int *cpus, int ncpus)
{
	int64_t		from = now_ns();

	for (int i = 0; i < TURNS / 10; i++)
		__builtin_ia32_pause();
	return each(from, TURNS / 10);
}

/*
 * Instructions as compilers make them of code that chooses among structures in
 * memory: loads, address arithmetic, comparisons and branches that are foreseen,
 * with a chain of dependencies through half of them.  How many they are is
 * counted here by hand, below; written in assembly, so that every compiler makes
 * the same of it.
 */
#define BLOCK_INSTRUCTIONS 24

double
instruction_time(const int *cpus, int ncpus)
{
	static uint64_t table[72];
	uint64_t	index = 1;
	uint64_t	sum = 0;
	uint64_t	turns = TURNS;
	int64_t		from;

	for (int i = 0; i < 64; i++)
		table[i] = (i * 5 + 1) % 64;
	from = now_ns();
	__asm__ __volatile__(
						 "1:\n\t"
						 "movq (%[table],%[index],8), %%rax\n\t"
						 "movq %%rax, %%rcx\n\t"
						 "addq $3, %%rcx\n\t"
						 "andq $63, %%rcx\n\t"
						 "cmpq $64, %%rcx\n\t"
						 "jae 2f\n\t"
						 "movq (%[table],%%rcx,8), %%rdx\n\t"
						 "testq %%rdx, %%rdx\n\t"
						 "js 2f\n\t"
						 "addq %%rdx, %[sum]\n\t"
						 "movq %[sum], %%rsi\n\t"
						 "shrq $7, %%rsi\n\t"
						 "andq $31, %%rsi\n\t"
						 "movq 8(%[table],%%rsi,8), %%rdi\n\t"
						 "leaq 1(%%rdi,%%rax), %%rdi\n\t"
						 "cmpq $1000, %%rdi\n\t"
						 "ja 2f\n\t"
						 "movq %%rdi, 560(%[table])\n\t"
						 "movq %%rax, %[index]\n\t"
						 "andq $63, %[index]\n\t"
						 "movl %k[index], %%r8d\n\t"
						 "leal (%%r8,%%rsi,2), %%r8d\n\t"
						 "subq $1, %[turns]\n\t"
						 "jnz 1b\n\t"
						 "2:\n\t"
						 : [index] "+r"(index), [sum] "+r"(sum), [turns] "+r"(turns)
						 : [table] "r"(table)
						 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "memory", "cc");
	if (turns != 0)
		fail("the loop of instructions ended early");
	return each(from, (int64_t) TURNS * BLOCK_INSTRUCTIONS);
}
