/*-------------------------------------------------------------------------
 *
 * test/lwlock/threads/scripted.c
 *	  Runs in a fixed order, which chance would hardly find.
 *
 * Each backend does its commands with one lock.  A script says which backend goes
 * on, and until when; after its end, chance decides.  Needs fibers.
 *
 *-------------------------------------------------------------------------
 */
#include "stress.h"

extern const LWLockWaitRoutine *LWLockWait_of[];	/* as per_backend makes it */
extern PGPROC harness_procs[];

typedef enum Command
{
	END,
	ACQUIRE,
	RELEASE,
	OR_WAIT,					/* released at once, if acquired */
	WAIT_FOR_VAR,
} Command;

typedef enum Until
{
	STOP,						/* end of the script */
	DONE,						/* has done its next command, or cannot: it sleeps,
								 * or waits until the list is unlocked */
	TAKES,						/* has taken "other" out of the queue, to wake it
								 * later; the list is still locked */
	TOLD,						/* no step: fails if the backend is in the queue */
} Until;

#define MOST_COMMANDS	4

typedef struct Step
{
	int			backend;
	Until		until;
	int			other;
} Step;

typedef struct Script
{
	const char *name;
	bool		needs_lockless; /* wake-ups are left to the list's holder */
	Command		commands[HARNESS_MAX_BACKENDS][MOST_COMMANDS + 1];
	Step		steps[32];
} Script;

/* Backends.  Holders release; retriers are woken, but do not run yet. */
enum
{
	HOLDER, OTHER_HOLDER, RETRIER, OTHER_RETRIER, VAR, OR_WAITER, OTHER_OR_WAITER, NUM_BACKENDS
};

static const Script scripts[] = {
	/*
	 * While the first holder wakes the retrier, another takes the lock, and a
	 * process begins to wait for the variable.  Its LW_FLAG_RELEASE_OK must
	 * outlive the wake-up: the other holder's release must wake it.
	 */
	{
		.name = "var_told",
		.commands = {
			[HOLDER] = {ACQUIRE, RELEASE},
			[OTHER_HOLDER] = {ACQUIRE, RELEASE},
			[RETRIER] = {ACQUIRE, RELEASE},
			[VAR] = {WAIT_FOR_VAR},
		},
		.steps = {
			{HOLDER, DONE},
			{RETRIER, DONE},
			{HOLDER, TAKES, RETRIER},
			{OTHER_HOLDER, DONE},
			{VAR, DONE},
			{HOLDER, DONE},
			{VAR, DONE},
			{OTHER_HOLDER, DONE},
			{VAR, TOLD},
		},
	},

	/*
	 * A wake-up is left to a waker that looks at the queue for the second
	 * time, because one was left to it before.  It must look a third time.
	 * That a release leaves one again takes a retrier of an earlier wake-up,
	 * which sets LW_FLAG_RELEASE_OK.
	 */
	{
		.name = "left_again",
		.needs_lockless = true,
		.commands = {
			[HOLDER] = {ACQUIRE, RELEASE, ACQUIRE, RELEASE},
			[OTHER_HOLDER] = {ACQUIRE, RELEASE},
			[RETRIER] = {ACQUIRE, RELEASE},
			[OTHER_RETRIER] = {ACQUIRE, RELEASE},
			[VAR] = {WAIT_FOR_VAR},
			[OR_WAITER] = {OR_WAIT},
			[OTHER_OR_WAITER] = {OR_WAIT},
		},
		.steps = {
			{HOLDER, DONE},
			{RETRIER, DONE},
			{OTHER_RETRIER, DONE},
			{HOLDER, DONE},		/* wakes the retrier */

			/* a wait for the variable makes the next release a wake-up, too */
			{OTHER_HOLDER, DONE},
			{VAR, DONE},
			{OTHER_HOLDER, TAKES, OTHER_RETRIER},
			{HOLDER, DONE},
			{OR_WAITER, DONE},
			{HOLDER, DONE},		/* leaves it a wake-up */
			{OTHER_HOLDER, TAKES, OR_WAITER},
			{RETRIER, DONE},	/* acquires the lock */
			{OTHER_OR_WAITER, DONE},
			{RETRIER, DONE},	/* leaves it another */
			{OTHER_HOLDER, DONE},
			{OTHER_OR_WAITER, TOLD},
		},
	},
};

static const char *const policies[] = {
#define X(id, name) #name,
	PGSWEEP_LWLOCK_POLICIES(X)
#undef X
};

