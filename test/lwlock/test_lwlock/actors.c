/*-------------------------------------------------------------------------
 *
 * actors.c
 *	  Sessions that do what others tell them, and SQL functions.
 *
 * An actor is a session in test_lwlock_serve(), where it does one command after
 * the other, with its LWLocks held in between.  So a test script in one session
 * moves several processes step by step, and looks at what came of it.
 *
 * IDENTIFICATION
 *	  test/lwlock/test_lwlock/actors.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/wait_event.h"

#include "test_lwlock.h"

/* Time between two looks of an actor for something to do */
#define IDLE_NAP_US		200

PG_FUNCTION_INFO_V1(test_lwlock_serve);
PG_FUNCTION_INFO_V1(test_lwlock_send);
PG_FUNCTION_INFO_V1(test_lwlock_stop);
PG_FUNCTION_INFO_V1(test_lwlock_go);
PG_FUNCTION_INFO_V1(test_lwlock_actors);
PG_FUNCTION_INFO_V1(test_lwlock_state);
PG_FUNCTION_INFO_V1(test_lwlock_force);
PG_FUNCTION_INFO_V1(test_lwlock_workers);

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

/*
 * The number of a name in a table; what it names is for the message.
 */
static int
find_name(const char *const *names, int n, text *name_text, const char *what)
{
	char	   *name = text_to_cstring(name_text);

	for (int i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	elog(ERROR, "there is no %s \"%s\"", what, name);
}

static void
require_shared(void)
{
	if (test_shared == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("test_lwlock must be loaded via \"shared_preload_libraries\"")));
}

static TestActor *
find_actor(int32 number)
{
	require_shared();
	if (number < 0 || number >= TEST_NUM_ACTORS)
		elog(ERROR, "actors are 0 to %d", TEST_NUM_ACTORS - 1);
	return &test_shared->actors[number];
}

static TestActor *
find_present_actor(int32 number)
{
	TestActor  *actor = find_actor(number);

	if (actor->pid == 0)
		elog(ERROR, "actor %d is not there", number);
	return actor;
}

static int
find_lock(int32 number)
{
	require_shared();
	if (number < 0 || number >= TEST_NUM_LOCKS)
		elog(ERROR, "locks are 0 to %d", TEST_NUM_LOCKS - 1);
	return number;
}

static void
note_acquisition(TestActor *actor)
{
	actor->acquired = pg_atomic_add_fetch_u64(&test_shared->acquisitions, 1);
}

/*
 * Returns false when there is to be no next one.
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
			note_acquisition(actor);
			break;
		case CMD_CONDITIONAL:
			if (LWLockConditionalAcquire(lock, actor->mode))
			{
				note_acquisition(actor);
				result = "acquired";
			}
			else
				result = "failed";
			break;
		case CMD_ACQUIRE_OR_WAIT:
			if (LWLockAcquireOrWait(lock, actor->mode))
			{
				note_acquisition(actor);
				result = "acquired";
			}
			else
				result = "waited";
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

/*
 * test_lwlock_serve(actor)
 */
