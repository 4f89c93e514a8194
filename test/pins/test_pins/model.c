/*-------------------------------------------------------------------------
 *
 * test/pins/test_pins/model.c
 *	  The model's counts, and their comparison with bufmgr.c's.
 *
 * Only bufmgr.c knows how often a buffer is pinned; DebugPrintBufferRefcount()
 * tells it.  This looks the buffer up, and may change what bufmgr.c remembers of
 * the last lookup.  Hence it is not called after every step: the comparison must
 * not hide an error.  The shared count of a buffer can be read without such an
 * effect, and is compared after every step.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "model.h"

/* Steps between two comparisons of the private counts of ... */
#define COMPARE_TOUCHED		4	/* (on average) the step's buffer */
#define COMPARE_ANY			8	/* (on average) any buffer of the pool */
#define COMPARE_HELD		2048	/* all pinned buffers, by the model */
#define COMPARE_ALL			65536	/* every buffer of the pool */

void
model_violation(Model *m, const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("step " INT64_FORMAT " of seed " INT64_FORMAT ": %s", m->step, m->seed, what),
			 errdetail("%d buffers are pinned " INT64_FORMAT " times in subtransaction level %d.",
					   m->held, m->pins, m->level)));
}

/*
 * Note one more pin of the current owner.
 */
void
model_pinned(Model *m, Buffer buffer, BlockNumber block)
{
	ModelOwner *owner = &m->owners[m->current];

	if (buffer < 1 || buffer > NBuffers)
		violation(m, "block %u came in buffer %d", block, buffer);
	if (BufferGetBlockNumber(buffer) != block)
		violation(m, "buffer %d has block %u, not %u", buffer, BufferGetBlockNumber(buffer), block);
	if (m->buffer_of[block] != buffer && m->buffer_of[block] != InvalidBuffer &&
		m->count[m->buffer_of[block]] > 0 && m->block_in[m->buffer_of[block]] == block)
		violation(m, "block %u is in buffer %d, though pinned in %d", block, buffer, m->buffer_of[block]);
	if (m->count[buffer] > 0 && m->block_in[buffer] != block)
		violation(m, "buffer %d was given to block %u while block %u was pinned in it",
				  buffer, block, m->block_in[buffer]);

	if (owner->npins == owner->room)
	{
		owner->room = Max(64, owner->room * 2);
		owner->pins = owner->pins == NULL
			? MemoryContextAlloc(m->context, sizeof(Buffer) * owner->room)
			: repalloc(owner->pins, sizeof(Buffer) * owner->room);
	}
	owner->pins[owner->npins++] = buffer;
	m->buffer_of[block] = buffer;
	m->block_in[buffer] = block;
	if (m->count[buffer]++ == 0)
		m->held++;
	m->peak = Max(m->peak, m->held);
	m->pins++;
	m->touched = buffer;
}

/*
 * Forget one pin of an owner.
 */
void
model_unpinned(Model *m, int owner, int which)
{
	ModelOwner *o = &m->owners[owner];
	Buffer		buffer = o->pins[which];

	/* keep the order, for last in, first out */
	if (which < o->npins - 1)
		memmove(&o->pins[which], &o->pins[which + 1], sizeof(Buffer) * (o->npins - which - 1));
	o->npins--;
	if (--m->count[buffer] == 0)
		m->held--;
	m->pins--;
	m->touched = buffer;
}

/*
 * The place of a buffer in an owner's list, -1 if there is none.
 */
int
model_find(Model *m, int owner, Buffer buffer)
{
	for (int i = m->owners[owner].npins - 1; i >= 0; i--)
		if (m->owners[owner].pins[i] == buffer)
			return i;
	return -1;
}

/*
 * Compare one buffer.  The shared count is compared only for our table: others
 * may pin pages of other tables.
 */
void
compare_buffer(Model *m, Buffer buffer, bool own_too)
{
	bool		ours = m->count[buffer] > 0 ||
		BufTagMatchesRelFileLocator(&GetBufferDescriptor(buffer - 1)->tag, &m->locator);

	if (ours && test_pins_shared(buffer) != (m->count[buffer] > 0 ? 1 : 0))
		violation(m, "buffer %d has a shared count of %u, but is pinned %d times",
				  buffer, test_pins_shared(buffer), m->count[buffer]);
	if (own_too && test_pins_private(buffer) != m->count[buffer])
		violation(m, "buffer %d has a private count of %d, but is pinned %d times",
				  buffer, test_pins_private(buffer), m->count[buffer]);
}

