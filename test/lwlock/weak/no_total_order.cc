/*
 * Not a pattern of the code: shows that the primitives here are as weak as they
 * should be.  Two processes change one word each, then read the other's.  If
 * atomic operations were full barriers, or had one order for all, at least one
 * would see the other's change.  This must fail.
 */
struct no_total_order : Pattern<no_total_order>
{
	uint64		seen[NUM_PROCS];

	void prepare()
	{
	}

	void thread(unsigned proc)
	{
		LWLock	   *mine = proc == 0 ? &a : &b;

		if (proc < 2)
		{
			pg_atomic_fetch_or_u64(LWLockState(mine), LW_FLAG_LOCKED);
			seen[proc] = LWLockReadState(proc == 0 ? &b : &a);
		}
	}

	void after()
	{
		RL_ASSERT((seen[0] | seen[1]) & LW_FLAG_LOCKED);
		clean_up();
	}
};
