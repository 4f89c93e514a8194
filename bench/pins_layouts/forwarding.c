/*
 * forwarding.c
 *	  How long it takes until a load sees what was stored just before, by how
 *	  wide both are.
 *
 * A processor takes it from the queue of its stores if one of them has all that
 * is loaded.  If it has a part only, the load waits until the store has reached
 * the cache.  Each turn depends on the one before.
 */
#include "layouts.h"

#include "portability/instr_time.h"
#include "port/simd.h"

#define TURNS		20000
#define REPEATS		50

/* From here on, the compiler knows nothing of what is in memory */
#define HIDE_MEMORY()	__asm__ __volatile__("" : : : "memory")

static uint32 place[16] pg_attribute_aligned(64);
static uint32 one = 1;

static void
additions(void)
{
	uint32		x = one;
	uint32		y = one;

	for (int i = 0; i < TURNS / 8; i++)
	{
		/* eight, one after the other: a cycle each */
		x += y;
		HIDE_VALUE(x);
		x += y;
		HIDE_VALUE(x);
		x += y;
		HIDE_VALUE(x);
		x += y;
		HIDE_VALUE(x);
		x += y;
		HIDE_VALUE(x);
		x += y;
		HIDE_VALUE(x);
		x += y;
		HIDE_VALUE(x);
		x += y;
		HIDE_VALUE(x);
	}
	place[8] = x;
}

static void
store4_load4(void)
{
	uint32		x = one;

	for (int i = 0; i < TURNS; i++)
	{
		place[1] = x;
		HIDE_MEMORY();
		x = place[1] + 1;
	}
}

#ifndef USE_NO_SIMD
static void
only_load16(void)
{
	uint32		x = one;

	for (int i = 0; i < TURNS; i++)
	{
		Vector32	vector;

		HIDE_VALUE(x);			/* which is 1 */
		vector32_load(&vector, place + (Size) (x - 1) * 4);
		x = vector32_is_highbit_set(vector) + 1;
	}
}

static void
store4_load16(void)
{
	uint32		x = one;

	for (int i = 0; i < TURNS; i++)
	{
		Vector32	vector;

		place[1] = x;
		HIDE_MEMORY();
		vector32_load(&vector, place);
		x = vector32_is_highbit_set(vector) + 1;
	}
}

static void
store16_load16(void)
{
	uint32		x = one;

	for (int i = 0; i < TURNS; i++)
	{
		Vector32	vector = vector32_broadcast(x);

		memcpy(place, &vector, sizeof(vector));
		HIDE_MEMORY();
		vector32_load(&vector, place);
		x = vector32_is_highbit_set(vector) + 1;
	}
}
#endif

typedef struct Measured
{
	const char *name;
	void		(*run) (void);
} Measured;

static const Measured measured[] = {
	{"addition", additions},
	{"4 bytes stored, these 4 loaded", store4_load4},
#ifndef USE_NO_SIMD
	{"nothing stored, 16 loaded", only_load16},
	{"16 bytes stored, these 16 loaded", store16_load16},
	{"4 bytes stored, the 16 around them loaded", store4_load16},
#endif
};

void
measure_forwarding(void)
{
	for (int i = 0; i < lengthof(measured); i++)
	{
		double		best = 0;

		for (int repeat = 0; repeat < REPEATS; repeat++)
		{
			instr_time	start;
			instr_time	end;
			double		ns;

			INSTR_TIME_SET_CURRENT(start);
			measured[i].run();
			INSTR_TIME_SET_CURRENT(end);
			INSTR_TIME_SUBTRACT(end, start);
			ns = (double) INSTR_TIME_GET_NANOSEC(end) / TURNS;
			if (repeat == 0 || ns < best)
				best = ns;
		}
		printf("%s\t%.4f\n", measured[i].name, best);
	}
}
