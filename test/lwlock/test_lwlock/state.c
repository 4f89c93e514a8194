/*-------------------------------------------------------------------------
 *
 * test/lwlock/test_lwlock/state.c
 *	  The word and the queue of a lock, seen and changed from SQL.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "storage/proc.h"

#include "test_lwlock.h"

PG_FUNCTION_INFO_V1(test_lwlock_state);
PG_FUNCTION_INFO_V1(test_lwlock_force);
PG_FUNCTION_INFO_V1(test_lwlock_workers);

/*
 * The queue, which is not locked: the caller sees to it that it does not change.
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
						 proc->lwWaitMode & LW_WAIT_RESERVED ? "!" :
						 proc->lwWaitMode & LW_WAIT_FRONT ? "+" : "");
		cur = proc->lwWaitLink.next;
	}
	return buf.data;
}

Datum
test_lwlock_state(PG_FUNCTION_ARGS)
{
	LWLock	   *lock = &test_shared->locks[test_find_lock(PG_GETARG_INT32(0))].lock;
	uint64		state = pg_atomic_read_u64(LWLockState(lock));
	StringInfoData flags;
	Datum		values[3];


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
	return test_return_row(fcinfo, values);
}

Datum
test_lwlock_force(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"list_locked", "exclusive", "queue"};
	static const uint64 bits[] = {
		LW_FLAG_LOCKED, LW_VAL_EXCLUSIVE, ~(uint64) 0 << LW_NEWEST_SHIFT
	};
	int			number = test_find_lock(PG_GETARG_INT32(0));
	int			what = test_find_name(names, lengthof(names), PG_GETARG_TEXT_PP(1),
									  "part of the word");
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

Datum
test_lwlock_workers(PG_FUNCTION_ARGS)
{
	Datum		values[3];

	test_require_shared();
	values[0] = Int64GetDatum(pg_atomic_read_u64(&test_shared->switches));
	values[1] = Int64GetDatum(pg_atomic_read_u64(&test_shared->looks));
	values[2] = Int64GetDatum(pg_atomic_read_u64(&test_shared->hangs));
	return test_return_row(fcinfo, values);
}
