/*-------------------------------------------------------------------------
 *
 * test/pins/test_pins/random.c
 *	  Random steps with pins, compared with a model after each.
 *
 * Half of the blocks are chosen from a small hot set.  Each phase has its own
 * number of buffers to hold, some phases zero: every number of pins occurs, going
 * up and going down.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/storage.h"
#include "storage/smgr.h"

#include "model.h"

/* Blocks chosen half of the time */
#define HOT_BLOCKS		12

/* Most blocks of one StartReadBuffers(), most pages of one ExtendBufferedRelBy() */
#define TOGETHER		8
#define EXTEND_BY		12

/* Most steps of a phase */
#define LONGEST_PHASE	4000

PG_FUNCTION_INFO_V1(test_pins_random);
PG_FUNCTION_INFO_V1(test_pins_has_info);

/*
 * One in eight is the block of the step before, which was looked up last.
 */
static BlockNumber
random_block(Model *m)
{
	if (m->last_touched != InvalidBuffer && m->count[m->last_touched] > 0 && model_random(m, 8) == 0)
		return m->block_in[m->last_touched];
	return model_random(m, model_random(m, 2) == 0 ? Min(HOT_BLOCKS, m->blocks) : m->blocks);
}

static bool
is_pinned(Model *m, BlockNumber block)
{
	Buffer		b = m->buffer_of[block];

	return b != InvalidBuffer && m->count[b] > 0 && m->block_in[b] == block;
}

/*
 * Pin a block for the current owner, in a random way.
 */
void
pin_block(Model *m, BlockNumber block)
{
	Buffer		buffer;

	if (model_random(m, 16) == 0)
	{
		/* all pages are zeros anyway */
		buffer = ReadBufferExtended(m->rel, MAIN_FORKNUM, block, RBM_ZERO_AND_LOCK, NULL);
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	}
	else
		buffer = ReadBuffer(m->rel, block);
	model_pinned(m, buffer, block);
	m->counts.pinned++;
}

/*
 * Release a pin of any owner, which must be current meanwhile.
 */
void
release_pin(Model *m, int owner, int which)
{
	int			current = m->current;
	Buffer		buffer = m->owners[owner].pins[which];

	use_owner(m, owner);
	if (model_random(m, 32) == 0)
	{
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		UnlockReleaseBuffer(buffer);
	}
	else
		ReleaseBuffer(buffer);
	use_owner(m, current);
	model_unpinned(m, owner, which);
	m->counts.released++;
}

static void
release_random(Model *m)
{
	int			owner = random_owner_with_pins(m);
	int			n;

	if (owner < 0)
		return;
	n = m->owners[owner].npins;
	switch (model_random(m, 4))
	{
		case 0:
			release_pin(m, owner, 0);
			break;
		case 1:
			release_pin(m, owner, n - 1);
			break;
		default:
			release_pin(m, owner, model_random(m, n));
			break;
	}
}

/*
 * A step towards the number of buffers to hold
 */
static void
balance(Model *m)
{
	if (m->held > m->target || m->pins > 2 * m->held + 20)
		release_random(m);
	else if (m->held < m->target)
	{
		BlockNumber block = model_random(m, m->blocks);

		while (is_pinned(m, block))
			block = (block + 1) % m->blocks;
		pin_block(m, block);
	}
}

static void
pin_again(Model *m, bool transfer)
{
	int			owner = random_owner_with_pins(m);
	int			which;
	Buffer		buffer;

	if (owner < 0)
		return;
	which = model_random(m, m->owners[owner].npins);
	buffer = m->owners[owner].pins[which];
	IncrBufferRefCount(buffer);
	model_pinned(m, buffer, m->block_in[buffer]);
	if (!transfer)
		m->counts.pinned_again++;
	else
	{
		/* core hands over a pin like this */
		release_pin(m, owner, which);
		m->counts.transferred++;
	}
}

static void
release_and_read(Model *m)
{
	ModelOwner *owner = &m->owners[m->current];
	int			which;
	Buffer		old,
				buffer;
	BlockNumber block = random_block(m);

	if (owner->npins == 0)
		return;
	which = model_random(m, owner->npins);
	old = owner->pins[which];
	if (model_random(m, 4) == 0)
		block = m->block_in[old];
	buffer = ReleaseAndReadBuffer(old, m->rel, block);
	model_unpinned(m, m->current, which);
	if (buffer != old)
		compare_buffer(m, old, false);
	model_pinned(m, buffer, block);
	m->counts.released_and_read++;
}

static void
read_recent(Model *m)
{
	BlockNumber block = random_block(m);
	Buffer		buffer = m->buffer_of[block];

	if (buffer == InvalidBuffer)
		return;
	if (ReadRecentBuffer(m->locator, MAIN_FORKNUM, block, buffer))
	{
		model_pinned(m, buffer, block);
		m->counts.recent++;
	}
	else if (is_pinned(m, block))
		violation(m, "block %u is not found in buffer %d, in which it is pinned", block, buffer);
	else
	{
		m->touched = buffer;
		m->counts.recent_gone++;
	}
}

