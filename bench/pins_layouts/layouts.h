/*
 * layouts.h
 *	  What the files of bench/pins_layouts share: candidates for the table in
 *	  which a process counts its own pins, and who checks and times them.
 *
 * A candidate is a file that defines, all of them static,
 *
 *	void	init(void)				called once
 *	void	reserve(void)			room for one entry more; may allocate
 *	int32  *find(Buffer buffer, bool do_move)
 *									the count, or NULL; with do_move, which needs
 *									a reservation, it may change what is where
 *	int32  *new_entry(Buffer buffer)
 *									of a buffer that has none, as reserved before;
 *									a count of zero; allocates nothing
 *	void	forget(int32 *refcount, Buffer buffer)
 *									and there is room for another one
 *
 * and then includes loads.h, which makes a Layout of them.  All of them are in
 * one translation unit, as in bufmgr.c, because much is decided by what the
 * compiler makes inline.  A count's address is good until the next call of
 * anything.
 *
 * The macro LAYOUT is the name; the bench's "run" knows which files and
 * macros make which candidates.
 */
#ifndef LAYOUTS_H
#define LAYOUTS_H

#include "postgres_fe.h"

#include "storage/buf.h"

/* What is done around a pin and an unpin */
typedef enum Between
{
	NOTHING,
	UNDER_LOCK,					/* the pin under a lock, as ReadBuffer() does */
	AFTER_WORK,					/* before each, something that takes its time */
} Between;

#define WORK_CYCLES 100

typedef struct Layout
{
	const char *name;
	void		(*init) (void);
	void		(*pin) (Buffer buffer);
	void		(*unpin) (Buffer buffer);
	int32		(*count) (Buffer buffer, bool do_move);

	/* pin one and unpin one, n times */
	void		(*run) (const Buffer *pinned, const Buffer *unpinned, int n,
						Between between);
} Layout;

/* An array, so that a list of names is a list of addresses, too */
typedef const Layout LayoutByName[1];

/* From here on, the compiler knows nothing of what a variable has */
#define HIDE_VALUE(x)	__asm__ __volatile__("" : "+r" (x))

/*
 * What stands for the buffers' headers, each in a cache line, and for the lock
 * of a partition of the buffer mapping.
 */
#define SHARED_STATES 4096

typedef union SharedState
{
	uint32		state;
	char		pad[64];
} SharedState;

extern SharedState shared_states[SHARED_STATES];
extern SharedState shared_lock;

extern void check_layout(const Layout *layout, int steps, uint64 seed);
extern void measure_forwarding(void);

#endif							/* LAYOUTS_H */
