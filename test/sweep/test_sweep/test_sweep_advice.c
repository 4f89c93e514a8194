/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/test_sweep_advice.c
 *	  Property tests of what learns how much less a larger pool would read.
 *
 * Pools of several sizes replace pages by LRU, under the same load.  The
 * smallest one tells advice.h what comes and what goes.  Distances are compared
 * with those that the test has counted, and answers with what the larger pools
 * have read.  A sample is compared with all pages.
 *
 * advice_mutants.h		the code under test, and broken variants of it
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "common/hashfn.h"
#include "port/atomics.h"

#include "advice_mutants.h"
#include "property.h"

PG_MODULE_MAGIC_EXT(
					.name = "test_sweep_advice",
					.version = "1.0"
);

PG_FUNCTION_INFO_V1(test_sweep_advice);
PG_FUNCTION_INFO_V1(test_sweep_advice_codes);

#define MIN_POOL		256
#define MAX_POOL		2048
#define MAX_PAGES		131072
#define NOTHING			PG_UINT32_MAX

/* A set holds all ghosts that are not older than this, by any chance that matters */
#define CERTAIN			2048

/*
 * An answer may be that of a pool this much smaller or larger, and off by that.
 * Loops, and pools that hold nearly all pages, make steep curves.
 */
#define SIZE_ERROR		0.08
#define RATIO_ERROR		0.03

/* Sizes of the larger pools */
static const double sizes[] = {1, 1.25, 1.5, 2, 3};

#define NSIZES			((int) lengthof(sizes))

/* Which cases had what; int64 each, as the SQL function's columns */
typedef struct AdviceTestCounts
{
	int64		cases;
	int64		uniform;
	int64		skewed;
	int64		loops;
	int64		strangers;		/* with pages that are used once */
	int64		sampled;		/* one of 2 or 4 pages */
	int64		all;			/* every page */
	int64		new_pages;
	int64		short_time;		/* too short to see all that return */
	int64		first_ghosts;	/* counted from the first ghost on */
	int64		later;			/* a reset came later */
	int64		judged;			/* answers compared with larger pools */
	int64		nothing_known;
} AdviceTestCounts;

static AdviceTestCounts counts;

/* Of answers by a sample: how far off, and how far they said that they may be */
static struct
{
	int64		n;
	int64		within;
	double		squares;
	double		said;
} sample;

/* ---- pools by LRU ---- */

typedef struct Lru
{
	uint32		size;
	uint32		used;
	uint32		newest;
	uint32		oldest;
	uint64		reads;			/* counted ones */
	uint32		newer[MAX_PAGES];
	uint32		older[MAX_PAGES];
	bool		has[MAX_PAGES];
} Lru;

static Lru *lru;

static void
lru_unlink(Lru *l, uint32 page)
{
	if (l->newer[page] != NOTHING)
		l->older[l->newer[page]] = l->older[page];
	else
		l->newest = l->older[page];
	if (l->older[page] != NOTHING)
		l->newer[l->older[page]] = l->newer[page];
	else
		l->oldest = l->newer[page];
}

/* Use a page.  Returns false if it was there, else *victim is what left for it. */
static bool
lru_misses(Lru *l, uint32 page, uint32 *victim)
{
	bool		miss = !l->has[page];

	*victim = NOTHING;
	if (!miss)
		lru_unlink(l, page);
	else if (l->used < l->size)
		l->used++;
	else
	{
		*victim = l->oldest;
		l->has[*victim] = false;
		lru_unlink(l, *victim);
	}
	l->has[page] = true;
	l->newer[page] = NOTHING;
	l->older[page] = l->newest;
	if (l->newest != NOTHING)
		l->newer[l->newest] = page;
	else
		l->oldest = page;
	l->newest = page;
	return miss;
}

/* ---- load ---- */

static struct
{
	uint32		kind;			/* 0 uniform, 1 skewed, 2 a loop beside points */
	uint32		npages;
	double		power;
	uint32		loop;
	uint32		at;
	uint32		strangers;		/* of 100 */
	uint32		next;			/* page that was never used */
	uint32		salt;
} load;

static uint32
next_page(void)
{
	if (random_in(0, 99) < load.strangers && load.next < MAX_PAGES)
		return load.next++;
	if (load.kind == 2 && random_in(0, 1) == 0)
		return load.at = (load.at + 1) % load.loop;
	return (uint32) (load.npages * pow(pg_prng_double(&prng), load.power));
}

static uint32
page_hash(uint32 page)
{
	return murmurhash32(page ^ load.salt);
}

/* ---- one observer: all pages, or a sample ---- */

