/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/test_sweep_probation.c
 *	  What slots, places and leases of "clock2q" say of each other in a running
 *	  server.
 *
 * Processes write them without a lock.  So they agree only while each process
 * waits for its client.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "property.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/shmem.h"
#include "sweep/sweep.h"

PG_MODULE_MAGIC_EXT(
					.name = "test_sweep_probation",
					.version = "1.0"
);

PG_FUNCTION_INFO_V1(test_sweep_probation);

/* The columns of test_sweep_probation() */
typedef struct Found
{
	int64		processes;		/* that allocate */
	int64		batch;			/* slots of a lease at most */
	int64		fill;			/* the two hands: tickets */
	int64		judge;
	int64		filled;			/* slots with a buffer */
	int64		placed;			/* buffers with a place */
	int64		nowhere;		/* of these: the slot has another number, or none */
	int64		elsewhere;		/* slots with a buffer that has another place, or none */
	int64		twice;			/* slots with a buffer of another slot */
	int64		passed;			/* slots with a buffer that no process will
								 * judge before the next lap */
	int64		leases;			/* of these processes: with slots left */
	int64		size;			/* slots of the largest, when it was taken */
	int64		to_fill;		/* slots left */
	int64		lapped;			/* of these, with a buffer: others were here */
	int64		to_judge;		/* slots left */
	int64		waiting;		/* of these, with a buffer */
	int64		ghosts;			/* hash of all of them */
} Found;

static uint32
buffer_in(const PgSweepClock2q *c, uint64 ticket)
{
	uint32		entry = pg_atomic_read_u32(&c->slot[ticket % c->num_buffers]);

	return entry == PGSWEEP_C2Q_NONE ? entry : entry & ~PGSWEEP_C2Q_ENDED;
}

/*
 * Add what a process has leased, and note the slots that it will judge.
 */
static void
look_at_lease(const PgSweepClock2q *c, const PgSweepC2qLease *lease, bool wanted,
			  bool *leased, Found *found)
{
	for (uint32 i = 0; i < lease->judge_left; i++)
	{
		leased[(lease->judge_slot + i) % c->num_buffers] = true;
		found->waiting += wanted && buffer_in(c, lease->judge_slot + i) != PGSWEEP_C2Q_NONE;
	}
	if (!wanted)
		return;
	for (uint32 i = 0; i < lease->fill_left; i++)
		found->lapped += buffer_in(c, lease->fill_slot + i) != PGSWEEP_C2Q_NONE;
	found->leases += lease->fill_left + lease->judge_left > 0;
	found->size = Max(found->size, lease->size);
	found->to_fill += lease->fill_left;
	found->to_judge += lease->judge_left;
}

/*
 * Slots by ticket, from the judging hand on.  Those that are ahead of it will
 * be judged; behind it, only leased ones will.
 */
static void
look_at_slots(const PgSweepClock2q *c, const bool *leased, Found *found)
{
	bool	   *in_slot = palloc0(c->num_buffers * sizeof(bool));

	for (uint64 ticket = found->judge; ticket < (uint64) found->judge + c->num_buffers; ticket++)
	{
		uint32		buffer = buffer_in(c, ticket);

		if (buffer == PGSWEEP_C2Q_NONE)
			continue;
		if (buffer >= c->num_buffers)
			elog(ERROR, "slot %u has %u", (uint32) (ticket % c->num_buffers), buffer);
		found->filled++;
		found->elsewhere += pg_atomic_read_u32(&c->place[buffer]) != ticket % c->num_buffers;
		found->twice += in_slot[buffer];
		found->passed += ticket >= (uint64) found->fill && !leased[ticket % c->num_buffers];
		in_slot[buffer] = true;
	}
	for (uint32 buffer = 0; buffer < c->num_buffers; buffer++)
	{
		bool		placed = pg_atomic_read_u32(&c->place[buffer]) != PGSWEEP_C2Q_NONE;

		found->placed += placed;
		found->nowhere += placed && !pgsweep_c2q_passes(c, buffer);
	}
}

/*
 * test_sweep_probation(size, pid): size is that of "pg_sweep" in
 * pg_shmem_allocations, pid a process whose lease is looked at, 0 for all.
 * Allocates no buffer.
 */
Datum
test_sweep_probation(PG_FUNCTION_ARGS)
{
	int32		pid = PG_GETARG_INT32(1);
	PGPROC	   *proc = pid == 0 ? NULL : BackendPidGetProc(pid);
	Found		found = {0};
	bool		there;
	bool	   *leased;
	PgSweepPoolShared *pool = ShmemInitStruct("pg_sweep", PG_GETARG_INT64(0), &there);
	PgSweepClock2q *c = &pool->whole_probation.c2q;

	if (!there)
		elog(ERROR, "pg_sweep is not preloaded");
	if (pid != 0 && proc == NULL)
		elog(ERROR, "there is no process %d", pid);

	leased = palloc0(c->num_buffers * sizeof(bool));
	found.processes = pool->nbackends;
	found.batch = pg_atomic_read_u32(&pool->c2q_batch);
	found.fill = pgsweep_read_u64(&c->fill);
	found.judge = pgsweep_read_u64(&c->judge);
	for (int i = 0; i < MaxBackends + NUM_AUXILIARY_PROCS; i++)
		if (pool->slots[i].slot.c2q.active != 0)
			look_at_lease(c, &pool->slots[i].slot.c2q.lease,
						  proc == NULL || GetNumberFromPGProc(proc) == i, leased, &found);
	look_at_slots(c, leased, &found);
	found.ghosts = (int64) hash_bytes_extended((const unsigned char *) c->set,
											   c->num_sets * sizeof(PgSweepC2qSet), 0);
	return result_row(fcinfo, NULL, 0, false, &found, sizeof(found));
}
