/*
 * stock.c
 *	  As PostgreSQL 9.5 to 18: an array of 8, and what does not fit in a hash
 *	  table with separately allocated elements.
 *
 * What is pinned or pinned again always gets into the array, and displaces the
 * next one in turn.  dynahash.c itself is for servers alone; here is what it
 * does for a key of four bytes: calls by pointer, a directory of segments,
 * elements in a chain, freed ones in a list.  It is faster than dynahash.c, so
 * that candidates look no better than they are; bench/pins has the real one.
 */
#include "layouts.h"

#include "common/hashfn.h"

#define SLOTS		8
#define BUCKETS		128			/* at first: hash_create() was told 100 */
#define SEGMENT		256			/* buckets in a segment */
#define SEGMENTS	256

typedef struct Slot
{
	Buffer		buffer;
	int32		refcount;
} Slot;

typedef struct Element
{
	struct Element *next;
	uint32		hash;
	Slot		slot;
} Element;

typedef enum
{
	HASH_FIND,
	HASH_ENTER,
	HASH_REMOVE
} HashAction;

static Slot slots[SLOTS];
static Slot *reserved;
static uint32 clock_hand;
static int	overflowed;

static Element **directory[SEGMENTS];
static Element *free_elements;
static uint32 buckets;
static uint32 elements;
static uint32 (*hash_function) (const void *key, Size keysize);
static int	(*match_function) (const void *a, const void *b, Size keysize);

static uint32
hash_buffer(const void *key, Size keysize)
{
	return hash_bytes_uint32(*(const uint32 *) key);
}

static int
match_buffers(const void *a, const void *b, Size keysize)
{
	return memcmp(a, b, keysize);
}

static Element **
bucket_of(uint32 hash)
{
	uint32		bucket = hash & (buckets - 1);

	return &directory[bucket / SEGMENT][bucket % SEGMENT];
}

static void
grow(void)
{
	Element    *all = NULL;

	for (uint32 i = 0; i < buckets; i++)
	{
		Element   **bucket = bucket_of(i);

		while (*bucket)
		{
			Element    *element = *bucket;

			*bucket = element->next;
			element->next = all;
			all = element;
		}
	}

	buckets *= 2;
	for (uint32 i = 0; i < buckets / SEGMENT; i++)
		if (directory[i] == NULL)
			directory[i] = pg_malloc0(SEGMENT * sizeof(Element *));

	while (all)
	{
		Element    *element = all;
		Element   **bucket = bucket_of(element->hash);

		all = element->next;
		element->next = *bucket;
		*bucket = element;
	}
}

static pg_noinline Slot *
search(Buffer buffer, HashAction action)
{
	uint32		hash;
	Element   **link;
	Element    *element;

	if (action == HASH_ENTER && elements > buckets)
		grow();

	hash = hash_function(&buffer, sizeof(Buffer));
	link = bucket_of(hash);
	while ((element = *link) != NULL)
	{
		if (element->hash == hash &&
			match_function(&element->slot.buffer, &buffer, sizeof(Buffer)) == 0)
			break;
		link = &element->next;
	}

	if (action == HASH_REMOVE)
	{
		*link = element->next;
		element->next = free_elements;
		free_elements = element;
		elements--;
	}
	else if (action == HASH_ENTER)
	{
		if (free_elements == NULL)
			free_elements = pg_malloc0(sizeof(Element));
		element = free_elements;
		free_elements = element->next;
		element->next = NULL;
		element->hash = hash;
		element->slot.buffer = buffer;
		*link = element;
		elements++;
	}
	return element ? &element->slot : NULL;
}

static void
init(void)
{
	buckets = BUCKETS;
	directory[0] = pg_malloc0(SEGMENT * sizeof(Element *));
	hash_function = hash_buffer;
	match_function = match_buffers;
}

static void
reserve(void)
{
	Slot	   *moved;

	if (reserved != NULL)
		return;
	for (int i = 0; i < SLOTS; i++)
		if (slots[i].buffer == InvalidBuffer)
		{
			reserved = &slots[i];
			return;
		}

	reserved = &slots[clock_hand++ % SLOTS];
	moved = search(reserved->buffer, HASH_ENTER);
	moved->refcount = reserved->refcount;
	reserved->buffer = InvalidBuffer;
	overflowed++;
}

static int32 *
new_entry(Buffer buffer)
{
	Slot	   *slot = reserved;

	reserved = NULL;
	slot->buffer = buffer;
	slot->refcount = 0;
	return &slot->refcount;
}

static int32 *
find(Buffer buffer, bool do_move)
{
	Slot	   *found;
	int32	   *refcount;

	for (int i = 0; i < SLOTS; i++)
		if (slots[i].buffer == buffer)
			return &slots[i].refcount;

	if (overflowed == 0)
		return NULL;
	found = search(buffer, HASH_FIND);
	if (found == NULL)
		return NULL;
	if (!do_move)
		return &found->refcount;

	reserve();
	refcount = new_entry(buffer);
	*refcount = found->refcount;
	search(buffer, HASH_REMOVE);
	overflowed--;
	return refcount;
}

static void
forget(int32 *refcount, Buffer buffer)
{
	Slot	   *slot = (Slot *) ((char *) refcount - offsetof(Slot, refcount));

	if (slot >= slots && slot < slots + SLOTS)
	{
		slot->buffer = InvalidBuffer;
		reserved = slot;
	}
	else
	{
		search(buffer, HASH_REMOVE);
		overflowed--;
	}
}

#include "loads.h"
