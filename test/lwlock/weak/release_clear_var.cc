/*
 * ReleaseClearVar: the variable is reset, then the lock is released.
 * LWLockWaitForVar() reads the lock first, then the variable.
 *
 * Process 0 holds the lock, process 1 waits until the variable is not 1 or the
 * lock is free, process 2 is the next holder, and sets it to 2.
 *
 * Forbidden: the next holder finds the value of the last; the waiter returns
 * with the old value, or with "free" but without the writes of that holder, or
 * sleeps forever.
 */
struct release_clear_var : Pattern<release_clear_var>
{
	void prepare()
	{
		hold(&a, 0);
		var.v($).store(1, rl::mo_relaxed);
		backends[2].routine = rl::rand(2) ? &lockless : NULL;
	}

	void thread(unsigned proc)
	{
		if (proc == 0)
		{
			data = 1;
			LWLockReleaseClearVar(&a, &var, 0);
		}
		else if (proc == 1)
		{
			uint64		value = 0;
			bool		free = LWLockWaitForVar(&a, &var, 1, &value);

			pg_read_barrier();
			RL_ASSERT(free || value != 1);
			RL_ASSERT(data == 1);
			RL_ASSERT(pg_atomic_read_u64(&var) != 1);
		}
		else
		{
			LWLockAcquire(&a, LW_EXCLUSIVE);
			RL_ASSERT(pg_atomic_read_u64(&var) == 0);
			LWLockUpdateVar(&a, &var, 2);
			LWLockReleaseClearVar(&a, &var, 0);
		}
	}
};
