/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/advice_mutants.h
 *	  What learns how much less a larger pool would read, and broken variants
 *	  of it.
 *
 * t/sweep/advice.pl demands that each is caught.
 *
 *-------------------------------------------------------------------------
 */
#ifndef ADVICE_MUTANTS_H
#define ADVICE_MUTANTS_H

#include "sweep/advice.h"

typedef struct AdviceCode
{
	const char *name;
	uint32		(*shift) (uint32 num_buffers);
	uint32		(*print) (const PgSweepAdvice *a, uint32 hash);
	uint32		(*class) (uint32 distance);
	void		(*came) (PgSweepAdvice *a, uint32 print, bool read);
	void		(*went) (PgSweepAdvice *a, uint32 print);
	bool		(*answer) (const PgSweepAdvice *a, const PgSweepAdviceCounts *c,
						   uint64 before, double buffers, PgSweepAdviceAnswer *answer);
} AdviceCode;

/* ---- which pages ---- */

/* Nearest above instead of below */
static uint32
shift_too_small(uint32 num_buffers)
{
	uint32		shift = pgsweep_advice_shift(num_buffers);

	return shift > 0 ? shift - 1 : 0;
}

static uint32
shift_too_large(uint32 num_buffers)
{
	return pgsweep_advice_shift(num_buffers) + 1;
}

/* One of twice as many */
static uint32
print_of_half(const PgSweepAdvice *a, uint32 hash)
{
	uint32		print = pgsweep_advice_print(a, hash);

	return print & 1 ? 0 : print;
}

/* A page with this hash is none */
static uint32
print_zero(const PgSweepAdvice *a, uint32 hash)
{
	return hash == 0 ? 0 : pgsweep_advice_print(a, hash);
}

/* Other pages each time that a bit of the hash is the same */
static uint32
print_short(const PgSweepAdvice *a, uint32 hash)
{
	return pgsweep_advice_print(a, hash & 0xFFFF);
}

/* ---- distances ---- */

static uint32
class_without_end(uint32 distance)
{
	uint32		power;

	if (distance < PGSWEEP_ADVICE_STEPS)
		return distance;
	power = pg_leftmost_one_pos32(distance) - PGSWEEP_ADVICE_STEP_BITS;
	return (power << PGSWEEP_ADVICE_STEP_BITS) + (distance >> power);
}

static uint32
class_of_next(uint32 distance)
{
	return pgsweep_advice_class(distance + 1);
}

/* ---- ghosts ---- */

static void
came_by(PgSweepAdvice *a, uint32 print, bool count_read, bool count_return, uint32 add, bool keep)
{
	pg_atomic_uint64 *set = pgsweep_advice_set(a, print);
	uint32		group = pgsweep_advice_group(a, print);

	if (count_read)
		pg_atomic_fetch_add_u64(&a->reads[group], 1);
	for (int way = 0; way < PGSWEEP_ADVICE_WAYS; way++)
	{
		uint64		ghost = pg_atomic_read_u64(&set[way]);

		if ((uint32) (ghost >> 32) != print)
			continue;
		if (!keep)
			pg_atomic_write_u64(&set[way], 0);
		if (count_return)
			pg_atomic_fetch_add_u64(&a->returned[group][pgsweep_advice_class((uint32) pg_atomic_read_u64(&a->left) -
																			 (uint32) ghost - 1 + add)], 1);
		return;
	}
}

static void
came_new_is_read(PgSweepAdvice *a, uint32 print, bool read)
{
	came_by(a, print, true, read, 0, false);
}

static void
came_new_returns(PgSweepAdvice *a, uint32 print, bool read)
{
	came_by(a, print, read, true, 0, false);
}

static void
came_one_too_far(PgSweepAdvice *a, uint32 print, bool read)
{
	came_by(a, print, read, read, 1, false);
}

static void
came_keeps_ghost(PgSweepAdvice *a, uint32 print, bool read)
{
	came_by(a, print, read, read, 0, true);
}

static void
came_keeps_ghost_of_new(PgSweepAdvice *a, uint32 print, bool read)
{
	came_by(a, print, read, read, 0, !read);
}

