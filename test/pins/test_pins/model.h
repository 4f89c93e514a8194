/*-------------------------------------------------------------------------
 *
 * test/pins/test_pins/model.h
 *	  The pins that a backend should have: plain arrays with one element per
 *	  buffer, and a list per resource owner.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MODEL_H
#define MODEL_H

#include "common/pg_prng.h"
#include "storage/relfilelocator.h"
#include "utils/resowner.h"

#include "test_pins.h"

/* Only a server with the core patch "pins-private-refcount" tells how many buffers
 * are pinned. */
#if __has_include("storage/private_refcount.h")
#define HAVE_PRIVATE_REFCOUNT_INFO
#include "storage/private_refcount.h"
#endif

#define MAX_OWNERS	24
#define MAX_LEVELS	5

/*
 * A resource owner and its pins, in the order of pinning.  A buffer is listed as
 * often as it was pinned.
 */
typedef struct ModelOwner
{
	ResourceOwner owner;		/* NULL if the element is free */
	int			parent;			/* -1 for the owner at the start */
	int			level;			/* subtransaction with which it ends */
	bool		ours;			/* created by us, not by a subtransaction */
	Buffer	   *pins;
	int			npins;
	int			room;
} ModelOwner;

/* What has happened, in the order of test_pins_random()'s columns */
#define MODEL_COUNTS(X) \
	X(pinned) X(pinned_again) X(released) X(released_and_read) X(recent) \
	X(recent_gone) X(read_together) X(extended) X(truncated) X(evicted) \
	X(transferred) X(owners) X(dropped_by_owners) X(subtransactions) \
	X(dropped_by_aborts) X(errors) X(deepest) X(most_held) X(sizes) \
	X(emptied) X(compared) X(shown_elsewhere) X(overwritten)

typedef struct ModelCounts
{
#define X(name) int64 name;
	MODEL_COUNTS(X)
#undef X
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
	BlockNumber base;			/* its size at least */
	BlockNumber blocks;			/* its size now */
	BlockNumber most_blocks;	/* its size at most */
	Buffer	   *buffer_of;		/* by block, where it was seen last */

	/* the pins */
	int32	   *count;			/* by buffer, from 1 */
	BlockNumber *block_in;		/* by buffer, if that is pinned */
	int			held;			/* buffers */
	int64		pins;			/* at least one per buffer held */
	ModelOwner	owners[MAX_OWNERS];
	int			current;		/* the owner of new pins */
	int			base_owner[MAX_LEVELS]; /* of each subtransaction */
	int			level;
	Buffer		touched;		/* by this step */
	Buffer		last_touched;	/* by the step before */

	/* the phase */
	int			most;
	int			target;
	int64		phase_end;

	int			peak;			/* most buffers held at once */
	uint32		peak_before;	/* bufmgr.c's peak before we began */
	uint32		free_limit;		/* GetAdditionalPinLimit() with nothing pinned */
	bool	   *size_seen;
	bool		was_full;
	ModelCounts counts;
} Model;

/* Errors tell seed and step, which reproduce them. */
#define violation(m, ...) \
	model_violation(m, psprintf(__VA_ARGS__))

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
extern void begin_showing(Model *m);
extern void show_elsewhere(Model *m);
extern void end_showing(Model *m);

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