typedef struct Observer
{
	PgSweepAdvice advice;
	PgSweepAdviceCounts base;
	PgSweepAdviceCounts counted;
	uint64		before;

	/* what it should have */
	uint64		now;
	uint64		reads;
	uint64		returned[PGSWEEP_ADVICE_CLASSES];
	uint64		left_at[MAX_PAGES]; /* plus 1 */
	uint32		page[MAX_POOL]; /* unused here: the test knows the victims */
} Observer;

static Observer *observer;

/* Kept for what comes up often */
static uint32
class_by_definition(uint64 distance)
{
	static uint16 known[65536]; /* plus 1 */
	uint32		class = 0;

	if (distance < lengthof(known) && known[distance] != 0)
		return known[distance] - 1;
	while (class < PGSWEEP_ADVICE_CLASSES - 1 && pgsweep_advice_class_start(class + 1) <= distance)
		class++;
	if (distance < lengthof(known))
		known[distance] = class + 1;
	return class;
}

static void
observe(const AdviceCode *code, Observer *o, uint32 page, uint32 victim, bool read, bool counting)
{
	uint32		print = code->print(&o->advice, page_hash(page));

	/*
	 * by the definition, whatever the code says: the mixed hash begins with
	 * zeros
	 */
	if (((uint64) (page_hash(page) * UINT32_C(0x9E3779B1)) << o->advice.shift >> 32) == 0 ||
		o->advice.shift == 0)
	{
		if (read && counting)
		{
			o->reads++;
			if (o->left_at[page] != 0)
				o->returned[class_by_definition(o->now - o->left_at[page])]++;
		}
		o->left_at[page] = 0;
	}
	if (print != 0)
		code->came(&o->advice, print, read);

	if (victim == NOTHING)
		return;
	print = code->print(&o->advice, page_hash(victim));
	if (((uint64) (page_hash(victim) * UINT32_C(0x9E3779B1)) << o->advice.shift >> 32) == 0 ||
		o->advice.shift == 0)
		o->left_at[victim] = ++o->now;
	if (print != 0)
		code->went(&o->advice, print);
}

static bool
check_counts(const Observer *o)
{
	const PgSweepAdviceCounts *c = &o->counted;

	if (o->before + c->left != o->now)
		return violated("%llu sampled pages have left, not %llu",
						(unsigned long long) o->now, (unsigned long long) (o->before + c->left));
	if (pgsweep_advice_reads(c) != o->reads)
		return violated("%llu sampled reads, not %llu", (unsigned long long) o->reads,
						(unsigned long long) pgsweep_advice_reads(c));
	for (uint32 class = 0; class < PGSWEEP_ADVICE_CLASSES; class++)
	{
		uint64		returned = 0;

		for (int group = 0; group < PGSWEEP_ADVICE_GROUPS; group++)
			returned += c->returned[group][class];
		if (pgsweep_advice_class_start(class + 1) <= CERTAIN ? returned != o->returned[class] :
			returned > o->returned[class])
			return violated("%llu returned at distance %u, not %llu",
							(unsigned long long) o->returned[class],
							pgsweep_advice_class_start(class), (unsigned long long) returned);
	}
	return true;
}

/* ---- what holds without a load ---- */

static bool
check_numbers(const AdviceCode *code)
{
	uint32		n = (uint32) pow(2, 4 + 26 * pg_prng_double(&prng));
	uint32		shift = code->shift(n);
	uint32		distance = (uint32) pow(2, 32 * pg_prng_double(&prng));
	uint32		class = code->class(distance);
	static PgSweepAdvice a;
	uint32		hash = random_in(0, 9) == 0 ? 0 : pg_prng_uint32(&prng);
	uint32		others = 0;

	if (n <= PGSWEEP_ADVICE_SAMPLE ? shift != 0 :
		n >> shift > PGSWEEP_ADVICE_SAMPLE || n >> shift < PGSWEEP_ADVICE_SAMPLE / 2)
		return violated("of %u buffers, one of 2^%u", n, shift);

	if (class >= PGSWEEP_ADVICE_CLASSES || class != class_by_definition(distance))
		return violated("distance %u is in class %u", distance, class);

	/* different pages have different prints, and are sampled or not for good */
	a.shift = random_in(0, 18);
	if ((code->print(&a, 0) == 0) || code->print(&a, hash) != code->print(&a, hash))
		return violated("hash 0 or %u has no print", hash);
	for (uint32 bit = 0; bit < 32; bit++)
		others += code->print(&a, hash) != 0 &&
			code->print(&a, hash) == code->print(&a, hash ^ (1U << bit));
	if (others > 0)
		return violated("%u pages have the print of hash %u, too", others, hash);
	return true;
}