/*
 * Read a run of blocks, some of which may not be in the pool.  The remainder of a
 * call is already pinned, and is passed to the next call.
 */
static void
read_together(Model *m)
{
	Buffer		buffers[TOGETHER];
	int			n = 1 + model_random(m, TOGETHER);
	BlockNumber block = model_random(m, m->blocks - n + 1);
	int			done = 0;

	memset(buffers, 0, sizeof(buffers));
	while (done < n)
	{
		ReadBuffersOperation operation = {
			.rel = m->rel,
			.smgr = RelationGetSmgr(m->rel),
			.persistence = m->rel->rd_rel->relpersistence,
			.forknum = MAIN_FORKNUM,
		};
		int			now = n - done;

		if (StartReadBuffers(&operation, &buffers[done], block + done, &now, 0))
			WaitReadBuffers(&operation);
		done += now;
	}
	for (int i = 0; i < n; i++)
		model_pinned(m, buffers[i], block + i);
	m->counts.read_together += n;
}

/*
 * Release the pages beyond, and truncate the table.
 */
static void
truncate_table(Model *m, BlockNumber to)
{
	for (int i = 0; i < MAX_OWNERS; i++)
		for (int j = m->owners[i].npins - 1; j >= 0; j--)
			if (m->block_in[m->owners[i].pins[j]] >= to)
				release_pin(m, i, j);
	RelationTruncate(m->rel, to);
	m->blocks = to;
	m->counts.truncated++;
}

static void
extend(Model *m)
{
	Buffer		buffers[EXTEND_BY];
	uint32		n = 1 + model_random(m, EXTEND_BY);
	BlockNumber first;

	if (m->blocks + n > m->most_blocks)
		truncate_table(m, m->base);
	first = ExtendBufferedRelBy(BMR_REL(m->rel), MAIN_FORKNUM, NULL, 0, n, buffers, &n);
	if (first != m->blocks)
		violation(m, "the table was extended from block %u, not %u", first, m->blocks);
	m->blocks += n;
	for (uint32 i = 0; i < n; i++)
	{
		m->buffer_of[first + i] = InvalidBuffer;
		model_pinned(m, buffers[i], first + i);
	}
	m->counts.extended += n;
}

static void
evict(Model *m)
{
	Buffer		buffer = m->buffer_of[random_block(m)];
	bool		flushed;

	/* skip pages of other tables */
	if (buffer == InvalidBuffer ||
		!BufTagMatchesRelFileLocator(&GetBufferDescriptor(buffer - 1)->tag, &m->locator))
		return;
	if (EvictUnpinnedBuffer(buffer, &flushed))
	{
		if (m->count[buffer] > 0)
			violation(m, "buffer %d was evicted, but is pinned %d times", buffer, m->count[buffer]);
		m->counts.evicted++;
	}
	m->touched = buffer;
}

/*
 * A cleanup lock succeeds if this is the only pin.
 */
static void
lock_for_cleanup(Model *m)
{
	int			owner = random_owner_with_pins(m);
	Buffer		buffer;
	bool		locked;

	if (owner < 0)
		return;
	buffer = m->owners[owner].pins[model_random(m, m->owners[owner].npins)];
	locked = ConditionalLockBufferForCleanup(buffer);
	if (locked != (m->count[buffer] == 1))
		violation(m, "buffer %d is %slocked for cleanup, being pinned %d times",
				  buffer, locked ? "" : "not ", m->count[buffer]);
	if (locked)
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	m->touched = buffer;
}

static void
next_phase(Model *m)
{
	uint32		r = model_random(m, 100);

	if (r < 20)
		m->target = model_random(m, m->most + 1);
	else if (r < 50)
		m->target = model_random(m, Min(m->most, 40) + 1);
	else if (r < 70)
		m->target = Min(m->most, Max(0, m->held - 3 + (int) model_random(m, 7)));
	else if (r < 90)
		m->target = 0;
	else
		m->target = m->most;
	m->phase_end = m->step + 1 + model_random(m, LONGEST_PHASE);
}

