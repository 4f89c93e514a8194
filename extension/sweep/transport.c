/*-------------------------------------------------------------------------
 *
 * extension/sweep/transport.c
 *	  Solves the transportation problem: which node's excess goes to which
 *	  room.
 *
 * Sending from each node to the nearest room is not the best: one node may
 * take room that another needed more, which then has to send far away.
 * Successive cheapest ways solve the problem.  That is simple, fast enough
 * for 64 nodes, and takes microseconds with the few nodes of real machines.
 *
 * Textbook names: min-cost flow by successive shortest paths (Ahuja, Magnanti,
 * Orlin, "Network Flows", 9.7), with Bellman and Ford's method for the paths.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "sweep/transport.h"

#define NO_WAY			(INT_MAX / 2)

/* More than the steps of any way, which passes each source and sink once */
#define DISTANCE_SCALE	(2 * PGSWEEP_MAX_ENDS)

/*
 * Find the cheapest way from any source with an excess to each sink.  A way
 * alternates: it goes from a source to a sink, back to a source that already
 * sends there, which could send to another sink instead, and so on.  Going
 * back means to send less, and so makes the way shorter by the distance.
 *
 * This ends because no circle has a negative sum of distances while all
 * amounts were sent by cheapest ways.  Each step adds one, which prefers the
 * way with fewest steps among ways of the same distance.  Cheapest ways never
 * get shorter, so this bounds the number of ways for one distance for any
 * amounts, as in Edmonds and Karp's method.  In practice about as many are
 * needed as there are nodes.
 */
static void
find_ways(PgSweepTransport *tp)
{
	bool		changed;

	for (uint32 s = 0; s < tp->nsources; s++)
	{
		tp->source_way[s] = tp->excess[s] > 0 ? 0 : NO_WAY;
		tp->source_from[s] = -1;
	}
	for (uint32 k = 0; k < tp->nsinks; k++)
		tp->sink_way[k] = NO_WAY;

	do
	{
		changed = false;
		for (uint32 s = 0; s < tp->nsources; s++)
		{
			for (uint32 k = 0; k < tp->nsinks; k++)
			{
				int			length = tp->distance[s][k] * DISTANCE_SCALE;

				if (tp->source_way[s] + length + 1 < tp->sink_way[k])
				{
					tp->sink_way[k] = tp->source_way[s] + length + 1;
					tp->sink_from[k] = s;
					changed = true;
				}
				else if (tp->flow[s][k] > 0 && tp->sink_way[k] < NO_WAY &&
						 tp->sink_way[k] - length + 1 < tp->source_way[s])
				{
					tp->source_way[s] = tp->sink_way[k] - length + 1;
					tp->source_from[s] = k;
					changed = true;
				}
			}
		}
	} while (changed);
}

/*
 * Send as much as possible by the way to a sink.
 */
static void
send_by_way(PgSweepTransport *tp, uint32 sink)
{
	int64		amount = tp->room[sink];
	int			s = tp->sink_from[sink];

	/* Going back, no more than was sent; at the start, no more than is there */
	for (; tp->source_from[s] >= 0; s = tp->sink_from[tp->source_from[s]])
		amount = Min(amount, tp->flow[s][tp->source_from[s]]);
	amount = Min(amount, tp->excess[s]);
	Assert(amount > 0);

	tp->excess[s] -= amount;
	tp->room[sink] -= amount;
	s = tp->sink_from[sink];
	tp->flow[s][sink] += amount;
	while (tp->source_from[s] >= 0)
	{
		int			k = tp->source_from[s];

		tp->flow[s][k] -= amount;
		s = tp->sink_from[k];
		tp->flow[s][k] += amount;
	}
}

void
pgsweep_solve_transport(PgSweepTransport *tp)
{
	memset(tp->flow, 0, sizeof(tp->flow));

	for (;;)
	{
		int			nearest = -1;

		find_ways(tp);
		for (uint32 k = 0; k < tp->nsinks; k++)
		{
			if (tp->room[k] > 0 &&
				(nearest < 0 || tp->sink_way[k] < tp->sink_way[nearest]))
				nearest = k;
		}
		if (nearest < 0)
			break;				/* no room left, and so no excess */
		send_by_way(tp, nearest);
	}
}
