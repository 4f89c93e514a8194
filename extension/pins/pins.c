/*-------------------------------------------------------------------------
 *
 * extension/pins/pins.c
 *	  Number of buffers that each process has pinned, readable by others.
 *
 * A process counts its own pins in a private table, in bufmgr.c.  It also
 * stores their number in memory that we give it, here in a place that others
 * can read, until it exits; see core's storage/private_refcount.h.
 *
 * A process that runs transactions takes its place at the end of the first
 * one.  InitPostgres() runs one in all processes that connect to a database,
 * including parallel and autovacuum workers.  Other processes take it at
 * their first allocation (slot.c) under another strategy than stock, if any.
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
 * The place of the process with the same ProcNumber.  It has its own cache
 * line, because its owner writes it at most pins.
 */
typedef struct PgSweepPinsPlace
{
	pg_attribute_aligned(PG_CACHE_LINE_SIZE) int pid;	/* owner; 0 = none */
	PrivateRefCountInfo info;	/* written by bufmgr.c */
} PgSweepPinsPlace;

static PgSweepPinsPlace *places = NULL;

/* Set once this process has taken its place, and never reset */
static bool been_here = false;

static Size
pins_shmem_size(void)
{
	return mul_size(pgsweep_num_slots(), sizeof(PgSweepPinsPlace));
}

static void
pins_shmem_init(void)
{
	bool		found;

	places = ShmemInitStruct("pg_sweep pins", pins_shmem_size(), &found);
	if (!found)
		memset(places, 0, pins_shmem_size());
}

/*
 * Called before two routines of core, because it was registered after them:
 * the check that all pins are released (AtProcExit_Buffers), and the release
 * of the PGPROC (ProcKill).  A backend has released its pins by then, an
 * auxiliary process has not: it goes on counting, unseen.
 */
static void
leave_place(int code, Datum arg)
{
	PgSweepPinsPlace *place = (PgSweepPinsPlace *) DatumGetPointer(arg);

	place->pid = 0;
	pg_write_barrier();			/* pairs with the second one in
								 * pgsweep_pins_read() */
	ShowPrivateRefCount(NULL);
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
	place = &places[MyProcNumber];
	Assert(place->pid == 0);	/* the owner before has left */

	/* first the part that can fail */
	on_shmem_exit(leave_place, PointerGetDatum(place));
	ShowPrivateRefCount(&place->info);
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
 * PGPROC moves in, and we read the figures of that one.  But the pid is
 * cleared before a process leaves, and set after the figures of the next one
 * are there.  So if we have read anything of the next one, the second look
 * finds 0 or its pid.  The first barrier keeps us from reading the figures
 * before the first look, when they may have been of the process before.
 */
bool
pgsweep_pins_read(ProcNumber procno, int pid, PrivateRefCountInfo *info)
{
	const volatile PgSweepPinsPlace *place;

	if (places == NULL)
		return false;

	place = &places[procno];
	if (place->pid != pid)
		return false;
	pg_read_barrier();			/* pairs with show_pins() */
	*info = place->info;
	pg_read_barrier();			/* pairs with leave_place() */
	return place->pid == pid;
}

const PgSweepFeature pgsweep_pins_feature = {
	.patch = "pins-private-refcount",
	.symbol = (const void *) ShowPrivateRefCount,
	.prepare = pins_prepare,
	.shmem_size = pins_shmem_size,
	.shmem_init = pins_shmem_init,
	.take_slot = show_pins,
};
