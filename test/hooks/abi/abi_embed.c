/*-------------------------------------------------------------------------
 *
 * test/hooks/abi/abi_embed.c
 *	  A preloaded extension that embeds LWLocks at 4-byte and at 8-byte
 *	  boundaries, in shared memory and in a DSM segment, and that has
 *	  statistics of its own, whose entries embed one, too.
 *
 * t/hooks/abi.pl compiles it with the headers of an unpatched server and loads it
 * into a patched one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/dsm_registry.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
#include "utils/pgstat_internal.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(abi_embed_work);
PG_FUNCTION_INFO_V1(abi_embed_worked);
PG_FUNCTION_INFO_V1(abi_embed_report);
PG_FUNCTION_INFO_V1(abi_embed_reported);

#define GUARD	0xA5A5A5A5

/*
 * The data that a lock protects: two halves that are written one after the other,
 * with time between them.  A process that gets in beside a writer sees a difference.
 */
typedef struct Counted
{
	int64		first;
	int64		second;
	pg_atomic_uint64 variable;	/* of LWLockUpdateVar(): the last value of first */
} Counted;

typedef struct Place
{
	uint32		guard1;
	LWLock		at4;
	uint32		guard2;
	LWLock		at8;
	uint32		guard3[2];
	Counted		counted[2];
} Place;

StaticAssertDecl(offsetof(Place, at4) % 8 == 4, "at4 is not where it should be");
StaticAssertDecl(offsetof(Place, at8) % 8 == 0, "at8 is not where it should be");

typedef struct EmbedStats
{
	PgStat_Counter pending;		/* by pending entries */
	PgStat_Counter direct;		/* under the entry's lock */
} EmbedStats;

typedef struct PgStatShared_Embed
{
	PgStatShared_Common header;
	EmbedStats	stats;
} PgStatShared_Embed;

typedef struct PgStatShared_EmbedFixed
{
	LWLock		lock;
	uint32		changecount;
	PgStat_Counter count;
} PgStatShared_EmbedFixed;

#define KIND_VARIABLE	31
#define KIND_FIXED		32

static bool flush_pending(PgStat_EntryRef *entry_ref, bool nowait);
static void init_fixed(void *stats);
static void reset_fixed(TimestampTz ts);
static void snapshot_fixed(void);

static const PgStat_KindInfo variable_kind = {
	.name = "abi_embed",
	.fixed_amount = false,
	.write_to_file = true,
	.accessed_across_databases = true,
	.shared_size = sizeof(PgStatShared_Embed),
	.shared_data_off = offsetof(PgStatShared_Embed, stats),
	.shared_data_len = sizeof(EmbedStats),
	.pending_size = sizeof(PgStat_Counter),
	.flush_pending_cb = flush_pending,
};

static const PgStat_KindInfo fixed_kind = {
	.name = "abi_embed_fixed",
	.fixed_amount = true,
	.write_to_file = true,
	.shared_size = sizeof(PgStatShared_EmbedFixed),
	.shared_data_off = offsetof(PgStatShared_EmbedFixed, count),
	.shared_data_len = sizeof(PgStat_Counter),
	.init_shmem_cb = init_fixed,
	.reset_all_cb = reset_fixed,
	.snapshot_cb = snapshot_fixed,
};

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;
static Place *in_shmem = NULL;

/* ---- statistics ---- */

static bool
flush_pending(PgStat_EntryRef *entry_ref, bool nowait)
{
	PgStatShared_Embed *shared = (PgStatShared_Embed *) entry_ref->shared_stats;

	if (!pgstat_lock_entry(entry_ref, nowait))
		return false;
	shared->stats.pending += *(PgStat_Counter *) entry_ref->pending;
	pgstat_unlock_entry(entry_ref);
	return true;
}

static void
init_fixed(void *stats)
{
	LWLockInitialize(&((PgStatShared_EmbedFixed *) stats)->lock, LWTRANCHE_PGSTATS_DATA);
}

static void
reset_fixed(TimestampTz ts)
{
	PgStatShared_EmbedFixed *shared = pgstat_get_custom_shmem_data(KIND_FIXED);

	LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
	shared->count = 0;
	LWLockRelease(&shared->lock);
}

