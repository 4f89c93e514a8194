/*
 * array.c
 *	  As PostgreSQL 19, and with more slots: keys apart from counts, the entry
 *	  used last remembered, and simplehash.h for what does not fit.
 *
 * SLOTS			8, 16, 32 or 64
 * MOVE_EVERY		how many finds in the table make one move to the array; 1 is
 *					what servers do
 *
 * The others are not meant for a server.  They have the same entries in the same
 * places, and are there to tell why comparing vectors costs what it does:
 *
 * ONE_BY_ONE		load key by key, and leave at the one wanted
 * MASK_OF_KEYS		load key by key, all of them, and make the mask that comparing
 *					vectors makes: only how wide the loads are is different
 * BRANCH_ON_MASK	compare vectors, and branch on the mask: which slot it is, is
 *					guessed by the branch predictor instead of computed
 * STORE_WIDE		store a key together with the three beside it, so that no load
 *					is wider than the store before it
 *
 * Without SIMD instructions that PostgreSQL knows, everything is as with
 * ONE_BY_ONE.
 */
#include "layouts.h"

#include "common/hashfn.h"
#include "common/logging.h"
#include "port/pg_bitutils.h"
#include "port/simd.h"

#ifndef MOVE_EVERY
#define MOVE_EVERY 1
#endif

#define BLOCK		Min(SLOTS, 16)	/* keys that are searched at once */
#define ALL_USED	(PG_UINT64_MAX >> (64 - SLOTS))

typedef struct Overflow
{
	Buffer		buffer;
	int32		refcount;
	char		status;
} Overflow;

#define SH_PREFIX		overflow
#define SH_ELEMENT_TYPE Overflow
#define SH_KEY_TYPE		Buffer
#define SH_KEY			buffer
#define SH_HASH_KEY(tb, key)	murmurhash32((uint32) (key))
#define SH_EQUAL(tb, a, b)		((a) == (b))
#define SH_SCOPE		static inline
#define SH_RAW_ALLOCATOR pg_malloc0
#define SH_FILLFACTOR	(0.5)	/* 0.9 is slow where it is nearly so full */
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

static uint32 keys[SLOTS] pg_attribute_aligned(64);
static int32 counts[SLOTS] pg_attribute_aligned(64);
static uint64 used;				/* a bit a slot */
static int	reserved = -1;
static int	last;
static uint32 clock_hand;

static overflow_hash *table;
static uint32 overflowed;
static uint32 table_finds;

#if defined(MASK_OF_KEYS)

static inline int
search_block(const uint32 *block, Buffer buffer)
{
	uint32		found = 0;

#pragma GCC unroll 16
	for (int i = 0; i < BLOCK; i++)
	{
		uint32		key = block[i];

		HIDE_VALUE(key);		/* or compilers make vectors of it */
		found |= (uint32) (key == (uint32) buffer) << i;
	}
	return found ? pg_rightmost_one_pos32(found) : -1;
}

#elif !defined(USE_NO_SIMD) && !defined(ONE_BY_ONE)

/* Four vectors of 0 or -1 in 32 bits as a bit each */
static inline uint32
bits_of(Vector32 a, Vector32 b, Vector32 c, Vector32 d)
{
#if defined(USE_SSE2)
	return vector8_highbit_mask(_mm_packs_epi16(_mm_packs_epi32(a, b),
												_mm_packs_epi32(c, d)));
#elif defined(USE_NEON)
	uint16x8_t	low = vcombine_u16(vmovn_u32(a), vmovn_u32(b));
	uint16x8_t	high = vcombine_u16(vmovn_u32(c), vmovn_u32(d));

	return vector8_highbit_mask(vcombine_u8(vmovn_u16(low), vmovn_u16(high)));
#endif
}

static inline Vector32
compare(const uint32 *four, Vector32 wanted)
{
	Vector32	vector;

	vector32_load(&vector, four);
	return vector32_eq(vector, wanted);
}

/* The slot of the block that has the buffer, or -1 */
static inline int
search_block(const uint32 *block, Buffer buffer)
{
	Vector32	wanted = vector32_broadcast((uint32) buffer);
	Vector32	none = vector32_broadcast(0);
	uint32		found;

	found = bits_of(compare(block, wanted), compare(block + 4, wanted),
					BLOCK == 16 ? compare(block + 8, wanted) : none,
					BLOCK == 16 ? compare(block + 12, wanted) : none);
#ifdef BRANCH_ON_MASK
#pragma GCC unroll 16
	for (int i = 0; i < BLOCK; i++)
		if (found & (1U << i))
			return i;
	return -1;
#else
	return found ? pg_rightmost_one_pos32(found) : -1;
#endif
}

