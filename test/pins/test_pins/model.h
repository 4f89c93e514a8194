/*-------------------------------------------------------------------------
 *
 * model.h
 *	  What a backend has pinned, as it should be: plain arrays, one element a
 *	  buffer, and a list for each resource owner.
 *
 * test/pins/test_pins/model.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef MODEL_H
#define MODEL_H

#include "common/pg_prng.h"
#include "storage/relfilelocator.h"
#include "utils/palloc.h"
#include "utils/resowner.h"

#include "test_pins.h"

/* A server that lacks the core patch "pins-private-refcount" tells nobody how many
 * buffers are pinned. */
#if __has_include("storage/private_refcount.h")
#define HAVE_PRIVATE_REFCOUNT_INFO
#include "storage/private_refcount.h"
#endif

#define MAX_OWNERS	24
#define MAX_LEVELS	5

/*
 * A resource owner and its pins, in the order of pinning; a buffer is in there as
 * often as it was pinned.
 */
typedef struct ModelOwner
{
	ResourceOwner owner;		/* NULL if the element is free */
	int			parent;			/* -1 for what was there before */
	int			level;			/* subtransaction with which it ends */
	bool		ours;			/* created by us, not by a subtransaction */
	Buffer	   *pins;
	int			npins;
	int			room;
} ModelOwner;

/* What was met, for test scripts to see that it was; in the order of the columns */
typedef struct ModelCounts
{
	int64		pinned;
	int64		pinned_again;
	int64		released;
	int64		released_and_read;
	int64		recent;
	int64		recent_gone;
	int64		read_together;
	int64		extended;
	int64		truncated;
	int64		evicted;
	int64		transferred;
	int64		owners;
	int64		dropped_by_owners;
	int64		subtransactions;
	int64		dropped_by_aborts;
	int64		errors;
	int64		emptied;
	int64		compared;
	int64		heads_moved;
	int			deepest;
	int			most_held;
	int			sizes;
} ModelCounts;

typedef struct Model
{
	int64		seed;
	int64		step;
	pg_prng_state prng;
	MemoryContext context;

	/* the table */
	Relation	rel;
	RelFileLocator locator;
	BlockNumber base;			/* blocks that it always has */
	BlockNumber blocks;			/* that it has now */
	BlockNumber most_blocks;
	Buffer	   *buffer_of;		/* where a block was seen last, by block */

	/* the pins */
	int32	   *count;			/* by buffer, from 1 */
	BlockNumber *block_in;		/* by buffer, if that is pinned */
	int			held;			/* different buffers */
	int64		pins;			/* all of them */
	ModelOwner	owners[MAX_OWNERS];
	int			current;		/* whose are new pins? */
	int			base_owner[MAX_LEVELS]; /* that of each subtransaction */
	int			level;
	Buffer		touched;		/* by the step */
	Buffer		last_touched;	/* by the one before */

	/* where it is going */
	int			most;
	int			target;
	int64		phase_end;

	int			peak;			/* most buffers held at once */
	uint32		peak_before;	/* the same by bufmgr.c, before we began */
	bool		move_heads;
	uint32		free_limit;		/* GetAdditionalPinLimit() with nothing pinned */
	bool	   *size_seen;
	bool		was_full;
	ModelCounts counts;
} Model;

/* Errors say where to look; the step can be had again by its seed. */
#define violation(m, ...) \
	model_violation(m, psprintf(__VA_ARGS__))

/* One in n */
static inline uint32
model_random(Model *m, uint32 n)
{
	return pg_prng_uint64_range(&m->prng, 0, n - 1);
}

/* in model.c */
pg_noreturn extern void model_violation(Model *m, const char *what);
extern void model_pinned(Model *m, Buffer buffer, BlockNumber block);
extern void model_unpinned(Model *m, int owner, int which);
extern int	model_find(Model *m, int owner, Buffer buffer);
extern void compare_buffer(Model *m, Buffer buffer, bool own_too);
extern void compare_step(Model *m);
extern void compare_all(Model *m);
extern void begin_heads(Model *m);
extern void move_head(Model *m);
extern void end_heads(Model *m);

/* in model_owners.c */
extern void use_owner(Model *m, int owner);
extern int	random_owner(Model *m);
extern int	random_owner_with_pins(Model *m);
extern void create_owner(Model *m);
extern void release_owner(Model *m, int top);
extern void begin_subtransaction(Model *m);
extern void commit_subtransaction(Model *m);
extern void abort_subtransaction(Model *m);
extern void fail_in_subtransaction(Model *m);

/* in random.c */
extern void release_pin(Model *m, int owner, int which);
extern void pin_block(Model *m, BlockNumber block);

#endif							/* MODEL_H */