static const Script *script;
static const Step *step;
static bool step_begun;
static int	commands_done[HARNESS_MAX_BACKENDS];
static int	goal;

static void
run_commands(void)
{
	LWLock	   *lock = harness_locks[0].lock;
	uint64		value;

	harness_point();			/* the script decides which is first */
	for (const Command *command = script->commands[harness_self]; *command != END; command++)
	{
		switch (*command)
		{
			case ACQUIRE:
				LWLockAcquire(lock, LW_EXCLUSIVE);
				break;
			case RELEASE:
				LWLockRelease(lock);
				break;
			case OR_WAIT:
				if (LWLockAcquireOrWait(lock, LW_EXCLUSIVE))
					LWLockRelease(lock);
				break;
			case WAIT_FOR_VAR:
				LWLockWaitForVar(lock, &harness_locks[0].var, 0, &value);
				break;
			case END:
				pg_unreachable();
		}
		commands_done[harness_self]++;
		harness_count(HC_OPERATIONS);
		harness_point();
	}
}

static bool
step_is_done(void)
{
	HarnessBackend *backend = &harness_backends[step->backend];
	bool		done = commands_done[step->backend] >= goal || backend->spins > 0 ||
		harness_sleeps(step->backend);

	switch (step->until)
	{
		case DONE:
			return done;
		case TAKES:
			if (harness_procs[step->other].lwWaiting == LW_WS_PENDING_WAKEUP)
				return true;
			if (done)
				harness_fail("%s: backend %d does not take %d out of the queue", script->name,
							 step->backend, step->other);
			return false;
		case TOLD:
			if (harness_procs[step->backend].lwWaiting == LW_WS_WAITING)
				harness_fail("%s: backend %d is not told of a release", script->name, step->backend);
			return true;
		case STOP:
			break;
	}
	pg_unreachable();
}

/* The backend that goes on, or -1: chance decides */
static int
follow_script(void)
{
	while (step->until != STOP)
	{
		if (!step_begun)
		{
			step_begun = true;
			/* it may be in the middle of its command */
			goal = commands_done[step->backend] + 1;
			harness_backends[step->backend].spins = 0;
		}
		if (!step_is_done())
			return step->backend;
		step++;
		step_begun = false;
	}
	return -1;
}

static void
run_script(uint8 policy, bool use_library)
{
	static char space[64] pg_attribute_aligned(64);
	Protected  *p = &harness_locks[0];

	memset(p, 0, sizeof(*p));
	p->lock = (LWLock *) space;
	LWLockInitialize(p->lock, LWTRANCHE_FIRST_USER_DEFINED);
	pg_atomic_init_u64(&p->var, 0);
	harness_lock_place(0, p->lock);
	memset(commands_done, 0, sizeof(commands_done));
	for (int i = 0; i < NUM_BACKENDS; i++)
	{
		memset(&harness_procs[i], 0, sizeof(PGPROC));
		LWLockWait_of[i] = use_library ? &pgsweep_lwlock_wait_routine : NULL;
	}
	memset(PgSweepLwlock->tranche_policy, PGSWEEP_LWLOCK_DEFAULT, PGSWEEP_LWLOCK_NUM_TRANCHES);
	PgSweepLwlock->default_policy = policy;

	step = script->steps;
	step_begun = false;
	harness_next = follow_script;
	harness_run(NUM_BACKENDS, run_commands);
	harness_next = NULL;

	FAIL_IF(step->until != STOP);
	FAIL_IF(LWLockState(p->lock)->value != LW_FLAG_RELEASE_OK);
	for (int i = 0; i < NUM_BACKENDS; i++)
		FAIL_IF(harness_procs[i].lwWaiting != LW_WS_NOT_WAITING || harness_sem_value(i) != 0);
}

/* Run the script of this name with each policy */
bool
harness_run_scripted(const char *name)
{
	for (int i = 0; i < lengthof(scripts); i++)
	{
		if (strcmp(scripts[i].name, name) != 0)
			continue;
		script = &scripts[i];
		for (int policy = 0; policy < PGSWEEP_LWLOCK_NUM_POLICIES; policy++)
		{
			if (script->needs_lockless && pgsweep_lwlock_policies[policy]->wake == NULL)
				continue;
			run_script(policy, true);
			printf("%s: %s\n", name, policies[policy]);
		}
		if (!script->needs_lockless)
		{
			run_script(0, false);
			printf("%s: nothing loaded\n", name);
		}
		return true;
	}
	return false;
}
