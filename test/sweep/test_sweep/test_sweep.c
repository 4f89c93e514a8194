/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/test_sweep.c
 *	  Property tests of pg_sweep's hand, leases and batch sizes, on private
 *	  memory, under random interleavings.
 *
 * sim.h		the virtual backends, and atomic operations that let others run
 * oracle.h		what must be true, from definitions
 * mutants.h	the code under test, and broken variants to test the test with
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "sim.h"
#include "oracle.h"
#include "mutants.h"
#include "property.h"

PG_MODULE_MAGIC_EXT(
					.name = "test_sweep",
					.version = "1.0"
);

/* A virtual backend that is stopped can wait for another stopped one */
#define MAX_DEPTH		3

/* Largest pool; the oracle has four bytes per buffer */
#define MOST_BUFFERS		(1 << 20)
#define MOST_BACKENDS	4096

PG_FUNCTION_INFO_V1(test_sweep_simulate);
PG_FUNCTION_INFO_V1(test_sweep_codes);
PG_FUNCTION_INFO_V1(test_sweep_batch);
PG_FUNCTION_INFO_V1(test_sweep_lease_limit);

/* Chosen once per simulation, for variety between seeds */
static uint32 quiet;			/* one in this number of rare events happens */
static uint32 longest_walk;		/* looks of one allocation */
static int	steps_left;

static void act(SimBackend *b);

static void
backends_changed(int by)
{
	sim->nbackends += by;
	sim->batch = sim->code->batch_for(sim->wish, sim->n, sim->nbackends);
}

static uint32
random_wish(void)
{
	static const uint32 some[] = {1, 7, 16, 32, 64, 100, PGSWEEP_BATCH_MAX};

	if (sim_one_in(3))
		return pgsweep_batch_wish(0, 1 + sim_random(400));
	return pgsweep_batch_wish(some[sim_random(lengthof(some))], 1);
}

/* As pgsweep_walk() does it, with a given number of looks at buffers */
static void
allocate(SimBackend *b, uint32 looks)
{
	uint64		active = sim->active;
	uint32		batch = sim->batch;
	uint64		stops;
	bool		exact;

	sim_step();
	stops = sim->stops;
	exact = published_exact();

	/* the fast path */
	if (good_checked(b, active, batch) && sim->violation == NULL)
	{
		sim_step();
		if (sim->violation == NULL)
			tick_checked(b, active, stops != sim->stops, exact);
		sim->counts.fast++;
		if (--looks == 0)
			return;
	}

	stops = sim->stops;
	exact = published_exact();
	if (sim->violation == NULL)
		expire_checked(b, active, batch);

	for (uint32 i = 0; i < looks && sim->violation == NULL; i++)
	{
		if (b->left == 0)
			take_checked(b, active, batch);
		sim_step();
		if (sim->violation == NULL)
			tick_checked(b, active, stops != sim->stops, exact);
	}
}

static bool
may_run(const SimBackend *b)
{
	return b->present && !b->busy && b->idle_until <= sim->hand;
}

/*
 * All backends claim, again and again, until more than the pool is claimed.  No
 * backend asks for the position in between.
 */
static void
burst(void)
{
	uint64		target = sim->hand + sim->n + 1;
	uint32		rounds = sim->n + 1;

	sim->counts.bursts++;
	while (sim->hand < target && rounds-- > 0)
	{
		for (uint32 i = 0; i < sim->max_backends; i++)
		{
			SimBackend *b = &sim->backends[i];

			if (!may_run(b) && b != sim->current)
				continue;
			if (sim->violation != NULL)
				return;
			if (b != sim->current)
			{
				SimBackend *me = sim->current;

				sim->current = b;
				b->busy = true;
				allocate(b, b->left + 1);
				b->busy = false;
				sim->current = me;
			}
			else
				allocate(b, b->left + 1);
		}
	}
}

/*
 * Let other backends run: for a few actions, or until the hand has made a lap or
 * two.
 */
static void
let_others_run(void)
{
	uint64		target = 0;
	uint32		actions = 1 + sim_random(6);

	if (sim_one_in(8))
	{
		target = sim->hand + (uint64) sim->n * (1 + sim_random(2)) + sim_random(sim->n);
		actions = 4 * sim->n;
	}
	while (actions-- > 0 && steps_left > 0 && sim->violation == NULL &&
		   (target == 0 || sim->hand < target))
		act(&sim->backends[sim_random(sim->max_backends)]);
}

static void
sim_step(void)
{
	SimBackend *stopped = sim->current;

	if (!sim->interrupts || stopped == NULL || sim->depth >= MAX_DEPTH ||
		sim->violation != NULL || !sim_one_in(48))
		return;

	sim->counts.interrupted++;
	sim->stops++;
	sim->depth++;
	let_others_run();
	sim->depth--;
	sim->current = stopped;
}

/*
 * One backend does something, unless it is stopped in the middle of something
 * else or idle.
 */
