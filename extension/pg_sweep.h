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
#include "numa/numa.h"
#include "storage/lwlock.h"
#include "storage/procnumber.h"
#include "storage/spin.h"
#include "sweep/balance.h"
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
	PGSWEEP_PARTITIONED,

	/*
	 * Not a strategy but a wish: one of the above by what the machine is
	 * (sweep/strategy_auto.c).  Only pg_sweep.strategy, pg_sweep_set_strategy() and
	 * PgSweepShared.configured know it.
	 */
	PGSWEEP_AUTO,
} PgSweepStrategyId;

#define PGSWEEP_NUM_STRATEGIES	(PGSWEEP_PARTITIONED + 1)

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
	uint64		evictions;		/* of them, those whose buffer held a page */
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
 * Event counts of one partition by one process, or of one partition by all.
 * Brought up to date when a lease ends; pgsweep_sum_partitions() adds what the
 * present lease has given.
 */
typedef struct PgSweepPartCounters
{
	uint64		requests;		/* by processes that were at home here */
	uint64		redirected_out; /* of them, those served by another partition */
	uint64		allocations;	/* victims found here */
	uint64		redirected_in;	/* of them, for processes at home elsewhere */
	uint64		local;			/* of allocations, by processes on its node */
	uint64		evictions;		/* of allocations, the buffer held a page */
} PgSweepPartCounters;

/*
 * What a process remembers of "partitioned" between two leases.
 */
typedef struct PgSweepItinerary
{
	uint32		draw;			/* for flows; low 16 bits are the last number */
	uint32		look_round;		/* partition to be compared with next */
	uint32		hops;			/* partitions that this walk has left, because
								 * all that it found there was pinned */
	uint32		home;			/* when the lease was taken */
	uint32		target;			/* partition of the lease */
	bool		noting;			/* home and target mean something */
	uint32		version;		/* odd while pgsweep_note_lease() writes */

	/* counters of "partitioned" that PgSweepPartCounters have already */
	uint64		noted_allocations;
	uint64		noted_failed;
	uint64		noted_evictions;
} PgSweepItinerary;

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
	PgSweepItinerary itinerary;
	int			pid;			/* 0 = nobody */
	bool		has_waited;		/* for an LWLock, one of its processes: its
								 * PgSweepLwlockSlot is in use */
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

/* pg_sweep.numa_placement */
typedef enum PgSweepNumaPlacement
{
	PGSWEEP_NUMA_PLACEMENT_OFF,
	PGSWEEP_NUMA_PLACEMENT_INTERLEAVE,
	PGSWEEP_NUMA_PLACEMENT_PARTITION,
	PGSWEEP_NUMA_PLACEMENT_AUTO,
} PgSweepNumaPlacement;

/* pg_sweep.numa_affinity */
typedef enum PgSweepNumaAffinity
{
	PGSWEEP_NUMA_AFFINITY_OFF,
	PGSWEEP_NUMA_AFFINITY_SPREAD,
	PGSWEEP_NUMA_AFFINITY_CURRENT,
} PgSweepNumaAffinity;

/* What became of pg_sweep.numa_placement; constant after start */
typedef struct PgSweepNumaPlacementStatus
{
	PgSweepNumaPlacement configured;
	PgSweepNumaPlacement effective; /* never AUTO */
	int			error;			/* errno of what failed, or 0 */
	int64		usec;			/* time it took at start */
	char		note[256];		/* why it is not what was asked for, or "" */
} PgSweepNumaPlacementStatus;

/*
 * The plan of "partitioned": where the requests of each partition go.  Written
 * by the background writer, under PgSweepShared->lock; read by every lease
 * without a lock.  Who reads in the middle of a change takes one lease by a
 * mixture of two plans: any partition is a right place for a lease.
 */
typedef struct PgSweepPlan
{
	bool		balanced;		/* pg_sweep.balance */
	TimestampTz made_at;		/* 0 = the one of the start */
	uint64		base_ticket[PGSWEEP_MAX_PARTITIONS];	/* hands at that time */
	float		ticks_per_victim[PGSWEEP_MAX_PARTITIONS];	/* up to then; >= 1 */
	PgSweepFlowRow rows[PGSWEEP_MAX_PARTITIONS];
} PgSweepPlan;