Datum
test_lwlock_serve(PG_FUNCTION_ARGS)
{
	TestActor  *actor = find_actor(PG_GETARG_INT32(0));
	TestSlot   *slot = &test_shared->slots[MyProcNumber];

	if (actor->pid != 0)
		elog(ERROR, "actor %d is there already", PG_GETARG_INT32(0));

	actor->procno = MyProcNumber;
	actor->acquired = 0;
	actor->result[0] = '\0';
	pg_atomic_write_u32(&actor->busy, 0);
	pg_atomic_write_u32(&slot->armed, 0);
	pg_atomic_write_u64(&slot->sleeps, 0);
	pg_atomic_write_u64(&slot->queueings, 0);
	pg_write_barrier();			/* who sees the pid sees the rest; the reading
								 * side is SQL functions, later ones */
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

/*
 * test_lwlock_send(actor, command, lock, mode, value)
 */
Datum
test_lwlock_send(PG_FUNCTION_ARGS)
{
	TestActor  *actor = find_present_actor(PG_GETARG_INT32(0));
	int			command = find_name(command_names, lengthof(command_names),
									PG_GETARG_TEXT_PP(1), "command");
	int			mode = find_name(mode_names, lengthof(mode_names),
								 PG_GETARG_TEXT_PP(3), "mode");

	if (pg_atomic_read_membarrier_u32(&actor->busy) != 0)
		elog(ERROR, "actor %d is busy", PG_GETARG_INT32(0));
	actor->command = command;
	actor->lock = find_lock(PG_GETARG_INT32(2));
	actor->mode = mode;
	actor->value = PG_GETARG_INT64(4);
	actor->result[0] = '\0';
	pg_atomic_write_membarrier_u32(&actor->busy, 1);
	PG_RETURN_VOID();
}

/*
 * test_lwlock_stop(actor, point)
 */
Datum
test_lwlock_stop(PG_FUNCTION_ARGS)
{
	TestActor  *actor = find_present_actor(PG_GETARG_INT32(0));
	int			point = find_name(test_point_names, TEST_NUM_POINTS,
								  PG_GETARG_TEXT_PP(1), "point");

	if (!test_stop_points)
		elog(ERROR, "nobody can be stopped: test_lwlock.stop_points is off");
	pg_atomic_fetch_or_u32(&test_shared->slots[actor->procno].armed, 1u << point);
	PG_RETURN_VOID();
}

/*
 * test_lwlock_go(actor)
 */
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

/*
 * test_lwlock_actors(): those who are there
 */
Datum
test_lwlock_actors(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < TEST_NUM_ACTORS; i++)
	{
		TestActor  *actor = find_actor(i);
		TestSlot   *slot = &test_shared->slots[actor->procno];
		Datum		values[7];
		bool		nulls[7] = {0};

		if (actor->pid == 0)
			continue;
		values[0] = Int32GetDatum(i);
		values[1] = Int32GetDatum(actor->pid);
		values[2] = CStringGetTextDatum(actor_state(actor));
		values[3] = CStringGetTextDatum(actor->result);
		values[4] = Int64GetDatum(actor->acquired);
		values[5] = Int64GetDatum(pg_atomic_read_u64(&slot->sleeps));
		values[6] = Int64GetDatum(pg_atomic_read_u64(&slot->queueings));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/*
 * The queue as it is, without locking it: whoever looks has seen to it that
 * nobody moves.
 */
static char *
list_waiters(uint64 state)
{
	StringInfoData buf;
	ProcNumber	cur = LWLockNewest(state);

	initStringInfo(&buf);
	for (int n = 0; cur != INVALID_PROC_NUMBER; n++)
	{
		PGPROC	   *proc;
		int			actor;

		if (cur < 0 || cur >= (ProcNumber) test_shared->num_slots || n > TEST_NUM_ACTORS)
		{
			appendStringInfoString(&buf, " broken");
			break;
		}
		proc = GetPGProcByNumber(cur);
		for (actor = 0; actor < TEST_NUM_ACTORS; actor++)
			if (test_shared->actors[actor].pid != 0 && test_shared->actors[actor].procno == cur)
				break;
		appendStringInfo(&buf, "%s%d%c%s", n > 0 ? " " : "", actor,
						 "esw"[Min(LW_WAIT_MODE(proc->lwWaitMode), LW_WAIT_UNTIL_FREE)],
						 proc->lwWaitMode & LW_WAIT_FRONT ? "+" : "");
		cur = proc->lwWaitLink.next;
	}
	return buf.data;
}

/*
 * test_lwlock_state(lock)
 */
Datum
test_lwlock_state(PG_FUNCTION_ARGS)
{
	LWLock	   *lock = &test_shared->locks[find_lock(PG_GETARG_INT32(0))].lock;
	uint64		state = pg_atomic_read_u64(LWLockState(lock));
	StringInfoData flags;
	TupleDesc	tupdesc;
	Datum		values[3];
	bool		nulls[3] = {0};

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	initStringInfo(&flags);
	if (state & LW_FLAG_LOCKED)
		appendStringInfoString(&flags, " list_locked");
	if (state & LW_FLAG_RELEASE_OK)
		appendStringInfoString(&flags, " release_ok");
	if (state & LW_FLAG_WAKE_WANTED)
		appendStringInfoString(&flags, " wake_wanted");
	if (state & LW_FLAG_RESERVED)
		appendStringInfoString(&flags, " reserved");

	if (state & LW_VAL_EXCLUSIVE)
		values[0] = CStringGetTextDatum("exclusive");
	else if (state & LW_SHARED_MASK)
		values[0] = CStringGetTextDatum(psprintf("shared " UINT64_FORMAT, state & LW_SHARED_MASK));
	else
		values[0] = CStringGetTextDatum("free");
	values[1] = CStringGetTextDatum(flags.len > 0 ? flags.data + 1 : "");
	values[2] = CStringGetTextDatum(list_waiters(state));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, nulls)));
}

/*
 * test_lwlock_force(lock, what, value)
 */
Datum
test_lwlock_force(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"list_locked", "exclusive", "queue"};
	static const uint64 bits[] = {
		LW_FLAG_LOCKED, LW_VAL_EXCLUSIVE, ~(uint64) 0 << LW_NEWEST_SHIFT
	};
	int			number = find_lock(PG_GETARG_INT32(0));
	int			what = find_name(names, lengthof(names), PG_GETARG_TEXT_PP(1), "part of the word");
	pg_atomic_uint64 *word = LWLockState(&test_shared->locks[number].lock);

	if (PG_GETARG_BOOL(2))
		pg_atomic_fetch_or_u64(word, what == 2 ? test_shared->lost[number] : bits[what]);
	else
	{
		uint64		before = pg_atomic_fetch_and_u64(word, ~bits[what]);

		if (what == 2)
			test_shared->lost[number] = before & bits[what];
	}
	PG_RETURN_VOID();
}

/*
 * test_lwlock_workers()
 */
Datum
test_lwlock_workers(PG_FUNCTION_ARGS)
{
	TupleDesc	tupdesc;
	Datum		values[3];
	bool		nulls[3] = {0};

	require_shared();
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	values[0] = Int64GetDatum(pg_atomic_read_u64(&test_shared->switches));
	values[1] = Int64GetDatum(pg_atomic_read_u64(&test_shared->looks));
	values[2] = Int64GetDatum(pg_atomic_read_u64(&test_shared->hangs));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, nulls)));
}
