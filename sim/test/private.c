/*-------------------------------------------------------------------------
 *
 * sim/test/private.c
 *	  In place of loads/loads.c: one load, which finds out whether each fiber
 *	  has static variables of its own, small and large ones.
 *
 * backends			fibers; every other one begins when the others have been at it
 * load.times		of each: change or read one of its variables, which must be as
 *					it has left it, or as it was at the start; sleep, mostly
 *
 * Results: checked; wrong; slept, which is when others have run.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#define NLARGE	301				/* not whole pieces of fiber.c */
#define NSMALL	3
#define START	7

/* Where a piece of fiber.c begins and ends is of no matter to these */
static uint32 large[NLARGE] = {[0 ... NLARGE - 1] = START};
static uint32 zeros[NLARGE];
static uint32 small[NSMALL] = {[0 ... NSMALL - 1] = START};

static SIM_COMMON int64 checked = 0;
static SIM_COMMON int64 wrong = 0;
static SIM_COMMON int64 slept = 0;

static int64 times;

static uint32 *
variable(int i)
{
	if (i < NLARGE)
		return &large[i];
	i -= NLARGE;
	return i < NLARGE ? &zeros[i] : &small[i - NLARGE];
}

#define NVARIABLES	(2 * NLARGE + NSMALL)

static void
check(const uint32 *wanted, int i)
{
	checked++;
	if (*variable(i) != wanted[i])
		wrong++;
}

static void
fiber(void *arg)
{
	/* not static: of this fiber whatever is exchanged */
	uint32	   *wanted = malloc(NVARIABLES * sizeof(uint32));

	if (wanted == NULL)
		sim_fail("out of memory");
	for (int i = 0; i < NVARIABLES; i++)
		wanted[i] = i >= NLARGE && i < 2 * NLARGE ? 0 : START;
	if (sim_self() % 2 == 1)
		sim_sleep(100 * SIM_US);
	for (int64 n = 0; n < times; n++)
	{
		int			i = sim_random_below(NVARIABLES);

		check(wanted, i);
		if (sim_random_below(2) == 0)
			*variable(i) = wanted[i] = sim_random();
		if (sim_random_below(4) != 0)
		{
			sim_sleep(1 + sim_random_below(SIM_NS));
			slept++;
		}
	}
	for (int i = 0; i < NVARIABLES; i++)
		check(wanted, i);
	free(wanted);
}

static void
setup(void)
{
	int			n = sim_backends();

	times = sim_config_int("load.times", 1, 1000000, 0);
	for (int i = 0; i < n; i++)
		sim_spawn("fiber", fiber, NULL, SIM_BY_PLACEMENT);
}

static void
report(void)
{
	sim_result("checked", checked);
	sim_result("wrong", wrong);
	sim_result("slept", slept);
}

static const SimLoad private_load = {"private", setup, report};

const SimLoad *const sim_loads[] = {&private_load, NULL};
