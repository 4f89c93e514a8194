/*-------------------------------------------------------------------------
 *
 * extension/sweep/sweep.h
 *	  Buffer replacement: the state in shared memory, and which process may
 *	  touch which part of it.
 *
 * Files of this folder:
 *
 * sweep.c			the feature: what pg_sweep.c calls
 * shmem.c			the shared memory, when it is made
 * slots.c			a process' part of it
 * hooks.c			the routines that core calls, and the table of strategies
 * switch.c			making another strategy active
 * strategy.h		what a strategy is
 * strategy_stock.c	core's own freelist and clock sweep
 * strategy_batched.c	one hand for the pool, taken in leases
 * strategy_partitioned.c	a hand for each partition of it
 * strategy_clock2q.c	new pages on probation, and a hand for all others
 * strategy_clock2q_partitioned.c	the same in each partition
 * clock2q.h		the rule of both
 * probation.h		what is done by that rule
 * first_lap.c		while it leaves the victims to the hand
 * auto.c			which of these suits the machine
 * hand.h			the 64-bit ticket hand
 * lease.h			a backend's private batch of tickets, and when it expires
 * batch.h			how large a lease is
 * victim.h			one look at one buffer
 * walk.[ch]		walking leases until there is a victim
 * layout.h			how many partitions, and where they end
 * homes.[ch]		which partition is the home of which CPU
 * partitions.[ch]	the partitions, and which is a process' home
 * laps.[ch]			which partitions are ahead of others
 * clean_ahead.c	the background writer's scan ahead of one hand
 * find_free.c		is there a buffer without a page?
 * advice.[ch]		what a larger pool would read
 * counts.[ch]		adding up what the slots have counted
 * gucs.c, views.c, views_partitions.c, views_clock2q.c
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_SWEEP_H
#define PGSWEEP_SWEEP_H

#include "compat.h"
#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "shared.h"
#include "storage/spin.h"
#include "sweep/clock2q.h"
#include "sweep/hand.h"
#include "sweep/laps.h"
#include "sweep/lease.h"
#include "utils/guc.h"

#pragma GCC visibility push(hidden)

struct PgSweepRow;

/*
 * The strategies: id and name, in SQL and in pg_sweep.strategy.  The routine is
 * pgsweep_NAME_strategy.
 */
#define PGSWEEP_STRATEGIES(STRATEGY) \
	STRATEGY(STOCK, stock) \
	STRATEGY(BATCHED, batched) \
	STRATEGY(PARTITIONED, partitioned) \
	STRATEGY(CLOCK2Q, clock2q) \
	STRATEGY(CLOCK2Q_PARTITIONED, clock2q_partitioned) \
								/* end of the list */

/* The number is what shared memory holds */
#define PGSWEEP_STRATEGY_ID(id, name) PGSWEEP_##id,

typedef enum PgSweepStrategyId
{
	PGSWEEP_STRATEGIES(PGSWEEP_STRATEGY_ID)

	/*
	 * Not a strategy but a wish: one of the above, chosen by the machine
	 * (auto.c).  Only pg_sweep.strategy, pg_sweep_set_strategy() and
	 * PgSweepPool->configured know it.
	 */
	PGSWEEP_AUTO,
} PgSweepStrategyId;

#define PGSWEEP_NUM_STRATEGIES	PGSWEEP_AUTO

/*
 * The active strategy in one word: id in the low byte, and above it a
 * generation that each switch increments.  So an earlier lease is out of date
 * even if the same strategy is active again.
 */
#define PGSWEEP_ACTIVE(generation, id)	(((uint64) (generation) << 8) | (id))
#define PGSWEEP_FIRST_GENERATION		1	/* zeroed memory is no lease */
#define PGSWEEP_ACTIVE_ID(active)		((PgSweepStrategyId) ((active) & 0xFF))
#define PGSWEEP_ACTIVE_GENERATION(active)	((active) >> 8)

