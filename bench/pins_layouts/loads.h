/*
 * loads.h
 *	  Included at the end of each candidate: pins and unpins as bufmgr.c does.
 *
 * What PinBuffer() and UnpinBuffer() do besides is one atomic change of the
 * buffer's header, in the same places: after the new entry is filled, and
 * before the old one is forgotten.  That is not mere padding: an atomic change
 * waits until all stores before it are in the cache.
 */

static pg_noinline void
pin(Buffer buffer)
{
	int32	   *refcount;

	reserve();
#ifdef ONE_SEARCH
	refcount = enter(buffer);	/* found or new: then it is 0 */
	if (*refcount == 0)
	{
#else
	refcount = find(buffer, true);
	if (refcount == NULL)
	{
		refcount = new_entry(buffer);
#endif
		__atomic_fetch_add(&shared_states[buffer % SHARED_STATES].state, 1,
						   __ATOMIC_SEQ_CST);
	}
	++*refcount;
}

static pg_noinline void
unpin(Buffer buffer)
{
	int32	   *refcount = find(buffer, false);

	if (--*refcount == 0)
	{
		__atomic_fetch_sub(&shared_states[buffer % SHARED_STATES].state, 1,
						   __ATOMIC_SEQ_CST);
		forget(refcount, buffer);
	}
}

static int32
count(Buffer buffer, bool do_move)
{
	int32	   *refcount;

	if (do_move)
		reserve();
	refcount = find(buffer, do_move);
	return refcount ? *refcount : 0;
}

/* The buffer, as the result of WORK_CYCLES additions that must follow each other */
static inline Buffer
after_work(Buffer buffer)
{
	for (int i = 0; i < WORK_CYCLES / 4; i++)
	{
		HIDE_VALUE(buffer);
		buffer += 3;
		HIDE_VALUE(buffer);
		buffer -= 1;
		HIDE_VALUE(buffer);
		buffer -= 5;
		HIDE_VALUE(buffer);
		buffer += 3;
	}
	return buffer;
}

static void
run(const Buffer *pinned, const Buffer *unpinned, int n, Between between)
{
	switch (between)
	{
		case NOTHING:
			for (int i = 0; i < n; i++)
			{
				pin(pinned[i]);
				unpin(unpinned[i]);
			}
			break;
		case UNDER_LOCK:
			for (int i = 0; i < n; i++)
			{
				__atomic_fetch_add(&shared_lock.state, 1, __ATOMIC_SEQ_CST);
				pin(pinned[i]);
				__atomic_fetch_sub(&shared_lock.state, 1, __ATOMIC_SEQ_CST);
				unpin(unpinned[i]);
			}
			break;
		case AFTER_WORK:
			for (int i = 0; i < n; i++)
			{
				pin(after_work(pinned[i]));
				unpin(after_work(unpinned[i]));
			}
			break;
	}
}

extern LayoutByName LAYOUT;

LayoutByName LAYOUT = {
	{
		.name = CppAsString2(LAYOUT),
		.init = init,
		.pin = pin,
		.unpin = unpin,
		.count = count,
		.run = run,
	}
};
