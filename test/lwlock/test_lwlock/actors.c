/*-------------------------------------------------------------------------
 *
 * test/lwlock/test_lwlock/actors.c
 *	  Sessions that take commands from others.
 *
 * An actor is a session in test_lwlock_serve(), which executes one command after
 * the other and keeps its LWLocks in between.  A test script in one session moves
 * several processes step by step, and looks at the results.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/proc.h"
#include "utils/wait_event.h"

#include "test_lwlock.h"

/* Time between two looks of an actor for something to do */
#define IDLE_NAP_US		200

PG_FUNCTION_INFO_V1(test_lwlock_serve);
PG_FUNCTION_INFO_V1(test_lwlock_send);
PG_FUNCTION_INFO_V1(test_lwlock_stop);
PG_FUNCTION_INFO_V1(test_lwlock_go);
PG_FUNCTION_INFO_V1(test_lwlock_actors);

typedef enum TestCommand
{
	CMD_ACQUIRE,
	CMD_CONDITIONAL,
	CMD_ACQUIRE_OR_WAIT,
	CMD_RELEASE,
	CMD_DISOWN,
	CMD_RELEASE_DISOWNED,
	CMD_WAIT_FOR_VAR,
	CMD_UPDATE_VAR,
	CMD_RELEASE_CLEAR_VAR,
	CMD_QUIT,
} TestCommand;

static const char *const command_names[] = {
	[CMD_ACQUIRE] = "acquire",
	[CMD_CONDITIONAL] = "conditional",
	[CMD_ACQUIRE_OR_WAIT] = "acquire_or_wait",
	[CMD_RELEASE] = "release",
	[CMD_DISOWN] = "disown",
	[CMD_RELEASE_DISOWNED] = "release_disowned",
	[CMD_WAIT_FOR_VAR] = "wait_for_var",
	[CMD_UPDATE_VAR] = "update_var",
	[CMD_RELEASE_CLEAR_VAR] = "release_clear_var",
	[CMD_QUIT] = "quit",
};

static const char *const mode_names[] = {
	[LW_EXCLUSIVE] = "exclusive",
	[LW_SHARED] = "shared",
};

static TestActor *
find_actor(int32 number)
{
	test_require_shared();
	if (number < 0 || number >= TEST_NUM_ACTORS)
		elog(ERROR, "actors are 0 to %d", TEST_NUM_ACTORS - 1);
	return &test_shared->actors[number];
}

static TestActor *
find_present_actor(int32 number)
{
	TestActor  *actor = find_actor(number);

	if (actor->pid == 0)
		elog(ERROR, "there is no actor %d", number);
	pg_read_barrier();			/* pairs with the one before an actor's pid */
	return actor;
}

/*
 * Returns false if this was the last command.
 */
static bool
do_command(TestActor *actor)
{
	LWLock	   *lock = &test_shared->locks[actor->lock].lock;
	pg_atomic_uint64 *var = &test_shared->vars[actor->lock];
	const char *result = "done";
	uint64		value;

	switch ((TestCommand) actor->command)
	{
		case CMD_ACQUIRE:
			result = LWLockAcquire(lock, actor->mode) ? "at once" : "waited";
			break;
		case CMD_CONDITIONAL:
			result = LWLockConditionalAcquire(lock, actor->mode) ? "acquired" : "failed";
			break;
		case CMD_ACQUIRE_OR_WAIT:
			result = LWLockAcquireOrWait(lock, actor->mode) ? "acquired" : "waited";
			break;
		case CMD_RELEASE:
			LWLockRelease(lock);
			break;
		case CMD_DISOWN:
			LWLockDisown(lock);
			break;
		case CMD_RELEASE_DISOWNED:
			LWLockReleaseDisowned(lock, actor->mode);
			break;
		case CMD_WAIT_FOR_VAR:
			if (LWLockWaitForVar(lock, var, actor->value, &value))
				result = "free";
			else
			{
				snprintf(actor->result, sizeof(actor->result), "var " UINT64_FORMAT, value);
				return true;
			}
			break;
		case CMD_UPDATE_VAR:
			LWLockUpdateVar(lock, var, actor->value);
			break;
		case CMD_RELEASE_CLEAR_VAR:
			LWLockReleaseClearVar(lock, var, actor->value);
			break;
		case CMD_QUIT:
			return false;
	}
	strlcpy(actor->result, result, sizeof(actor->result));
	return true;
}