static void
snapshot_fixed(void)
{
	PgStatShared_EmbedFixed *shared = pgstat_get_custom_shmem_data(KIND_FIXED);
	PgStat_Counter *snapshot = pgstat_get_custom_snapshot_data(KIND_FIXED);

	LWLockAcquire(&shared->lock, LW_SHARED);
	*snapshot = shared->count;
	LWLockRelease(&shared->lock);
}

/*
 * abi_embed_report(entry, times): count in all three ways.  Pending counts are
 * flushed at the end of the transaction.
 */
Datum
abi_embed_report(PG_FUNCTION_ARGS)
{
	int64		entry = PG_GETARG_INT32(0);
	int32		times = PG_GETARG_INT32(1);
	PgStatShared_EmbedFixed *fixed = pgstat_get_custom_shmem_data(KIND_FIXED);

	for (int32 i = 0; i < times; i++)
	{
		PgStat_EntryRef *ref = pgstat_prep_pending_entry(KIND_VARIABLE, InvalidOid, entry, NULL);

		(*(PgStat_Counter *) ref->pending)++;

		ref = pgstat_get_entry_ref_locked(KIND_VARIABLE, InvalidOid, entry, false);
		((PgStatShared_Embed *) ref->shared_stats)->stats.direct++;
		pgstat_unlock_entry(ref);

		LWLockAcquire(&fixed->lock, LW_EXCLUSIVE);
		fixed->count++;
		LWLockRelease(&fixed->lock);
		CHECK_FOR_INTERRUPTS();
	}
	pgstat_force_next_flush();
	PG_RETURN_VOID();
}

/* abi_embed_reported(entry) returns text: "pending direct fixed" */
Datum
abi_embed_reported(PG_FUNCTION_ARGS)
{
	int64		entry = PG_GETARG_INT32(0);
	EmbedStats *stats;
	PgStat_Counter *fixed;

	pgstat_clear_snapshot();
	stats = (EmbedStats *) pgstat_fetch_entry(KIND_VARIABLE, InvalidOid, entry);
	pgstat_snapshot_fixed(KIND_FIXED);
	fixed = pgstat_get_custom_snapshot_data(KIND_FIXED);
	if (stats == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(psprintf(INT64_FORMAT " " INT64_FORMAT " " INT64_FORMAT,
											  stats->pending, stats->direct, *fixed)));
}

/* ---- locks ---- */

static void
init_place(void *address)
{
	Place	   *place = address;
	int			tranche = LWLockNewTrancheId();

	memset(place, 0, sizeof(Place));
	place->guard1 = place->guard2 = place->guard3[0] = place->guard3[1] = GUARD;
	LWLockInitialize(&place->at4, tranche);
	LWLockInitialize(&place->at8, tranche);
	for (int i = 0; i < 2; i++)
		pg_atomic_init_u64(&place->counted[i].variable, 0);
}

static void
embed_shmem_request(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	RequestAddinShmemSpace(sizeof(Place));
}

static void
embed_shmem_startup(void)
{
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	in_shmem = ShmemInitStruct("abi_embed", sizeof(Place), &found);
	if (!found)
		init_place(in_shmem);
	LWLockRelease(AddinShmemInitLock);
}

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	pgstat_register_kind(KIND_VARIABLE, &variable_kind);
	pgstat_register_kind(KIND_FIXED, &fixed_kind);
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = embed_shmem_request;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = embed_shmem_startup;
}

static Place *
attach(const char *where)
{
	Place	   *place;
	bool		found;

	if (strcmp(where, "shmem") == 0)
		place = in_shmem;
	else
		place = GetNamedDSMSegment("abi_embed", sizeof(Place), init_place, &found);
	if (place == NULL)
		elog(ERROR, "abi_embed is not preloaded");
	LWLockRegisterTranche(place->at4.tranche, "abi_embed");
	if ((uintptr_t) &place->at4 % 8 != 4 || (uintptr_t) &place->at8 % 8 != 0)
		elog(ERROR, "the locks are not at the expected boundaries: %p", place);
	if (place->guard1 != GUARD || place->guard2 != GUARD ||
		place->guard3[0] != GUARD || place->guard3[1] != GUARD)
		elog(ERROR, "a lock has run over its neighbours: %x %x %x %x",
			 place->guard1, place->guard2, place->guard3[0], place->guard3[1]);
	return place;
}