/* Replaces the one at this place, or the youngest */
static void
went_by(PgSweepAdvice *a, uint32 print, bool youngest)
{
	pg_atomic_uint64 *set = pgsweep_advice_set(a, print);
	uint32		now = (uint32) pg_atomic_fetch_add_u64(&a->left, 1);
	int			place = 0;

	for (int way = 0; way < PGSWEEP_ADVICE_WAYS; way++)
	{
		uint64		ghost = pg_atomic_read_u64(&set[way]);

		if (ghost == 0 || (youngest && now - (uint32) ghost <
						   now - (uint32) pg_atomic_read_u64(&set[place])))
			place = way;
		if (ghost == 0)
			break;
	}
	pg_atomic_write_u64(&set[place], (uint64) print << 32 | now);
}

static void
went_first(PgSweepAdvice *a, uint32 print)
{
	went_by(a, print, false);
}

static void
went_youngest(PgSweepAdvice *a, uint32 print)
{
	went_by(a, print, true);
}

/* The time is not that of this one */
static void
went_late(PgSweepAdvice *a, uint32 print)
{
	pg_atomic_fetch_add_u64(&a->left, 1);
	pgsweep_advice_went(a, print);
	pg_atomic_fetch_sub_u64(&a->left, 1);
}

/* Half of the ghosts have no place */
static void
went_nowhere(PgSweepAdvice *a, uint32 print)
{
	if (print & 1)
		pg_atomic_fetch_add_u64(&a->left, 1);
	else
		pgsweep_advice_went(a, print);
}

/* ---- answers ---- */

typedef struct AnswerFault
{
	bool		raw;			/* ghosts that have returned take room */
	bool		no_share;		/* what could not be seen has not returned */
	bool		no_sample;		/* a sampled page is one page */
	bool		whole_class;	/* of the last class, all */
	double		error;			/* factor */
	bool		never_at_most;
} AnswerFault;

static bool
answer_by(const PgSweepAdvice *a, const PgSweepAdviceCounts *c, uint64 before,
		  double buffers, PgSweepAdviceAnswer *answer, const AnswerFault *fault)
{
	double		room = fault->no_sample ? buffers : buffers / ((uint64) 1 << a->shift);
	double		left = c->left;
	double		reads = pgsweep_advice_reads(c);
	double		gone = 1;
	double		saved[PGSWEEP_ADVICE_GROUPS] = {0};
	double		sum = 0;

	if (reads == 0 || left == 0)
		return false;
	answer->at_most = false;
	for (uint32 class = 0; class < PGSWEEP_ADVICE_CLASSES - 1 && room > 0; class++)
	{
		double		start = pgsweep_advice_class_start(class);
		double		width = pgsweep_advice_class_start(class + 1) - start;
		double		seen = Min((before + left - start - width / 2) / left, 1);
		double		returned = 0;
		double		ghosts;
		double		part;

		if (seen < 0.5)
		{
			answer->at_most = !fault->never_at_most;
			break;
		}
		if (fault->no_share)
			seen = 1;
		for (int group = 0; group < PGSWEEP_ADVICE_GROUPS; group++)
			returned += c->returned[group][class] / seen;
		ghosts = fault->raw ? width : width * Max(gone - returned / left / 2, 0);
		part = ghosts > room && !fault->whole_class ? room / ghosts : 1;
		room -= ghosts;
		gone -= returned / left;
		for (int group = 0; group < PGSWEEP_ADVICE_GROUPS; group++)
			saved[group] += part * c->returned[group][class] / seen;
	}
	for (int group = 0; group < PGSWEEP_ADVICE_GROUPS; group++)
		sum += saved[group];
	answer->ratio = Max(1 - sum / reads, 0);
	answer->error = fault->error * pgsweep_advice_error(c, saved, 1 - sum / reads);
	return true;
}

#define ANSWER_MUTANT(name, ...) \
static bool \
answer_##name(const PgSweepAdvice *a, const PgSweepAdviceCounts *c, uint64 before, \
			  double buffers, PgSweepAdviceAnswer *answer) \
{ \
	static const AnswerFault fault = {__VA_ARGS__}; \
	return answer_by(a, c, before, buffers, answer, &fault); \
}

