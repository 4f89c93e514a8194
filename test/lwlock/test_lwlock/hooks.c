/*-------------------------------------------------------------------------
 *
 * test/lwlock/test_lwlock/hooks.c
 *	  Stop points around the hooks for waiting, and notes on which process sleeps
 *	  on which lock.
 *
 * Calls are passed on to the routine that was in place before, pg_sweep's, or to
 * core if there was none.  Each process notes for the watchdog which lock it
 * sleeps on.  Processes are stopped only at our own locks.
 *
 * A hook must not wait for anything that takes an LWLock or is woken by the
 * semaphore of this process.  Hence a stopped process polls.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/proc.h"

#include "test_lwlock.h"

/* Time between two looks of a process that is stopped */
#define STOPPED_NAP_US		200

const char *const test_point_names[TEST_NUM_POINTS] = {
	[TEST_POINT_ACQUIRE] = "acquire",
	[TEST_POINT_SLEEP] = "sleep",
	[TEST_POINT_WOKEN] = "woken",
	[TEST_POINT_WAKE] = "wake",
	[TEST_POINT_WAKE_LOCKED] = "wake_locked",
};

/* The routine before ours; inherited by fork, as LWLockWait is */
static const LWLockWaitRoutine *wrapped = NULL;

static TestSlot *
my_slot(void)
{
	if (MyProc == NULL || MyProcNumber >= (ProcNumber) test_shared->num_slots)
		return NULL;
	return &test_shared->slots[MyProcNumber];
}

static bool
is_ours(const LWLock *lock)
{
	return lock >= &test_shared->locks[0].lock &&
		lock <= &test_shared->locks[TEST_NUM_LOCKS - 1].lock;
}

static void
stop_at(const LWLock *lock, TestPoint point)
{
	TestSlot   *slot = my_slot();
	uint32		bit = 1u << point;

	if (slot == NULL || !is_ours(lock) || !(pg_atomic_read_u32(&slot->armed) & bit))
		return;
	pg_atomic_fetch_and_u32(&slot->armed, ~bit);
	pg_atomic_write_membarrier_u32(&slot->stopped, point + 1);
	while (pg_atomic_read_membarrier_u32(&slot->stopped) != 0)
		pg_usleep(STOPPED_NAP_US);
}

static LWLockWaitStep
test_acquire(LWLock *lock, LWLockMode mode, bool woken)
{
	stop_at(lock, TEST_POINT_ACQUIRE);
	return wrapped ? wrapped->acquire(lock, mode, woken) : LW_STEP_CORE;
}

static LWLockWaitStep
test_acquire_or_wait(LWLock *lock, LWLockMode mode)
{
	stop_at(lock, TEST_POINT_ACQUIRE);
	return wrapped ? wrapped->acquire_or_wait(lock, mode) : LW_STEP_CORE;
}

static bool
test_wait_for_var(LWLock *lock, pg_atomic_uint64 *valptr, uint64 oldval)
{
	stop_at(lock, TEST_POINT_ACQUIRE);
	return wrapped && wrapped->wait_for_var(lock, valptr, oldval);
}

static LWLockWakeStep
test_wake(LWLock *lock, uint64 *state)
{
	LWLockWakeStep step;

	stop_at(lock, TEST_POINT_WAKE);
	step = wrapped ? wrapped->wake(lock, state) : LW_WAKE_CORE;
	if (step == LW_WAKE_LOCKED)
		stop_at(lock, TEST_POINT_WAKE_LOCKED);
	return step;
}

static void
test_sleeping(LWLock *lock, bool begin)
{
	TestSlot   *slot = my_slot();

	if (slot && !begin)
		pg_atomic_write_u64(&slot->sleeping_on, 0);
	if (wrapped)
		wrapped->sleeping(lock, begin);
	if (slot && begin)
	{
		pg_atomic_write_u64(&slot->sleeps, pg_atomic_read_u64(&slot->sleeps) + 1);
		pg_write_barrier();		/* pairs with look_at() in watchdog.c */
		pg_atomic_write_u64(&slot->sleeping_on, (uint64) (uintptr_t) lock);
	}
	stop_at(lock, begin ? TEST_POINT_SLEEP : TEST_POINT_WOKEN);
}

static const LWLockWaitRoutine test_routine = {
	.acquire = test_acquire,
	.acquire_or_wait = test_acquire_or_wait,
	.wait_for_var = test_wait_for_var,
	.wake = test_wake,
	.sleeping = test_sleeping,
};

void
test_unwrap_routine(void)
{
	if (LWLockWait == &test_routine)
		LWLockWait = wrapped;
}

void
test_wrap_routine(void)
{
	wrapped = LWLockWait;
	LWLockWait = &test_routine;
}
