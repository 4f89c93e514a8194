/*
 * Reuse of links: a process that was woken queues for another lock, and
 * overwrites lwWaitLink and lwWaitMode, which its waker may still read.
 *
 * Process 1 waits for a, which process 0 holds, in any way; then it queues for
 * b, which process 2 holds.  A post for something else may let it look at
 * lwWaiting early.
 *
 * Forbidden: a data race on the fields; a corrupt list.
 */
struct reuse : Pattern<reuse>
{
	unsigned	way;

	void prepare()
	{
		hold(&a, 0);
		hold(&b, 2);
		way = rl::rand(4);
		backends[1].routine = way == 3 ? NULL : &lockless;
		procs_[1].sem.strays = 1;
	}

	void thread(unsigned proc)
	{
		uint64		value;

		if (proc == 0)
			LWLockRelease(&a);
		else if (proc == 2)
		{
			LWLockUpdateVar(&b, &var, 1);
			LWLockRelease(&b);
		}
		else
		{
			if (way == 0 || way == 3)
			{
				LWLockAcquire(&a, LW_EXCLUSIVE);
				LWLockRelease(&a);
			}
			else if (way == 1)
			{
				if (LWLockAcquireOrWait(&a, LW_EXCLUSIVE))
					LWLockRelease(&a);
			}
			else
				LWLockWaitForVar(&a, &var, 0, &value);
			LWLockAcquire(&b, LW_EXCLUSIVE);
			LWLockRelease(&b);
		}
	}
};
