/*
 * main.c
 *	  Check candidates, and time them in turn: see layouts.h, and "run", which
 *	  calls this program and says what its arguments are.
 *
 * Prints lines of fields between tabs.  LAYOUTS is a list of names, with commas.
 */
#include "layouts.h"

#include "common/logging.h"
#include "common/pg_prng.h"
#include "portability/instr_time.h"

#define MOST_HELD	512
#define OTHERS		256			/* that are not held */
#define RING		1024		/* buffers that a stream comes by */
#define SEQUENCE	65536		/* longer than branch predictors learn */

extern LayoutByName LAYOUTS;

static const Layout *const all_layouts[] = {LAYOUTS};

typedef enum Kind
{
	AGAIN_RANDOM,
	AGAIN_CYCLIC,
	AGAIN_LAST,
	OTHER,
	STREAM,
} Kind;

typedef struct Load
{
	const char *name;
	Kind		kind;
	Between		between;
} Load;

static const Load loads[] = {
	{"again random", AGAIN_RANDOM, NOTHING},
	{"again cyclic", AGAIN_CYCLIC, NOTHING},
	{"again last", AGAIN_LAST, NOTHING},
	{"other", OTHER, NOTHING},
	{"stream", STREAM, NOTHING},
	{"other, locked", OTHER, UNDER_LOCK},
	{"stream, locked", STREAM, UNDER_LOCK},
	{"other, work between", OTHER, AFTER_WORK},
	{"stream, work between", STREAM, AFTER_WORK},
};

SharedState shared_states[SHARED_STATES];
SharedState shared_lock;

static const Layout *layouts[lengthof(all_layouts)];
static int	n_layouts;

static pg_prng_state prng;
static Buffer buffers[RING + MOST_HELD + OTHERS];
static Buffer sequence[SEQUENCE + MOST_HELD];

static int
number(const char *text, int least, int most)
{
	char	   *end;
	long		value = strtol(text, &end, 10);

	if (end == text || end[0] != '\0' || value < least || value > most)
		pg_fatal("\"%s\" is not a number from %d to %d", text, least, most);
	return value;
}

static int
draw(int n)
{
	return pg_prng_uint64_range(&prng, 0, n - 1);
}

/* Different buffers of a pool of some 100,000, in any order */
static void
choose_buffers(void)
{
	int			n = lengthof(buffers);

	for (int i = 0; i < n; i++)
		buffers[i] = 1 + i * 64 + draw(64);
	for (int i = n - 1; i > 0; i--)
	{
		int			other = draw(i + 1);
		Buffer		swapped = buffers[i];

		buffers[i] = buffers[other];
		buffers[other] = swapped;
	}
}

static void
fill_sequence(Kind kind, int held)
{
	const Buffer *held_ones = buffers + RING;
	const Buffer *others = held_ones + MOST_HELD;

	for (int i = 0; i < lengthof(sequence); i++)
		switch (kind)
		{
			case AGAIN_RANDOM:
				sequence[i] = held_ones[draw(held)];
				break;
			case AGAIN_CYCLIC:
				sequence[i] = held_ones[i % held];
				break;
			case AGAIN_LAST:
				sequence[i] = held_ones[held - 1];
				break;
			case OTHER:
				sequence[i] = others[draw(OTHERS)];
				break;
			case STREAM:
				sequence[i] = buffers[i % RING];
				break;
		}
}

/*
 * The least time of one pin and unpin.  The candidates take turns every OPS of
 * them, so that whatever else the machine does meets all of them.
 */
static void
time_load(const Load *load, int held, int ops, int repeats)
{
	bool		is_stream = (load->kind == STREAM);
	const Buffer *held_ones;
	double		best[lengthof(all_layouts)] = {0};

	fill_sequence(load->kind, held);
	held_ones = is_stream ? sequence : buffers + RING;

	for (int l = 0; l < n_layouts; l++)
		for (int i = 0; i < held; i++)
			layouts[l]->pin(held_ones[i]);

	for (int repeat = -1; repeat < repeats; repeat++)
	{
		int			start = (repeat + 1) * ops % SEQUENCE;

		for (int l = 0; l < n_layouts; l++)
		{
			instr_time	before;
			instr_time	after;
			double		ns;

			INSTR_TIME_SET_CURRENT(before);
			layouts[l]->run(sequence + start + (is_stream ? held : 0),
							sequence + start, ops, load->between);
			INSTR_TIME_SET_CURRENT(after);
			INSTR_TIME_SUBTRACT(after, before);
			ns = (double) INSTR_TIME_GET_NANOSEC(after) / ops;

			/* the first turn warms caches */
			if (repeat == 0 || (repeat > 0 && ns < best[l]))
				best[l] = ns;
		}
	}

	if (is_stream)
		held_ones = sequence + (repeats + 1) * ops % SEQUENCE;
	for (int l = 0; l < n_layouts; l++)
	{
		for (int i = 0; i < held; i++)
			layouts[l]->unpin(held_ones[i]);
		printf("%s\t%d\t%s\t%.4f\n", load->name, held, layouts[l]->name,
			   best[l]);
	}
}

static void
time_layouts(int ops, int repeats, char *helds)
{
	for (char *held = strtok(helds, ","); held; held = strtok(NULL, ","))
	{
		int			n = number(held, 0, MOST_HELD);

		for (int l = 0; l < lengthof(loads); l++)
			if (n > 0 || loads[l].kind == OTHER)
				time_load(&loads[l], n, ops, repeats);
	}
}

static void
choose_layouts(char **names, int n)
{
	if (n < 1 || n > lengthof(all_layouts))
		pg_fatal("between 1 and %d layouts are needed", (int) lengthof(all_layouts));
	for (int i = 0; i < n; i++)
	{
		int			l = 0;

		while (l < lengthof(all_layouts) && strcmp(all_layouts[l]->name, names[i]) != 0)
			l++;
		if (l == lengthof(all_layouts))
			pg_fatal("there is no layout \"%s\"", names[i]);
		for (int j = 0; j < n_layouts; j++)
			if (layouts[j] == all_layouts[l])
				pg_fatal("layout \"%s\" is given twice", names[i]);
		layouts[n_layouts] = all_layouts[l];
		layouts[n_layouts++]->init();
	}
}

int
main(int argc, char **argv)
{
	pg_logging_init(argv[0]);

	if (argc > 4 && strcmp(argv[1], "check") == 0)
	{
		int			seed = number(argv[2], 0, PG_INT32_MAX);
		int			steps = number(argv[3], 1, PG_INT32_MAX);

		choose_layouts(argv + 4, argc - 4);
		for (int l = 0; l < n_layouts; l++)
			check_layout(layouts[l], steps, seed);
	}
	else if (argc > 6 && strcmp(argv[1], "time") == 0)
	{
		int			ops = number(argv[3], RING, SEQUENCE);
		int			repeats = number(argv[4], 1, 1000000);

		if (SEQUENCE % ops != 0)
			pg_fatal("%d is no divisor of %d", ops, SEQUENCE);
		pg_prng_seed(&prng, number(argv[2], 0, PG_INT32_MAX));
		choose_buffers();
		choose_layouts(argv + 6, argc - 6);
		time_layouts(ops, repeats, argv[5]);
	}
	else if (argc == 2 && strcmp(argv[1], "forwarding") == 0)
		measure_forwarding();
	else
		pg_fatal("usage: %s check SEED STEPS LAYOUT... | time SEED OPS REPEATS HELD,... LAYOUT... | forwarding",
				 argv[0]);
	return 0;
}
