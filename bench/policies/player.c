/*-------------------------------------------------------------------------
 *
 * bench/policies/player.c
 *	  Plays replacement on a trace of page references, and counts misses.
 *
 * Usage: player TRACE WARM PLAY...
 *
 * TRACE is a .pages file (trace.py).  The first WARM references fill the pool,
 * and are not counted.  A PLAY is POLICY,BUFFERS,BACKENDS,SEED:
 *
 * clock	core's clock: usage counts up to 5, one at the load; clock:MAX:FIRST
 *			with others
 * batched	the same with leases, by extension/sweep/lease.h
 * clock2q	extension/sweep/clock2q.h; the hand of the main part by lease.h
 * lru		least recently used, for comparison with another program
 *
 * One process plays all backends, so a miss belongs to one of them by chance,
 * drawn with SEED.  (It draws the hash of pages for clock2q, too.)  Nothing is
 * ever pinned, dropped or read through a ring.
 *
 * Prints for each PLAY: it, misses while warming up, misses that count, and
 * buffers that a hand has looked at in these.  Exit status 1, and a line on
 * stderr: the trace is damaged, or an argument is wrong.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

/* The program is not linked with the server's libraries */
#undef printf
#undef strerror
#undef fprintf
#undef vfprintf

#include "port/atomics.h"
#include "sweep/batch.h"
#include "sweep/clock2q.h"
#include "sweep/lease.h"

#define NONE			PG_UINT32_MAX
#define MAX_BACKENDS	1024

/* As BM_MAX_USAGE_COUNT, and what a page is loaded with */
#define CORE_MAX_USAGE	5
#define CORE_FIRST		1

/* Laps after which a hand cannot find a victim: each count is taken by then */
#define MAX_LAPS		16

typedef struct TraceHeader
{
	char		magic[8];
	uint32		version;
	uint32		sample;
	uint64		references;
	uint32		pages;
	uint32		unused;
} TraceHeader;

typedef struct Trace
{
	uint32	   *page;
	uint64		references;
	uint64		warm;
	uint32		pages;
} Trace;

typedef struct Play
{
	const char *policy;
	uint32		max_usage;
	uint32		first;
	uint32		buffers;
	uint32		backends;
	uint64		seed;
	uint64		misses[2];		/* while warming up, and counted */
	uint64		looks;
} Play;

/* The pool, and each virtual backend's leases */
typedef struct Pool
{
	uint32		buffers;
	uint32	   *page;			/* of each buffer */
	uint32	   *where;			/* of each page */
	uint8	   *usage;			/* of each buffer */
	PgSweepPartition part;
	PgSweepLease lease[MAX_BACKENDS];
	uint32		batch;
	PgSweepClock2q c2q;
	PgSweepC2qLease slots[MAX_BACKENDS];
	uint32		slot_batch;
} Pool;

/* What assertions call, if the headers are those of a server with assertions */
void
ExceptionalCondition(const char *condition, const char *file, int line)
{
	fprintf(stderr, "%s:%d: %s\n", file, line, condition);
	abort();
}

