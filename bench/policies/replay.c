/*-------------------------------------------------------------------------
 *
 * bench/policies/replay.c
 *	  Chooses each victim of a server again, and compares.
 *
 * Usage: replay FILE POLICY BATCH
 *
 * FILE is what the only process of a recording server has written, from an
 * empty pool on, with PG_PAGE_TRACE_EVENTS.  POLICY is the server's strategy:
 * stock, batched or clock2q.  BATCH is the size of a lease, as
 * pg_sweep_status says.
 *
 * References, pins and what is freed are the server's.  Victims are pool.h's.
 * A ring chooses its own, which are the server's, too.  Prints how many of each
 * there were.  Exit status 1, and a line on stderr: a victim, or anything else
 * that both know, is not the same; or the file is damaged.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pool.h"
#include "sweep/tag_hash.h"

/* As in page_trace.h and page_trace.c (trace.patch) */
#define HIT			0x01
#define RING		0x02
#define PINNED		0x08
#define VICTIM		0x10
#define FREED		0x20
#define UNPINNED	0x40
#define END			0x80

#define VERSION		2

typedef struct Header
{
	char		magic[8];
	uint32		version;
	uint32		record_size;
	uint32		sample;
	uint32		pid;
	uint32		num_buffers;
	uint32		events;
	uint32		unused[2];
} Header;

typedef struct Tag
{
	uint32		tablespace;
	uint32		database;
	uint32		relation;
	uint32		block;
} Tag;

typedef struct Record
{
	uint64		when;
	Tag			tag;
	uint32		hash;
	uint32		buffer;
	uint8		fork;
	uint8		flags;
	uint16		unused[3];
} Record;

StaticAssertDecl(sizeof(Header) == 40, "the server's");
StaticAssertDecl(sizeof(Record) == 40, "the server's");

/* What was in the file */
typedef struct Counts
{
	uint64		records;
	uint64		victims;		/* compared */
	uint64		evictions;		/* of these, with a page */
	uint64		ring_victims;
	uint64		loads;
	uint64		hits;
	uint64		pinned_hits;
	uint64		freed;
	uint64		most_victims;	/* at once, without a load */
} Counts;

/* The page of each buffer, in the words of the server */
typedef struct Place
{
	Tag			tag;
	uint8		fork;
} Place;

/*
 * Core takes free buffers from a list first: the last one that was freed.  At
 * first they are all on it, in their order.
 */
typedef struct FreeList
{
	uint32		first;
	uint32	   *next;			/* of each buffer, NONE at the end */
	bool	   *is_on;			/* is it on the list? */
} FreeList;

static Counts counts;

