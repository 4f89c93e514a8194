/*
 * push/link: LWLockTryQueue() writes lwWaitMode and lwWaitLink and pushes; a
 * holder of LW_FLAG_LOCKED reads the newest waiter from the word and walks.
 *
 * Process 0 holds the lock and has its wait list locked in between, process 1
 * pushes without locking the list, process 2 as well, or in core's way, or
 * waits for the variable, and is then taken out of the middle of the queue.
 *
 * Forbidden: links or modes are read before they are written (a data race), a
 * waiter is lost.
 */
struct push_link : Pattern<push_link>
{
	unsigned	way;

	void prepare()
	{
		hold(&a, 0);
		way = rl::rand(3);
		backends[1].routine = &lockless;
		backends[2].routine = way == 0 ? &lockless : NULL;
	}

	void thread(unsigned proc)
	{
		uint64		value;

		if (proc == 0)
		{
			LWLockUpdateVar(&a, &var, 1);
			LWLockRelease(&a);
		}
		else if (proc == 2 && way == 2)
			LWLockWaitForVar(&a, &var, 0, &value);
		else
		{
			LWLockAcquire(&a, LW_EXCLUSIVE);
			LWLockRelease(&a);
		}
	}
};
