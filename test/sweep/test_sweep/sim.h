/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/sim.h
 *	  A simulated pool of virtual backends that take leases of one hand.
 *
 * The headers of pg_sweep are compiled in here with their atomic operations
 * redirected: before each of them, the simulation may stop the virtual backend
 * and let others go on, for a moment or for laps.  Thus interleavings are those of
 * a real machine, between any two atomic operations, but a seed chooses them and
 * they are repeatable.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIM_H
#define SIM_H

#include "common/pg_prng.h"
#include "port/atomics.h"

/* Called before each atomic operation of the code under test */
static void sim_step(void);

/* Called after each fetch-add: the tickets that it handed out */
static void sim_given(uint64 first, uint32 count);

/* Assert() in the code under test is a violation, not a crash */
static void sim_assert(bool condition, const char *what);

/* Reads of the hand's cache line, which leases are to avoid */
static uint64 sim_hand_reads = 0;

static inline void
sim_write_u64(volatile pg_atomic_uint64 *ptr, uint64 value)
{
	sim_step();
	pg_atomic_write_u64(ptr, value);
}

static inline uint64
sim_fetch_add_u64(volatile pg_atomic_uint64 *ptr, int64 add)
{
	uint64		before;

	sim_step();
	before = pg_atomic_fetch_add_u64(ptr, add);
	sim_given(before, (uint32) add);
	return before;
}

#include "sweep/batch.h"
#include "sweep/hand.h"

static inline uint64
sim_read_u64(const pg_atomic_uint64 *ptr)
{
	sim_step();
	return pgsweep_read_u64(ptr);
}

static inline uint64
sim_hand_read(PgSweepPartition *part)
{
	sim_step();
	sim_hand_reads++;
	return pgsweep_hand_read(part);
}

#define pg_atomic_write_u64 sim_write_u64
#define pg_atomic_fetch_add_u64 sim_fetch_add_u64
#define pgsweep_read_u64 sim_read_u64
#define pgsweep_hand_read sim_hand_read
#pragma push_macro("Assert")
#undef Assert
#define Assert(condition) sim_assert(condition, #condition)

#include "sweep/lease.h"

#undef pg_atomic_write_u64
#undef pg_atomic_fetch_add_u64
#undef pgsweep_read_u64
#undef pgsweep_hand_read
#pragma pop_macro("Assert")

/*
 * What is tested: pg_sweep's own code, or a broken variant of it that the
 * oracle must catch (mutants.h).
 */
typedef struct SimCode
{
	const char *name;
	void		(*take) (PgSweepLease *lease, PgSweepPartition *part,
						 uint64 active, uint32 batch);
	bool		(*good) (const PgSweepLease *lease, const PgSweepPartition *part,
						 uint64 active, uint32 batch);
	uint32		(*expire) (PgSweepLease *lease, uint64 active, uint32 batch);
	int			(*tick) (PgSweepLease *lease);
	void		(*position) (PgSweepPartition *part, int *buffer, uint64 *passes);
	uint32		(*batch_for) (uint32 wish, uint32 nbuffers, uint32 nbackends);
} SimCode;

/*
 * A ticket as the oracle knows it.  The oracle never divides: it counts buffers
 * and passes one by one as tickets are given out, and keeps for each buffer how
 * often it was given out.
 */
typedef struct SimTicket
{
	uint32		buffer;			/* from 0 in the partition */
	uint32		nth;			/* given out the nth time, from 1 */
} SimTicket;

typedef struct SimBackend
{
	PgSweepLease lease;			/* the code's view */

	/* the oracle's view */
	bool		present;
	bool		busy;			/* stopped in the middle of something */
	uint64		idle_until;		/* does nothing until the hand is there */
	uint64		taken_under;	/* strategy and generation */
	uint64		ticket;			/* number of the first unused ticket */
	uint32		head;			/* tickets[head .. head + left - 1] are unused */
	uint32		left;
	uint64		used;			/* tickets, since it started over */
	uint64		used_with_batch;	/* the same, with leases of this batch */
	uint32		last_batch;
	SimTicket	tickets[PGSWEEP_BATCH_MAX];
	uint64		seen_passes;	/* the last position it read */
	int			seen_buffer;
} SimBackend;

/* What was exercised; the columns of test_sweep_simulate() */
typedef struct SimCounts
{
	int64		tickets;		/* given out */
	int64		looks;			/* used */
	int64		switched;		/* leases dropped after a switch */
	int64		lapped;			/* leases dropped because the hand lapped them */
	int64		trimmed;		/* leases cut short: more backends, smaller size */
	int64		left_behind;	/* tickets in leases at exit */
	int64		straddling;		/* leases over the end of a pass */
	int64		whole;			/* leases as large as the batch, of 2 and more */
	int64		bursts;			/* claims at once beyond the pool's size */
	int64		singles;		/* states with more backends than the limit */
	int64		outstanding;	/* the most usable tickets at a time */
	int64		interrupted;	/* stops in the middle of an operation */
	int64		stale;			/* published epochs older than the hand */
	int64		fast;			/* looks by a lease that was good at first sight */
	int64		old;			/* leases that had to look at the hand */
	int64		late_looks;		/* the documented race: lapped while stopped */
	int64		passes;
} SimCounts;

typedef struct Sim
{
	const SimCode *code;
	pg_prng_state prng;
	PgSweepPartition *part;
	uint32		n;				/* buffers */
	uint32		max_backends;
	SimBackend *backends;
	bool		interrupts;		/* stop in the middle of operations, too */
	int			depth;			/* of such stops */
	SimBackend *current;

	/* what shared memory holds in pg_sweep */
	uint64		active;
	uint32		wish;
	uint32		batch;
	uint32		nbackends;

	/* the oracle */
	uint64		hand;			/* tickets given out, start included */
	uint32		next_buffer;	/* of the next ticket */
	uint64		next_pass;
	uint32	   *given;			/* how often each buffer was given out */
	uint64		stops;			/* moments at which others went on */
	char	   *violation;		/* the first one; NULL so far */

	SimCounts	counts;
} Sim;

static Sim *sim;

/* Only the first is told: what follows it may be its consequence */
#define violation(...) \
	do { \
		if (sim->violation == NULL) \
			sim->violation = psprintf(__VA_ARGS__); \
	} while (0)

static void
sim_assert(bool condition, const char *what)
{
	if (!condition)
		violation("Assert(%s) failed", what);
}

static inline uint32
sim_random(uint32 below)
{
	return (uint32) pg_prng_uint64_range(&sim->prng, 0, below - 1);
}

static inline bool
sim_one_in(uint32 n)
{
	return sim_random(n) == 0;
}

#endif							/* SIM_H */
