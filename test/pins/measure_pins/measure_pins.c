/*-------------------------------------------------------------------------
 *
 * test/pins/measure_pins/measure_pins.c
 *	  Pins and unpins buffers in a loop inside the server.
 *
 * A test-only extension that measures the cost of a pin and an unpin to a backend
 * that already holds some pins.  It uses only core's exported functions: the same
 * source measures any PostgreSQL 18, patched or not.
 *
 * bufmgr.c has several ways to a pin.  Each kind of operation takes one of them:
 *
 * "again": IncrBufferRefCount() of a page that we hold, and ReleaseBuffer().  Each
 * finds the buffer among the backend's own pins.  Neither touches shared memory:
 * there is no cheaper pin.
 *
 * "other": ReadRecentBuffer() of a page that we do not hold, in a known buffer, and
 * ReleaseBuffer().  An entry is looked for, made, found and removed.  There
 * are two atomic operations on a header that is in our cache and that no other
 * process uses, and no mapping table.
 *
 * "read": ReadBuffer() of a page that we do not hold, as in most of the server,
 * and ReleaseBuffer().  This adds the mapping table, two atomic operations on the
 * lock of its partition, and counters for the statistics views.
 *
 * "stream" pins as "other", and "join" as both "other" and "again".
 *
 * All of these tell the resource owner.  It keeps the latest pins in an array that
 * it searches from the end, the rest in a hash table.  The pins held from the
 * beginning have their own owner.  So the loop's owner has only the loop's pins:
 * for all loads but "stream" that is one, found at once.  "owner" is the same
 * without the pin.  In "stream" the owner is part of the measurement, as for a read
 * stream: it must find the oldest pin of the window.
 *
 * Pages are chosen at random, to avoid neighbouring buffer numbers.  The seed is
 * fixed: both servers get the same pages.  Random hits come from a sequence that is
 * prepared before, and too long for a branch predictor to learn.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <time.h>

#include "common/pg_prng.h"
#include "portability/instr_time.h"
#include "utils/resowner.h"

#include "test_module.h"

PG_MODULE_MAGIC_EXT(
					.name = "measure_pins",
					.version = "1.0"
);

/*
 * Operations between two readings of the clock.  A reading costs 25 ns, which is
 * 0.01 ns per operation, and a cancellation is seen within a millisecond.  A
 * multiple of JOIN_STEPS.
 */
#define OPERATIONS_PER_TURN 4096

/* Hits before they repeat */
#define SEQUENCE 65536

/* Pages that "other", "read" and "join" pin without holding them */
#define OTHERS 16

/* Of this many operations of "join", the last one is on a held page. */
#define JOIN_STEPS 4

#define MOST_HELD 16384

typedef enum Kind
{
	AGAIN,
	OTHER,
	READ,
	STREAM,
	JOIN,
	OWNER
} Kind;

typedef struct PageAt
{
	Buffer		buffer;
	BlockNumber block;
} PageAt;

typedef struct Load
{
	Kind		kind;
	int			held;
	int64		max_operations;
	int64		max_ns;
	Relation	rel;

	/* The held ones first */
	PageAt	   *pages;
	int			num_pages;

	/* The order of held ones for AGAIN, JOIN and OWNER */
	Buffer	   *sequence;

	/* STREAM: the oldest page of the window */
	int			oldest;
} Load;

PG_FUNCTION_INFO_V1(measure_pins_run);

extern PGDLLEXPORT void measure_pins_turn(Load *load, uint64 begin, int operations);

/* For OWNER: a resource that needs no release */
static void
release_nothing(Datum res)
{
}

static const ResourceOwnerDesc nothing_desc = {
	.name = "nothing of measure_pins",
	.release_phase = RESOURCE_RELEASE_BEFORE_LOCKS,
	.release_priority = RELEASE_PRIO_BUFFER_PINS,
	.ReleaseResource = release_nothing,
};