/*
 * Event counts of one strategy, which only grow.  In a slot, only the owner
 * writes them, without locked instructions.  Those of "stock" stay zero: core
 * does not ask the library then, and counts allocations itself.
 */
typedef struct PgSweepCounters
{
	uint64		allocations;	/* victims requested */
	uint64		failed;			/* of them, those that found none */
	uint64		evictions;		/* of them, those whose buffer held a page */
	uint64		usage_taken;	/* looks that took a usage count away */
	uint64		pinned;			/* looks that found the buffer in use */
	uint64		lost_races;		/* looks that another process overtook */
	uint64		leases;			/* leases taken = writes to the hand */
	uint64		leases_expired; /* leases dropped or cut short */
	uint64		buffers_expired;	/* buffers in what was dropped */
} PgSweepCounters;

/*
 * Buffers examined: those that became victims, and those counted for another
 * result.
 */
static inline uint64
pgsweep_looked_at(const PgSweepCounters *c)
{
	return c->allocations - c->failed + c->usage_taken + c->pinned + c->lost_races;
}

#define PGSWEEP_NUM_COUNTERS	(sizeof(PgSweepCounters) / sizeof(uint64))

/*
 * Event counts of one partition, by one process or by all.  Updated when a
 * lease ends.
 */
typedef struct PgSweepPartCounters
{
	uint64		requests;		/* by processes with this home */
	uint64		redirected_out; /* of them, those served by another partition */
	uint64		allocations;	/* victims found here */
	uint64		redirected_in;	/* of them, for processes with another home */
	uint64		local;			/* of allocations, by processes on its node */
	uint64		evictions;		/* of allocations, the buffer held a page */
} PgSweepPartCounters;

/*
 * What a process remembers under strategies with partitions between two leases.
 */
typedef struct PgSweepItinerary
{
	uint32		hops;			/* partitions that this walk has left, having
								 * found only pins */
	uint32		home;			/* when the lease was taken */
	uint32		target;			/* partition of the lease */
	bool		noting;			/* home and target are of a lease that
								 * pgsweep_note_lease() has not added */

	/* counters of its strategies that are already in PgSweepPartCounters */
	uint64		noted_allocations;
	uint64		noted_failed;
	uint64		noted_evictions;
} PgSweepItinerary;

/*
 * Event counts of "clock2q", which PgSweepCounters has no name for.  The index
 * is a PgSweepC2qSide.
 */
typedef struct PgSweepC2qCounters
{
	uint64		entered;		/* pages put on probation */
	uint64		windows;		/* ended */
	uint64		judged;			/* buffers */
	uint64		stayed;			/* of judged, no victims */
	uint64		victims[2];
	uint64		returned[2];	/* pages that had left there */
	uint64		returned_soon[2];	/* of returned */
} PgSweepC2qCounters;

#define PGSWEEP_NUM_C2Q_COUNTERS	(sizeof(PgSweepC2qCounters) / sizeof(uint64))

/* What a process has under strategies with probation */
typedef struct PgSweepC2qOwn
{
	uint64		active;			/* strategy and generation of the lease */
	struct PgSweepProbation *probation; /* whose slots; pointer of the owner's
										 * process */
	PgSweepC2qLease lease;
	PgSweepC2qCounters counters[2]; /* by pgsweep_c2q_kind() */
} PgSweepC2qOwn;

/* Does this strategy have partitions? */
static inline bool
pgsweep_has_partitions(PgSweepStrategyId id)
{
	return id == PGSWEEP_PARTITIONED || id == PGSWEEP_CLOCK2Q_PARTITIONED;
}

/* Which of two counters of "clock2q": 1 for that with partitions */
static inline int
pgsweep_c2q_kind(PgSweepStrategyId id)
{
	return id == PGSWEEP_CLOCK2Q_PARTITIONED;
}

