/*-------------------------------------------------------------------------
 *
 * extension/pins/pins.c
 *	  Number of buffers that each process has pinned, readable by others.
 *
 * A process counts its own pins in a private table, in bufmgr.c.  Here it
 * moves the head of that table to a place in shared memory, and back before
 * it exits; see core's storage/private_refcount.h.  The place of the head
 * makes no difference for pinning: nothing is added to that path.
 *
 * A process that runs transactions takes its place at the end of the first
 * one.  InitPostgres() runs one in all processes that connect to a database,
 * including parallel and autovacuum workers.  Other processes take it at
 * their first allocation (slot.c), and never if they do not allocate.
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
 * The place of the process with the same ProcNumber.  Only the server knows
 * the size and the contents of a head.
 */
typedef struct PgSweepPinsPlace
{
	int			pid;			/* owner of the head; 0 = none */
	char		head[FLEXIBLE_ARRAY_MEMBER] pg_attribute_aligned(MAXIMUM_ALIGNOF);
} PgSweepPinsPlace;

static char *places = NULL;

/* Set once this process has taken its place, and never reset */
static bool been_here = false;

/*
 * A place has its own cache lines, because its owner writes it at each pin.
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

	/* a place without a head must be zero */
	if (!found)
		memset(places, 0, pins_shmem_size());
}

#ifdef USE_ASSERT_CHECKING
/*
 * Does this place have no process, and no head?
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
 * Called before two routines of core, because it was registered after them:
 * the check that all pins are released (AtProcExit_Buffers), and the release
 * of the PGPROC (ProcKill).  A backend has released its pins by then, an
 * auxiliary process has not: its counts move with the head.
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
 * Take this process' place, if it has one and has not done so before.
 *
 * Also called in the middle of an allocation (take_slot in feature.h).
 */
static void
show_pins(void)
{
	PgSweepPinsPlace *place;

	/* no places: another library's shmem_startup_hook did not call ours */
	if (been_here || places == NULL || proc_exit_inprogress || !pgsweep_may_have_slot())
		return;

	been_here = true;
	place = place_of(MyProcNumber);
	Assert(is_empty(place));	/* the owner before has left */

	/* first the part that can fail */
	on_shmem_exit(leave_place, PointerGetDatum(place));
	MovePrivateRefCountHead(place->head);
	pg_write_barrier();			/* pairs with the first one in
								 * pgsweep_pins_read() */
	place->pid = MyProcPid;
}

/*
 * Called at the end of this process' first transaction.
 */
static void
first_transaction(XactEvent event, void *arg)
{
	UnregisterXactCallback(first_transaction, NULL);
	show_pins();
}

/*
 * Called in the postmaster, which runs no transaction; its children inherit
 * the callback.
 */
static void
pins_prepare(void)
{
	RegisterXactCallback(first_transaction, NULL);
}

/*
 * Read the pins of a process; returns false if it has no place there (any
 * more).
 *
 * The danger: we see the pid, the process exits, the next process with its
 * PGPROC moves in, and we read the head of that one, or half of a head.  But
 * the pid is cleared before the head is removed, and set after the next head
 * is there.  So if we have read anything of either, the second look finds 0
 * or the next pid.  The first barrier keeps us from reading the head before
 * the first look, when it may have been that of the process before.
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
