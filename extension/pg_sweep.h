/*-------------------------------------------------------------------------
 *
 * pg_sweep.h
 *	  What the files of pg_sweep share: the state in shared memory, and who
 *	  may touch which part of it.
 *
 * extension/pg_sweep.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PG_SWEEP_H
#define PG_SWEEP_H

#include "compat.h"
#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "storage/lwlock.h"
#include "storage/procnumber.h"
#include "storage/spin.h"
#include "sweep/hand.h"
#include "sweep/lease.h"

/*
 * All of this is between the files of one library: a reference that need not
 * look for a definition elsewhere saves a load at each use.
 */
#pragma GCC visibility push(hidden)

/*
 * The strategies.  The number is what shared memory holds; sweep/sweep.c has
 * the table that goes with it.
 */
typedef enum PgSweepStrategyId
{
	PGSWEEP_STOCK,
	PGSWEEP_BATCHED,
} PgSweepStrategyId;

#define PGSWEEP_NUM_STRATEGIES	(PGSWEEP_BATCHED + 1)

/*
 * The active strategy in one word: id in the low byte, and above it a
 * generation that each switch increments, so that a lease taken before is
 * known to be out of date even if the same strategy is active again.
 */
#define PGSWEEP_ACTIVE(generation, id)	(((uint64) (generation) << 8) | (id))
#define PGSWEEP_FIRST_GENERATION		1	/* so that zeroed memory is no
											 * lease */
#define PGSWEEP_ACTIVE_ID(active)		((PgSweepStrategyId) ((active) & 0xFF))
#define PGSWEEP_ACTIVE_GENERATION(active)	((active) >> 8)

/*
 * Event counts of one strategy; all of them only grow.  In a slot they are
 * written by the slot's owner only, without locked instructions.
 */
typedef struct PgSweepCounters
{
	uint64		allocations;	/* victims asked for */
	uint64		failed;			/* of them, those that found none */
	uint64		usage_taken;	/* looks that took a usage count away */
	uint64		pinned;			/* looks that found the buffer in use */
	uint64		lost_races;		/* looks that another process overtook */
	uint64		leases;			/* leases taken = writes to the hand */
	uint64		leases_expired; /* leases dropped or cut short */
	uint64		buffers_expired;	/* buffers in what was dropped */
} PgSweepCounters;

/*
 * Buffers looked at: each victim found was, and each look that found none is
 * counted for what it found instead.
 */
static inline uint64
pgsweep_looked_at(const PgSweepCounters *c)
{
	return c->allocations - c->failed + c->usage_taken + c->pinned + c->lost_races;
}

#define PGSWEEP_NUM_COUNTERS	(sizeof(PgSweepCounters) / sizeof(uint64))

/*
 * One process' own lines.  Slot i belongs to the process with ProcNumber i.
 * Counters go on growing over all processes that have had the slot; base is
 * what they were when the present one came (or at the last reset, if that is
 * newer), so that its own share can be told.
 *
 * Everything but base is written by the owner only and read by others without
 * a lock: 64-bit values are written in one piece on every platform that the
 * server runs these strategies on, and a count that is one event late does not
 * matter.  base is written by the owner at attach, before pid is, and by a
 * reset under PgSweepShared->lock; both write what the counters say.
 */
typedef struct PgSweepSlot
{
	PgSweepCounters counters[PGSWEEP_NUM_STRATEGIES];
	PgSweepLease lease;
	int			pid;			/* 0 = nobody */
	uint64		stock_active;	/* PgSweepShared.active of its last allocation
								 * by "stock" */
	PgSweepCounters base[PGSWEEP_NUM_STRATEGIES];
} PgSweepSlot;

typedef union PgSweepSlotPadded
{
	PgSweepSlot slot;
	char		pad[TYPEALIGN(PG_CACHE_LINE_SIZE, sizeof(PgSweepSlot))];
} PgSweepSlotPadded;

/* Who made the active strategy active */
typedef enum PgSweepSetBy
{
	PGSWEEP_SET_BY_START,
	PGSWEEP_SET_BY_RELOAD,
	PGSWEEP_SET_BY_FUNCTION,
} PgSweepSetBy;

typedef struct PgSweepShared
{
	/*
	 * Read by every allocation; written by a switch, and when the number of
	 * backends that allocate changes.
	 */
	pg_atomic_uint64 active;	/* PGSWEEP_ACTIVE(); written under lock */
	pg_atomic_uint32 batch;		/* size of a lease; written under mutex */
	char		pad[PG_CACHE_LINE_SIZE - sizeof(pg_atomic_uint64) - sizeof(pg_atomic_uint32)];

	/* Constant after start */
	LWLock	   *lock;			/* serializes switches, resets and views */
	uint32		num_slots;
	uint32		ncpus;

	/* Protected by mutex, which is held for a few instructions only */
	slock_t		mutex;
	uint32		nbackends;		/* slots in use */
	uint32		batch_configured;	/* pg_sweep.batch_size that batch follows */

	/* Protected by lock */
	PgSweepStrategyId configured;	/* pg_sweep.strategy as last applied */
	TimestampTz active_since;
	PgSweepSetBy set_by;
	NameData	set_by_role;	/* empty unless PGSWEEP_SET_BY_FUNCTION */
	TimestampTz stats_reset;
	PgSweepCounters base[PGSWEEP_NUM_STRATEGIES];	/* totals at that time */
	uint64		core_ticks_base;	/* of core's hand, the same */
	uint64		switches[PGSWEEP_NUM_STRATEGIES];	/* times made active */
	int64		active_usec[PGSWEEP_NUM_STRATEGIES];	/* up to active_since or
														 * stats_reset */

	/*
	 * Allocations that StrategySyncStart() has passed on to its caller.
	 * Written by the background writer only.
	 */
	uint64		allocations_reported;

	/* "batched": the whole pool as one partition */
	PgSweepPartition pool pg_attribute_aligned(PG_CACHE_LINE_SIZE);

	PgSweepSlotPadded slots[FLEXIBLE_ARRAY_MEMBER];
} PgSweepShared;

/* shmem.c; NULL unless preloaded into a server that has the patches */
extern PgSweepShared *PgSweep;
extern Size pgsweep_shmem_size(void);
extern void pgsweep_shmem_init(void);
extern uint32 pgsweep_batch_size_in_force(uint32 configured, uint32 nbackends);

/* slot.c */
extern PgSweepSlot *pgsweep_my_slot;
extern union BufferDescPadded *pgsweep_descriptors;
extern PgSweepSlot *pgsweep_attach(void);
extern void pgsweep_set_batch_configured(uint32 configured);

/* state.c */
typedef enum PgSweepState
{
	PGSWEEP_STATE_OK,
	PGSWEEP_STATE_NOT_PRELOADED,
	PGSWEEP_STATE_NOT_PATCHED,
	PGSWEEP_STATE_WRONG_API,
} PgSweepState;

extern PgSweepState pgsweep_state(void);
extern const char *pgsweep_state_name(PgSweepState state);
extern const char *pgsweep_state_note(PgSweepState state);
extern void pgsweep_require_ok(const char *function);

/* guc.c */
extern int	pgsweep_strategy;
extern int	pgsweep_batch_size;
extern void pgsweep_define_gucs(void);

/* switch.c */
extern PgSweepStrategyId pgsweep_switch(PgSweepStrategyId to, PgSweepSetBy by);
extern void pgsweep_apply_configuration(void);

/* stats.c */
extern void pgsweep_sum_counters(PgSweepCounters *totals);
extern uint64 pgsweep_allocations_total(void);

#pragma GCC visibility pop

#endif							/* PG_SWEEP_H */