/*
 * One process' own lines.  Counters go on growing over all processes that have
 * had the slot.  base is what they were when the present process came, or at the
 * last reset if that is newer: the difference is its own share.
 *
 * Everything but base is written by the owner only and read by others without
 * a lock: 64-bit values are written in one piece on every supported platform,
 * and a count may be one event late.  base is written by the owner before it
 * becomes PgSweep->owner, and by a reset under PgSweep->lock; both write what
 * the counters say.
 */
typedef struct PgSweepSlot
{
	PgSweepCounters counters[PGSWEEP_NUM_STRATEGIES];
	PgSweepLease lease;
	PgSweepItinerary itinerary;
	PgSweepC2qOwn c2q;
	PgSweepCounters base;		/* sum over strategies */
} PgSweepSlot;

typedef union PgSweepSlotPadded
{
	PgSweepSlot slot;
	char		pad[TYPEALIGN(PG_CACHE_LINE_SIZE, sizeof(PgSweepSlot))];
} PgSweepSlotPadded;

/*
 * Probation in the pool or in a partition of it, and the rest: "clock2q".
 */
typedef struct PgSweepProbation
{
	PgSweepClock2q c2q;
	PgSweepPartition *part;		/* its hand is the rest's */

	/*
	 * The first lap: the ticket of that hand at which it ends, 0 if there is
	 * none, and free buffers now and when it began.  Read at each buffer that is
	 * judged, and counted for each free buffer that is freed or found: while
	 * there are none, nothing writes here.
	 */
	pg_atomic_uint64 lap_end pg_attribute_aligned(PG_CACHE_LINE_SIZE);
	pg_atomic_uint32 lap_free;
	pg_atomic_uint32 free_buffers;	/* signed; too few if core was not told */
} PgSweepProbation;

/* How the active strategy was made active */
typedef enum PgSweepSetBy
{
	PGSWEEP_SET_BY_START,
	PGSWEEP_SET_BY_RELOAD,
	PGSWEEP_SET_BY_FUNCTION,
} PgSweepSetBy;

typedef struct PgSweepPoolShared
{
	/*
	 * Read by every allocation; written by a switch, and when the number of
	 * backends that allocate changes.
	 */
	pg_atomic_uint64 active;	/* PGSWEEP_ACTIVE(); written under
								 * PgSweep->lock */
	pg_atomic_uint32 batch;		/* size of a lease; written under mutex */
	pg_atomic_uint32 c2q_batch; /* the same for slots of "clock2q" */
	pg_atomic_uint64 first_laps;	/* bit i: partition i may have free buffers
									 * (first_lap.c) */
	bool		advise;			/* pg_sweep.size_advice as last applied: does
								 * advice.c want to know of loads?  Written
								 * under PgSweep->lock */
	char		pad[PG_CACHE_LINE_SIZE - 2 * sizeof(pg_atomic_uint64) - 3 * sizeof(pg_atomic_uint32)];

	/* Constant after start */
	uint32		ncpus;
	uint32		num_partitions;
	Size		part_counters_offset;	/* of slot 0's PgSweepPartCounters */
	Size		part_counters_stride;	/* from one slot's to the next's */

	/* Protected by mutex, which is held for a few instructions only */
	slock_t		mutex;
	uint32		nbackends;		/* slots in use */
	uint32		batch_configured;	/* pg_sweep.batch_size that batch follows */

	/* Protected by PgSweep->lock */
	PgSweepStrategyId configured;	/* pg_sweep.strategy as last applied */
	TimestampTz active_since;
	char		reason[128];	/* what auto decided by; "" without auto */
	PgSweepSetBy set_by;
	NameData	set_by_role;	/* empty unless PGSWEEP_SET_BY_FUNCTION */
	PgSweepCounters base[PGSWEEP_NUM_STRATEGIES];	/* totals at the last
													 * reset */
	uint32		core_passes_base;	/* of core's hand, the same */
	int			core_hand_base;
	uint64		switches[PGSWEEP_NUM_STRATEGIES];	/* times made active */
	int64		active_usec[PGSWEEP_NUM_STRATEGIES];	/* up to active_since or
														 * stats_reset */

	/*
	 * Allocations made by core, as far as it was asked for them: by the
	 * background writer, and by views (pgsweep_core_counts).
	 */
	pg_atomic_uint64 core_allocations;

	/*
	 * Allocations, by any strategy, that StrategySyncStart() has passed on to
	 * the background writer.  Written by that process only.
	 */
	uint64		allocations_reported;

	/* Of the partitions; protected by PgSweep->lock */
	PgSweepPartCounters part_base[PGSWEEP_MAX_PARTITIONS];	/* at stats_reset */

	/* "clock2q"; protected by PgSweep->lock */
	PgSweepC2qCounters c2q_base[2]; /* at stats_reset */

	/* "batched" and the main part of "clock2q": the pool as one partition */
	PgSweepPartition whole pg_attribute_aligned(PG_CACHE_LINE_SIZE);

	/* "partitioned" and "clock2q_partitioned" */
	PgSweepPartition parts[PGSWEEP_MAX_PARTITIONS];
	PgSweepLaps laps pg_attribute_aligned(PG_CACHE_LINE_SIZE);

	/* "clock2q", and "clock2q_partitioned" */
	PgSweepProbation whole_probation pg_attribute_aligned(PG_CACHE_LINE_SIZE);
	PgSweepProbation probation[PGSWEEP_MAX_PARTITIONS];

	/*
	 * Allocations by the home of the process and the partition that served
	 * them, if they differ.  Shared, as 64 * 64 counters for each process
	 * would be too many; written once for each such lease.
	 */
	pg_atomic_uint64 flow[PGSWEEP_MAX_PARTITIONS][PGSWEEP_MAX_PARTITIONS]
				pg_attribute_aligned(PG_CACHE_LINE_SIZE);
	uint64		flow_base[PGSWEEP_MAX_PARTITIONS][PGSWEEP_MAX_PARTITIONS];	/* at stats_reset */

	PgSweepSlotPadded slots[FLEXIBLE_ARRAY_MEMBER] pg_attribute_aligned(PG_CACHE_LINE_SIZE);
} PgSweepPoolShared;