static void
one_step(Model *m)
{
	uint32		r = model_random(m, 100000);

	m->last_touched = m->touched;
	m->touched = InvalidBuffer;
	if (m->step >= m->phase_end)
		next_phase(m);

	if (r < 45000)
		balance(m);
	else if (r < 57000)
		pin_block(m, random_block(m));
	else if (r < 74000)
		release_random(m);
	else if (r < 82000)
		pin_again(m, false);
	else if (r < 87000)
		pin_again(m, true);
	else if (r < 91000)
		release_and_read(m);
	else if (r < 94500)
		read_recent(m);
	else if (r < 95300)
		read_together(m);
	else if (r < 95800)
		extend(m);
	else if (r < 96300)
		evict(m);
	else if (r < 97000)
		lock_for_cleanup(m);
	else if (r < 99500)
		use_owner(m, random_owner(m));
	else if (r < 99700)
		create_owner(m);
	else if (r < 99800)
		release_owner(m, random_owner(m));
	else if (r < 99860)
		begin_subtransaction(m);
	else if (r < 99885)
		commit_subtransaction(m);
	else if (r < 99910)
		abort_subtransaction(m);
	else if (r < 99925)
		fail_in_subtransaction(m);
	else if (r < 99960)
		show_elsewhere(m);
	/* else only the comparison */

	if (m->held > m->counts.most_held)
		m->counts.most_held = m->held;
	if (m->held <= m->most)
	{
		m->counts.sizes += !m->size_seen[m->held];
		m->size_seen[m->held] = true;
	}
	if (m->held >= m->most / 2)
		m->was_full = true;
	else if (m->held == 0 && m->was_full)
	{
		m->counts.emptied++;
		m->was_full = false;
	}
}

/*
 * Up to the maximum, each buffer pinned twice, and down again.
 *
 * A full table grows when room is made for the next pin, even if that is of the
 * buffer looked up last, which needs none.  Random steps hardly ever do this: the
 * table of a process grows only a few times.
 */
static void
up_and_down(Model *m)
{
	for (int block = 0; block < m->most; block++)
	{
		pin_block(m, block);
		pin_block(m, block);
	}
	compare_all(m);
	while (m->pins > 0)
	{
		release_pin(m, 0, model_random(m, m->pins));
		compare_buffer(m, m->touched, false);
	}
	compare_all(m);
}

static void
begin_model(Model *m, Relation rel, int64 seed, int most)
{
	m->seed = seed;
	pg_prng_seed(&m->prng, seed);
	m->context = CurrentMemoryContext;
	m->rel = rel;
	m->locator = rel->rd_locator;
	m->most = most;
	/* four times the maximum held, but at most half of the pool */
	m->base = Max(64, Min(4 * most, NBuffers / 2));
	m->most_blocks = m->base + m->base / 2;
	m->buffer_of = palloc0_array(Buffer, m->most_blocks);
	m->block_in = palloc0_array(BlockNumber, NBuffers + 1);
	m->count = palloc0_array(int32, NBuffers + 1);
	m->size_seen = palloc0_array(bool, most + 1);
	m->free_limit = GetAdditionalPinLimit();
	m->owners[0].owner = CurrentResourceOwner;
	m->owners[0].parent = -1;

	if (RelationGetNumberOfBlocks(rel) != 0)
		elog(ERROR, "\"%s\" is not empty", RelationGetRelationName(rel));
	begin_showing(m);
	/* nothing may be pinned now, not even by the query */
	compare_all(m);
	while (m->blocks < m->base)
	{
		extend(m);
		while (m->pins > 0)
			release_pin(m, 0, 0);
	}
}

/*
 * Release everything: with the subtransactions, then one by one.
 */
static void
end_model(Model *m)
{
	while (m->level > 0)
		abort_subtransaction(m);
	compare_all(m);
	for (int i = 0; i < MAX_OWNERS; i++)
		while (m->owners[i].npins > 0)
			release_pin(m, i, m->owners[i].npins - 1);
	compare_all(m);
	compare_step(m);
	use_owner(m, 0);
	for (int i = 1; i < MAX_OWNERS; i++)
		if (m->owners[i].owner != NULL)
			release_owner(m, i);
	truncate_table(m, 0);
	compare_step(m);
	compare_all(m);
	end_showing(m);
}

Datum
test_pins_random(PG_FUNCTION_ARGS)
{
	int64		steps = PG_GETARG_INT64(1);
	int64		seed = PG_GETARG_INT64(2);
	int32		most = PG_GETARG_INT32(3);
	Relation	rel = test_open_relation(PG_GETARG_OID(0), AccessExclusiveLock);
	Model	   *m = palloc0_object(Model);
	Datum		values[FUNC_MAX_ARGS];
	int			i = 0;

	if (steps < 1)
		elog(ERROR, "cannot make " INT64_FORMAT " steps", steps);
	if (most < 1 || most > NBuffers / 4)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot hold %d of %d buffers", most, NBuffers),
				 errhint("At most a quarter: others need some, too.")));

	begin_model(m, rel, seed, most);
	up_and_down(m);
	for (m->step = 1; m->step <= steps; m->step++)
	{
		if (m->step % 1024 == 0)
			CHECK_FOR_INTERRUPTS();
		one_step(m);
		compare_step(m);
	}
	end_model(m);
	relation_close(rel, NoLock);

#define X(name) values[i++] = Int64GetDatum(m->counts.name);
	MODEL_COUNTS(X)
#undef X
	Assert(i <= lengthof(values));
	return test_return_row(fcinfo, values);
}

Datum
test_pins_has_info(PG_FUNCTION_ARGS)
{
#ifdef HAVE_PRIVATE_REFCOUNT_INFO
	PG_RETURN_BOOL(true);
#else
	PG_RETURN_BOOL(false);
#endif
}
