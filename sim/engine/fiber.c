/*-------------------------------------------------------------------------
 *
 * sim/engine/fiber.c
 *	  Fibers: stacks, switches, and the private variables of a process.
 *
 * The build puts the static variables of the files that are played into two
 * sections.  Small ones are exchanged at a switch, as far as any fiber has written
 * them.  Large ones would cost too much for that: they are exchanged when a fiber
 * touches what another one has written.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine.h"

/*
 * The deepest stack is the balancer's, some 130 kB of plan and transportation
 * problem; what is not touched takes no memory.
 */
#define STACK_SIZE	(512 * 1024)

/* Of these sections; the linker makes the names */
extern char __start_sim_private[] __attribute__((weak));
extern char __stop_sim_private[] __attribute__((weak));
extern char __start_sim_large[] __attribute__((weak));
extern char __stop_sim_large[] __attribute__((weak));

char	   *sim_large_start;
size_t		sim_large_size;

char	   *sim_private_start;
size_t		sim_private_size;

/*
 * The pieces of sim_private that are not the same for all: only they are
 * exchanged.
 */
#define PRIVATE_PIECE	32
static uint16_t *private_pieces;
static int	nprivate_pieces;
static bool *private_written;

/*
 * Large static variables (sim_large) are not exchanged at each switch, but piece
 * by piece when another fiber touches them.  large_owner is the fiber that has a
 * piece now, + 1; 0: it is as at the start.  large_values has all pieces of each
 * fiber that has lost one, and which of them are in use.
 */
#define LARGE_PIECE	64
static uint16_t *large_owner;
static char *large_start_values;
static char *large_values[SIM_MAX_FIBERS];

static size_t
large_pieces(void)
{
	return sim_large_size / LARGE_PIECE + 1;
}

void
sim_fiber_setup(void)
{
	sim_private_start = __start_sim_private;
	sim_private_size = __stop_sim_private - __start_sim_private;
	private_pieces = calloc(sim_private_size / PRIVATE_PIECE + 1, sizeof(*private_pieces));
	private_written = calloc(sim_private_size / PRIVATE_PIECE + 1, sizeof(*private_written));
	sim_large_start = __start_sim_large;
	sim_large_size = __stop_sim_large - __start_sim_large;
	large_owner = calloc(large_pieces(), sizeof(*large_owner));
	large_start_values = calloc(large_pieces(), LARGE_PIECE);
	if (private_pieces == NULL || private_written == NULL ||
		large_owner == NULL || large_start_values == NULL)
		sim_fail("out of memory");
}

/* Whole pieces, so that each is copied by a few instructions */
static size_t
private_image_size(void)
{
	return (sim_private_size / PRIVATE_PIECE + 1) * PRIVATE_PIECE;
}

void
sim_private_written(const char *address)
{
	size_t		piece = (address - sim_private_start) / PRIVATE_PIECE;

	if (likely(private_written[piece]))
		return;
	private_written[piece] = true;
	private_pieces[nprivate_pieces++] = piece;
}

/*
 * A new fiber's variables may differ from the first one's: the code that spawns
 * them may have changed something in between.
 */
static void
note_differences(const char *image)
{
	for (size_t i = 0; i < sim_private_size; i++)
		if (image[i] != sim_fiber_table[0].private_image[i])
			sim_private_written(sim_private_start + i);
}

static inline void
change_private(char *from, const char *to)
{
	for (int i = 0; i < nprivate_pieces; i++)
	{
		size_t		offset = private_pieces[i] * PRIVATE_PIECE;
		char	   *piece = sim_private_start + offset;

		if (likely(offset + PRIVATE_PIECE <= sim_private_size))
		{
			memcpy(from + offset, piece, PRIVATE_PIECE);
			memcpy(piece, to + offset, PRIVATE_PIECE);
		}
		else
		{
			memcpy(from + offset, piece, sim_private_size - offset);
			memcpy(piece, to + offset, sim_private_size - offset);
		}
	}
}

/*
 * What a fiber has in a piece while another one owns it; *known tells whether it
 * has ever had it.
 */