void
fail(const char *format,...)
{
	va_list		args;

	fprintf(stderr, "replay: record " UINT64_FORMAT ", " UINT64_FORMAT " victims compared: ",
			counts.records, counts.victims);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static FreeList
make_list(uint32 n)
{
	FreeList	list = {0, nones(n), allocate(n, sizeof(bool))};

	for (uint32 i = 0; i < n; i++)
	{
		list.next[i] = i + 1 < n ? i + 1 : NONE;
		list.is_on[i] = true;
	}
	return list;
}

static void
put(FreeList *list, uint32 buffer)
{
	if (list->is_on[buffer])
		return;
	list->next[buffer] = list->first;
	list->first = buffer;
	list->is_on[buffer] = true;
}

/*
 * A free buffer that is no victim any longer is dropped from the list.
 */
static uint32
take(FreeList *list, const Pool *pool)
{
	while (list->first != NONE)
	{
		uint32		buffer = list->first;

		list->first = list->next[buffer];
		list->is_on[buffer] = false;
		if (!pool->pinned[buffer] && pool->usage[buffer] == 0)
			return buffer;
	}
	return NONE;
}

/*
 * The buffer's page has left, if there was one.
 */
static void
leave(Pool *pool, uint32 buffer)
{
	pool->page[buffer] = NONE;
	pool->usage[buffer] = 0;
}

static void
replay_victim(Pool *pool, FreeList *list, const Record *record)
{
	uint32		mine = NONE;

	if (record->flags & RING)
		counts.ring_victims++;
	else
	{
		if (pool->policy == CLOCK)
			mine = take(list, pool);
		if (mine == NONE)
			mine = find_victim(pool, 0);
		if (mine != record->buffer)
			fail("the server has chosen buffer %u, the player %u", record->buffer, mine);
		counts.victims++;
		counts.evictions += pool->page[mine] != NONE;
		counts.most_victims = Max(counts.most_victims, pool->victims);
	}
	if (pool->pinned[record->buffer])
		fail("a victim was pinned: buffer %u", record->buffer);
	leave(pool, record->buffer);
	pool->pinned[record->buffer] = true;
}

static void
replay_freed(Pool *pool, FreeList *list, const Record *record)
{
	counts.freed++;
	leave(pool, record->buffer);
	if (pool->policy == CLOCK)
		put(list, record->buffer);
	else if (pool->policy == CLOCK2Q)
		clock2q_freed(pool, record->buffer);
}

static uint64
hash_of(const Record *record)
{
	return pgsweep_hash_page(record->tag.tablespace, record->tag.database,
							 record->tag.relation, record->fork, record->tag.block);
}

static void
replay_reference(Pool *pool, Place *places, const Record *record)
{
	uint32		buffer = record->buffer;
	Place	   *place = &places[buffer];
	bool		ring = (record->flags & RING) != 0;

	if (!(record->flags & HIT))
	{
		counts.loads++;
		if (pool->page[buffer] != NONE || !pool->pinned[buffer])
			fail("a page was loaded into a buffer that was no victim: %u", buffer);
		place->tag = record->tag;
		place->fork = record->fork;
		/* which page it is, only the server has to know */
		load(pool, 0, buffer, 0, hash_of(record), CORE_FIRST, ring);
		return;
	}

	counts.hits++;
	if (pool->page[buffer] == NONE || place->fork != record->fork ||
		memcmp(&place->tag, &record->tag, sizeof(Tag)) != 0)
		fail("a page was hit that was not in buffer %u", buffer);
	if (record->flags & PINNED)
		counts.pinned_hits++;
	else if (ring)
		pool->usage[buffer] = Max(pool->usage[buffer], 1);
	else
		pool->usage[buffer] = Min(pool->usage[buffer] + 1, CORE_MAX_USAGE);
	if (pool->pinned[buffer] != ((record->flags & PINNED) != 0))
		fail("buffer %u was %spinned", buffer, pool->pinned[buffer] ? "" : "not ");
	pool->pinned[buffer] = true;
}

static void
replay(FILE *file, const char *path, Pool *pool)
{
	FreeList	list = make_list(pool->buffers);
	Place	   *places = allocate(pool->buffers, sizeof(Place));
	Record		record;

	while (fread(&record, sizeof(record), 1, file) == 1)
	{
		counts.records++;
		if (record.flags & END)
		{
			if (record.hash != (uint32) (counts.records - 1) || fgetc(file) != EOF)
				fail("\"%s\" is damaged", path);
			free(list.next);
			free(list.is_on);
			free(places);
			return;
		}
		if (record.buffer >= pool->buffers)
			fail("\"%s\" is damaged: buffer %u of %u", path, record.buffer, pool->buffers);
		if (record.flags & VICTIM)
			replay_victim(pool, &list, &record);
		else if (record.flags & FREED)
			replay_freed(pool, &list, &record);
		else if (record.flags & UNPINNED)
			pool->pinned[record.buffer] = false;
		else
			replay_reference(pool, places, &record);
	}
	fail("\"%s\" is not whole", path);
}

int
main(int argc, char **argv)
{
	static const char *const names[] = {"stock", "batched", "clock2q"};
	Pool	   *pool = allocate(1, sizeof(Pool));
	int			policy = 0;
	int			batch = argc == 4 ? atoi(argv[3]) : 0;
	FILE	   *file;
	Header		header;

	while (argc == 4 && policy < lengthof(names) && strcmp(argv[2], names[policy]) != 0)
		policy++;
	if (batch < 1 || batch > PGSWEEP_BATCH_MAX || policy == lengthof(names))
		fail("usage: replay FILE POLICY BATCH");
	file = fopen(argv[1], "rb");
	if (file == NULL)
		fail("\"%s\": %s", argv[1], strerror(errno));
	if (fread(&header, sizeof(header), 1, file) != 1 ||
		memcmp(header.magic, "PGPTRACE", 8) != 0 || header.version != VERSION ||
		header.record_size != sizeof(Record) || header.num_buffers == 0)
		fail("\"%s\" is not from a recording server", argv[1]);
	if (!header.events)
		fail("\"%s\" has no events: set PG_PAGE_TRACE_EVENTS, and no sample", argv[1]);

	make_pool(pool, (Policy) policy, header.num_buffers, 1, batch);
	replay(file, argv[1], pool);
	fclose(file);
	printf("victims " UINT64_FORMAT " evictions " UINT64_FORMAT " probation " UINT64_FORMAT
		   " main " UINT64_FORMAT " ring " UINT64_FORMAT " loads " UINT64_FORMAT " hits " UINT64_FORMAT
		   " pinned_hits " UINT64_FORMAT " passed_pins " UINT64_FORMAT
		   " freed " UINT64_FORMAT " at_once " UINT64_FORMAT " returned_probation " UINT64_FORMAT
		   " returned_main " UINT64_FORMAT " windows " UINT64_FORMAT " first_laps " UINT64_FORMAT
		   " longer %u\n",
		   counts.victims, counts.evictions, pool->from[PGSWEEP_C2Q_PROBATION],
		   pool->from[PGSWEEP_C2Q_MAIN],
		   counts.ring_victims, counts.loads, counts.hits, counts.pinned_hits,
		   pool->passed_pins, counts.freed, counts.most_victims,
		   pool->returned[PGSWEEP_C2Q_PROBATION], pool->returned[PGSWEEP_C2Q_MAIN],
		   pool->windows, pool->first_laps, pool->longest - Min(pool->longest, pool->c2q.least));
	free_pool(pool);
	free(pool);
	return 0;
}