ANSWER_MUTANT(raw,.raw = true,.error = 1)
ANSWER_MUTANT(no_share,.no_share = true,.error = 1)
ANSWER_MUTANT(no_sample,.no_sample = true,.error = 1)
ANSWER_MUTANT(whole_class,.whole_class = true,.error = 1)
ANSWER_MUTANT(too_sure,.error = 1.0 / 3)
ANSWER_MUTANT(unsure,.error = 3)
ANSWER_MUTANT(never_at_most,.never_at_most = true,.error = 1)

/* Says something when nothing is known */
static bool
answer_always(const PgSweepAdvice *a, const PgSweepAdviceCounts *c, uint64 before,
			  double buffers, PgSweepAdviceAnswer *answer)
{
	if (pgsweep_advice_answer(a, c, before, buffers, answer))
		return true;
	memset(answer, 0, sizeof(*answer));
	answer->ratio = 1;
	return true;
}

#define SHIFT	pgsweep_advice_shift
#define PRINT	pgsweep_advice_print
#define CLASS	pgsweep_advice_class
#define CAME	pgsweep_advice_came
#define WENT	pgsweep_advice_went
#define ANSWER	pgsweep_advice_answer

static const AdviceCode advice_codes[] = {
	{"pg_sweep", SHIFT, PRINT, CLASS, CAME, WENT, ANSWER},
	{"shift: too small", shift_too_small, PRINT, CLASS, CAME, WENT, ANSWER},
	{"shift: too large", shift_too_large, PRINT, CLASS, CAME, WENT, ANSWER},
	{"print: half of them", SHIFT, print_of_half, CLASS, CAME, WENT, ANSWER},
	{"print: zero is none", SHIFT, print_zero, CLASS, CAME, WENT, ANSWER},
	{"print: 16 bits", SHIFT, print_short, CLASS, CAME, WENT, ANSWER},
	{"class: no end", SHIFT, PRINT, class_without_end, CAME, WENT, ANSWER},
	{"class: the next", SHIFT, PRINT, class_of_next, CAME, WENT, ANSWER},
	{"came: a new page is read", SHIFT, PRINT, CLASS, came_new_is_read, WENT, ANSWER},
	{"came: a new page returns", SHIFT, PRINT, CLASS, came_new_returns, WENT, ANSWER},
	{"came: one too far", SHIFT, PRINT, CLASS, came_one_too_far, WENT, ANSWER},
	{"came: ghost stays", SHIFT, PRINT, CLASS, came_keeps_ghost, WENT, ANSWER},
	{"came: ghost of a new page stays", SHIFT, PRINT, CLASS, came_keeps_ghost_of_new, WENT, ANSWER},
	{"went: replaces the first", SHIFT, PRINT, CLASS, CAME, went_first, ANSWER},
	{"went: replaces the youngest", SHIFT, PRINT, CLASS, CAME, went_youngest, ANSWER},
	{"went: late", SHIFT, PRINT, CLASS, CAME, went_late, ANSWER},
	{"went: nowhere", SHIFT, PRINT, CLASS, CAME, went_nowhere, ANSWER},
	{"answer: raw distances", SHIFT, PRINT, CLASS, CAME, WENT, answer_raw},
	{"answer: what was not seen", SHIFT, PRINT, CLASS, CAME, WENT, answer_no_share},
	{"answer: no sample", SHIFT, PRINT, CLASS, CAME, WENT, answer_no_sample},
	{"answer: whole classes", SHIFT, PRINT, CLASS, CAME, WENT, answer_whole_class},
	{"answer: too sure", SHIFT, PRINT, CLASS, CAME, WENT, answer_too_sure},
	{"answer: unsure", SHIFT, PRINT, CLASS, CAME, WENT, answer_unsure},
	{"answer: never at most", SHIFT, PRINT, CLASS, CAME, WENT, answer_never_at_most},
	{"answer: always", SHIFT, PRINT, CLASS, CAME, WENT, answer_always},
};

#endif							/* ADVICE_MUTANTS_H */
