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
 * clock2q	extension/sweep/clock2q.h; the hand of the main part by lease.h;
 *			all three are in pool.h
 * lru		least recently used, for comparison with another program
 *
 * One process plays all backends, so a miss belongs to one of them by chance,
 * drawn with SEED.  (It draws the hash of pages for clock2q, too.)  Nothing is
 * ever pinned, dropped or read through a ring.
 *
 * Prints for each PLAY: it, misses while warming up, misses that count, buffers
 * that a hand has looked at in these, and pages that clock2q knew of these.  Exit status 1, and a line on
 * stderr: the trace is damaged, or an argument is wrong.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pool.h"

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
	uint64		returned;
} Play;

void
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

/* ---- plays ---- */

/*
 * 32 bits for set and print.  The server's hash has 64 (tag_hash.h): with 32, one
 * look in 2000 finds a wrong ghost, so figures are no better than the server's.
 */
static inline uint64
hash_of(uint32 page, uint64 seed)
{
	uint64		x = page + seed * UINT64CONST(0x9E3779B97F4A7C15);

	x ^= x >> 30;
	x *= UINT64CONST(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64CONST(0x94d049bb133111eb);
	x ^= x >> 31;
	return x << 32 | (uint32) x;
}

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
play_clock(const Trace *trace, Play *play, Policy policy)
{
	Pool	   *pool = allocate(1, sizeof(Pool));
	uint32	   *where = nones(trace->pages);
	uint64		random = UINT64CONST(88172645463325252) * (2 * play->seed - 1);

	/* one backend alone has leases of one buffer: the rule itself */
	make_pool(pool, policy, play->buffers, play->backends, play->backends == 1 ? 1 :
			  pgsweep_batch_size_for(PGSWEEP_BATCH_AUTO, play->buffers, play->backends));
	for (uint64 i = 0; i < trace->references; i++)
	{
		uint32		page = trace->page[i];
		uint32		buffer = where[page];
		uint32		backend;

		if (i == trace->warm)
			pool->looks = pool->returned[0] = pool->returned[1] = 0;
		if (buffer != NONE)
		{
			pool->usage[buffer] += pool->usage[buffer] < play->max_usage;
			continue;
		}
		play->misses[i >= trace->warm]++;
		backend = choose_backend(&random, play->backends);
		buffer = find_victim(pool, backend);
		if (pool->page[buffer] != NONE)
			where[pool->page[buffer]] = NONE;
		where[page] = buffer;
		load(pool, backend, buffer, page, hash_of(page, play->seed), play->first, false);
	}
	play->looks = pool->looks;
	play->returned = pool->returned[0] + pool->returned[1];
	free_pool(pool);
	free(pool);
	free(where);
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
			play_clock(&trace, &play, strcmp(play.policy, "clock2q") == 0 ? CLOCK2Q :
					   strcmp(play.policy, "batched") == 0 ? BATCHED : CLOCK);
		printf("%s " UINT64_FORMAT " " UINT64_FORMAT " " UINT64_FORMAT " " UINT64_FORMAT "\n", argv[i],
			   play.misses[0], play.misses[1], play.looks, play.returned);
		fflush(stdout);
	}
	return 0;
}