#else

static inline int
search_block(const uint32 *block, Buffer buffer)
{
	for (int i = 0; i < BLOCK; i++)
		if (block[i] == (uint32) buffer)
			return i;
	return -1;
}

#endif

static inline int
search(Buffer buffer)
{
	uint64		left = used;

	for (int i = 0; i < SLOTS; i += BLOCK)
	{
		int			found = search_block(keys + i, buffer);

		if (found >= 0)
			return i + found;
		if (SLOTS > BLOCK && (left >>= BLOCK) == 0)
			break;
	}
	return -1;
}

static inline void
set_key(int slot, Buffer buffer)
{
#if defined(STORE_WIDE) && !defined(USE_NO_SIMD)
	static const uint32 lanes[4][4] pg_attribute_aligned(16) =
	{{~0}, {0, ~0}, {0, 0, ~0}, {0, 0, 0, ~0}};
	uint32	   *four = &keys[slot & ~3];
	Vector32	wanted = vector32_broadcast((uint32) buffer);
	Vector32	vector;
	Vector32	lane;

	vector32_load(&vector, four);
	vector32_load(&lane, lanes[slot & 3]);
#if defined(USE_SSE2)
	_mm_store_si128((Vector32 *) four,
					_mm_or_si128(_mm_andnot_si128(lane, vector),
								 _mm_and_si128(lane, wanted)));
#elif defined(USE_NEON)
	vst1q_u32(four, vbslq_u32(lane, wanted, vector));
#endif
#else
	keys[slot] = (uint32) buffer;
#endif
}

static inline int32 *
fill_reserved(Buffer buffer, int32 refcount)
{
	int			slot = reserved;

	reserved = -1;
	set_key(slot, buffer);
	counts[slot] = refcount;
	used |= UINT64CONST(1) << slot;
	last = slot;
	return &counts[slot];
}

static inline void
free_slot(int slot)
{
	set_key(slot, InvalidBuffer);
	used &= ~(UINT64CONST(1) << slot);
	reserved = slot;
}

static pg_noinline void
reserve_slow(void)
{
	Overflow   *moved;
	bool		found;
	int			slot;

	if (used != ALL_USED)
	{
		reserved = pg_rightmost_one_pos64(~used);
		return;
	}
	slot = clock_hand++ % SLOTS;
	moved = overflow_insert(table, (Buffer) keys[slot], &found);
	moved->refcount = counts[slot];
	overflowed++;
	free_slot(slot);
}

static void
init(void)
{
	table = overflow_create(64, NULL);
}

static inline void
reserve(void)
{
	if (unlikely(reserved < 0))
		reserve_slow();
}

static inline int32 *
new_entry(Buffer buffer)
{
	return fill_reserved(buffer, 0);
}

static pg_noinline int32 *
find_slow(Buffer buffer, bool do_move)
{
	int			slot = search(buffer);
	Overflow   *found;
	int32		refcount;

	if (slot >= 0)
	{
		last = slot;
		return &counts[slot];
	}
	if (overflowed == 0)
		return NULL;
	found = overflow_lookup(table, buffer);
	if (found == NULL)
		return NULL;
	if (!do_move || (MOVE_EVERY > 1 && ++table_finds % MOVE_EVERY != 0))
		return &found->refcount;

	refcount = found->refcount;
	overflow_delete_item(table, found);
	overflowed--;
	reserve();
	return fill_reserved(buffer, refcount);
}

static inline int32 *
find(Buffer buffer, bool do_move)
{
	if (likely(keys[last] == (uint32) buffer))
		return &counts[last];
	return find_slow(buffer, do_move);
}

static pg_noinline void
forget_overflowed(Buffer buffer)
{
	overflow_delete(table, buffer);
	overflowed--;
}

static inline void
forget(int32 *refcount, Buffer buffer)
{
	if (refcount >= counts && refcount < counts + SLOTS)
		free_slot(refcount - counts);
	else
		forget_overflowed(buffer);
}

#include "loads.h"