static void
compare_limit(Model *m)
{
	uint32		limit = GetAdditionalPinLimit();
	uint32		wanted = 1 + model_random(m, 64);
	uint32		granted = wanted;
	uint32		right = GetPinLimit() > (uint32) m->held ? GetPinLimit() - m->held : 0;

	if (limit > right)
		violation(m, "GetAdditionalPinLimit() is %u, but %d of %u are held",
				  limit, m->held, GetPinLimit());
	if (m->held == 0 && limit != m->free_limit)
		violation(m, "GetAdditionalPinLimit() is %u with nothing held, but was %u",
				  limit, m->free_limit);
	LimitAdditionalPins(&granted);
	if (granted != Min(wanted, Max(limit, 1)))
		violation(m, "LimitAdditionalPins() grants %u of %u where %u are left", granted, wanted, limit);
}

/* ---- what bufmgr.c tells others ---- */

#ifdef HAVE_PRIVATE_REFCOUNT_INFO

/* bufmgr.c's head of the pin table can be moved: to these and back */
static void *heads[2];

/* Its current place: one of those, or NULL for bufmgr.c's own */
static void *head = NULL;

static void
compare_info(Model *m)
{
	PrivateRefCountInfo info;
	PrivateRefCountInfo same;

	GetPrivateRefCountInfo(NULL, &info);
	if (info.pinned != m->held)
		violation(m, "bufmgr.c counts %u buffers, but %d are pinned", info.pinned, m->held);
	/* some steps pin more buffers than they keep */
	if (info.most_pinned < m->peak || info.most_pinned > Max(m->peak_before, m->peak) + 2)
		violation(m, "bufmgr.c counts %u buffers at most, but it was %d (%u before)",
				  info.most_pinned, m->peak, m->peak_before);
	if (info.slots <= info.pinned)
		violation(m, "%u buffers are in a table of " UINT64_FORMAT, info.pinned, info.slots);
	if (head != NULL)
	{
		GetPrivateRefCountInfo(head, &same);
		if (same.pinned != info.pinned || same.most_pinned != info.most_pinned ||
			same.slots != info.slots)
			violation(m, "the head in use is not the one it was moved to");
	}
}

/*
 * pg_sweep moves the head to shared memory; then it stays there.
 */
void
begin_heads(Model *m)
{
	PrivateRefCountInfo info;

	GetPrivateRefCountInfo(NULL, &info);
	m->peak_before = info.most_pinned;
	m->move_heads = GetConfigOption("pg_sweep.strategy", true, false) == NULL;
	for (int i = 0; i < lengthof(heads); i++)
		if (heads[i] == NULL)
			heads[i] = MemoryContextAllocAligned(TopMemoryContext, PrivateRefCountHeadSize(),
												 PG_CACHE_LINE_SIZE, 0);
}

void
move_head(Model *m)
{
	void	   *to[] = {NULL, heads[0], heads[1]};
	void	   *from = head;

	if (!m->move_heads)
		return;
	head = to[model_random(m, lengthof(to))];
	MovePrivateRefCountHead(head);
	/* nothing may be read there any more */
	if (from != NULL && from != head)
		memset(from, 0x7f, PrivateRefCountHeadSize());
	m->counts.heads_moved++;
}

void
end_heads(Model *m)
{
	if (m->move_heads)
		MovePrivateRefCountHead(head = NULL);
}

#else

static void
compare_info(Model *m)
{
}

void
begin_heads(Model *m)
{
}

void
move_head(Model *m)
{
}

void
end_heads(Model *m)
{
}

#endif							/* HAVE_PRIVATE_REFCOUNT_INFO */

/*
 * After every step
 */
void
compare_step(Model *m)
{
	if (m->touched != InvalidBuffer)
		compare_buffer(m, m->touched, model_random(m, COMPARE_TOUCHED) == 0);
	if (model_random(m, COMPARE_ANY) == 0)
		compare_buffer(m, 1 + model_random(m, NBuffers), true);
	compare_limit(m);
	compare_info(m);

	if (m->step % COMPARE_ALL == 0)
		compare_all(m);
	else if (m->step % COMPARE_HELD == 0)
	{
		for (BlockNumber i = 0; i < m->blocks; i++)
		{
			Buffer		b = m->buffer_of[i];

			if (b != InvalidBuffer && m->count[b] > 0)
				compare_buffer(m, b, true);
		}
	}
}

/*
 * Every buffer of the pool; and whether the model is consistent with itself.
 */
void
compare_all(Model *m)
{
	int64		sum = 0;
	int			held = 0;

	for (Buffer b = 1; b <= NBuffers; b++)
	{
		compare_buffer(m, b, true);
		sum += m->count[b];
		held += m->count[b] > 0;
	}
	for (int i = 0; i < MAX_OWNERS; i++)
		sum -= m->owners[i].npins;
	if (sum != 0 || held != m->held)
		violation(m, "the model does not add up");
	m->counts.compared++;
}
