/*-------------------------------------------------------------------------
 *
 * extension/sweep/first_lap.c
 *	  First laps of probation: while many buffers are free, no page leaves.
 *
 * Only the main part's hand finds free buffers.  So as long as there may be any,
 * judged buffers all stay, and the hand has to give the victims.  Of partitions,
 * those in a first lap serve all processes unless they are ahead (laps.h).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/bufmgr.h"
#include "sweep/probation.h"
#include "sweep/victim.h"

/*
 * Free buffers, as parts of all.  If as many as the first have been freed, a
 * first lap begins.  If as many as the second are found though none should be
 * left, one begins, too; and it goes on for another lap if the last one found as
 * many.  Chosen without a trace: none has a DROP.  In small partitions, a few
 * sessions that end pass over as many as the second, so it is 8 or an eighth there.
 */
#define PGSWEEP_C2Q_FREED_PART	16
#define PGSWEEP_C2Q_FOUND_PART	64
#define PGSWEEP_C2Q_FOUND_LEAST	8

static inline int32
many_freed(const PgSweepProbation *p)
{
	return Max(p->part->num_buffers / PGSWEEP_C2Q_FREED_PART, 1);
}

static inline int32
many_found(const PgSweepProbation *p)
{
	uint32		n = p->part->num_buffers;

	return Max(n / PGSWEEP_C2Q_FOUND_PART, Min(Max(n / 8, 1), PGSWEEP_C2Q_FOUND_LEAST));
}

/*
 * Let no page leave from probation until this number of free buffers has been
 * found, or a lap of the main part's hand has not found more.
 */
static void
begin_first_lap(PgSweepProbation *p, uint32 free_buffers)
{
	pg_atomic_write_u32(&p->free_buffers, free_buffers);
	pg_atomic_write_u32(&p->lap_free, free_buffers);
	pg_atomic_write_u64(&p->lap_end, pgsweep_hand_read(p->part) + p->part->num_buffers);
}

/*
 * The same, if buffers are known to be free: other partitions should leave
 * victims to this one.
 */
static void
begin_known_lap(PgSweepProbation *p, uint32 free_buffers)
{
	begin_first_lap(p, free_buffers);
	if (p != &PgSweepPool->whole_probation)
		pg_atomic_fetch_or_u64(&PgSweepPool->first_laps,
							   UINT64CONST(1) << (p - PgSweepPool->probation));
}

/*
 * The first partition in this order that has buffers known to be free, and is not
 * ahead; or its own first one if there is none.  Bits are set when a first lap
 * begins, and cleared here.  A bit that is lost to a race leaves free buffers for
 * later.
 */
uint32
pgsweep_first_lap_serving(const PgSweepOrder *order)
{
	uint64		ahead = pgsweep_read_u64(&PgSweepPool->laps.ahead);

	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
	{
		uint32		k = order->part[i];
		uint64		bit = UINT64CONST(1) << k;

		if ((pgsweep_read_u64(&PgSweepPool->first_laps) & bit) == 0)
			continue;
		if (pgsweep_first_lap(&PgSweepPool->probation[k]))
		{
			if ((ahead & bit) == 0)
				return k;
			continue;
		}
		pg_atomic_fetch_and_u64(&PgSweepPool->first_laps, ~bit);
	}
	return order->part[0];
}

/*
 * When shared memory is made: all buffers are free.
 */
void
pgsweep_first_lap_init(PgSweepProbation *p)
{
	pg_atomic_init_u32(&p->free_buffers, p->part->num_buffers);
	pg_atomic_init_u32(&p->lap_free, p->part->num_buffers);
	pg_atomic_init_u64(&p->lap_end, p->part->num_buffers);
}

/*
 * The hand passes over free buffers that are in leases of processes that exit or
 * are idle.  So there may be another lap.  The number of free buffers may be
 * wrong: core does not tell of each.  So a lap that finds few is the last.
 */
bool
pgsweep_first_lap_goes_on(PgSweepProbation *p, uint64 lap_end)
{
	PgSweepPartition *part = p->part;
	int32		left = (int32) pg_atomic_read_u32(&p->free_buffers);
	int32		found = (int32) pg_atomic_read_u32(&p->lap_free) - left;
	bool		goes_on;

	/* by the published position, an epoch too late at most */
	if (left > 0 && pgsweep_read_u64(&part->epoch) << part->epoch_shift < lap_end)
		return true;

	/* one process decides about each lap */
	goes_on = left > 0 && found >= many_found(p);
	if (pg_atomic_compare_exchange_u64(&p->lap_end, &lap_end,
									   goes_on ? pgsweep_hand_read(part) + part->num_buffers : 0))
	{
		pg_atomic_write_u32(&p->lap_free, (uint32) left);
		/* not to zero: another lap may have begun since */
		if (!goes_on)
			pg_atomic_sub_fetch_u32(&p->free_buffers, left);
	}
	return goes_on;
}

/*
 * A free buffer has become a victim.
 */
void
pgsweep_first_lap_found(PgSweepProbation *p)
{
	int32		left = (int32) pg_atomic_sub_fetch_u32(&p->free_buffers, 1);

	if (left == -many_found(p))
		begin_first_lap(p, p->part->num_buffers);
}

/*
 * A buffer has lost its page.  It may be a victim that is given up because
 * another process has loaded the page meanwhile.  These may be many, but come one
 * by one, so they begin no first lap.
 */
void
pgsweep_first_lap_freed(PgSweepProbation *p, bool given_up)
{
	int32		left = (int32) pg_atomic_add_fetch_u32(&p->free_buffers, 1);

	if (!given_up && left >= many_freed(p) &&
		pgsweep_read_u64(&p->lap_end) == 0)
		begin_known_lap(p, (uint32) left);
}

/*
 * The strategy has become active.  Others do not count free buffers.
 */
void
pgsweep_first_lap_activated(PgSweepProbation *p)
{
	uint32		first = p->part->first_buffer;
	uint32		free_buffers = 0;

	for (uint32 i = first; i < first + p->part->num_buffers; i++)
		free_buffers += !pgsweep_state_has_page(pg_atomic_read_u32(&GetBufferDescriptor(i)->state));

	pg_atomic_write_u64(&p->lap_end, 0);
	pg_atomic_write_u32(&p->free_buffers, free_buffers);
	if (free_buffers >= many_freed(p))
		begin_known_lap(p, free_buffers);
}
