/*-------------------------------------------------------------------------
 *
 * test/lwlock/threads/ops.c
 *	  What the backends of the harness do, and what must be true of each
 *	  operation.
 *
 *-------------------------------------------------------------------------
 */
#include "stress.h"

static void
begin_op(HarnessOp op, int with)
{
	relaxed_write(&HARNESS_ME->doing, op);
	relaxed_write(&HARNESS_ME->with, with);
	HARNESS_ME->pushed = false;
}

static void
stay(void)
{
	if (harness_round.sleep_inside > 0)
		for (uint32 n = harness_random(harness_round.sleep_inside); n > 0; n--)
			harness_point();
}

/* Just acquired exclusively */
static void
enter_exclusive(Protected *p)
{
	relaxed_add(&p->begun, 1);
	HARNESS_ME->reservations = 0;
	FAIL_IF(__atomic_exchange_n(&p->holders, -1, __ATOMIC_RELAXED) != 0);
	FAIL_IF(p->data[0] != p->data[1]);
	p->data[0]++;
	stay();
	p->data[1]++;
	FAIL_IF(p->data[0] != p->data[1]);
	relaxed_add(&p->expected, 1);
	harness_count(HC_EXCLUSIVE);
}

static void
leave_exclusive(Protected *p)
{
	FAIL_IF(__atomic_exchange_n(&p->holders, 0, __ATOMIC_RELAXED) != -1);
	relaxed_add(&p->waking, 1);
	relaxed_add(&p->ended, 1);
}

static void
enter_shared(Protected *p)
{
	uint64		seen;

	HARNESS_ME->reservations = 0;
	FAIL_IF(relaxed_add(&p->holders, 1) < 0);
	seen = p->data[0];
	stay();
	FAIL_IF(seen != p->data[1] || seen != p->data[0]);
	harness_count(HC_SHARED);
}

static void
leave_shared(Protected *p)
{
	FAIL_IF(relaxed_add(&p->holders, -1) < 1);
	relaxed_add(&p->waking, 1);
}

/*
 * Change the variable.  Waiters for the old value must come back while the lock is
 * still held.
 */
static void
update_var(Protected *p)
{
	uint64		value = ++p->next_value;
	uint64		waiting_since[HARNESS_MAX_BACKENDS] = {0};
	bool		wait = harness_random(4) == 0;
	int			with = p - harness_locks;

	if (wait)
		for (int i = 0; i < harness_round.nbackends; i++)
		{
			HarnessBackend *other = &harness_backends[i];
			int			call = __atomic_load_n(&other->var_call, __ATOMIC_ACQUIRE);

			if ((call & 1) && relaxed_read(&other->with) == with &&
				relaxed_read(&other->var_oldval) != value &&
				__atomic_load_n(&other->var_call, __ATOMIC_ACQUIRE) == call)
				waiting_since[i] = call;
		}

	relaxed_add(&p->waking, 1);
	LWLockUpdateVar(p->lock, &p->var, value);
	relaxed_add(&p->woken, 1);
	harness_count(HC_VAR_UPDATES);

	for (int i = 0; i < harness_round.nbackends; i++)
	{
		int			pauses = 0;

		if (waiting_since[i] == 0)
			continue;
		while (relaxed_read(&harness_backends[i].var_call) == waiting_since[i])
		{
			harness_pause();
#ifdef HARNESS_FIBERS
			if (++pauses > 1000000)
				harness_fail("backend %d is not woken by LWLockUpdateVar()", i);
#else
			(void) pauses;
#endif
		}
		harness_count(HC_VAR_ACKNOWLEDGED);
	}
}

static void
release_exclusive(Protected *p)
{
	bool		var = harness_random(4) == 0;

	if (var)
		for (uint32 n = harness_random(3); n > 0; n--)
			update_var(p);
	leave_exclusive(p);
	if (var)
		LWLockReleaseClearVar(p->lock, &p->var, 0);
	else
		LWLockRelease(p->lock);
	relaxed_add(&p->woken, 1);
}

