/*
 * transfer.c
 *	  What it costs to fetch a line that another CPU has changed.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "calibrate.h"

/*
 * Lines that change hands together: so few that they stay in a CPU's private
 * cache, in random order so that none is fetched before it is asked for.
 */
#define LINES 256
#define ROUNDS 200
#define TURN_CHUNKS 201
#define TURNS_EACH 500
#define CONTENDED_NS 20000000

/* How the reader asks for a line */
typedef enum Fetch
{
	BY_LOAD,
	BY_XADD,
	BY_LOAD_AND_CAS,			/* which may take two: to read it, and to write it */
} Fetch;

typedef struct Chain
{
	Line		lines[LINES];
	Line		turn;			/* even: the owner's; odd: the reader's */
	Fetch		fetch;
	uint32_t	first;
	double		spent[ROUNDS];	/* ps a line */
} Chain;

static void
wait_for(Line *line, uint64_t value)
{
	while (line->word != value)
		__builtin_ia32_pause();
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void
announce(Line *line, uint64_t value)
{
	__atomic_store_n(&line->word, value, __ATOMIC_SEQ_CST);
}

/* Makes every line its own by writing it, without changing the chain. */
static void *
owner(void *arg)
{
	Chain	   *chain = arg;

	for (int round = 0; round < ROUNDS; round++)
	{
		wait_for(&chain->turn, 2 * round);
		for (int i = 0; i < LINES; i++)
			chain->lines[i].word = chain->lines[i].word;
		announce(&chain->turn, 2 * round + 1);
	}
	return NULL;
}

static inline uint64_t
fetch(Line *line, Fetch how)
{
	uint64_t	value;

	if (how == BY_XADD)
		return __atomic_fetch_add(&line->word, 0, __ATOMIC_SEQ_CST);
	value = line->word;
	if (how == BY_LOAD_AND_CAS)
	{
		/*
		 * What it compares with is what has been read, so it cannot compare
		 * before the load has its value. It could fetch the line before: only
		 * a fence would tell that from a load that brings it for writing.
		 */
		(void) __atomic_compare_exchange_n(&line->word, &value, value, false,
										   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	}
	return value;
}

/* Follows the chain: each line says which the next one is. */
static void *
reader(void *arg)
{
	Chain	   *chain = arg;

	for (int round = 0; round < ROUNDS; round++)
	{
		uint64_t	next = chain->first;
		int64_t		from;

		wait_for(&chain->turn, 2 * round + 1);
		from = now_ns();
		for (int i = 0; i < LINES; i++)
			next = fetch(&chain->lines[next], chain->fetch);
		chain->spent[round] = (now_ns() - from) * 1000.0 / LINES;
		chain->first = next;
		announce(&chain->turn, 2 * round + 2);
	}
	return NULL;
}

static double
transfer(const int *cpus, Fetch how)
{
	Chain	   *chain = map_memory(sizeof(Chain), cpus[1]);
	uint32_t	order[LINES];
	uint32_t	state = 12345;

	for (uint32_t i = 0; i < LINES; i++)
		order[i] = i;
	for (uint32_t i = LINES - 1; i > 0; i--)
	{
		uint32_t	j = next_random(&state) % (i + 1);
		uint32_t	kept = order[i];

		order[i] = order[j];
		order[j] = kept;
	}
	for (uint32_t i = 0; i < LINES; i++)
		chain->lines[order[i]].word = order[(i + 1) % LINES];
	chain->first = order[0];
	chain->turn.word = 0;
	chain->fetch = how;
	run_pair(owner, cpus[1], reader, cpus[0], chain);
	return middle_of(chain->spent, ROUNDS);
}

double
transfer_load(const int *cpus, int ncpus)
{
	return transfer(cpus, BY_LOAD);
}

double
transfer_xadd(const int *cpus, int ncpus)
{
	return transfer(cpus, BY_XADD);
}

double
transfer_both(const int *cpus, int ncpus)
{
	return transfer(cpus, BY_LOAD_AND_CAS);
}

/*
 * The usual measure, for comparison with published ones: two CPUs change the
 * same word by compare-and-swap in turn; half of the round trip.
 */
static Line ball;
static double turns[TURN_CHUNKS];

static void *
ping(void *arg)
{
	uint64_t	i = 0;

	for (int chunk = 0; chunk < TURN_CHUNKS; chunk++)
	{
		int64_t		from = now_ns();

		for (int j = 0; j < TURNS_EACH; j++, i++)
		{
			uint64_t	expected;

			do
				expected = 2 * i;
			while (!__atomic_compare_exchange_n(&ball.word, &expected, 2 * i + 1, false,
												__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
		}
		turns[chunk] = (now_ns() - from) * 1000.0 / (2 * TURNS_EACH);
	}
	return NULL;
}

static void *
pong(void *arg)
{
	for (uint64_t i = 0; i < TURN_CHUNKS * TURNS_EACH; i++)
	{
		uint64_t	expected;

		do
			expected = 2 * i + 1;
		while (!__atomic_compare_exchange_n(&ball.word, &expected, 2 * i + 2, false,
											__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	}
	return NULL;
}

double
ping_pong(const int *cpus, int ncpus)
{
	ball.word = 0;
	run_pair(ping, cpus[0], pong, cpus[1], NULL);
	return middle_of(turns, TURN_CHUNKS);
}

/*
 * All given CPUs add to one word as fast as they can: the time that an operation
 * takes of all, not of each.  The word itself tells how many operations of others
 * came between one's own, so a chunk in which they had next to none is known: they
 * did not run then, or had not the line for once.  The median of the others, many
 * short ones.
 */
#define CONTENDED_CHUNKS 2000
#define CONTENDED_EACH 1000		/* many, to keep the line for a while is part of it */
#define OTHERS_SHARE 4			/* they made a quarter of one's own, at least */

typedef struct Contender
{
	pthread_t	thread;
	int			cpu;
	int			done;			/* chunks */
	double		spent[CONTENDED_CHUNKS];
	char		pad[LINE];
} Contender;

static Line contended;
static Line begin_at;
static Line end_at;

/* Returns the word's value before it. */
static inline uint64_t
add_to_contended(void)
{
	return __atomic_fetch_add(&contended.word, 1, __ATOMIC_SEQ_CST);
}

static void *
contend(void *arg)
{
	Contender  *me = arg;
	int64_t		from;

	bind_to(me->cpu);
	while ((from = now_ns()) < (int64_t) begin_at.word)
		;
	while (from < (int64_t) end_at.word)
	{
		uint64_t	first = add_to_contended();
		uint64_t	all;
		int64_t		now;

		for (int i = 0; i < CONTENDED_EACH - 2; i++)
			(void) add_to_contended();
		all = add_to_contended() - first + 1;
		now = now_ns();
		if (all >= CONTENDED_EACH + CONTENDED_EACH / OTHERS_SHARE)
		{
			me->spent[me->done % CONTENDED_CHUNKS] = (now - from) * 1000.0 / all;
			me->done++;
		}
		from = now;
	}
	return NULL;
}

/* 0: they never ran at the same time. */
double
contended_xadd(const int *cpus, int ncpus)
{
	Contender  *all = calloc(ncpus, sizeof(Contender));
	double		sum = 0;
	int			found = 0;

	if (all == NULL)
		fail("memory");
	begin_at.word = now_ns() + 1000000;
	end_at.word = begin_at.word + CONTENDED_NS;
	for (int i = 0; i < ncpus; i++)
	{
		all[i].cpu = cpus[i];
		errno = pthread_create(&all[i].thread, NULL, contend, &all[i]);
		if (errno != 0)
			fail("pthread_create");
	}
	for (int i = 0; i < ncpus; i++)
		pthread_join(all[i].thread, NULL);
	for (int i = 0; i < ncpus; i++)
	{
		int			chunks = all[i].done < CONTENDED_CHUNKS ? all[i].done : CONTENDED_CHUNKS;

		if (chunks > 0)
		{
			sum += middle_of(all[i].spent, chunks);
			found++;
		}
	}
	free(all);
	return found > 0 ? sum / found : 0;
}
