/*
 * admit: LWLockAdmitShared() reads the queue that LWLockQueueSelf() linked.
 *
 * Process 0 holds the lock exclusively, then shared (as if others had come in
 * between), process 1 wants it shared and queues in core's way, process 2 lets
 * it in.
 *
 * Forbidden: links, modes or the oldest waiter are read before they are written
 * (a data race), a waiter is lost.
 */
struct admit : Pattern<admit>
{
	void prepare()
	{
		hold(&a, 0);
	}

	void thread(unsigned proc)
	{
		if (proc == 0)
		{
			pg_atomic_fetch_sub_u64(LWLockState(&a), LW_VAL_EXCLUSIVE - LW_VAL_SHARED);
			backends[0].held[0].mode = LW_SHARED;
			LWLockRelease(&a);
		}
		else if (proc == 1)
		{
			LWLockAcquire(&a, LW_SHARED);
			LWLockRelease(&a);
		}
		else
			LWLockAdmitShared(&a);
	}
};
