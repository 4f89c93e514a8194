/*
 * simple.c
 *	  simplehash.h from the first pin on, and the entry used last remembered.
 *
 * SLOTS_PER_ENTRY	how empty the table is, at least; 2 unless given
 * ONE_SEARCH		finds an entry or fills it, instead of searching again for
 *					where to fill one
 * HASH_FIBONACCI	one multiplication instead of murmurhash32(): says how much of
 *					the time is that of the hash function
 */
#include "layouts.h"

#include "common/hashfn.h"
#include "common/logging.h"

#ifndef SLOTS_PER_ENTRY
#define SLOTS_PER_ENTRY 2
#endif
#define INITIAL_ENTRIES 32

typedef struct Entry
{
	Buffer		buffer;
	int32		refcount;
	char		status;
} Entry;

#ifdef HASH_FIBONACCI
#define HASH(buffer)	((uint32) ((uint64) (buffer) * UINT64CONST(0x9E3779B97F4A7C15) >> 32))
#else
#define HASH(buffer)	murmurhash32((uint32) (buffer))
#endif

#define SH_PREFIX		refcount
#define SH_ELEMENT_TYPE Entry
#define SH_KEY_TYPE		Buffer
#define SH_KEY			buffer
#define SH_HASH_KEY(tb, key)	HASH(key)
#define SH_EQUAL(tb, a, b)		((a) == (b))
#define SH_SCOPE		static inline
#define SH_RAW_ALLOCATOR pg_malloc0
#define SH_FILLFACTOR	(1.0 / SLOTS_PER_ENTRY)
#define SH_GROW_MAX_DIB	PG_UINT32_MAX
#define SH_GROW_MAX_MOVE	PG_INT32_MAX
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

typedef struct Head
{
	refcount_hash table;
	uint32		room;
	uint32		most_pinned;
} Head;

static Head *head;				/* there: so that it can be in shared memory */
static Entry no_entry = {InvalidBuffer};
static Entry *last = &no_entry;

static void
init(void)
{
	head = pg_malloc0(sizeof(Head));
	head->table = *refcount_create(INITIAL_ENTRIES, NULL);
}

static pg_noinline void
make_room(void)
{
	refcount_hash *table = &head->table;

	if (table->members >= table->grow_threshold)
	{
		last = &no_entry;
		refcount_grow(table, table->size * 2);
	}
	head->most_pinned = Max(head->most_pinned, table->members + 1);
	head->room = Min(head->most_pinned, table->grow_threshold);
}

static inline void
reserve(void)
{
	if (unlikely(head->table.members >= head->room))
		make_room();
}

#ifdef ONE_SEARCH
static pg_noinline int32 *
enter_slow(Buffer buffer)
{
	bool		found;

	last = refcount_insert(&head->table, buffer, &found);
	if (!found)
		last->refcount = 0;
	return &last->refcount;
}

static inline int32 *
enter(Buffer buffer)
{
	if (likely(last->buffer == buffer))
		return &last->refcount;
	return enter_slow(buffer);
}
#else
static inline int32 *
new_entry(Buffer buffer)
{
	bool		found;

	last = refcount_insert(&head->table, buffer, &found);
	last->refcount = 0;
	return &last->refcount;
}
#endif

static pg_noinline int32 *
find_slow(Buffer buffer)
{
	Entry	   *found = refcount_lookup(&head->table, buffer);

	if (found == NULL)
		return NULL;
	last = found;
	return &found->refcount;
}

static inline int32 *
find(Buffer buffer, bool do_move)
{
	if (likely(last->buffer == buffer))
		return &last->refcount;
	return find_slow(buffer);
}

static inline void
forget(int32 *refcount, Buffer buffer)
{
	refcount_delete_item(&head->table,
						 (Entry *) ((char *) refcount - offsetof(Entry, refcount)));
	last = &no_entry;
}

#include "loads.h"
