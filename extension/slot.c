/*-------------------------------------------------------------------------
 *
 * slot.c
 *	  A process takes its slot at its first allocation, and leaves it at exit.
 *
 * The number of slots in use decides how large a lease may be, so both are
 * done under the mutex: the size in force always belongs to the number.  That
 * is twice in a process' life; the hot path only reads the size.
 *
 * IDENTIFICATION
 *	  extension/slot.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pg_sweep.h"
#include "storage/buf_internals.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "sweep/partitions.h"

PgSweepSlot *pgsweep_my_slot = NULL;
BufferDescPadded *pgsweep_descriptors = NULL;	/* set with the slot */

/* Set when this process has left its slot, and must not take it again */
static bool detached = false;

/*
 * The caller holds no spinlock, and nothing in here can fail while we do.
 */
static void
change_backends(int by, const uint32 *configured)
{
	uint32		batch;

	SpinLockAcquire(&PgSweep->mutex);
	PgSweep->nbackends += by;
	if (by > 0)
		PgSweep->slots_used = Max(PgSweep->slots_used, (uint32) MyProcNumber + 1);
	if (configured)
		PgSweep->batch_configured = *configured;
	batch = pgsweep_batch_size_in_force(PgSweep->batch_configured, PgSweep->nbackends);

	/* its line is read at every allocation: do not write it for nothing */
	if (batch != pg_atomic_read_u32(&PgSweep->batch))
		pg_atomic_write_u32(&PgSweep->batch, batch);
	SpinLockRelease(&PgSweep->mutex);
}

/*
 * A slot's counters of partitions: num_partitions of them, in lines of their
 * own, behind all the slots.
 */
PgSweepPartCounters *
pgsweep_part_counters(const PgSweepSlot *slot)
{
	Size		number = (const PgSweepSlotPadded *) slot - PgSweep->slots;

	return (PgSweepPartCounters *) ((char *) PgSweep + PgSweep->part_counters_offset +
									number * PgSweep->part_counters_stride);
}

/*
 * Follow a changed pg_sweep.batch_size.
 */
void
pgsweep_set_batch_configured(uint32 configured)
{
	change_backends(0, &configured);
}

static void
pgsweep_detach(int code, Datum arg)
{
	PgSweepSlot *slot = pgsweep_my_slot;

	pgsweep_my_slot = NULL;
	detached = true;
	pgsweep_note_lease(slot, slot->counters[PGSWEEP_PARTITIONED].allocations);
	slot->pid = 0;
	if (slot->lease.left > 0)
	{
		PgSweepCounters *count = &slot->counters[PGSWEEP_ACTIVE_ID(slot->lease.active)];

		count->leases_expired++;
		count->buffers_expired += slot->lease.left;
		slot->lease.left = 0;
	}
	change_backends(-1, NULL);
}

/*
 * Take this process' slot.  Returns NULL if the process has none (it has no
 * PGPROC) or is on its way out.
 *
 * Called from the middle of an allocation: no memory is allocated and no
 * lock that could be held by the caller is taken.  base is written without
 * PgSweepShared->lock for that reason; a reset at the same moment writes the
 * same values, since the counters do not move before we are done.
 */
PgSweepSlot *
pgsweep_attach(void)
{
	PgSweepSlot *slot;

	if (detached || MyProc == NULL || MyProcNumber < 0 ||
		(uint32) MyProcNumber >= PgSweep->num_slots)
		return NULL;

	slot = &PgSweep->slots[MyProcNumber].slot;
	memcpy(slot->base, slot->counters, sizeof(slot->base));
	memset(&slot->lease, 0, sizeof(slot->lease));
	slot->stock_active = 0;
	pg_write_barrier();			/* pairs with read_backend() in views.c */
	slot->pid = MyProcPid;

	/* another beginning than the slot's next process, however short-lived */
	slot->itinerary.draw += MyProcPid;

	pgsweep_descriptors = BufferDescriptors;
	pgsweep_my_slot = slot;
	on_shmem_exit(pgsweep_detach, (Datum) 0);
	change_backends(1, NULL);
	pgsweep_pins_show();		/* it may never run a transaction */
	return slot;
}