static const char *const kind_names[] = {
	[AGAIN] = "again",
	[OTHER] = "other",
	[READ] = "read",
	[STREAM] = "stream",
	[JOIN] = "join",
	[OWNER] = "owner"
};

/*
 * The number of pages that a load pins without holding them.  A page that has left
 * the window of a stream must not come back at once.
 */
static int
pages_not_held(Kind kind, int held)
{
	switch (kind)
	{
		case OTHER:
		case READ:
		case JOIN:
			return OTHERS;
		case STREAM:
			return held + OTHERS;
		case AGAIN:
		case OWNER:
			break;
	}
	return 0;
}

/*
 * Open a relation if it and shared buffers have enough pages.
 */
static Relation
open_relation(Oid relid, int pages, int pinned)
{
	Relation	rel = test_open_relation(relid, AccessShareLock);

	if (RelationGetNumberOfBlocks(rel) < pages)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"%s\" has too few pages", RelationGetRelationName(rel)),
				 errdetail("It has %u, and %d are needed.",
						   RelationGetNumberOfBlocks(rel), pages)));
	if (GetPinLimit() < pinned)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("too few shared buffers for a process to have %d of them pinned",
						pinned),
				 errdetail("Its share is %u.", GetPinLimit()),
				 errhint("Raise \"shared_buffers\" or lower \"max_connections\".")));

	return rel;
}

/*
 * Read different random pages of the relation into the pool.  The first load->held
 * of them stay pinned.
 */
static void
pin_pages(Load *load, pg_prng_state *random)
{
	BlockNumber blocks = RelationGetNumberOfBlocks(load->rel);
	BlockNumber *order = palloc_array(BlockNumber, blocks);

	for (BlockNumber i = 0; i < blocks; i++)
		order[i] = i;

	for (int i = 0; i < load->num_pages; i++)
	{
		BlockNumber with = pg_prng_uint64_range(random, i, blocks - 1);
		PageAt	   *page = &load->pages[i];

		page->block = order[with];
		order[with] = order[i];

		page->buffer = ReadBuffer(load->rel, page->block);
		if (i >= load->held)
			ReleaseBuffer(page->buffer);
		CHECK_FOR_INTERRUPTS();
	}
	pfree(order);
}

static void
make_sequence(Load *load, const text *hit_order, pg_prng_state *random)
{
	static const char *const orders[] = {"last", "cyclic", "random"};
	int			order = test_find_name(orders, lengthof(orders), hit_order, "order");

	load->sequence = palloc_array(Buffer, SEQUENCE);
	for (int i = 0; i < SEQUENCE && load->held > 0; i++)
	{
		int			which;

		if (order == 0)
			which = load->held - 1;
		else if (order == 1)
			which = i % load->held;
		else
			which = pg_prng_uint64_range(random, 0, load->held - 1);
		load->sequence[i] = load->pages[which].buffer;
	}
}

static pg_noinline void
was_replaced(const PageAt *page)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("block %u was replaced in its buffer", page->block),
			 errhint("Raise \"shared_buffers\".")));
}

static inline void
pin_not_held(Load *load, const PageAt *page)
{
	if (unlikely(!ReadRecentBuffer(load->rel->rd_locator, MAIN_FORKNUM,
								   page->block, page->buffer)))
		was_replaced(page);
}

/* The same by the mapping table */
static inline void
read_not_held(Load *load, const PageAt *page)
{
	if (unlikely(ReadBuffer(load->rel, page->block) != page->buffer))
		was_replaced(page);
}

/*
 * The loop that is measured.  begin is the number of operations before.
 */
