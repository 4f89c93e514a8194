/*-------------------------------------------------------------------------
 *
 * extension/sweep/transport.h
 *	  The transportation problem: excess here, room there, and distances.
 *
 * Internal to balance.c, which makes it, and transport.c, which solves it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_TRANSPORT_H
#define PGSWEEP_TRANSPORT_H

#include "sweep/balance.h"

#pragma GCC visibility push(hidden)

/* Sources and sinks are nodes that have partitions: no more than those */
#define PGSWEEP_MAX_ENDS	PGSWEEP_MAX_PARTITIONS

typedef struct PgSweepTransport
{
	/* The problem; the sum of excess is the sum of room */
	uint32		nsources;
	uint32		nsinks;
	int64		excess[PGSWEEP_MAX_ENDS];	/* of each source, > 0 */
	int64		room[PGSWEEP_MAX_ENDS]; /* of each sink, > 0 */
	uint8		distance[PGSWEEP_MAX_ENDS][PGSWEEP_MAX_ENDS];	/* source, sink */

	/* The solution; excess and room then are zero */
	int64		flow[PGSWEEP_MAX_ENDS][PGSWEEP_MAX_ENDS];	/* source, sink */

	/* What find_ways() found: how long each way is, and the step before */
	int			source_way[PGSWEEP_MAX_ENDS];
	int			sink_way[PGSWEEP_MAX_ENDS];
	int			source_from[PGSWEEP_MAX_ENDS];	/* sink, -1 at the start */
	int			sink_from[PGSWEEP_MAX_ENDS];	/* source */
} PgSweepTransport;

/*
 * Send all excess so that the sum of flow times distance is least.
 */
extern void pgsweep_solve_transport(PgSweepTransport *tp);

#pragma GCC visibility pop

#endif							/* PGSWEEP_TRANSPORT_H */
