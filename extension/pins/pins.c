/*-------------------------------------------------------------------------
 *
 * pins.c
 *	  How many buffers each process has pinned, where others can read it.
 *
 * A process counts its own pins in a table of its own, in bufmgr.c.  Here it
 * moves the head of that table to a place in shared memory, and back before it
 * leaves; see core's storage/private_refcount.h.  Where the head is makes no
 * difference to who pins: nothing is added to that path.
 *
 * A process that runs a transaction comes here at the end of the first, which
 * InitPostgres() runs for all that are connected to a database, parallel
 * workers and autovacuum's included.  Others come with their first allocation
 * (slot.c); those that never allocate do not come.
 *
 * IDENTIFICATION
 *	  extension/pins/pins.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "compat.h"
#include "feature.h"
#include "miscadmin.h"
#include "pins/pins.h"
#include "shared.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/shmem.h"

/*
 * The place of the process with the same ProcNumber.  How large a head is, and
 * what is in it, is the server's business alone.
 */
typedef struct PgSweepPinsPlace
{
	int			pid;			/* 0 = nobody; else the head is this process' */
	char		head[FLEXIBLE_ARRAY_MEMBER] pg_attribute_aligned(MAXIMUM_ALIGNOF);
} PgSweepPinsPlace;

static char *places = NULL;

/* Set when this process has taken its place, and for good */
static bool been_here = false;

/*
 * A place has lines of its own, as its owner writes it at each pin.
 */
static Size
place_size(void)
{
	return TYPEALIGN(PG_CACHE_LINE_SIZE,
					 offsetof(PgSweepPinsPlace, head) + PrivateRefCountHeadSize());
}

static PgSweepPinsPlace *
place_of(ProcNumber procno)
{
	return (PgSweepPinsPlace *) (places + procno * place_size());
}

static Size
pins_shmem_size(void)
{
	return mul_size(pgsweep_num_slots(), place_size());
}

static void
pins_shmem_init(void)
{
	bool		found;

	places = ShmemInitStruct("pg_sweep pins", pins_shmem_size(), &found);

	/* as a place must be that has no head */
	if (!found)
		memset(places, 0, pins_shmem_size());
}

#ifdef USE_ASSERT_CHECKING
/*
 * No process, and no head
 */
static bool
is_empty(const PgSweepPinsPlace *place)
{
	PrivateRefCountInfo info;

	GetPrivateRefCountInfo(place->head, &info);
	return place->pid == 0 && info.slots == 0;
}
#endif

/*
 * Called before core's own routines that look whether the process has released
 * all its pins (AtProcExit_Buffers), and that give its PGPROC to others
 * (ProcKill): it was registered after both.  A backend has released them by
 * then, an auxiliary process not yet: its counts move with the head.
 */
static void
leave_place(int code, Datum arg)
{
	PgSweepPinsPlace *place = (PgSweepPinsPlace *) DatumGetPointer(arg);

	place->pid = 0;
	pg_write_barrier();			/* pairs with the second one in
								 * pgsweep_pins_read() */
	MovePrivateRefCountHead(NULL);
	Assert(is_empty(place));
}

/*
 * Take this process' place, if it has one and did not take it before.
 *
 * Called from the middle of an allocation, too (take_slot in feature.h).
 */
static void
show_pins(void)
{
	PgSweepPinsPlace *place;

	if (been_here || proc_exit_inprogress || !pgsweep_may_have_slot())
		return;

	been_here = true;
	place = place_of(MyProcNumber);
	Assert(is_empty(place));	/* who was here before has left */

	/* first what could fail */
	on_shmem_exit(leave_place, PointerGetDatum(place));
	MovePrivateRefCountHead(place->head);
	pg_write_barrier();			/* pairs with the first one in
								 * pgsweep_pins_read() */
	place->pid = MyProcPid;
}

/*
 * The first transaction of this process comes to an end.
 */
static void
first_transaction(XactEvent event, void *arg)
{
	UnregisterXactCallback(first_transaction, NULL);
	show_pins();
}

/*
 * In the postmaster, which runs no transaction; its children inherit it.
 */
static void
pins_prepare(void)
{
	RegisterXactCallback(first_transaction, NULL);
}

/*
 * What a process has pinned; false if it has no place there (any more).
 *
 * What would break it: we see the pid, the process leaves, the next one with its
 * PGPROC moves in, and we read that one's head, or one half taken away.  But the
 * pid is taken away before the head, and set after the next head is there; so if
 * we have read anything of either, the second look finds 0 or the next pid.  The
 * first barrier keeps us from reading the head before the first look, when it may
 * have been that of the process before.
 */
bool
pgsweep_pins_read(ProcNumber procno, int pid, PrivateRefCountInfo *info)
{
	const PgSweepPinsPlace *place;

	if (places == NULL)
		return false;

	place = place_of(procno);
	if (*(const volatile int *) &place->pid != pid)
		return false;
	pg_read_barrier();			/* pairs with show_pins() */
	GetPrivateRefCountInfo(place->head, info);
	pg_read_barrier();			/* pairs with leave_place() */
	return *(const volatile int *) &place->pid == pid;
}

const PgSweepFeature pgsweep_pins_feature = {
	.patch = "pins-private-refcount",
	.symbol = (const void *) MovePrivateRefCountHead,
	.prepare = pins_prepare,
	.shmem_size = pins_shmem_size,
	.shmem_init = pins_shmem_init,
	.take_slot = show_pins,
};