static pg_attribute_always_inline void
pin_and_unpin(Load *load, uint64 begin, int operations)
{
	const Buffer *sequence = load->sequence;
	const PageAt *others = load->pages + load->held;
	uint64		end = begin + operations;

	switch (load->kind)
	{
		case AGAIN:
			for (uint64 i = begin; i < end; i++)
			{
				Buffer		buffer = sequence[i % SEQUENCE];

				IncrBufferRefCount(buffer);
				ReleaseBuffer(buffer);
			}
			break;

		case OTHER:
			for (uint64 i = begin; i < end; i++)
			{
				const PageAt *page = &others[i % OTHERS];

				pin_not_held(load, page);
				ReleaseBuffer(page->buffer);
			}
			break;

		case READ:
			for (uint64 i = begin; i < end; i++)
			{
				const PageAt *page = &others[i % OTHERS];

				read_not_held(load, page);
				ReleaseBuffer(page->buffer);
			}
			break;

		case STREAM:
			{
				int			oldest = load->oldest;
				int			next = (oldest + load->held) % load->num_pages;

				for (uint64 i = begin; i < end; i++)
				{
					pin_not_held(load, &load->pages[next]);
					ReleaseBuffer(load->pages[oldest].buffer);

					/* in case that the next one cannot be pinned */
					load->oldest = oldest + 1 < load->num_pages ? oldest + 1 : 0;
					oldest = load->oldest;
					next = next + 1 < load->num_pages ? next + 1 : 0;
				}
			}
			break;

		case JOIN:
			for (uint64 i = begin; i < end; i++)
			{
				if (i % JOIN_STEPS < JOIN_STEPS - 1)
				{
					const PageAt *page = &others[i % OTHERS];

					pin_not_held(load, page);
					ReleaseBuffer(page->buffer);
				}
				else
				{
					Buffer		buffer = sequence[(i / JOIN_STEPS) % SEQUENCE];

					IncrBufferRefCount(buffer);
					ReleaseBuffer(buffer);
				}
			}
			break;

		case OWNER:
			for (uint64 i = begin; i < end; i++)
			{
				Datum		what = Int32GetDatum(sequence[i % SEQUENCE]);

				ResourceOwnerEnlarge(CurrentResourceOwner);
				ResourceOwnerRemember(CurrentResourceOwner, what, &nothing_desc);
				ResourceOwnerForget(CurrentResourceOwner, what, &nothing_desc);
			}
			break;
	}
}

/*
 * The measured part.  "bench/run pins" counts instructions inside this function, by its
 * name.
 */
pg_noinline void
measure_pins_turn(Load *load, uint64 begin, int operations)
{
	pin_and_unpin(load, begin, operations);
}

/*
 * The same before, to reach the steady state.
 */
static pg_noinline void
first_turn(Load *load)
{
	pin_and_unpin(load, 0, OPERATIONS_PER_TURN);
}

/*
 * The number of different pages of the operations that begin with "begin".
 */
static int
count_pages(const Load *load, uint64 begin, int64 operations)
{
	int64		again = operations;
	int			others = 0;
	int			pages = 0;
	Bitmapset  *seen = NULL;

	switch (load->kind)
	{
		case OTHER:
		case READ:
			return Min(operations, OTHERS);
		case STREAM:
			/* each operation pins a page that was not pinned */
			return Min(operations, load->num_pages);
		case JOIN:
			/* both begin and OTHERS are multiples of JOIN_STEPS */
			again = operations / JOIN_STEPS;
			begin /= JOIN_STEPS;
			for (int i = 0; i < Min(operations, OTHERS); i++)
				others += i % JOIN_STEPS < JOIN_STEPS - 1;
			break;
		case AGAIN:
		case OWNER:
			break;
	}

	for (int64 i = 0; i < Min(again, SEQUENCE); i++)
		seen = bms_add_member(seen, load->sequence[(begin + i) % SEQUENCE]);
	pages = bms_num_members(seen);
	bms_free(seen);
	return others + pages;
}

static int64
cpu_ns(void)
{
	struct timespec now;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) != 0)
		ereport(ERROR,
				(errmsg("could not read the CPU clock: %m")));
	return (int64) now.tv_sec * 1000000000 + now.tv_nsec;
}

