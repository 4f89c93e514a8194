/*-------------------------------------------------------------------------
 *
 * extension/sweep/slots.c
 *	  A process takes its slot, and leaves it.
 *
 * The number of slots in use decides how large a lease may be, so both change
 * under the mutex, and the size always fits the number.  That happens twice
 * in a process' life; the hot path only reads the size.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "sweep/batch.h"
#include "sweep/counts.h"
#include "sweep/partitions.h"
#include "sweep/probation.h"

PgSweepSlot *pgsweep_my_slot = NULL;
BufferDescPadded *pgsweep_descriptors = NULL;	/* set with the slot */

/*
 * The size of a lease for a setting of pg_sweep.batch_size and a number of
 * backends, on this machine and with this pool.
 */
uint32
pgsweep_batch_size_in_force(uint32 configured, uint32 nbackends)
{
	return pgsweep_batch_size_for(pgsweep_batch_wish(configured, PgSweepPool->ncpus),
								  NBuffers, nbackends);
}

/*
 * The caller holds no spinlock, and nothing in here can fail while we do.
 */
static void
change_backends(int by, const uint32 *configured)
{
	uint32		batch;
	uint32		c2q_batch;

	SpinLockAcquire(&PgSweepPool->mutex);
	PgSweepPool->nbackends += by;
	if (configured)
		PgSweepPool->batch_configured = *configured;
	batch = pgsweep_batch_size_in_force(PgSweepPool->batch_configured, PgSweepPool->nbackends);

	c2q_batch = pgsweep_c2q_batch(&PgSweepPool->whole_probation.c2q, PgSweepPool->nbackends);

	/* their line is read at every allocation: write it only if needed */
	if (batch != pg_atomic_read_u32(&PgSweepPool->batch))
		pg_atomic_write_u32(&PgSweepPool->batch, batch);
	if (c2q_batch != pg_atomic_read_u32(&PgSweepPool->c2q_batch))
		pg_atomic_write_u32(&PgSweepPool->c2q_batch, c2q_batch);
	SpinLockRelease(&PgSweepPool->mutex);
}

/*
 * A slot's counters of partitions: num_partitions of them, in lines of their
 * own, behind all the slots.
 */
PgSweepPartCounters *
pgsweep_part_counters(const PgSweepSlot *slot)
{
	Size		number = (const PgSweepSlotPadded *) slot - PgSweepPool->slots;
	char	   *counters = (char *) PgSweepPool + PgSweepPool->part_counters_offset +
		number * PgSweepPool->part_counters_stride;

	/* wrong ones would still add up, and overwrite other shared memory */
	Assert(counters == (char *) (PgSweepPool->slots + PgSweep->num_slots) +
		   number * PgSweepPool->part_counters_stride);
	return (PgSweepPartCounters *) counters;
}

/*
 * Follow a changed pg_sweep.batch_size.
 */
void
pgsweep_set_batch_configured(uint32 configured)
{
	change_backends(0, &configured);
}

/*
 * This process takes its slot, and with it a share of what may be leased.
 *
 * base is written without PgSweep->lock, which the caller may hold.  A reset
 * at the same moment writes the same values, because the counters do not move
 * before this ends.
 */
void
pgsweep_enter_slot(void)
{
	PgSweepSlot *slot = &PgSweepPool->slots[MyProcNumber].slot;
	PgSweepCounters base = {0};

	for (int s = 0; s < PGSWEEP_NUM_STRATEGIES; s++)
		pgsweep_add_counters(&base, &slot->counters[s], 1);
	slot->base = base;
	memset(&slot->lease, 0, sizeof(slot->lease));
	slot->c2q.active = 0;

	pgsweep_descriptors = BufferDescriptors;
	pgsweep_my_slot = slot;
	change_backends(1, NULL);
}

void
pgsweep_leave_slot(void)
{
	PgSweepSlot *slot = pgsweep_my_slot;

	pgsweep_my_slot = NULL;
	if (slot->itinerary.noting)
		pgsweep_note_lease(slot, 0);
	pgsweep_c2q_leave(slot);
	if (slot->lease.left > 0)
	{
		PgSweepCounters *count = &slot->counters[PGSWEEP_ACTIVE_ID(slot->lease.active)];

		count->leases_expired++;
		count->buffers_expired += slot->lease.left;
		slot->lease.left = 0;
	}
	change_backends(-1, NULL);
}