/* shmem.c; NULL unless preloaded into a server that has the patches */
extern PgSweepPoolShared *PgSweepPool;
extern Size pgsweep_pool_size(void);
extern void pgsweep_pool_init(void);

/* slots.c */
extern PgSweepSlot *pgsweep_my_slot;
extern union BufferDescPadded *pgsweep_descriptors;
extern void pgsweep_enter_slot(void);
extern void pgsweep_leave_slot(void);
extern uint32 pgsweep_batch_size_in_force(uint32 configured, uint32 nbackends);
extern void pgsweep_set_batch_configured(uint32 configured);
extern PgSweepPartCounters *pgsweep_part_counters(const PgSweepSlot *slot);

/* gucs.c */
extern const struct config_enum_entry pgsweep_strategy_options[];
extern int	pgsweep_strategy;
extern int	pgsweep_batch_size;
extern int	pgsweep_partitions;
extern bool pgsweep_balance;
extern void pgsweep_define_gucs(void);
extern const char *pgsweep_strategy_name(PgSweepStrategyId id);

/* auto.c */
extern PgSweepStrategyId pgsweep_resolve_strategy(PgSweepStrategyId wish,
												  char *reason, Size size);

/* switch.c */
extern PgSweepStrategyId pgsweep_switch(PgSweepStrategyId wish, PgSweepSetBy by);

/* counts.c */
extern uint64 pgsweep_allocations_total(void);
extern void pgsweep_sum_clock2q(int kind, PgSweepC2qCounters *totals);
extern void pgsweep_sum_partitions(PgSweepPartCounters *totals);
extern int64 pgsweep_active_usec(PgSweepStrategyId id);
extern void pgsweep_reset_counters(void);

/* views.c */
extern void pgsweep_put_status(struct PgSweepRow *row);

#pragma GCC visibility pop

#endif							/* PGSWEEP_SWEEP_H */
