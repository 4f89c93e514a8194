/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/test_sweep_shared.c
 *	  pg_sweep's hand and leases under true concurrency.
 *
 * Several backends take leases of one partition in dynamic shared memory, at
 * once and as fast as they can.  Each ticket used sets a bit, which reveals one
 * that is used twice.  At the end, the tickets used, dropped and left over must
 * add up to those that the hand gave out.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "storage/dsm_registry.h"
#include "storage/latch.h"
#include "sweep/batch.h"
#include "sweep/lease.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "property.h"

PG_MODULE_MAGIC_EXT(
					.name = "test_sweep_shared",
					.version = "1.0"
);

#define MAX_TICKETS		(1 << 22)
#define MAX_WAIT_MS		60000

/* Room beyond the end for the leases that are being taken when it is reached */
#define SPARE_TICKETS	(64 * PGSWEEP_BATCH_MAX)

typedef struct SharedTest
{
	PgSweepPartition part;
	pg_atomic_uint64 active;
	pg_atomic_uint32 batch;
	pg_atomic_uint32 arrived;
	uint32		processes;
	pg_atomic_uint32 used[(MAX_TICKETS + SPARE_TICKETS) / 32];
} SharedTest;

/* What one process found; the columns of test_sweep_shared_run() */
typedef struct RunCounts
{
	int64		looks;			/* tickets used */
	int64		dropped;		/* tickets that expired */
	int64		left;			/* tickets left at the end */
	int64		leases;
	int64		foreign;		/* leases taken after another process's */
	int64		late_looks;		/* the documented race */
	int64		duplicates;		/* tickets that had been used already */
	int64		strayed;		/* looks at another buffer than the ticket's */
	int64		backwards;		/* positions before one seen earlier */
} RunCounts;

PG_FUNCTION_INFO_V1(test_sweep_shared_begin);
PG_FUNCTION_INFO_V1(test_sweep_shared_run);
PG_FUNCTION_INFO_V1(test_sweep_shared_end);

static SharedTest *
attach(void)
{
	bool		found;

	/* room to align the hand's cache line, as shared memory of the server is */
	void	   *address = GetNamedDSMSegment("test_sweep",
											 sizeof(SharedTest) + PG_CACHE_LINE_SIZE,
											 NULL, &found);

	return (SharedTest *) TYPEALIGN(PG_CACHE_LINE_SIZE, address);
}

/* Mutant: a hand that is read and written instead of added to */
static void
take_not_atomic(PgSweepLease *lease, PgSweepPartition *part, uint64 active, uint32 batch)
{
	uint64		ticket = pg_atomic_read_u64(&part->hand.ticket);

	pg_atomic_write_u64(&part->hand.ticket, ticket + batch);
	lease->part = part;
	lease->active = active;
	lease->end_ticket = ticket + batch;
	lease->safe_epoch = ((ticket + part->num_buffers) >> part->epoch_shift) - 1;
	lease->next_buffer = part->first_buffer + ticket % part->num_buffers;
	lease->end_buffer = part->first_buffer + part->num_buffers;
	lease->left = lease->size = batch;
	pg_atomic_write_u64(&part->epoch, (ticket + batch - 1) >> part->epoch_shift);
}

/* Mutant: position and pass from two reads */
static void
position_two_reads(PgSweepPartition *part, int *buffer, uint64 *passes)
{
	*passes = pgsweep_hand_read(part) / part->num_buffers;
	pg_read_barrier();			/* keeps the two reads two; has no pair */
	*buffer = (int) (part->first_buffer + pgsweep_hand_read(part) % part->num_buffers);
}

/*
 * test_sweep_shared_begin(buffers, processes): no process may be running
 */
Datum
test_sweep_shared_begin(PG_FUNCTION_ARGS)
{
	SharedTest *test = attach();

	memset(test, 0, sizeof(SharedTest));
	pgsweep_partition_init(&test->part, 0, PG_GETARG_INT32(0));
	test->processes = PG_GETARG_INT32(1);
	pg_atomic_init_u64(&test->active, 1);
	pg_atomic_init_u32(&test->batch,
					   pgsweep_batch_size_for(64, PG_GETARG_INT32(0), test->processes));
	pg_atomic_init_u32(&test->arrived, 0);
	PG_RETURN_VOID();
}