/*
 * Half of a class is half of what returned in it: few enough, that the others
 * take all the room.
 */
static bool
check_half(const AdviceCode *code)
{
	static PgSweepAdvice a;
	static PgSweepAdviceCounts c;
	uint32		class = random_in(PGSWEEP_ADVICE_STEPS, PGSWEEP_ADVICE_CLASSES / 2);
	double		start = pgsweep_advice_class_start(class);
	double		width = pgsweep_advice_class_start(class + 1) - start;
	double		share = 0.25 + 0.5 * pg_prng_double(&prng);
	PgSweepAdviceAnswer answer;

	a.shift = random_in(0, 8);
	memset(&c, 0, sizeof(c));
	c.left = PGSWEEP_ADVICE_GROUPS * 100000;
	for (int group = 0; group < PGSWEEP_ADVICE_GROUPS; group++)
	{
		c.reads[group] = 100000;
		c.returned[group][class] = 1000;
	}
	if (!code->answer(&a, &c, UINT64_C(1) << 40, (start + share * width) * (1 << a.shift), &answer))
		return violated("nothing is known");
	if (fabs((1 - answer.ratio) * 100 - share) > 0.02)
		return violated("%.3f of a class saves %.3f of it", share, (1 - answer.ratio) * 100);
	return true;
}

/* ---- answers ---- */

static bool
ask(const AdviceCode *code, const Observer *o, double more, PgSweepAdviceAnswer *answer)
{
	if (!code->answer(&o->advice, &o->counted, o->before, more, answer))
		return violated("nothing is known");
	return true;
}

static bool
check_answers(const AdviceCode *code, const Observer *o, bool judge)
{
	uint32		n = lru[0].size;
	double		last = 1;

	for (int i = 0; i < NSIZES; i++)
	{
		double		size = sizes[i] * n;
		double		actual = (double) lru[i].reads / lru[0].reads;
		PgSweepAdviceAnswer answer,
					smaller,
					larger;

		if (!ask(code, o, size - n, &answer) ||
			!ask(code, o, Max(size * (1 - SIZE_ERROR) - n, 0), &smaller) ||
			!ask(code, o, size * (1 + SIZE_ERROR) - n, &larger))
			return false;
		if (answer.ratio < 0 || answer.ratio > last || (i == 0 && answer.ratio != 1))
			return violated("ratio %f for %.2f pools, after %f", answer.ratio, sizes[i], last);
		last = answer.ratio;
		if (i == NSIZES - 1)
			counts.short_time += answer.at_most;
		if (!judge || lru[0].reads < 2000)
			continue;
		counts.judged += i == NSIZES - 1;
		if (actual > smaller.ratio + RATIO_ERROR)
			return violated("%.2f pools read %.3f, not at most %.3f (%.3f), load %u, %u pages for %u",
							sizes[i], actual, answer.ratio, smaller.ratio, load.kind, load.npages, n);
		if (!answer.at_most && !larger.at_most && actual < larger.ratio - RATIO_ERROR)
			return violated("%.2f pools read %.3f, not %.3f (%.3f), load %u, %u pages for %u", sizes[i],
							actual, answer.ratio, larger.ratio, load.kind, load.npages, n);
	}
	return true;
}

/*
 * How far is a sample off?  Judged over many cases, as an error is about them.
 */
static bool
check_sample(const AdviceCode *code, const Observer *part, const Observer *all)
{
	for (int i = 1; i < NSIZES - 1; i++)
	{
		double		more = (sizes[i] - 1) * lru[0].size;
		PgSweepAdviceAnswer a,
					b;

		if (!ask(code, part, more, &a) || !ask(code, all, more, &b))
			return false;
		if (a.at_most || b.at_most || pgsweep_advice_reads(&part->counted) < 1000)
			continue;
		sample.n++;
		/* all pages are a sample, too, but that is the load's */
		sample.within += fabs(a.ratio - b.ratio) <= a.error + 0.002;
		sample.squares += (a.ratio - b.ratio) * (a.ratio - b.ratio);
		sample.said += a.error * a.error / (PGSWEEP_ADVICE_STUDENT * PGSWEEP_ADVICE_STUDENT);
	}
	if (sample.n < 60)
		return true;
	if (sample.within < sample.n * 0.85)
		return violated("only %lld of %lld samples are as near as they say",
						(long long) sample.within, (long long) sample.n);
	if (sample.said > 5 * sample.squares)
		return violated("samples are off by %f, and say by %f", sqrt(sample.squares / sample.n),
						sqrt(sample.said / sample.n));
	return true;
}

/* ---- a case ---- */