static void
check(LWLock *lock, volatile Counted *counted)
{
	int64		first = counted->first;
	int64		second = counted->second;

	if (first != second)
		elog(ERROR, "two processes hold the lock at %p: " INT64_FORMAT " and " INT64_FORMAT,
			 lock, first, second);
}

/* One more, with the lock held exclusively */
static void
count_up(LWLock *lock, volatile Counted *counted)
{
	check(lock, counted);
	counted->first++;
	for (int i = 0; i < 20; i++)
		pg_spin_delay();
	counted->second++;
}

/*
 * Use the lock in one of eight ways.  Returns true if the count went up, false if it
 * was only read.
 */
static bool
work_once(LWLock *lock, Counted *counted, int way)
{
	uint64		seen;

	switch (way)
	{
		case 0:
			while (!LWLockConditionalAcquire(lock, LW_EXCLUSIVE))
				CHECK_FOR_INTERRUPTS();
			count_up(lock, counted);
			LWLockRelease(lock);
			return true;
		case 1:
		case 2:
			LWLockAcquire(lock, LW_SHARED);
			if (!LWLockHeldByMe(lock))
				elog(ERROR, "the lock that was acquired is not held");
			check(lock, counted);
			LWLockRelease(lock);
			return false;
		case 3:
			/* until it was free at some moment, or the variable has changed */
			seen = pg_atomic_read_u64(&counted->variable);
			if (!LWLockWaitForVar(lock, &counted->variable, seen, &seen) &&
				seen > pg_atomic_read_u64(&counted->variable))
				elog(ERROR, "the variable goes backwards");
			return false;
		case 4:
			while (!LWLockAcquireOrWait(lock, LW_EXCLUSIVE))
				CHECK_FOR_INTERRUPTS();
			count_up(lock, counted);
			LWLockRelease(lock);
			return true;
		case 5:
			LWLockAcquire(lock, LW_EXCLUSIVE);
			count_up(lock, counted);
			LWLockUpdateVar(lock, &counted->variable, counted->first);
			LWLockReleaseClearVar(lock, &counted->variable, counted->first);
			return true;
		default:
			LWLockAcquire(lock, LW_EXCLUSIVE);
			if (!LWLockHeldByMeInMode(lock, LW_EXCLUSIVE))
				elog(ERROR, "the lock that was acquired is not held");
			count_up(lock, counted);
			LWLockRelease(lock);
			return true;
	}
}

/*
 * abi_embed_work(where, times): count up "times" times under each of the two
 * locks in "shmem" or "dsm", and read about as often.
 */
Datum
abi_embed_work(PG_FUNCTION_ARGS)
{
	Place	   *place = attach(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	int32		times = PG_GETARG_INT32(1);
	int32		done[2] = {0, 0};

	for (int32 i = MyProcPid; done[0] < times || done[1] < times; i++)
	{
		for (int at = 0; at < 2; at++)
		{
			if (done[at] < times &&
				work_once(at == 0 ? &place->at4 : &place->at8, &place->counted[at], i % 8))
				done[at]++;
		}
		CHECK_FOR_INTERRUPTS();
	}
	PG_RETURN_VOID();
}

/* abi_embed_worked(where) returns text: the counts of both locks */
Datum
abi_embed_worked(PG_FUNCTION_ARGS)
{
	Place	   *place = attach(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	int64		count[2];

	for (int at = 0; at < 2; at++)
	{
		LWLock	   *lock = at == 0 ? &place->at4 : &place->at8;

		LWLockAcquire(lock, LW_SHARED);
		check(lock, &place->counted[at]);
		count[at] = place->counted[at].first;
		LWLockRelease(lock);
	}
	PG_RETURN_TEXT_P(cstring_to_text(psprintf(INT64_FORMAT " " INT64_FORMAT, count[0], count[1])));
}