static void
hold_exclusive(Protected *p)
{
	enter_exclusive(p);
	release_exclusive(p);
}

static void
hold_shared(Protected *p)
{
	enter_shared(p);
	leave_shared(p);
	LWLockRelease(p->lock);
	relaxed_add(&p->woken, 1);
}

static void
op_conditional(Protected *p)
{
	bool		exclusive = harness_random(2);

	if (!LWLockConditionalAcquire(p->lock, exclusive ? LW_EXCLUSIVE : LW_SHARED))
	{
		harness_count(HC_CONDITIONAL_FAILED);
		return;
	}
	harness_count(HC_CONDITIONAL_GOT);
	if (exclusive)
		hold_exclusive(p);
	else
		hold_shared(p);
}

static void
op_or_wait(Protected *p)
{
	uint64		woken = relaxed_read(&p->woken);

	/* as WALWriteLock is used; shared is never */
	if (LWLockAcquireOrWait(p->lock, LW_EXCLUSIVE))
	{
		harness_count(HC_OR_WAIT_GOT);
		hold_exclusive(p);
	}
	else
	{
		harness_count(HC_OR_WAIT_WAITED);

		/*
		 * A holder that was there when we came has gone, or is still waking
		 * others for an earlier release.  With the library, another process
		 * may do that.
		 */
		FAIL_IF(!harness_round.use_library && relaxed_read(&p->waking) == woken);
	}
}

static void
op_wait_for_var(Protected *p)
{
	HarnessBackend *me = HARNESS_ME;
	uint64		ended = relaxed_read(&p->ended);
	uint64		begun = relaxed_read(&p->begun);
	uint64		oldval = relaxed_read((uint64 *) &p->var.value);
	uint64		newval = oldval;
	bool		is_free;

	relaxed_write(&me->var_oldval, oldval);
	__atomic_fetch_add(&me->var_call, 1, __ATOMIC_RELEASE);
	is_free = LWLockWaitForVar(p->lock, &p->var, oldval, &newval);
	__atomic_fetch_add(&me->var_call, 1, __ATOMIC_RELEASE);

	harness_count(is_free ? HC_VAR_FREE : HC_VAR_CHANGED);
	FAIL_IF(!is_free && newval == oldval);

	/* if one held it when we came, it must have gone since */
	FAIL_IF(is_free && begun > ended && relaxed_read(&p->ended) < begun);
}

static void
op_disown(Protected *p)
{
	LWLockAcquire(p->lock, LW_EXCLUSIVE);
	enter_exclusive(p);
	leave_exclusive(p);
	LWLockDisown(p->lock);
	harness_count(HC_DISOWNED);
	while (relaxed_read(&harness_disowned[harness_self]) != NULL)
		harness_pause();		/* until the one before is taken */
	__atomic_store_n(&harness_disowned[harness_self], p, __ATOMIC_RELEASE);
}

/* In rounds with disowned locks, the last backend only releases for others */
static void
release_for_others(void)
{
	for (;;)
	{
		bool		last = __atomic_load_n(&harness_working, __ATOMIC_ACQUIRE) == 0;

		for (int i = 0; i < harness_round.nbackends; i++)
		{
			Protected  *p = __atomic_load_n(&harness_disowned[i], __ATOMIC_ACQUIRE);

			if (p == NULL)
				continue;
			/* its owner may have the lock again as soon as it is released */
			relaxed_write(&harness_disowned[i], NULL);
			LWLockReleaseDisowned(p->lock, LW_EXCLUSIVE);
			relaxed_add(&p->woken, 1);
		}
		if (last)
			return;
		harness_pause();
	}
}

static void
op_nested(int i)
{
	Protected  *p = &harness_locks[i];
	bool		exclusive = harness_random(2);

	LWLockAcquire(p->lock, exclusive ? LW_EXCLUSIVE : LW_SHARED);
	if (exclusive)
		enter_exclusive(p);
	else
		enter_shared(p);
	if (i + 1 < harness_round.nlocks)
	{
		Protected  *q = &harness_locks[i + 1 + harness_random(harness_round.nlocks - i - 1)];

		LWLockAcquire(q->lock, LW_EXCLUSIVE);
		harness_count(HC_NESTED);
		hold_exclusive(q);
	}
	if (exclusive)
		release_exclusive(p);
	else
	{
		leave_shared(p);
		LWLockRelease(p->lock);
		relaxed_add(&p->woken, 1);
	}
}

