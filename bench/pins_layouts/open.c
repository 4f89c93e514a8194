/*
 * open.c
 *	  Open addressing of our own: entries of 8 bytes, the next slot if one is
 *	  taken, and the entry used last remembered.
 *
 * SLOTS_PER_ENTRY	how empty the table is, at least; 2 unless given
 * ONE_SEARCH		finds an entry or fills it, as core patch 0005 does, instead
 *					of searching again for where to fill one
 * HASH_MURMUR		the hash function that simplehash.h is used with elsewhere,
 *					instead of one multiplication (Fibonacci hashing)
 * HASH_SHIFTED		one multiplication between two shifts, as core patch 0005
 */
#include "layouts.h"

#include "common/hashfn.h"

#ifndef SLOTS_PER_ENTRY
#define SLOTS_PER_ENTRY 2
#endif
#define INITIAL_BITS	(SLOTS_PER_ENTRY == 2 ? 6 : 7)	/* 32 pins */

typedef struct Entry
{
	Buffer		buffer;
	int32		refcount;
} Entry;

static Entry *table;
static uint32 mask;
static int	shift;
static uint32 members;
static uint32 last;

static inline uint32
home(Buffer buffer)
{
#ifdef HASH_MURMUR
	return murmurhash32((uint32) buffer) >> shift;
#elif defined(HASH_SHIFTED)
	uint64		h = (uint64) (buffer ^ (buffer >> 7)) * UINT64CONST(0x9E3779B97F4A7C15);

	return (uint32) ((h >> 32) ^ (h >> 50)) & mask;
#else
	return (uint32) buffer * 0x9E3779B1U >> shift;
#endif
}

static void
make_table(int bits)
{
	table = pg_malloc0(sizeof(Entry) << bits);
	mask = (1U << bits) - 1;
	shift = 32 - bits;
}

static void
init(void)
{
	make_table(INITIAL_BITS);
}

static inline Entry *
put(Buffer buffer, int32 refcount)
{
	uint32		slot = home(buffer);

	while (table[slot].buffer != InvalidBuffer)
		slot = (slot + 1) & mask;
	table[slot].buffer = buffer;
	table[slot].refcount = refcount;
	last = slot;
	return &table[slot];
}

static pg_noinline void
grow(void)
{
	Entry	   *old = table;
	uint32		n = mask + 1;

	make_table(32 - shift + 1);
	for (uint32 i = 0; i < n; i++)
		if (old[i].buffer != InvalidBuffer)
			put(old[i].buffer, old[i].refcount);
	pg_free(old);
}

static inline void
reserve(void)
{
	if (unlikely(members * SLOTS_PER_ENTRY > mask))
		grow();
}

#ifdef ONE_SEARCH
static pg_noinline int32 *
enter_slow(Buffer buffer)
{
	uint32		slot = home(buffer);

	while (table[slot].buffer != buffer)
	{
		if (table[slot].buffer == InvalidBuffer)
		{
			table[slot].buffer = buffer;	/* a free slot's count is 0 */
			members++;
			break;
		}
		slot = (slot + 1) & mask;
	}
	last = slot;
	return &table[slot].refcount;
}

static inline int32 *
enter(Buffer buffer)
{
	if (likely(table[last].buffer == buffer))
		return &table[last].refcount;
	return enter_slow(buffer);
}
#else
static inline int32 *
new_entry(Buffer buffer)
{
	members++;
	return &put(buffer, 0)->refcount;
}
#endif

static inline int32 *
find(Buffer buffer, bool do_move)
{
	uint32		slot;

	if (likely(table[last].buffer == buffer))
		return &table[last].refcount;

	for (slot = home(buffer); table[slot].buffer != InvalidBuffer;
		 slot = (slot + 1) & mask)
		if (table[slot].buffer == buffer)
		{
			last = slot;
			return &table[slot].refcount;
		}
	return NULL;
}

static inline void
forget(int32 *refcount, Buffer buffer)
{
	uint32		hole = (Entry *) ((char *) refcount - offsetof(Entry, refcount)) - table;

	members--;
	table[hole].buffer = InvalidBuffer;

	/* what was pushed beyond it by others may move up */
	for (uint32 slot = (hole + 1) & mask; table[slot].buffer != InvalidBuffer;
		 slot = (slot + 1) & mask)
		if (((slot - home(table[slot].buffer)) & mask) >= ((slot - hole) & mask))
		{
			table[hole] = table[slot];
			table[slot].buffer = InvalidBuffer;
			table[slot].refcount = 0;
			hole = slot;
		}
}

#include "loads.h"