pg_noreturn static void pg_attribute_printf(1, 2)
fail(const char *format,...)
{
	va_list		args;

	fputs("player: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static void *
allocate(size_t number, size_t size)
{
	void	   *memory = calloc(Max(number, 1), size);

	if (memory == NULL)
		fail("out of memory");
	return memory;
}

static uint32 *
nones(uint32 number)
{
	uint32	   *array = allocate(number, sizeof(uint32));

	memset(array, 0xff, sizeof(uint32) * (size_t) number);
	return array;
}

static void
read_trace(const char *path, Trace *trace)
{
	FILE	   *file = fopen(path, "rb");
	TraceHeader header;

	if (file == NULL)
		fail("\"%s\": %s", path, strerror(errno));
	if (fread(&header, sizeof(header), 1, file) != 1 ||
		memcmp(header.magic, "PGPAGES", 8) != 0)
		fail("\"%s\" is no .pages file", path);
	if (header.version != 1)
		fail("\"%s\" has version %u; 1 is known", path, header.version);
	if (header.references == 0 || header.pages == 0)
		fail("\"%s\" has no references", path);
	trace->references = header.references;
	trace->pages = header.pages;
	trace->page = allocate(header.references, sizeof(uint32));
	if (fread(trace->page, sizeof(uint32), header.references, file) != header.references)
		fail("\"%s\" is cut: it has less than " UINT64_FORMAT " references",
			 path, header.references);
	if (fgetc(file) != EOF)
		fail("\"%s\" goes on after its last reference", path);
	for (uint64 i = 0; i < trace->references; i++)
		if (trace->page[i] >= trace->pages)
			fail("\"%s\": reference " UINT64_FORMAT " is page %u of %u", path, i,
				 trace->page[i], trace->pages);
	fclose(file);
}

/* ---- the pool ---- */

static void
make_pool(Pool *pool, const Trace *trace, const Play *play)
{
	uint32		n = play->buffers;

	memset(pool, 0, sizeof(Pool));
	pool->buffers = n;
	pool->page = nones(n);
	pool->where = nones(trace->pages);
	pool->usage = allocate(n, 1);
	pgsweep_partition_init(&pool->part, 0, n);
	pool->batch = play->backends == 1 ? 1 :
		pgsweep_batch_size_for(PGSWEEP_BATCH_AUTO, n, play->backends);

	pgsweep_c2q_init(&pool->c2q, n, allocate(n, sizeof(pg_atomic_uint32)),
					 allocate(n, sizeof(bool)),
					 allocate(pgsweep_c2q_num_sets(n), sizeof(PgSweepC2qSet)));
	pool->slot_batch = pgsweep_c2q_batch(&pool->c2q, play->backends);
}

static void
free_pool(Pool *pool)
{
	free(pool->page);
	free(pool->where);
	free(pool->usage);
	free(pool->c2q.slot);
	free(unvolatize(bool *, pool->c2q.probation));
	free(pool->c2q.set);
}

static inline void
load(Pool *pool, uint32 buffer, uint32 page, uint8 usage)
{
	if (pool->page[buffer] != NONE)
		pool->where[pool->page[buffer]] = NONE;
	pool->page[buffer] = page;
	pool->where[page] = buffer;
	pool->usage[buffer] = usage;
}

/*
 * The next buffer of a backend's lease.  One backend alone has leases of one
 * buffer: the rule itself.
 */
static inline uint32
tick(Pool *pool, uint32 backend)
{
	PgSweepLease *lease = &pool->lease[backend];

	pgsweep_lease_expire(lease, 0, pool->batch);
	if (lease->left == 0)
		pgsweep_lease_take(lease, &pool->part, 0, pool->batch);
	return (uint32) pgsweep_lease_tick(lease);
}

/*
 * A victim by the clock: the first unused buffer.  Each other one that it looks
 * at has a count less.
 */
static inline uint32
sweep(Pool *pool, uint32 backend, bool leased, uint32 *hand, uint64 *looks)
{
	for (uint64 look = 0; look < (uint64) MAX_LAPS * pool->buffers; look++)
	{
		uint32		buffer;

		if (leased)
			buffer = tick(pool, backend);
		else
		{
			buffer = *hand;
			*hand = buffer + 1 == pool->buffers ? 0 : buffer + 1;
		}
		++*looks;
		if (pgsweep_c2q_passes(&pool->c2q, buffer))
			continue;
		if (pool->usage[buffer] == 0)
			return buffer;
		pool->usage[buffer]--;
	}
	fail("no victim in %d laps of %u buffers", MAX_LAPS, pool->buffers);
}

/* ---- clock2q ---- */

static inline uint64
hash_of(uint32 page, uint64 seed)
{
	uint64		x = page + seed * UINT64CONST(0x9E3779B97F4A7C15);

	x ^= x >> 30;
	x *= UINT64CONST(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64CONST(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/*
 * Judge what is due; returns a victim of probation, or none.  During the first
 * lap of the main part's hand, all pages stay.
 */
static inline uint32
judge(Pool *pool, PgSweepC2qLease *slots)
{
	bool		full = pgsweep_hand_read(&pool->part) >= pool->buffers;
	uint32		unused = 0;

	while (pgsweep_c2q_has_to_judge(&pool->c2q, slots))
	{
		uint32		buffer = pgsweep_c2q_judge(&pool->c2q, slots, &unused);

		if (buffer == PGSWEEP_C2Q_NONE)
			continue;
		if (full && pool->usage[buffer] <= unused)
			return buffer;
		pool->usage[buffer] = Min(pool->usage[buffer], PGSWEEP_C2Q_USES);
	}
	return PGSWEEP_C2Q_NONE;
}

/*
 * In the order of extension/sweep/strategy_clock2q.c: a victim, its ghost, a
 * window, the page.
 */
static void
miss_clock2q(Pool *pool, uint32 backend, uint32 page, uint64 seed, uint64 *looks)
{
	PgSweepClock2q *c2q = &pool->c2q;
	PgSweepC2qLease *slots = &pool->slots[backend];
	PgSweepC2qSide side = PGSWEEP_C2Q_PROBATION;
	uint32		ended;
	uint32		buffer;

	if (slots->fill_left == 0)
		pgsweep_c2q_take_slots(c2q, slots,
							   Max(Min(slots->size * 2, pool->slot_batch), 1));
	pgsweep_c2q_miss(c2q, slots, 0);
	buffer = judge(pool, slots);
	if (buffer == PGSWEEP_C2Q_NONE)
	{
		side = PGSWEEP_C2Q_MAIN;
		buffer = sweep(pool, backend, true, NULL, looks);
	}
	if (pool->page[buffer] != NONE)
		pgsweep_c2q_left(c2q, hash_of(pool->page[buffer], seed), side);
	ended = pgsweep_c2q_end_window(c2q, slots);
	if (ended != PGSWEEP_C2Q_NONE)
		pool->usage[ended] = 0;

	load(pool, buffer, page, CORE_FIRST);
	side = pgsweep_c2q_loaded(c2q, slots, buffer, hash_of(page, seed));
	if (side == PGSWEEP_C2Q_MAIN)
		pool->usage[buffer] = PGSWEEP_C2Q_USES;
}

/* ---- plays ---- */

static inline uint32
choose_backend(uint64 *state, uint32 backends)
{
	if (backends == 1)
		return 0;
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32) ((*state >> 20) % backends);
}

static void
play_clock(const Trace *trace, Play *play)
{
	Pool	   *pool = allocate(1, sizeof(Pool));
	bool		clock2q = strcmp(play->policy, "clock2q") == 0;
	bool		batched = strcmp(play->policy, "batched") == 0;
	uint64		random = UINT64CONST(88172645463325252) * (2 * play->seed - 1);
	uint64		looks = 0;
	uint32		hand = 0;

	make_pool(pool, trace, play);
	for (uint64 i = 0; i < trace->references; i++)
	{
		uint32		page = trace->page[i];
		uint32		buffer = pool->where[page];
		uint32		backend;

		if (i == trace->warm)
			looks = 0;
		if (buffer != NONE)
		{
			pool->usage[buffer] += pool->usage[buffer] < play->max_usage;
			continue;
		}
		play->misses[i >= trace->warm]++;
		backend = choose_backend(&random, play->backends);
		if (clock2q)
			miss_clock2q(pool, backend, page, play->seed, &looks);
		else
			load(pool, sweep(pool, backend, batched, &hand, &looks), page,
				 play->first);
	}
	play->looks = looks;
	free_pool(pool);
	free(pool);
}

/*
 * A list of pages from the newest to the oldest; its head has the number after
 * the last page.
 */
static void
play_lru(const Trace *trace, Play *play)
{
	uint32		head = trace->pages;
	uint32	   *next = nones(head + 1);
	uint32	   *last = nones(head + 1);
	uint32		length = 0;

	next[head] = last[head] = head;
	for (uint64 i = 0; i < trace->references; i++)
	{
		uint32		page = trace->page[i];
		uint32		out = page;

		if (next[page] == NONE)
		{
			play->misses[i >= trace->warm]++;
			out = length < play->buffers ? NONE : last[head];
			length += out == NONE;
		}
		if (out != NONE)
		{
			next[last[out]] = next[out];
			last[next[out]] = last[out];
			next[out] = NONE;
		}
		next[page] = next[head];
		last[page] = head;
		last[next[head]] = page;
		next[head] = page;
	}
	free(next);
	free(last);
}

/*
 * A number up to the next comma, or to the end.
 */
static uint64
number(const char **text, const char *whole, uint64 least, uint64 most)
{
	char	   *end;
	uint64		value;

	errno = 0;
	value = strtoull(*text, &end, 10);
	if (errno != 0 || end == *text || **text == '-' || value < least || value > most ||
		(*end != ',' && *end != '\0'))
		fail("\"%s\": want POLICY,BUFFERS,BACKENDS,SEED, and at \"%s\" a number of "
			 UINT64_FORMAT " to " UINT64_FORMAT, whole, *text, least, most);
	*text = *end == ',' ? end + 1 : end;
	return value;
}

static Play
parse(const char *text)
{
	Play		play = {.max_usage = CORE_MAX_USAGE, .first = CORE_FIRST};
	const char *rest = strchr(text, ',');
	char	   *policy;
	int			used = 0;

	if (rest == NULL)
		fail("\"%s\": want POLICY,BUFFERS,BACKENDS,SEED", text);
	policy = strndup(text, rest - text);
	if (sscanf(policy, "clock:%u:%u%n", &play.max_usage, &play.first, &used) == 2)
	{
		if (policy[used] != '\0' || play.max_usage > PG_UINT8_MAX || play.first > play.max_usage)
			fail("\"%s\": want clock:MAX:FIRST", policy);
		policy[strlen("clock")] = '\0';
	}
	play.policy = policy;
	if (strcmp(policy, "clock") != 0 && strcmp(policy, "batched") != 0 &&
		strcmp(policy, "clock2q") != 0 && strcmp(policy, "lru") != 0)
		fail("there is no policy \"%s\"", policy);
	rest++;
	play.buffers = (uint32) number(&rest, text, 1, PGSWEEP_C2Q_ENDED - 1);
	play.backends = (uint32) number(&rest, text, 1, MAX_BACKENDS);
	play.seed = number(&rest, text, 1, PG_UINT32_MAX);
	if (*rest != '\0')
		fail("\"%s\": \"%s\" is too much", text, rest);
	return play;
}

int
main(int argc, char **argv)
{
	Trace		trace;
	const char *warm = argc > 2 ? argv[2] : "";

	if (argc < 4)
		fail("usage: player TRACE WARM PLAY...");
	for (int i = 3; i < argc; i++)
		parse(argv[i]);
	read_trace(argv[1], &trace);
	trace.warm = number(&warm, argv[2], 0, trace.references);
	for (int i = 3; i < argc; i++)
	{
		Play		play = parse(argv[i]);

		if (strcmp(play.policy, "lru") == 0)
			play_lru(&trace, &play);
		else
			play_clock(&trace, &play);
		printf("%s " UINT64_FORMAT " " UINT64_FORMAT " " UINT64_FORMAT "\n", argv[i],
			   play.misses[0], play.misses[1], play.looks);
		fflush(stdout);
	}
	return 0;
}
