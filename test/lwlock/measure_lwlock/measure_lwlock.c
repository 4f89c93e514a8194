/*-------------------------------------------------------------------------
 *
 * test/lwlock/measure_lwlock/measure_lwlock.c
 *	  Acquires and releases one LWLock in a loop inside the server.
 *
 * A test-only extension that measures the cost of waiting for one lock, and lets a
 * bench count the instructions for a free lock.  It uses only core's own functions:
 * the same source measures any PostgreSQL 18, patched or not.
 *
 * The hot lock is in its own named tranche, which needs shared_preload_libraries.
 * Counting instructions does not.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/resource.h>

#include "catalog/pg_type_d.h"
#include "port/pg_bitutils.h"
#include "portability/instr_time.h"
#include "storage/condition_variable.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "utils/array.h"
#include "utils/wait_event.h"

#include "test_module.h"

PG_MODULE_MAGIC_EXT(
					.name = "measure_lwlock",
					.version = "1.0"
);

#define TRANCHE_NAME "measure_lwlock"

/*
 * Times are counted in 16 buckets per power of two: few buckets, with an error of
 * a quantile of at most 6 %.  The last bucket begins at 2^40 ns (18 minutes).
 */
#define SUB_BITS		4
#define SUB_BUCKETS		(1 << SUB_BITS)
#define TOP_BIT			40
#define NUM_BUCKETS		((TOP_BIT - SUB_BITS + 1) * SUB_BUCKETS + 1)

typedef struct HotShared
{
	ConditionVariable started;
	slock_t		mutex;

	/* Protected by the mutex: sessions at the start */
	int			participants;
	int			arrived;
	uint64		starts;
	int64		start_ns;		/* of the last start, on the monotonic clock */

	/*
	 * Protected only by the hot lock in exclusive mode, on a cache line that is
	 * not used after the start.
	 */
	char		pad[PG_CACHE_LINE_SIZE];
	int64		turns;
} HotShared;

static HotShared *shared = NULL;
static LWLock *hot_lock = NULL;

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

PG_FUNCTION_INFO_V1(measure_lwlock_hot);
PG_FUNCTION_INFO_V1(measure_lwlock_turns);
PG_FUNCTION_INFO_V1(measure_lwlock_pairs);

static void
request_memory(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();

	RequestAddinShmemSpace(MAXALIGN(sizeof(HotShared)));
	RequestNamedLWLockTranche(TRANCHE_NAME, 1);
}

static void
init_memory(void)
{
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct(TRANCHE_NAME, sizeof(HotShared), &found);
	if (!found)
	{
		memset(shared, 0, sizeof(HotShared));
		ConditionVariableInit(&shared->started);
		SpinLockInit(&shared->mutex);
	}
	hot_lock = &GetNamedLWLockTranche(TRANCHE_NAME)->lock;
	LWLockRelease(AddinShmemInitLock);
}

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;

	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_memory;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = init_memory;
}

static void
need_memory(void)
{
	if (shared == NULL)
		elog(ERROR, "measure_lwlock must be loaded via \"shared_preload_libraries\"");
}

static const char *const mode_names[] = {
	[LW_EXCLUSIVE] = "exclusive",
	[LW_SHARED] = "shared",
};

static inline int64
now_ns(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return INSTR_TIME_GET_NANOSEC(now);
}

/* Be busy without access to shared memory. */
static pg_noinline void
burn(int turns)
{
	for (volatile int i = 0; i < turns; i++)
		 /* the loop is all of it */ ;
}

static inline int
bucket_of(int64 ns)
{
	int			top;

	if (ns < SUB_BUCKETS)
		return Max(ns, 0);
	top = pg_leftmost_one_pos64(ns);
	if (top >= TOP_BIT)
		return NUM_BUCKETS - 1;
	return (top - SUB_BITS + 1) * SUB_BUCKETS +
		(int) ((ns >> (top - SUB_BITS)) & (SUB_BUCKETS - 1));
}

/*
 * Wait for all participants.  Returns the time of the start, which is the same for
 * all.
 */
static int64
wait_for_others(int participants)
{
	uint64		starts;
	int64		start_ns;
	int			expected;
	bool		last;

	SpinLockAcquire(&shared->mutex);
	if (shared->arrived == 0)
		shared->participants = participants;
	expected = shared->participants;
	starts = shared->starts;
	last = expected == participants && ++shared->arrived == expected;
	if (last)
	{
		shared->arrived = 0;
		shared->starts++;
		shared->start_ns = now_ns();
	}
	start_ns = shared->start_ns;
	SpinLockRelease(&shared->mutex);

	if (expected != participants)
		elog(ERROR, "there are already sessions waiting to be %d", expected);
	if (last)
	{
		ConditionVariableBroadcast(&shared->started);
		return start_ns;
	}

	PG_TRY();
	{
		bool		begun = false;

		ConditionVariablePrepareToSleep(&shared->started);
		while (!begun)
		{
			SpinLockAcquire(&shared->mutex);
			begun = shared->starts != starts;
			start_ns = shared->start_ns;
			SpinLockRelease(&shared->mutex);
			if (!begun)
				ConditionVariableSleep(&shared->started, PG_WAIT_EXTENSION);
		}
		ConditionVariableCancelSleep();
	}
	PG_CATCH();
	{
		/* the others must not count on this one */
		SpinLockAcquire(&shared->mutex);
		if (shared->starts == starts)
			shared->arrived--;
		SpinLockRelease(&shared->mutex);
		PG_RE_THROW();
	}
	PG_END_TRY();

	return start_ns;
}

