/*-------------------------------------------------------------------------
 *
 * sharers.h
 *	  Sharers of a line, and how far away they are.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SHARERS_H
#define SHARERS_H

#include "engine.h"

#define SET_WORDS	(SIM_MAX_CPUS / 64)

/* Sharers of a line that has more than two: one bit a CPU */
typedef struct SharerSet
{
	uint64_t	bits[SET_WORDS];
	uint32_t	next_free;
	uint16_t	source;			/* the first sharer, the last owner */
} SharerSet;

extern SharerSet *sim_sharer_sets;

typedef enum Distance
{
	SAME_CORE,
	SAME_GROUP,
	SAME_NODE,
	SAME_SOCKET,
	OTHER_SOCKET,
} Distance;

static inline Distance
distance(const SimCpu *a, const SimCpu *b)
{
	if (a->group == b->group)
		return a->core == b->core ? SAME_CORE : SAME_GROUP;
	if (a->node == b->node)
		return SAME_NODE;
	return a->socket == b->socket ? SAME_SOCKET : OTHER_SOCKET;
}

static inline bool
is_sharer(const SimLine *line, int cpu)
{
	if (line->nsharers > 2)
		return (sim_sharer_sets[line->sharers.set].bits[cpu / 64] >> (cpu % 64)) & 1;
	return (line->nsharers >= 1 && line->sharers.cpu[0] == cpu) ||
		(line->nsharers == 2 && line->sharers.cpu[1] == cpu);
}

static inline int
first_sharer(const SimLine *line)
{
	return line->nsharers > 2 ? sim_sharer_sets[line->sharers.set].source : line->sharers.cpu[0];
}

extern void sim_clear_sharers(SimLine *line);

/* cpu is none yet */
extern void sim_add_sharer(SimLine *line, int cpu);

/*
 * Distances of the nearest and the farthest sharer but cpu itself, which must
 * have one.
 */
extern void sim_sharer_distances(const SimLine *line, int cpu, Distance *nearest,
								 Distance *farthest);

#endif							/* SHARERS_H */