Datum
test_lwlock_serve(PG_FUNCTION_ARGS)
{
	TestActor  *actor = find_actor(PG_GETARG_INT32(0));
	TestSlot   *slot = &test_shared->slots[MyProcNumber];

	if (actor->pid != 0)
		elog(ERROR, "there is an actor %d already", PG_GETARG_INT32(0));

	actor->procno = MyProcNumber;
	actor->result[0] = '\0';
	pg_atomic_write_u32(&actor->busy, 0);
	pg_atomic_write_u32(&slot->armed, 0);
	pg_atomic_write_u64(&slot->sleeps, 0);
	pg_write_barrier();			/* pairs with find_present_actor() */
	actor->pid = MyProcPid;

	PG_TRY();
	{
		bool		more = true;

		while (more)
		{
			/* does nothing while a lock is held */
			CHECK_FOR_INTERRUPTS();

			if (pg_atomic_read_membarrier_u32(&actor->busy) == 0)
			{
				pg_usleep(IDLE_NAP_US);
				continue;
			}
			more = do_command(actor);
			pg_atomic_write_membarrier_u32(&actor->busy, 0);
		}
	}
	PG_FINALLY();
	{
		actor->pid = 0;
	}
	PG_END_TRY();
	PG_RETURN_VOID();
}

Datum
test_lwlock_send(PG_FUNCTION_ARGS)
{
	TestActor  *actor = find_present_actor(PG_GETARG_INT32(0));
	int			command = test_find_name(command_names, lengthof(command_names),
										 PG_GETARG_TEXT_PP(1), "command");
	int			mode = test_find_name(mode_names, lengthof(mode_names),
									  PG_GETARG_TEXT_PP(3), "mode");

	if (pg_atomic_read_membarrier_u32(&actor->busy) != 0)
		elog(ERROR, "actor %d is busy", PG_GETARG_INT32(0));
	actor->command = command;
	actor->lock = test_find_lock(PG_GETARG_INT32(2));
	actor->mode = mode;
	actor->value = PG_GETARG_INT64(4);
	actor->result[0] = '\0';
	pg_atomic_write_membarrier_u32(&actor->busy, 1);
	PG_RETURN_VOID();
}

Datum
test_lwlock_stop(PG_FUNCTION_ARGS)
{
	TestActor  *actor = find_present_actor(PG_GETARG_INT32(0));
	int			point = test_find_name(test_point_names, TEST_NUM_POINTS,
									   PG_GETARG_TEXT_PP(1), "point");

	if (!test_stop_points)
		elog(ERROR, "no process can be stopped: test_lwlock.stop_points is off");
	pg_atomic_fetch_or_u32(&test_shared->slots[actor->procno].armed, 1u << point);
	PG_RETURN_VOID();
}

Datum
test_lwlock_go(PG_FUNCTION_ARGS)
{
	TestActor  *actor = find_present_actor(PG_GETARG_INT32(0));

	if (pg_atomic_exchange_u32(&test_shared->slots[actor->procno].stopped, 0) == 0)
		elog(ERROR, "actor %d is not stopped", PG_GETARG_INT32(0));
	PG_RETURN_VOID();
}

static char *
actor_state(TestActor *actor)
{
	TestSlot   *slot = &test_shared->slots[actor->procno];
	PGPROC	   *proc = GetPGProcByNumber(actor->procno);
	uint32		stopped = pg_atomic_read_membarrier_u32(&slot->stopped);

	if (stopped != 0)
		return psprintf("stopped at %s", test_point_names[stopped - 1]);
	if (pg_atomic_read_membarrier_u32(&actor->busy) == 0)
		return "idle";
	if (proc->lwWaiting == LW_WS_WAITING &&
		(proc->wait_event_info & 0xFF000000) == PG_WAIT_LWLOCK)
		return "asleep";
	return "busy";
}

Datum
test_lwlock_actors(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < TEST_NUM_ACTORS; i++)
	{
		TestActor  *actor = find_actor(i);
		TestSlot   *slot = &test_shared->slots[actor->procno];
		Datum		values[5];
		bool		nulls[5] = {0};

		if (actor->pid == 0)
			continue;
		values[0] = Int32GetDatum(i);
		values[1] = Int32GetDatum(actor->pid);
		values[2] = CStringGetTextDatum(actor_state(actor));
		values[3] = CStringGetTextDatum(actor->result);
		values[4] = Int64GetDatum(pg_atomic_read_u64(&slot->sleeps));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