/* Any process may switch at any time, and none stops for it */
static void
switch_policy(void)
{
	uint8		policy = harness_random(PGSWEEP_LWLOCK_NUM_POLICIES);
	int			tranche = harness_locks[harness_random(harness_round.nlocks)].lock->tranche;

	if (harness_random(2))
		relaxed_write(&PgSweepLwlock->default_policy, policy);
	else
		relaxed_write(&PgSweepLwlock->tranche_policy[tranche],
					  harness_random(3) ? policy : PGSWEEP_LWLOCK_DEFAULT);
	harness_count(HC_POLICY_SWITCHES);
}

/*
 * A semaphore is posted for other reasons, too.  A process that sleeps on it for a
 * lock must count these and give them back.  Here they are taken between operations.
 */
static void
post_for_no_reason(void)
{
	HarnessBackend *other = &harness_backends[harness_random(harness_round.nbackends)];

	relaxed_add(&other->posted, 1);
	harness_count(HC_SPURIOUS);
	PGSemaphoreUnlock(harness_my_proc[other - harness_backends]->sem);
}

static void
take_posts(void)
{
	while (harness_sem_try(harness_self))
		relaxed_add(&HARNESS_ME->taken, 1);
}

static HarnessOp
choose_op(void)
{
	uint32		total = 0;
	uint32		draw;

	for (int i = 1; i < lengthof(harness_round.weights); i++)
		total += harness_round.weights[i];
	draw = harness_random(total);
	for (int i = 1; i < lengthof(harness_round.weights); i++)
	{
		if (draw < harness_round.weights[i])
			return i;
		draw -= harness_round.weights[i];
	}
	pg_unreachable();
}

static void
one_operation(void)
{
	int			i = harness_random(harness_round.nlocks);
	Protected  *p = &harness_locks[i];
	HarnessOp	op = choose_op();

	begin_op(op, i);
	switch (op)
	{
		case OP_EXCLUSIVE:
			LWLockAcquire(p->lock, LW_EXCLUSIVE);
			hold_exclusive(p);
			break;
		case OP_SHARED:
			LWLockAcquire(p->lock, LW_SHARED);
			hold_shared(p);
			break;
		case OP_CONDITIONAL:
			op_conditional(p);
			break;
		case OP_OR_WAIT:
			op_or_wait(p);
			break;
		case OP_WAIT_FOR_VAR:
			op_wait_for_var(p);
			break;
		case OP_DISOWN:
			if (harness_round.disown)
				op_disown(p);
			break;
		case OP_NESTED:
			op_nested(i);
			break;
		case OP_NONE:
			pg_unreachable();
	}
	FAIL_IF(HARNESS_ME->holdoff != 0);
	relaxed_write(&HARNESS_ME->doing, OP_NONE);
	relaxed_add(&HARNESS_ME->steps, 1);
	harness_count(HC_OPERATIONS);
}

void
harness_backend_main(void)
{
	if (harness_round.disown && harness_self == harness_round.nbackends - 1)
	{
		release_for_others();
		return;
	}
	for (int n = 0; n < harness_round.operations; n++)
	{
		one_operation();
		if (harness_round.use_library && harness_random(8) == 0)
			switch_policy();
		if (harness_round.use_library && harness_random(64) == 0)
		{
			HARNESS_ME->spin_tries = harness_random(2) ? 0 : harness_random(20);
			HARNESS_ME->handoff_after = harness_random(4) != 0;
		}
		if (harness_round.spurious && harness_random(4) == 0)
			post_for_no_reason();
		if (harness_random(4) == 0)
			take_posts();
	}
	__atomic_fetch_sub(&harness_working, 1, __ATOMIC_RELEASE);
}