static void
random_load(uint32 n)
{
	load.kind = random_in(0, 2);
	load.npages = random_in(n + n / 4, 5 * n);
	load.power = load.kind == 1 ? 1 + 2 * pg_prng_double(&prng) : 1;
	load.loop = random_in(n, load.npages - 1);
	load.at = 0;
	load.strangers = random_in(0, 1) == 0 ? 0 : random_in(1, 20);
	load.next = load.npages;
	load.salt = pg_prng_uint32(&prng);
	counts.uniform += load.kind == 0;
	counts.skewed += load.kind == 1;
	counts.loops += load.kind == 2;
	counts.strangers += load.strangers > 0;
}

static void
begin_pools(uint32 n)
{
	for (int i = 0; i < NSIZES; i++)
	{
		Lru		   *l = &lru[i];

		l->size = (uint32) (sizes[i] * n);
		l->used = 0;
		l->newest = l->oldest = NOTHING;
		l->reads = 0;
		memset(l->has, 0, sizeof(l->has));
	}
}

static bool
check_case(const void *entry)
{
	const AdviceCode *code = entry;
	uint32		n = random_in(MIN_POOL, MAX_POOL);
	bool		sampled = random_in(0, 1) == 0;
	uint32		new_pages = random_in(0, 2) == 0 ? random_in(1, 10) : 0;	/* mostly strangers */
	uint32		warm = 12 * n;
	uint32		reset = random_in(0, 1) == 0 ? 0 : random_in(1, 20 * n);
	uint32		nrefs = random_in(4 * n, 40 * n);
	int			nobservers = sampled ? 2 : 1;
	PgSweepAdviceAnswer answer;

	if (counts.cases == 1)
		memset(&sample, 0, sizeof(sample));
	if (!check_numbers(code) || !check_half(code))
		return false;

	random_load(n);
	begin_pools(n);
	counts.sampled += sampled;
	counts.all += !sampled;
	counts.new_pages += new_pages > 0;
	counts.first_ghosts += reset == 0;
	counts.later += reset > 0;
	for (int k = 0; k < nobservers; k++)
	{
		Observer   *o = &observer[k];

		memset(o, 0, sizeof(*o));
		pgsweep_advice_init(&o->advice, n, o->page);
		o->advice.shift = k == 0 ? 0 : n < 1024 ? 1 : 2;
		if (code->answer(&o->advice, &o->counted, 0, n, &answer))
			return violated("something is known of nothing");
	}
	counts.nothing_known++;

	for (uint32 ref = 0; ref < warm + reset + nrefs; ref++)
	{
		uint32		page = next_page();
		bool		read = page >= load.npages ? random_in(0, 9) >= new_pages :
			random_in(0, 1999) >= new_pages;
		bool		counting = ref >= warm + reset;
		uint32		victim;

		if (ref == warm + reset)
			for (int k = 0; k < nobservers; k++)
			{
				pgsweep_advice_add(&observer[k].base, &observer[k].advice);
				observer[k].before = observer[k].base.left;
			}

		for (int i = NSIZES - 1; i >= 0; i--)
			if (lru_misses(&lru[i], page, &victim))
				lru[i].reads += counting && read;
			else if (i == 0)
				victim = page;	/* as a sign: no miss */
		if (victim == page || ref < warm)
			continue;
		for (int k = 0; k < nobservers; k++)
			observe(code, &observer[k], page, victim, read, counting);
	}

	if (lru[0].reads == 0)
		return true;
	for (int k = 0; k < nobservers; k++)
	{
		pgsweep_advice_add(&observer[k].counted, &observer[k].advice);
		pgsweep_advice_subtract(&observer[k].counted, &observer[k].base);
		if (!check_counts(&observer[k]))
			return false;
	}
	if (observer[0].counted.left == 0)
		return true;

	/* a loop is a load that changes, unless it goes round several times */
	if (!check_answers(code, &observer[0], load.kind != 2 || nrefs >= 8 * load.loop))
		return false;
	return !sampled || observer[1].counted.left == 0 || observer[1].reads == 0 ||
		(check_answers(code, &observer[1], false) &&
		 check_sample(code, &observer[1], &observer[0]));
}

/*
 * test_sweep_advice(seed, cases, code)
 */
Datum
test_sweep_advice(PG_FUNCTION_ARGS)
{
	lru = palloc(NSIZES * sizeof(Lru));
	observer = palloc(2 * sizeof(Observer));
	return run_cases(fcinfo, check_case, FIND_CODE(advice_codes, 2), &counts.cases, sizeof(counts));
}

Datum
test_sweep_advice_codes(PG_FUNCTION_ARGS)
{
	return code_names(fcinfo, advice_codes, sizeof(advice_codes[0]), lengthof(advice_codes));
}
