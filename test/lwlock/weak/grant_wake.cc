/*
 * grant/wake: LWLockWakeup() hands the lock over in the word, writes
 * LW_WAIT_GRANTED, then lwWaiting; the sleeper reads lwWaiting, perhaps woken
 * by a post for something else, then GRANTED, then what the lock protects.
 *
 * Process 0 holds the lock, process 1 reserves it, process 2 acquires it in
 * some way and may be the one to which process 0 leaves the wake-up.
 *
 * Forbidden: a data race on what the lock protects or on lwWaitMode, a lock
 * that was handed over but not taken, or taken by two.
 */
struct grant_wake : Pattern<grant_wake>
{
	void prepare()
	{
		hold(&a, 0);
		backends[0].routine = &lockless;
		backends[1].routine = &overdue;
		backends[2].routine = rl::rand(2) ? &lockless : NULL;
		procs_[1].sem.strays = 1;
	}

	void thread(unsigned proc)
	{
		if (proc != 0)
			LWLockAcquire(&a, proc == 2 ? LW_SHARED : LW_EXCLUSIVE);
		if (proc != 2)
			data = data + 1;
		else
			(void) (int) data;
		LWLockRelease(&a);
	}
};
