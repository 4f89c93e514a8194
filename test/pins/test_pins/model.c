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

/* bufmgr.c stores its figures in one of these */
static PrivateRefCountInfo *places[2];
static int	place;

/* Is there garbage now? */
static bool overwritten;

static void
compare_info(Model *m)
{
	PrivateRefCountInfo *info = places[place];
	int			pinned = info->in_table + (info->in_front != InvalidBuffer);
	uint32		most = info->most_in_table + 1;

	if (overwritten)
		return;
	if (pinned != m->held)
		violation(m, "bufmgr.c shows %d buffers, but %d are pinned", pinned, m->held);
	if (info->in_front != InvalidBuffer && m->count[info->in_front] == 0)
		violation(m, "bufmgr.c shows buffer %d in front, which is not pinned", info->in_front);
	/* some steps pin more buffers than they keep */
	if (most < m->peak || most > Max(m->peak_before, m->peak) + 2)
		violation(m, "bufmgr.c shows %u buffers at most, but it was %d (%u before)",
				  most, m->peak, m->peak_before);
	if (info->slots <= pinned)
		violation(m, "%d buffers are in a table of " UINT64_FORMAT, pinned, info->slots);
}

static void
show_in(int to)
{
	ShowPrivateRefCount(places[place = to]);
	overwritten = false;
}

void
begin_showing(Model *m)
{
	for (int i = 0; i < lengthof(places); i++)
		if (places[i] == NULL)
			places[i] = MemoryContextAllocAligned(TopMemoryContext, sizeof(PrivateRefCountInfo),
												  PG_CACHE_LINE_SIZE, 0);
	show_in(0);
	m->peak_before = places[0]->most_in_table + 1;
}

/*
 * Show the figures in the other place; or overwrite them, as another process
 * could by mistake.  bufmgr.c must not depend on what is there.
 */
void
show_elsewhere(Model *m)
{
	if (model_random(m, 2) == 0)
	{
		show_in(1 - place);
		m->counts.shown_elsewhere++;
	}
	else
	{
		memset(places[place], 0x7f, sizeof(PrivateRefCountInfo));
		overwritten = true;
		m->counts.overwritten++;
	}
}

/*
 * Others see no figures of this process any more, not even with pg_sweep.
 */
void
end_showing(Model *m)
{
	show_in(place);
	compare_info(m);
	ShowPrivateRefCount(NULL);
}

#else

static void
compare_info(Model *m)
{
}

void
begin_showing(Model *m)
{
}

void
show_elsewhere(Model *m)
{
}

void
end_showing(Model *m)
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