static void
act(SimBackend *b)
{
	SimBackend *before = sim->current;
	uint32		what = sim_random(100);

	steps_left--;
	if (b->busy || b->idle_until > sim->hand)
		return;
	sim->current = b;
	b->busy = true;

	if (!b->present)
	{
		if (sim_one_in(quiet))
		{
			b->present = true;
			memset(&b->lease, 0, sizeof(b->lease));
			b->used = b->used_with_batch = 0;
			backends_changed(1);
		}
	}
	else if (what < 70)
		allocate(b, 1 + sim_random(longest_walk));
	else if (what < 80)
		check_position(b);
	else if (!sim_one_in(quiet))
		allocate(b, 1);
	else if (what < 85)
		b->idle_until = sim->hand + (uint64) sim->n * sim_random(4) + sim_random(sim->n);
	else if (what < 89)
	{
		sim->counts.left_behind += b->left;
		b->left = b->lease.left = 0;
		b->present = false;
		backends_changed(-1);
	}
	else if (what < 93)
	{
		/* another strategy, or there and back again */
		sim->active += 0x100;
		if (sim_one_in(2))
			sim->active ^= 1;
	}
	else if (what < 96)
	{
		sim->wish = random_wish();
		backends_changed(0);
	}
	else if (sim->depth == 0)
		burst();

	check_published(false);
	check_outstanding();
	b->busy = false;
	sim->current = before;
}

static void
simulate(uint64 start)
{
	static const uint32 quiets[] = {1, 4, 32, 256};
	uint32		some = Max(sim->max_backends / 2, 1);

	quiet = quiets[sim_random(lengthof(quiets))];
	longest_walk = 1u << sim_random(8);

	pgsweep_partition_init(sim->part, sim_one_in(2) ? 0 : 1 + sim_random(1000), sim->n);
	pg_atomic_write_u64(&sim->part->hand.ticket, start);
	pg_atomic_write_u64(&sim->part->epoch,
						(start > 0 ? start - 1 : 0) >> sim->part->epoch_shift);
	sim->hand = start;
	sim->next_buffer = start % sim->n;
	sim->next_pass = start / sim->n;
	sim->active = 0x100 + 1;
	sim->wish = random_wish();
	mutant_passes = sim->next_pass;
	mutant_claims = 0;

	for (uint32 i = 0; i < some; i++)
		sim->backends[i].present = true;
	backends_changed(some);

	while (steps_left > 0 && sim->violation == NULL)
	{
		CHECK_FOR_INTERRUPTS();
		act(&sim->backends[sim_random(sim->max_backends)]);
	}
}

/*
 * test_sweep_simulate(seed, steps, buffers, backends, interrupts, start, code)
 */
Datum
test_sweep_simulate(PG_FUNCTION_ARGS)
{
	int64		seed = PG_GETARG_INT64(0);
	int32		n = PG_GETARG_INT32(2);
	int32		backends = PG_GETARG_INT32(3);
	int64		start = PG_GETARG_INT64(5);
	Sim			simulation = {0};
	Datum		result;

	if (n < 1 || n > MOST_BUFFERS || backends < 1 || backends > MOST_BACKENDS || start < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("buffers must be 1 to %d, backends 1 to %d, start not negative",
						MOST_BUFFERS, MOST_BACKENDS)));

	sim = &simulation;
	steps_left = PG_GETARG_INT32(1);
	pg_prng_seed(&sim->prng, (uint64) seed);
	sim->code = FIND_CODE(sim_codes, 6);
	sim->interrupts = PG_GETARG_BOOL(4);
	sim->n = n;
	sim->max_backends = backends;
	sim->part = palloc_aligned(sizeof(PgSweepPartition), PG_CACHE_LINE_SIZE, 0);
	sim->backends = palloc_extended(sizeof(SimBackend) * backends,
									MCXT_ALLOC_ZERO | MCXT_ALLOC_HUGE);
	sim->given = palloc0_array(uint32, n);

	simulate((uint64) start);

	result = violation_row(fcinfo, sim->violation, &sim->counts, sizeof(sim->counts));
	pfree(sim->part);
	pfree(sim->backends);
	pfree(sim->given);
	sim = NULL;
	PG_RETURN_DATUM(result);
}

Datum
test_sweep_codes(PG_FUNCTION_ARGS)
{
	return code_names(fcinfo, sim_codes, sizeof(sim_codes[0]), lengthof(sim_codes));
}

/*
 * test_sweep_batch(configured, cpus, buffers, backends, code)
 */
Datum
test_sweep_batch(PG_FUNCTION_ARGS)
{
	const SimCode *code = FIND_CODE(sim_codes, 4);

	PG_RETURN_INT32(code->batch_for(pgsweep_batch_wish(PG_GETARG_INT32(0),
													   PG_GETARG_INT32(1)),
									PG_GETARG_INT32(2), PG_GETARG_INT32(3)));
}

Datum
test_sweep_lease_limit(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(pgsweep_lease_limit(PG_GETARG_INT32(0)));
}
