/*
 * UpdateVar/queue: LWLockUpdateVar() exchanges the variable, locks the wait
 * list and looks for waiters; LWLockWaitForVar() queues, then reads the lock
 * and the variable again, and sleeps.  Each could miss the other.
 *
 * Process 0 holds the lock until both others have returned.
 *
 * Forbidden: a process that sleeps although the variable has changed (all
 * processes sleep then); one that returns without what was written before the
 * change.  The latter needs a read barrier of the caller, as the comment of
 * LWLockWaitForVar() says.
 */
struct update_var : Pattern<update_var>
{
	rl::sema_data *returned;

	void prepare()
	{
		hold(&a, 0);
		returned = rl::ctx().sema_ctor(false, 0, 100);
		procs_[1].sem.strays = 1;
	}

	void thread(unsigned proc)
	{
		if (proc == 0)
		{
			data = 1;
			LWLockUpdateVar(&a, &var, 1);
			for (int i = 1; i < NUM_PROCS; i++)
				returned->wait(false, false, $);
			LWLockRelease(&a);
		}
		else
		{
			uint64		value = 0;
			unsigned	before;

			RL_ASSERT(!LWLockWaitForVar(&a, &var, 0, &value));
			RL_ASSERT(value == 1);
			pg_read_barrier();
			RL_ASSERT(data == 1);
			returned->post(1, before, $);
		}
	}

	void after()
	{
		Pattern::after();
		rl::ctx().sema_dtor(returned);
	}
};