static Load
load_from_args(FunctionCallInfo fcinfo)
{
	Load		load = {.max_operations = PG_INT64_MAX,.max_ns = PG_INT64_MAX};

	for (int i = 0; i < 4; i++)
		if (PG_ARGISNULL(i))
			elog(ERROR, "relation, kind, held and hit_order must not be null");
	if (PG_ARGISNULL(4) && PG_ARGISNULL(5))
		elog(ERROR, "either max_operations or duration_ms must be given");
	load.kind = test_find_name(kind_names, lengthof(kind_names), PG_GETARG_TEXT_PP(1), "kind");
	load.held = PG_GETARG_INT32(2);
	if (!PG_ARGISNULL(4))
		load.max_operations = PG_GETARG_INT64(4);
	if (!PG_ARGISNULL(5))
		load.max_ns = (int64) PG_GETARG_INT32(5) * 1000000;
	if (load.max_operations <= 0 || load.max_ns <= 0)
		elog(ERROR, "max_operations and duration_ms must be greater than zero");
	if (load.held < 0 || load.held > MOST_HELD)
		elog(ERROR, "held must be between 0 and %d", MOST_HELD);
	if (load.held == 0 && load.kind != OTHER && load.kind != READ)
		elog(ERROR, "only kinds \"other\" and \"read\" can hold nothing");
	return load;
}

/*
 * measure_pins_run - pin and unpin for a number of operations or a time
 */
Datum
measure_pins_run(PG_FUNCTION_ARGS)
{
	Load		load = load_from_args(fcinfo);
	int64		done = 0;
	int64		cpu;
	instr_time	start;
	instr_time	elapsed;
	pg_prng_state random;
	ResourceOwner caller = CurrentResourceOwner;
	ResourceOwner holder;
	ResourceOwner looper;
	Datum		values[4];

	load.num_pages = load.held + pages_not_held(load.kind, load.held);
	load.pages = palloc_array(PageAt, load.num_pages);
	/* the loop pins one more than are held */
	load.rel = open_relation(PG_GETARG_OID(0), load.num_pages, load.held + 1);
	pg_prng_seed(&random, 0);

	/*
	 * Both are children of the caller's, and an error releases them and their
	 * pins with it.  The handler of the error restores the current owner.
	 */
	holder = ResourceOwnerCreate(caller, "measure_pins held");
	looper = ResourceOwnerCreate(caller, "measure_pins loop");

	/* the window of a stream is the loop's own */
	CurrentResourceOwner = load.kind == STREAM ? looper : holder;
	pin_pages(&load, &random);
	make_sequence(&load, PG_GETARG_TEXT_PP(3), &random);
	CurrentResourceOwner = looper;

	first_turn(&load);

	cpu = cpu_ns();
	INSTR_TIME_SET_CURRENT(start);
	for (;;)
	{
		int			turn = Min(load.max_operations - done, OPERATIONS_PER_TURN);

		measure_pins_turn(&load, OPERATIONS_PER_TURN + done, turn);
		done += turn;

		INSTR_TIME_SET_CURRENT(elapsed);
		INSTR_TIME_SUBTRACT(elapsed, start);
		if (done >= load.max_operations ||
			INSTR_TIME_GET_NANOSEC(elapsed) >= load.max_ns)
			break;

		CHECK_FOR_INTERRUPTS();
	}
	cpu = cpu_ns() - cpu;

	CurrentResourceOwner = load.kind == STREAM ? looper : holder;
	for (int i = 0; i < load.held; i++)
		ReleaseBuffer(load.pages[(load.oldest + i) % load.num_pages].buffer);

	CurrentResourceOwner = caller;
	ResourceOwnerDelete(looper);
	ResourceOwnerDelete(holder);
	relation_close(load.rel, AccessShareLock);

	values[0] = Int64GetDatum(done);
	values[1] = Int32GetDatum(count_pages(&load, OPERATIONS_PER_TURN, done));
	values[2] = Int64GetDatum(INSTR_TIME_GET_NANOSEC(elapsed));
	values[3] = Int64GetDatum(cpu);
	return test_return_row(fcinfo, values);
}
