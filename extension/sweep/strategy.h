/*-------------------------------------------------------------------------
 *
 * extension/sweep/strategy.h
 *	  The interface of buffer replacement strategies.
 *
 * To add one: write sweep/strategy_NAME.c with one const PgSweepStrategyRoutine,
 * and add a line to PGSWEEP_STRATEGIES (sweep.h).
 *
 * A strategy knows buffers and hands.  It knows nothing of SQL, parameters or
 * views, and holds its state in shared memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_STRATEGY_H
#define PGSWEEP_STRATEGY_H

#include "storage/buf_internals.h"
#include "sweep/sweep.h"

#pragma GCC visibility push(hidden)

typedef struct PgSweepStrategyRoutine
{
	/* ---- required ---- */

	/*
	 * Position of the hand: buffer id in *hand, passes in *passes.  Never
	 * goes back, except that core's passes begin anew after 2^32.  With
	 * several hands, -1 and the passes of their sum over the pool.  Called in
	 * any process.  Must not ereport(ERROR).
	 */
	void		(*position) (int *hand, uint64 *passes);

	/* ---- get_victim and lru_scan, or none of these: NULL leaves all to core ---- */

	/*
	 * Find a victim for the caller, the owner of slot. active is the word
	 * that made this strategy the active one.  Returns it with the header
	 * lock held and the state in *buf_state.  Counts in its own
	 * slot->counters[].  Raises "no unpinned buffers available" if that holds
	 * for the whole pool, and then holds no lock.
	 */
	BufferDesc *(*get_victim) (PgSweepSlot *slot, uint32 *buf_state, uint64 active);

	/*
	 * A page has come into the pool, in buf; the caller owns slot.  hash is
	 * that of its tag (tag_hash.h), ring the access strategy or NULL, and
	 * active as above.  sweep_hooks.h says when, with which locks, and what
	 * is not allowed.  Does not pair with get_victim: see there, too.  NULL if
	 * loads do not matter: core then calls nothing.  Must not ereport(ERROR).
	 */
	void		(*loaded) (PgSweepSlot *slot, BufferDesc *buf, uint64 hash,
						   BufferAccessStrategy ring, uint64 active);

	/*
	 * Called by the process that has made this strategy the active one, not at
	 * the start of the server.  NULL if there is nothing to do.  Must not
	 * ereport(ERROR).
	 */
	void		(*activated) (void);

	/*
	 * A buffer has lost its page; and: may there be any without one?  NULL if the
	 * strategy does not count them.  Must not ereport(ERROR).
	 */
	void		(*freed) (int buffer);
	bool		(*may_have_free) (void);

	/*
	 * Called at the start of each cycle of the background writer, only in
	 * that process, also with bgwriter_lru_maxpages = 0.  NULL if there is
	 * nothing to do.  Must not ereport(ERROR).
	 */
	void		(*cycle) (void);

	/*
	 * One cycle of the background writer's LRU scan, only in that process.
	 * recent_alloc buffers were allocated since the last cycle (or since the
	 * last strategy's).  fresh is true in the first cycle after a switch:
	 * remembered positions of hand and cleaning point are out of date. Writes
	 * at most max_pages (> 0) buffers; sets *wrote.  Returns true if the
	 * writer may hibernate.  May ereport(ERROR).
	 */
	bool		(*lru_scan) (struct WritebackContext *wb_context, bool fresh,
							 uint32 recent_alloc, int max_pages, int *wrote);
} PgSweepStrategyRoutine;

#define PGSWEEP_DECLARE_STRATEGY(id, name) \
	extern const PgSweepStrategyRoutine pgsweep_##name##_strategy;
PGSWEEP_STRATEGIES(PGSWEEP_DECLARE_STRATEGY)

/* hooks.c */
extern const PgSweepStrategyRoutine *const pgsweep_strategies[];
extern const BufferReplacementRoutine pgsweep_replacement_routine;
extern void pgsweep_activate(PgSweepStrategyId id);
extern void pgsweep_core_counts(uint32 *passes, int *hand, uint64 *allocations);

/* advice.c */
extern void pgsweep_advice_tell(BufferDesc *buf, uint32 hash, bool ring);

/* find_free.c */
extern bool pgsweep_find_free_buffer(void);

/* clean_ahead.c: the buffer of a ticket, -1 if there is none to clean */
typedef int (*PgSweepLruBuffer) (const PgSweepPartition *part, uint64 ticket);

/* All zeroes at first */
typedef struct PgSweepLruState
{
	uint64		prev_hand;		/* ticket of the hand in the last cycle */
	uint64		next_clean;		/* ticket to go on cleaning from */
	uint64		alloc_since_move;	/* allocations since the hand moved */
	double		smoothed_alloc; /* buffers a cycle */
	double		smoothed_density;	/* buffers looked at per reusable one */
	bool		valid;			/* the two tickets mean something */

	/* of the present cycle */
	PgSweepLruBuffer buffer_of;
	const PgSweepPartition *part;	/* its argument */
	uint64		start;			/* where cleaning began */
	uint64		lap;			/* and where it has to end */
	double		reusable;		/* buffers known to be, ahead of the hand */
	double		wanted;			/* how many there should be */
	uint32		found;			/* of reusable, those found in this cycle */
	bool		idle;			/* nothing allocated and nothing to clean */
} PgSweepLruState;

/* Two for each partition: of probation, and of the rest */
#define PGSWEEP_MAX_LRU_SCANS	(2 * PGSWEEP_MAX_PARTITIONS)

extern int	pgsweep_lru_buffer(const PgSweepPartition *part, uint64 ticket);
extern void pgsweep_lru_begin(PgSweepLruState *lru, bool fresh, PgSweepLruBuffer buffer_of,
							  const PgSweepPartition *part, uint64 hand,
							  uint32 ahead, uint32 recent_alloc);
extern bool pgsweep_lru_clean(PgSweepLruState *lru, uint32 n,
							  struct WritebackContext *wb_context,
							  int max_pages, int *wrote);

#pragma GCC visibility pop

#endif							/* PGSWEEP_STRATEGY_H */