static void
wait_for_others(SharedTest *test)
{
	TimestampTz begin = GetCurrentTimestamp();

	pg_atomic_fetch_add_u32(&test->arrived, 1);
	while (pg_atomic_read_u32(&test->arrived) < test->processes)
	{
		if (TimestampDifferenceExceeds(begin, GetCurrentTimestamp(), MAX_WAIT_MS))
			ereport(ERROR,
					(errmsg("only %u of %u processes have come",
							pg_atomic_read_u32(&test->arrived), test->processes)));
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 1, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Use one ticket, and see whether another process has.
 */
static void
use_ticket(SharedTest *test, PgSweepLease *lease, RunCounts *counts)
{
	uint64		ticket = pgsweep_lease_next_ticket(lease);
	uint32		bit = 1u << (ticket % 32);
	int			buffer = pgsweep_lease_tick(lease);

	counts->looks++;
	if ((uint64) buffer != ticket % test->part.num_buffers)
		counts->strayed++;
	if (pgsweep_hand_read(&test->part) > ticket + test->part.num_buffers)
		counts->late_looks++;
	if (pg_atomic_fetch_or_u32(&test->used[ticket / 32], bit) & bit)
		counts->duplicates++;
}

/*
 * test_sweep_shared_run(tickets, seed, code): take leases, together with the
 * other processes, until the hand has given out this number of tickets
 */
Datum
test_sweep_shared_run(PG_FUNCTION_ARGS)
{
	uint64		tickets = PG_GETARG_INT64(0);
	char	   *code = text_to_cstring(PG_GETARG_TEXT_PP(2));
	bool		bad_take = strcmp(code, "hand not atomic") == 0;
	bool		bad_position = strcmp(code, "position in two reads") == 0;
	SharedTest *test = attach();
	PgSweepLease lease = {0};
	RunCounts	counts = {0};
	pg_prng_state prng;
	uint64		after = 0;
	uint64		seen = 0;

	if (!bad_take && !bad_position && strcmp(code, "pg_sweep") != 0)
		elog(ERROR, "there is no code \"%s\" to test", code);
	if (tickets > MAX_TICKETS || test->processes > 64)
		elog(ERROR, "at most %d tickets and 64 processes", MAX_TICKETS);

	pg_prng_seed(&prng, (uint64) PG_GETARG_INT64(1));
	wait_for_others(test);

	for (;;)
	{
		uint64		active = pg_atomic_read_u64(&test->active);
		uint32		batch = pg_atomic_read_u32(&test->batch);
		int			buffer;
		uint64		passes;
		uint64		position;

		if (!pgsweep_lease_good(&lease, &test->part, active, batch))
			counts.dropped += pgsweep_lease_expire(&lease, active, batch);
		if (lease.left == 0)
		{
			if (pgsweep_hand_read(&test->part) >= tickets)
				break;
			if (bad_take)
				take_not_atomic(&lease, &test->part, active, batch);
			else
				pgsweep_lease_take(&lease, &test->part, active, batch);
			counts.leases++;
			if (pgsweep_lease_next_ticket(&lease) != after)
				counts.foreign++;
			after = lease.end_ticket;
		}
		use_ticket(test, &lease, &counts);

		if (bad_position)
			position_two_reads(&test->part, &buffer, &passes);
		else
			pgsweep_hand_position(&test->part, &buffer, &passes);
		position = passes * test->part.num_buffers + buffer;
		if (position < seen)
			counts.backwards++;
		seen = position;

		/* now and then: a switch, a nap of some laps, the end of a lease */
		if (pg_prng_uint64_range(&prng, 0, 4095) == 0)
		{
			CHECK_FOR_INTERRUPTS();
			if (pg_prng_bool(&prng))
				pg_atomic_fetch_add_u64(&test->active, 1);
			else
				pg_usleep(200);
		}
	}
	counts.left = lease.left;
	return result_row(fcinfo, NULL, 0, false, &counts, sizeof(counts));
}

/*
 * test_sweep_shared_end(): the tickets that the hand gave out, and those used
 */
Datum
test_sweep_shared_end(PG_FUNCTION_ARGS)
{
	SharedTest *test = attach();
	int64		counts[2] = {pgsweep_hand_read(&test->part)};

	for (int i = 0; i < lengthof(test->used); i++)
		counts[1] += pg_popcount32(pg_atomic_read_u32(&test->used[i]));
	return result_row(fcinfo, NULL, 0, false, counts, sizeof(counts));
}
