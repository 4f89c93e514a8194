/*-------------------------------------------------------------------------
 *
 * extension/slot.c
 *	  A process takes its slot at its first allocation under another strategy
 *	  than stock, and leaves it at exit.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "feature.h"
#include "miscadmin.h"
#include "shared.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

PgSweepShared *PgSweep = NULL;

/* Set when this process has left its slot, and must not take it again */
static bool has_left = false;

/*
 * A slot for each process that can allocate a buffer.  MaxBackends is known.
 */
uint32
pgsweep_num_slots(void)
{
	return MaxBackends + NUM_AUXILIARY_PROCS;
}

Size
pgsweep_shared_size(void)
{
	return add_size(offsetof(PgSweepShared, owner),
					mul_size(pgsweep_num_slots(), sizeof(int)));
}

/*
 * The caller holds AddinShmemInitLock.
 */
void
pgsweep_shared_init(void)
{
	bool		found;

	PgSweep = ShmemInitStruct("pg_sweep shared", pgsweep_shared_size(), &found);
	if (found)
		return;
	memset(PgSweep, 0, pgsweep_shared_size());
	PgSweep->lock = &(GetNamedLWLockTranche("pg_sweep"))->lock;
	PgSweep->num_slots = pgsweep_num_slots();
	PgSweep->stats_reset = GetCurrentTimestamp();
}

/*
 * Is there a slot of this process' number?  Not if it has no PGPROC.
 */
bool
pgsweep_may_have_slot(void)
{
	return MyProc != NULL && MyProcNumber >= 0 &&
		(uint32) MyProcNumber < PgSweep->num_slots;
}

static void
leave_slot(int code, Datum arg)
{
	const PgSweepFeature *feature;

	has_left = true;
	PgSweep->owner[MyProcNumber] = 0;
	for (int i = 0; (feature = pgsweep_features[i]) != NULL; i++)
		if (feature->leave_slot && pgsweep_feature_works(feature))
			feature->leave_slot();
}

/*
 * Take this process' slot.  Returns false if the process has none or is on its
 * way out.
 *
 * Called in the middle of an allocation: allocates no memory, and takes no
 * lock that the caller could hold.
 */
bool
pgsweep_take_slot(void)
{
	const PgSweepFeature *feature;

	if (has_left || !pgsweep_may_have_slot())
		return false;

	/* first what could fail */
	on_shmem_exit(leave_slot, (Datum) 0);
	for (int i = 0; (feature = pgsweep_features[i]) != NULL; i++)
		if (feature->take_slot && pgsweep_feature_works(feature))
			feature->take_slot();
	pg_write_barrier();			/* pairs with read_backend() in sweep/views.c */
	PgSweep->owner[MyProcNumber] = MyProcPid;
	return true;
}
