/*-------------------------------------------------------------------------
 *
 * extension/sweep/probation.h
 *	  What strategies with probation have in common: "clock2q", of the whole
 *	  pool, and "clock2q_partitioned", of each partition.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_PROBATION_H
#define PGSWEEP_PROBATION_H

#include "sweep/partitions.h"
#include "sweep/walk.h"

#pragma GCC visibility push(hidden)

/* first_lap.c */
extern void pgsweep_first_lap_init(PgSweepProbation *p);
extern bool pgsweep_first_lap_goes_on(PgSweepProbation *p, uint64 lap_end);
extern uint32 pgsweep_first_lap_serving(const PgSweepOrder *order);
extern void pgsweep_first_lap_found(PgSweepProbation *p);
extern void pgsweep_first_lap_freed(PgSweepProbation *p, bool given_up);
extern void pgsweep_first_lap_activated(PgSweepProbation *p);

/*
 * May there be free buffers?
 */
static inline bool
pgsweep_first_lap(PgSweepProbation *p)
{
	uint64		lap_end = pgsweep_read_u64(&p->lap_end);

	return unlikely(lap_end != 0) && pgsweep_first_lap_goes_on(p, lap_end);
}

/* Those of a partition, or of the whole pool */
static inline PgSweepProbation *
pgsweep_probation_of(const PgSweepPartition *part)
{
	return part == &PgSweepPool->whole ? &PgSweepPool->whole_probation :
		&PgSweepPool->probation[part - PgSweepPool->parts];
}

/* The partition's that has this buffer, most often p */
static inline PgSweepProbation *
pgsweep_probation_with(PgSweepProbation *p, int buffer)
{
	if (likely(buffer - p->part->first_buffer < p->part->num_buffers))
		return p;
	return &PgSweepPool->probation[pgsweep_partition_of(buffer)];
}

/* strategy_clock2q.c */
extern void pgsweep_c2q_leave(PgSweepSlot *slot);
extern BufferDesc *pgsweep_probation_get_victim(PgSweepProbation *p, PgSweepSlot *slot,
												uint32 *buf_state, uint64 active,
												PgSweepChoosePartition choose);
extern void pgsweep_probation_loaded(PgSweepProbation *p, PgSweepSlot *slot, BufferDesc *buf,
									 uint64 hash, BufferAccessStrategy ring, uint64 active);
extern void pgsweep_probation_freed(PgSweepProbation *p, int buffer);
extern void pgsweep_probation_begin_lru(PgSweepProbation *p, PgSweepLruState *lru,
										bool fresh, const uint32 *recent);
extern void pgsweep_probation_recent(int kind, bool fresh, uint32 *recent);

#pragma GCC visibility pop

#endif							/* PGSWEEP_PROBATION_H */
