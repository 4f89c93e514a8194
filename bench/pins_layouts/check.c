/*
 * check.c
 *	  Random pins and unpins, compared with an array of counts.
 *
 * How many are held goes up and down between nothing and more than any array
 * has, some are pinned several times, and each answer is compared, with and
 * without leave to move entries.
 */
#include "layouts.h"

#include "common/logging.h"
#include "common/pg_prng.h"

#define BUFFERS		900			/* from a range that hashes like any other */
#define STRIDE		111
#define MOST_PINS	3			/* of one buffer, on purpose */
#define PHASE		3000

static const int aims[] = {0, 1, 4, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 130, 500, 800};

static int32 model[BUFFERS];

static Buffer
buffer_of(int i)
{
	return 1 + i * STRIDE + (i * 7919) % STRIDE;
}

static void
compare(const Layout *layout, int i, bool do_move, int step)
{
	int32		count = layout->count(buffer_of(i), do_move);

	if (count != model[i])
		pg_fatal("%s is wrong: buffer %d has %d pins instead of %d after step %d",
				 layout->name, buffer_of(i), count, model[i], step);
}

static void
compare_all(const Layout *layout, int step)
{
	uint32		held = 0;
	uint32		shared = 0;

	for (int i = 0; i < BUFFERS; i++)
	{
		compare(layout, i, false, step);
		held += (model[i] > 0);
	}
	for (int i = 0; i < SHARED_STATES; i++)
		shared += shared_states[i].state;
	if (shared != held)
		pg_fatal("%s is wrong: %u entries were made and not forgotten, %u buffers are held after step %d",
				 layout->name, shared, held, step);
}

void
check_layout(const Layout *layout, int steps, uint64 seed)
{
	pg_prng_state prng;
	int			aim = 0;
	int			held = 0;

	pg_prng_seed(&prng, seed);
	memset(model, 0, sizeof(model));

	for (int step = 0; step < steps; step++)
	{
		int			i = pg_prng_uint64_range(&prng, 0, BUFFERS - 1);

		if (step % PHASE == 0)
		{
			compare_all(layout, step);
			aim = aims[pg_prng_uint64_range(&prng, 0, lengthof(aims) - 1)];
		}

		/* mostly of held ones, as those not held are many more */
		if (held > 0 && pg_prng_bool(&prng))
			while (model[i] == 0)
				i = (i + 1) % BUFFERS;

		compare(layout, i, pg_prng_bool(&prng), step);
		if (model[i] == 0 ? held < aim :
			model[i] < MOST_PINS && pg_prng_uint64_range(&prng, 0, 3) == 0)
		{
			layout->pin(buffer_of(i));
			held += (model[i]++ == 0);
		}
		else if (model[i] > 0 && (model[i] > 1 || held > aim || pg_prng_bool(&prng)))
		{
			layout->unpin(buffer_of(i));
			held -= (--model[i] == 0);
		}
		compare(layout, i, false, step);
	}

	for (int i = 0; i < BUFFERS; i++)
		for (; model[i] > 0; model[i]--)
			layout->unpin(buffer_of(i));
	compare_all(layout, steps);
}
