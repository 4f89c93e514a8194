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
#include <stddef.h>

#include "calibrate.h"

#define TURNS 2000
#define CHUNKS 201
#define SIXTEEN(x) x x x x x x x x x x x x x x x x

static Line own;

/*
 * The median of many short chunks: whoever takes the CPU from us meanwhile spoils
 * some of them.
 */
static double
middle(void (*chunk) (int turns), int operations)
{
	double		spent[CHUNKS];

	chunk(TURNS);
	for (int i = 0; i < CHUNKS; i++)
	{
		int64_t		from = now_ns();

		chunk(TURNS);
		spent[i] = (now_ns() - from) * 1000.0 / ((double) TURNS * operations);
	}
	return middle_of(spent, CHUNKS);
}

static void
loads(int turns)
{
	for (int i = 0; i < turns; i++)
	{
		SIXTEEN((void) own.word;
			)
	}
}

static void
stores(int turns)
{
	for (int i = 0; i < turns; i++)
	{
		SIXTEEN(own.word = i;
			)
	}
}

static void
xadds(int turns)
{
	uint64_t	value = 1;

	for (int i = 0; i < turns; i++)
		value = __atomic_fetch_add(&own.word, value | 1, __ATOMIC_SEQ_CST);
}

static void
swaps(int turns)
{
	uint64_t	value = own.word;

	for (int i = 0; i < turns; i++)
	{
		if (__atomic_compare_exchange_n(&own.word, &value, value + 1, false,
										__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			value++;
	}
}

static void
pauses(int turns)
{
	for (int i = 0; i < turns; i++)
		__builtin_ia32_pause();
}

double
load_hit(const int *cpus, int ncpus)
{
	return middle(loads, 16);
}

double
store_hit(const int *cpus, int ncpus)
{
	return middle(stores, 16);
}

double
xadd_hit(const int *cpus, int ncpus)
{
	return middle(xadds, 1);
}

double
cas_hit(const int *cpus, int ncpus)
{
	return middle(swaps, 1);
}

double
pause_time(const int *cpus, int ncpus)
{
	return middle(pauses, 1);
}

/*
 * Instructions as compilers make them of code that chooses among structures in
 * memory: loads, address arithmetic, comparisons and branches that are foreseen,
 * with a chain of dependencies through half of them.  How many they are is
 * counted here by hand, below; written in assembly, so that every compiler makes
 * the same of it.
 */
#define BLOCK_INSTRUCTIONS 23
#define BLOCK \
	__asm__ __volatile__( \
		"movq (%[table],%[index],8), %%rax\n\t" \
		"movq %%rax, %%rcx\n\t" \
		"addq $3, %%rcx\n\t" \
		"andq $63, %%rcx\n\t" \
		"cmpq $64, %%rcx\n\t" \
		"jae 2f\n\t" \
		"movq (%[table],%%rcx,8), %%rdx\n\t" \
		"testq %%rdx, %%rdx\n\t" \
		"js 2f\n\t" \
		"addq %%rdx, %[sum]\n\t" \
		"movq %[sum], %%rsi\n\t" \
		"shrq $7, %%rsi\n\t" \
		"andq $31, %%rsi\n\t" \
		"movq 8(%[table],%%rsi,8), %%rdi\n\t" \
		"leaq 1(%%rdi,%%rax), %%rdi\n\t" \
		"cmpq $1000, %%rdi\n\t" \
		"ja 2f\n\t" \
		"movq %%rdi, 560(%[table])\n\t" \
		"movq %%rax, %[index]\n\t" \
		"andq $63, %[index]\n\t" \
		"movl %k[index], %%r8d\n\t" \
		"leal (%%r8,%%rsi,2), %%r8d\n\t" \
		"testl %%r8d, %%r8d\n\t" \
		"2:\n\t" \
		: [index] "+r"(index), [sum] "+r"(sum) \
		: [table] "r"(table) \
		: "rax", "rcx", "rdx", "rsi", "rdi", "r8", "memory", "cc")

/*
 * An instruction between locked ones, which is where most of a sweep's are:
 * there, few of them overlap, so they are slower than in a loop of their own.
 * The loop is an allocation's in outline: choose, take a ticket, look at the next
 * of many headers, lock it, do something, unlock it.  From its time, what the
 * locked instructions and the stores take alone is subtracted.
 */
#define HEADERS 16384			/* of 64 bytes: a pool of 128 MB */
#define BLOCKS 4

/* What the loop needs, of each thread its own */
typedef struct Loop
{
	Line		ticket;
	uint64_t	table[72];
	uint32_t	headers[HEADERS][16] __attribute__((aligned(64)));
} Loop;

static Loop loops[2];
static _Thread_local Loop *mine = &loops[0];

static void
allocations(int turns)
{
	Loop	   *loop = mine;
	uint64_t   *table = loop->table;
	uint64_t	index = 1;
	uint64_t	sum = 0;

	for (int i = 0; i < turns; i++)
	{
		uint32_t   *header = loop->headers[__atomic_fetch_add(&loop->ticket.word, 1, __ATOMIC_SEQ_CST) % HEADERS];
		uint32_t	state;

		BLOCK;
		BLOCK;
		state = *(volatile uint32_t *) header;
		__atomic_compare_exchange_n(header, &state, state | 1, false,
									__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		BLOCK;
		*(volatile uint32_t *) header = state;
		BLOCK;
	}
}

static void
prepare(Loop *loop)
{
	mine = loop;
	for (int i = 0; i < 72; i++)
		loop->table[i] = (i * 5 + 1) % 64;
	allocations(2 * HEADERS);
}

/*
 * The same loop while another CPU runs it, with lines of its own: to time alone,
 * in per cent.  CPUs of two cores do not disturb each other; those of a virtual
 * machine may be two threads of one core, which nothing else tells.
 */
static volatile bool other_runs;
static volatile bool enough;
static double with_other;

static void *
disturb(void *arg)
{
	prepare(&loops[1]);
	other_runs = true;
	while (!enough)
		allocations(TURNS);
	return NULL;
}

static void *
endure(void *arg)
{
	prepare(&loops[0]);
	while (!other_runs)
		__builtin_ia32_pause();
	with_other = middle(allocations, 1);
	enough = true;
	return NULL;
}

double
together(const int *cpus, int ncpus)
{
	double		alone;

	prepare(&loops[0]);
	alone = middle(allocations, 1);
	run_pair(endure, cpus[0], disturb, cpus[1], NULL);
	return 100 * with_other / alone;
}

double
instruction_time(const int *cpus, int ncpus)
{
	double		others;
	double		spent;

	prepare(&loops[0]);
	spent = middle(allocations, 1);
	others = middle(swaps, 1) + middle(xadds, 1) + middle(stores, 16) + middle(loads, 16);
	return (spent - others) / (BLOCKS * BLOCK_INSTRUCTIONS);
}

/*
 * How much so many allocations of a lease, all on lines of one's own, differ from
 * each other in time: the distance of the quartiles, in per cent of the median.
 * Who takes the next lease, and so whose lines it finds, depends on it.
 */
#define LEASE 64
#define LEASES 4001

double
lease_spread(const int *cpus, int ncpus)
{
	static double spent[LEASES];
	double		median;

	prepare(&loops[0]);
	for (int i = 0; i < LEASES; i++)
	{
		int64_t		from = now_ns();

		allocations(LEASE);
		spent[i] = now_ns() - from;
	}
	median = middle_of(spent, LEASES);	/* has sorted them */
	return 100 * (spent[3 * LEASES / 4] - spent[LEASES / 4]) / median;
}