static int64
cpu_us(const struct rusage *usage)
{
	return (int64) (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000 +
		usage->ru_utime.tv_usec + usage->ru_stime.tv_usec;
}

typedef struct HotLoad
{
	int64		max_acquisitions;
	int64		max_ns;
	int32		hold;
	int32		think;
	int32		participants;
	LWLockMode	mode;
} HotLoad;

static HotLoad
load_from_args(FunctionCallInfo fcinfo)
{
	HotLoad		load = {.max_acquisitions = PG_INT64_MAX,.max_ns = PG_INT64_MAX};

	for (int i = 2; i < 6; i++)
		if (PG_ARGISNULL(i))
			elog(ERROR, "hold, think, mode and participants must not be null");
	if (PG_ARGISNULL(0) && PG_ARGISNULL(1))
		elog(ERROR, "either max_acquisitions or duration_ms must be given");
	if (!PG_ARGISNULL(0))
		load.max_acquisitions = PG_GETARG_INT64(0);
	if (!PG_ARGISNULL(1))
		load.max_ns = (int64) PG_GETARG_INT32(1) * 1000000;
	load.hold = PG_GETARG_INT32(2);
	load.think = PG_GETARG_INT32(3);
	load.mode = test_find_name(mode_names, lengthof(mode_names), PG_GETARG_TEXT_PP(4), "mode");
	load.participants = PG_GETARG_INT32(5);
	if (load.max_acquisitions <= 0 || load.max_ns <= 0 || load.participants <= 0)
		elog(ERROR, "max_acquisitions, duration_ms and participants must be greater than zero");
	if (load.hold < 0 || load.think < 0)
		elog(ERROR, "hold and think must not be negative");
	return load;
}

/*
 * measure_lwlock_hot - acquire the hot lock for a number of times or a time
 */
Datum
measure_lwlock_hot(PG_FUNCTION_ARGS)
{
	HotLoad		load = load_from_args(fcinfo);
	int64	   *waits;
	int64		acquisitions = 0;
	int64		slept = 0;
	int64		wait_ns = 0;
	int64		longest_wait_ns = 0;
	int64		start_ns;
	int64		before;
	int64		after;
	struct rusage usage_start;
	struct rusage usage_end;
	Datum	   *elements;
	Datum		values[8];

	need_memory();
	waits = palloc0_array(int64, NUM_BUCKETS);

	start_ns = wait_for_others(load.participants);
	getrusage(RUSAGE_SELF, &usage_start);

	do
	{
		int64		ns;

		before = now_ns();
		if (!LWLockAcquire(hot_lock, load.mode))
			slept++;
		after = now_ns();
		if (load.mode == LW_EXCLUSIVE)
			shared->turns++;
		burn(load.hold);
		LWLockRelease(hot_lock);

		acquisitions++;
		ns = after - before;
		wait_ns += ns;
		longest_wait_ns = Max(longest_wait_ns, ns);
		waits[bucket_of(ns)]++;

		CHECK_FOR_INTERRUPTS();
		burn(load.think);
	} while (acquisitions < load.max_acquisitions && after - start_ns < load.max_ns);

	getrusage(RUSAGE_SELF, &usage_end);
	after = now_ns();

	elements = palloc_array(Datum, NUM_BUCKETS);
	for (int i = 0; i < NUM_BUCKETS; i++)
		elements[i] = Int64GetDatum(waits[i]);

	values[0] = Int64GetDatum(acquisitions);
	values[1] = Int64GetDatum(slept);
	values[2] = Int64GetDatum(after - start_ns);
	values[3] = Int64GetDatum(wait_ns);
	values[4] = Int64GetDatum(longest_wait_ns);
	values[5] = Int64GetDatum(cpu_us(&usage_end) - cpu_us(&usage_start));
	values[6] = Int64GetDatum(usage_end.ru_nvcsw - usage_start.ru_nvcsw);
	values[7] = PointerGetDatum(construct_array_builtin(elements, NUM_BUCKETS, INT8OID));
	return test_return_row(fcinfo, values);
}

/*
 * measure_lwlock_turns - how often the hot lock has been held exclusively
 */
Datum
measure_lwlock_turns(PG_FUNCTION_ARGS)
{
	int64		turns;

	need_memory();
	LWLockAcquire(hot_lock, LW_SHARED);
	turns = shared->turns;
	LWLockRelease(hot_lock);

	PG_RETURN_INT64(turns);
}

/*
 * measure_lwlock_pairs - only acquire and release a lock of our own
 *
 * "bench/run instructions" counts instructions inside this function, by its name.
 */
Datum
measure_lwlock_pairs(PG_FUNCTION_ARGS)
{
	int64		pairs = PG_GETARG_INT64(0);
	LWLockMode	mode = test_find_name(mode_names, lengthof(mode_names),
									  PG_GETARG_TEXT_PP(1), "mode");
	static LWLock lock;

	if (pairs < 0)
		elog(ERROR, "pairs must not be negative");

	/* in our own memory, where only the tranche's number matters */
	LWLockInitialize(&lock, LWTRANCHE_BUFFER_CONTENT);
	for (int64 i = 0; i < pairs; i++)
	{
		LWLockAcquire(&lock, mode);
		LWLockRelease(&lock);
	}

	PG_RETURN_VOID();
}
