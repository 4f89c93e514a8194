/*-------------------------------------------------------------------------
 *
 * test/pins/test_pins/model_owners.c
 *	  Resource owners and subtransactions, which release what they own.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "model.h"

/* Owners most of the time: enough that a pin's owner is often not the current */
#define ENOUGH_OWNERS	10

void
use_owner(Model *m, int owner)
{
	m->current = owner;
	CurrentResourceOwner = m->owners[owner].owner;
}

int
random_owner(Model *m)
{
	int			i;

	do
		i = model_random(m, MAX_OWNERS);
	while (m->owners[i].owner == NULL);
	return i;
}

/*
 * The owner of a random pin, -1 if there are no pins.
 */
int
random_owner_with_pins(Model *m)
{
	int64		which;

	if (m->pins == 0)
		return -1;
	which = pg_prng_uint64_range(&m->prng, 0, m->pins - 1);
	for (int i = 0; i < MAX_OWNERS; i++)
	{
		if (which < m->owners[i].npins)
			return i;
		which -= m->owners[i].npins;
	}
	violation(m, "the model has lost pins");
}

static int
free_element(Model *m)
{
	for (int i = 0; i < MAX_OWNERS; i++)
		if (m->owners[i].owner == NULL)
			return i;
	return -1;
}

static int
add_owner(Model *m, ResourceOwner owner, int parent, int level, bool ours)
{
	int			i = free_element(m);

	if (i < 0)
		violation(m, "too many owners");
	m->owners[i].owner = owner;
	m->owners[i].parent = parent;
	m->owners[i].level = level;
	m->owners[i].ours = ours;
	return i;
}

/*
 * Forget an owner that was released, and its pins.  Returns how many it had.
 */
static int64
forget_owner(Model *m, int owner)
{
	ModelOwner *o = &m->owners[owner];
	int64		n = o->npins;
	Buffer		last = InvalidBuffer;

	while (o->npins > 0)
	{
		model_unpinned(m, owner, o->npins - 1);
		last = m->touched;
		/* not all of them, as each comparison is a lookup */
		if (o->npins % 8 == 0 && m->count[last] == 0)
			compare_buffer(m, last, true);
	}
	o->owner = NULL;
	return n;
}

/*
 * Create a child of a random owner.
 */
void
create_owner(Model *m)
{
	int			parent = random_owner(m);
	int			there = 0;

	for (int i = 0; i < MAX_OWNERS; i++)
		there += m->owners[i].owner != NULL;
	if (there >= ENOUGH_OWNERS + m->level)
		return;
	use_owner(m, add_owner(m, ResourceOwnerCreate(m->owners[parent].owner, "test_pins"),
						   parent, m->owners[parent].level, true));
	m->counts.owners++;
}

static bool
is_below(Model *m, int owner, int ancestor)
{
	while (owner >= 0 && owner != ancestor)
		owner = m->owners[owner].parent;
	return owner >= 0;
}

/*
 * Release an owner of ours with its children and all pins, as an abort does.
 */
void
release_owner(Model *m, int top)
{
	ResourceOwner owner = m->owners[top].owner;
	bool		below[MAX_OWNERS];

	if (!m->owners[top].ours)
		return;
	for (int i = 0; i < MAX_OWNERS; i++)
		below[i] = m->owners[i].owner != NULL && is_below(m, i, top);
	if (below[m->current])
		use_owner(m, m->base_owner[m->level]);

	test_pins_delete_owner(owner);

	for (int i = 0; i < MAX_OWNERS; i++)
		if (below[i])
			m->counts.dropped_by_owners += forget_owner(m, i);
}

/* ---- subtransactions ---- */

void
begin_subtransaction(Model *m)
{
	if (m->level + 1 >= MAX_LEVELS || free_element(m) < 0)
		return;
	/* its owner is a child of the outer transaction's, not of the current */
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(m->context);
	m->level++;
	m->base_owner[m->level] = add_owner(m, CurrentResourceOwner, m->base_owner[m->level - 1],
										m->level, false);
	use_owner(m, m->base_owner[m->level]);
	m->counts.subtransactions++;
	m->counts.deepest = Max(m->counts.deepest, m->level);
}

/*
 * Core has switched to the owner of the outer transaction.  We do the same, or
 * switch to a random one.
 */
static void
after_subtransaction(Model *m)
{
	MemoryContextSwitchTo(m->context);
	m->level--;
	use_owner(m, model_random(m, 2) == 0 ? m->base_owner[m->level] : random_owner(m));
}

/*
 * A commit would warn about pins: release them before.
 */
void
commit_subtransaction(Model *m)
{
	if (m->level == 0)
		return;
	for (int i = 0; i < MAX_OWNERS; i++)
		if (m->owners[i].owner != NULL && m->owners[i].level == m->level)
			while (m->owners[i].npins > 0)
				release_pin(m, i, m->owners[i].npins - 1);
	use_owner(m, m->base_owner[m->level]);
	ReleaseCurrentSubTransaction();
	for (int i = 0; i < MAX_OWNERS; i++)
		if (m->owners[i].owner != NULL && m->owners[i].level == m->level)
			forget_owner(m, i);
	after_subtransaction(m);
}

/*
 * Releases pins of owners that began with it or in it.  Pins of other owners
 * remain, even those taken inside.
 */
void
abort_subtransaction(Model *m)
{
	if (m->level == 0)
		return;
	RollbackAndReleaseCurrentSubTransaction();
	for (int i = 0; i < MAX_OWNERS; i++)
		if (m->owners[i].owner != NULL && m->owners[i].level == m->level)
			m->counts.dropped_by_aborts += forget_owner(m, i);
	after_subtransaction(m);
}

/*
 * An error in a subtransaction with some pins: our own, or that of reading a
 * missing block, whose buffer is pinned at that time.
 */
void
fail_in_subtransaction(Model *m)
{
	int			level = m->level;
	int			pins = model_random(m, 24);
	bool		past_end = model_random(m, 2) == 0;
	int			expected = past_end ? ERRCODE_DATA_CORRUPTED : ERRCODE_TRIGGERED_ACTION_EXCEPTION;

	begin_subtransaction(m);
	if (m->level == level)
		return;
	for (int i = 0; i < pins; i++)
		pin_block(m, model_random(m, m->blocks));
	PG_TRY();
	{
		if (past_end)
			(void) ReadBuffer(m->rel, m->blocks + model_random(m, 8));
		ereport(ERROR,
				(errcode(ERRCODE_TRIGGERED_ACTION_EXCEPTION),
				 errmsg("an error of the test")));
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(m->context);
		error = CopyErrorData();
		if (error->sqlerrcode != expected)
			ReThrowError(error);
		FreeErrorData(error);
		FlushErrorState();
	}
	PG_END_TRY();
	abort_subtransaction(m);
	m->counts.errors++;
}