static char *
large_value(int fiber, size_t piece, bool **known)
{
	if (large_values[fiber] == NULL &&
		(large_values[fiber] = calloc(large_pieces(), LARGE_PIECE + sizeof(bool))) == NULL)
		sim_fail("out of memory");
	*known = (bool *) large_values[fiber] + piece;
	return large_values[fiber] + large_pieces() + piece * LARGE_PIECE;
}

/*
 * Before an access.  A piece that has not been written since the start is common
 * to all.
 */
void
sim_large_touched(const char *address, bool write)
{
	size_t		piece = (address - sim_large_start) / LARGE_PIECE;
	size_t		offset = piece * LARGE_PIECE;
	size_t		size = Min(LARGE_PIECE, sim_large_size - offset);
	uint16_t   *owner = &large_owner[piece];
	char	   *value;
	bool	   *known;

	if (*owner == sim_me->number || (*owner == 0 && !write))
		return;
	if (*owner == 0)
		memcpy(large_start_values + offset, sim_large_start + offset, size);
	else
	{
		value = large_value(*owner - 1, piece, &known);
		memcpy(value, sim_large_start + offset, size);
		*known = true;
		value = large_value(sim_self(), piece, &known);
		memcpy(sim_large_start + offset, *known ? value : large_start_values + offset, size);
	}
	*owner = sim_me->number;
}

/* ---- switches ---- */

static void
fiber_begins(void)
{
	sim_process_begins();
	sim_me->fn(sim_me->arg);
	sim_fiber_ended();
}

static void *main_sp;

/*
 * Save what a called function must, change stacks, and return to where the other
 * one left.  Floating-point control words are the same everywhere.
 */
__asm__(
	".text\n"
	".p2align 4\n"
	".type switch_stacks, @function\n"
	"switch_stacks:\n"
	"	pushq %rbp\n"
	"	pushq %rbx\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	pushq %r14\n"
	"	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n"
	"	popq %r14\n"
	"	popq %r13\n"
	"	popq %r12\n"
	"	popq %rbx\n"
	"	popq %rbp\n"
	"	ret\n"
	".size switch_stacks, .-switch_stacks\n"
);
extern void switch_stacks(void **save, void *to) __asm__("switch_stacks");

#define SAVED_REGISTERS 6

static void *
first_frame(char *stack)
{
	void	  **sp = (void **) (stack + STACK_SIZE);

	*--sp = NULL;				/* alignment, as after a call */
	*--sp = (void *) fiber_begins;
	for (int i = 0; i < SAVED_REGISTERS; i++)
		*--sp = NULL;
	return sp;
}

#define change(from, to)	switch_stacks((from) ? &(from)->sp : &main_sp, \
										  (to) ? (to)->sp : main_sp)

/*
 * A stack with a guard page before it, and the private variables as they are
 * now.
 */
void
sim_fiber_create(SimFiber *fiber)
{
	size_t		page = sysconf(_SC_PAGESIZE);
	char	   *stack = mmap(NULL, STACK_SIZE + page, PROT_READ | PROT_WRITE,
							 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	fiber->private_image = malloc(private_image_size());
	if (stack == MAP_FAILED || fiber->private_image == NULL ||
		mprotect(stack, page, PROT_NONE) != 0)
		sim_fail("out of memory for the stack of fiber %d", fiber->number - 1);
	memcpy(fiber->private_image, sim_private_start, sim_private_size);
	note_differences(fiber->private_image);
	fiber->sp = first_frame(stack + page);
}

/*
 * NULL is main, which has private variables, too.
 */
void
sim_fiber_switch(SimFiber *to)
{
	static char *main_image;
	SimFiber   *from = sim_me;

	if (main_image == NULL)
	{
		main_image = malloc(private_image_size());
		if (main_image == NULL)
			sim_fail("out of memory");
		memcpy(main_image, sim_private_start, sim_private_size);
		note_differences(main_image);
	}
	change_private(from ? from->private_image : main_image,
				   to ? to->private_image : main_image);
	sim_me = to;
	change(from, to);
}
