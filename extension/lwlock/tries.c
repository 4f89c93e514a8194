/*-------------------------------------------------------------------------
 *
 * extension/lwlock/tries.c
 *	  Spinning on a lock that is taken, and for how long.
 *
 * A try is a read of the state, which keeps its cache line shared, and a
 * pause of the CPU.  A compare-and-swap follows only if the lock was seen
 * free.
 *
 * The useful number of tries depends on how long the lock is held, so each
 * process learns a bound per tranche.  A success moves the bound towards
 * twice the number needed; a failure reduces it by a quarter.  (glibc's
 * adaptive mutexes do the former, nptl/pthread_mutex_lock.c, but failures
 * raise the bound there, too.)  The bounds are private memory, which costs
 * nothing to update, and a process under contention has learnt them after a
 * few dozen locks.
 *
 * So a process also stops spinning for holders that wait for a CPU.  It does
 * not ask the kernel whether CPUs are scarce: docs/design/0014 says what that
 * cost.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lwlock/lwlock.h"
#include "storage/s_lock.h"

/*
 * Smallest bound, which leaves some successes to learn from.  Below the cost
 * of queueing alone.
 */
#define LEAST_TRIES		4

/* After so many failures in a row, one attempt uses the maximum again */
#define FAILURES_BEFORE_PROBE	32

/*
 * Tranches whose ids are equal modulo this share a bound.  Each of core's has
 * its own.
 */
#define NUM_BOUNDS		256

typedef struct TryBound
{
	uint16		tries;			/* 0 = nothing learnt yet */
	uint16		failures;		/* since the last success */
} TryBound;

static TryBound bounds[NUM_BOUNDS];

/*
 * The number of tries allowed this time.
 */
static int
tries_allowed(TryBound *bound)
{
	int			most = pgsweep_lwlock_spin_tries;

	if (bound->tries == 0)
		bound->tries = Max(most / 4, 1);
	if (bound->failures >= FAILURES_BEFORE_PROBE)
	{
		bound->failures = 0;
		return most;
	}
	return Min(Max(bound->tries, LEAST_TRIES), most);
}

static void
learn(TryBound *bound, int tries, bool success)
{
	if (success)
	{
		int			wish = Min(2 * tries + 2 * LEAST_TRIES, pgsweep_lwlock_spin_tries);

		bound->tries += (wish - (int) bound->tries) / 8;
		bound->failures = 0;
	}
	else
	{
		bound->tries -= bound->tries / 4;
		bound->failures++;
	}
	bound->tries = Max(bound->tries, 1);
}

/*
 * Spin to acquire the lock.  Returns true if it was acquired.
 */
bool
pgsweep_lwlock_try_for_a_while(LWLock *lock, LWLockMode mode)
{
	TryBound   *bound = &bounds[lock->tranche % NUM_BOUNDS];
	int			allowed = tries_allowed(bound);
	uint64		state;

	for (int tries = 0; tries < allowed; tries++)
	{
		state = LWLockReadState(lock);

		/* it will be handed to another process: nothing to learn */
		if (state & LW_FLAG_RESERVED)
			return false;

		if (LWLockTryAcquire(lock, mode, &state))
		{
			learn(bound, tries, true);
			return true;
		}
		SPIN_DELAY();
	}

	learn(bound, allowed, false);
	return false;
}

/*
 * Spin until the lock has no exclusive holder or the variable differs from
 * oldval. Returns true if either was seen.
 */
bool
pgsweep_lwlock_watch_for_a_while(LWLock *lock, pg_atomic_uint64 *valptr, uint64 oldval)
{
	TryBound   *bound = &bounds[lock->tranche % NUM_BOUNDS];
	int			allowed = tries_allowed(bound);

	for (int tries = 0; tries < allowed; tries++)
	{
		if ((LWLockReadState(lock) & LW_VAL_EXCLUSIVE) == 0 ||
			LWLockReadWord(valptr) != oldval)
		{
			learn(bound, tries, true);
			return true;
		}
		SPIN_DELAY();
	}

	learn(bound, allowed, false);
	return false;
}