/* How fast a partition gives up pages; see pgsweep_note_evictions() */
typedef struct PgSweepEvictionRate
{
	double		per_second;		/* moving average */
	double		weight;			/* of the samples in it, up to 1 */
	uint64		evictions;		/* at the last sample */
} PgSweepEvictionRate;

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
	uint32		num_partitions;
	Size		part_counters_offset;	/* of slot 0's PgSweepPartCounters */
	Size		part_counters_stride;	/* from one slot's to the next's */

	/* Protected by mutex, which is held for a few instructions only */
	slock_t		mutex;
	uint32		nbackends;		/* slots in use */
	uint32		slots_used;		/* slots beyond have never been used; read
								 * without the mutex by those who add up */
	uint32		batch_configured;	/* pg_sweep.batch_size that batch follows */

	/* Protected by lock */
	PgSweepStrategyId configured;	/* pg_sweep.strategy as last applied */
	TimestampTz active_since;
	char		reason[128];	/* what auto decided by; "" without auto */
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

	PgSweepNumaPlacementStatus placement;	/* constant after start */

	/* What pg_sweep_numa_residence found last; protected by lock */
	TimestampTz resident_at;	/* 0 = never asked */
	uint64		resident_buffers[PGSWEEP_NUMA_MAX_NODES];

	/*
	 * Next node to start a process on, for pg_sweep.numa_affinity.
	 * Protected by core's ProcStructLock.
	 */
	uint32		next_node;

	/* Has been reported; no lock, at worst it is reported twice */
	bool		binding_failed;

	/* Of the partitions; protected by lock */
	PgSweepPartCounters part_base[PGSWEEP_MAX_PARTITIONS];	/* at stats_reset */
	TimestampTz eviction_sample_at;
	PgSweepEvictionRate eviction_rate[PGSWEEP_MAX_PARTITIONS];

	/* "batched": the whole pool as one partition */
	PgSweepPartition pool pg_attribute_aligned(PG_CACHE_LINE_SIZE);

	/* "partitioned" */
	PgSweepPartition parts[PGSWEEP_MAX_PARTITIONS];
	PgSweepPlan plan;

	PgSweepSlotPadded slots[FLEXIBLE_ARRAY_MEMBER] pg_attribute_aligned(PG_CACHE_LINE_SIZE);
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
extern PgSweepPartCounters *pgsweep_part_counters(const PgSweepSlot *slot);

/* pins.c; only with the patch, but for pgsweep_pins_show() and pgsweep_pins_read() */
extern Size pgsweep_pins_shmem_size(uint32 num_slots);
extern void pgsweep_pins_shmem_init(uint32 num_slots);
extern void pgsweep_pins_init(void);
extern void pgsweep_pins_show(void);
extern bool pgsweep_pins_read(ProcNumber procno, int pid, PrivateRefCountInfo *info);

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
extern bool pgsweep_has_proc_placement(void);
extern const char *pgsweep_proc_placement_note(void);
extern bool pgsweep_has_lwlock_wait(void);
extern const char *pgsweep_lwlock_wait_note(void);
extern void pgsweep_require_lwlock_wait(const char *function);
extern bool pgsweep_has_private_refcount(void);
extern const char *pgsweep_private_refcount_note(void);
extern bool pgsweep_has_ring_flush(void);
extern const char *pgsweep_ring_flush_note(void);

/* guc.c */
extern int	pgsweep_strategy;
extern int	pgsweep_batch_size;
extern int	pgsweep_partitions;
extern bool pgsweep_balance;
extern int	pgsweep_numa_placement;
extern int	pgsweep_numa_affinity;
extern bool pgsweep_numa_local_memory;
extern int	pgsweep_numa_debug_nodes;
extern int	pgsweep_numa_debug_node;
extern void pgsweep_define_gucs(void);
extern const char *pgsweep_numa_placement_name(PgSweepNumaPlacement placement);
extern const char *pgsweep_option_name(PgSweepStrategyId id);

/* switch.c */
extern PgSweepStrategyId pgsweep_switch(PgSweepStrategyId wish, PgSweepSetBy by);
extern void pgsweep_apply_configuration(void);

/* stats.c */
extern void pgsweep_sum_counters(PgSweepCounters *totals);
extern uint64 pgsweep_allocations_total(void);
extern void pgsweep_sum_partitions(PgSweepPartCounters *totals);

/* placement.c */
extern void pgsweep_numa_place(void);
#define PGSWEEP_NUMA_PIECE_BLOCKS	"blocks"	/* PgSweepNumaPiece.what of the
											 * buffers themselves */
extern PgSweepNumaPiece *pgsweep_numa_pieces(int *n);
extern const char *pgsweep_numa_kernel_hint(int error);

#pragma GCC visibility pop

#endif							/* PG_SWEEP_H */
