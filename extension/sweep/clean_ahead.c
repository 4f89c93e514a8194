/*-------------------------------------------------------------------------
 *
 * extension/sweep/clean_ahead.c
 *	  The background writer's scans ahead of hands.
 *
 * Several hands share the pages that may be written in one cycle.
 *
 * The feedback is that of core's BgBufferSync(), so bgwriter_delay,
 * bgwriter_lru_maxpages and bgwriter_lru_multiplier keep their meaning:
 * estimate the allocations until the next cycle, and clean until that many
 * reusable buffers lie between the hand and the cleaning point.  Both are
 * 64-bit tickets, so their distance is a subtraction.
 *
 * The hand is ahead of the examined buffers by the leased ones (batch.h); the
 * writer counts from the hand.  The hand moves by whole leases: on an idle
 * server it stands still for many allocations and then jumps.  So the density
 * of reusable buffers is sampled between two moves, over any number of
 * cycles.  Dropped parts of leases count as passed over, because the hand
 * will pass over as many of the buffers ahead.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "postmaster/bgwriter.h"
#include "storage/bufmgr.h"
#include "sweep/strategy.h"

/*
 * As in BgBufferSync(): moving averages look back 16 cycles, and an idle
 * server's whole pool is scanned once in two minutes.
 */
#define LRU_SMOOTHING_CYCLES	16.0
#define LRU_WHOLE_POOL_MS		120000.0
#define LRU_FIRST_DENSITY		10.0

static inline void
smooth(double *average, double sample)
{
	*average += (sample - *average) / LRU_SMOOTHING_CYCLES;
}

/*
 * How many reusable buffers should lie ahead of the hand, if this many do
 * already.
 */
static double
wanted_ahead(PgSweepLruState *lru, uint32 ahead, uint32 recent_alloc,
			 double reusable)
{
	double		wanted;
	double		idle_progress = ahead / (LRU_WHOLE_POOL_MS / BgWriterDelay);

	/* A rise counts at once, a fall is averaged */
	if (lru->smoothed_alloc <= recent_alloc)
		lru->smoothed_alloc = recent_alloc;
	else
		smooth(&lru->smoothed_alloc, recent_alloc);

	wanted = lru->smoothed_alloc * bgwriter_lru_multiplier;

	/* Avoid denormal numbers */
	if (wanted < 1.0)
		lru->smoothed_alloc = 0;

	return Max(wanted, reusable + idle_progress);
}

/*
 * The buffer of a partition's ticket.
 */
int
pgsweep_lru_buffer(const PgSweepPartition *part, uint64 ticket)
{
	return (int) (part->first_buffer + ticket % part->num_buffers);
}

/*
 * Begin a cycle of one hand: decide how many reusable buffers are wanted.  hand
 * is where it is now, and ahead how many tickets ahead of it there are to be
 * cleaned.  fresh is as in strategy.h.
 */
void
pgsweep_lru_begin(PgSweepLruState *lru, bool fresh, PgSweepLruBuffer buffer_of,
				  const PgSweepPartition *part, uint64 hand, uint32 ahead,
				  uint32 recent_alloc)
{
	uint64		moved;

	lru->buffer_of = buffer_of;
	lru->part = part;
	if (lru->smoothed_density == 0)
		lru->smoothed_density = LRU_FIRST_DENSITY;
	if (fresh || !lru->valid)
	{
		lru->prev_hand = hand;
		lru->next_clean = hand;
		lru->alloc_since_move = 0;
		lru->valid = true;
	}
	moved = hand - lru->prev_hand;
	lru->prev_hand = hand;
	if (lru->next_clean < hand)
		lru->next_clean = hand; /* overtaken */

	lru->alloc_since_move += recent_alloc;
	if (moved > 0 && lru->alloc_since_move > 0)
	{
		smooth(&lru->smoothed_density, (double) moved / lru->alloc_since_move);
		lru->alloc_since_move = 0;
	}

	lru->start = lru->next_clean;
	lru->lap = hand + ahead;
	lru->idle = lru->start >= lru->lap && recent_alloc == 0;
	lru->reusable = (lru->start - hand) / lru->smoothed_density;
	lru->wanted = wanted_ahead(lru, ahead, recent_alloc, lru->reusable);
}

/*
 * Clean until enough buffers are reusable, or *wrote, the pages written in
 * this cycle, reaches limit.  Returns true if the limit ended it; another
 * call goes on.
 */
static bool
clean_one(PgSweepLruState *lru, struct WritebackContext *wb_context, int limit, int *wrote)
{
	while (lru->next_clean < lru->lap && lru->reusable < lru->wanted)
	{
		int			buffer;
		int			done;

		if (*wrote >= limit)
			return true;
		buffer = lru->buffer_of(lru->part, lru->next_clean);
		done = buffer >= 0 ? SyncOneBuffer(buffer, true, wb_context) : 0;

		lru->next_clean++;
		if (done & BUF_WRITTEN)
			(*wrote)++;
		if (done & (BUF_WRITTEN | BUF_REUSABLE))
		{
			lru->found++;
			lru->reusable++;
		}
	}
	return false;
}

/*
 * End the cycle.  Returns true if nothing was allocated and the cleaning
 * point had already been a whole lap ahead of the hand.
 */
static bool
end_one(PgSweepLruState *lru)
{
	/* The scan is another sample of the density */
	if (lru->next_clean > lru->start && lru->found > 0)
		smooth(&lru->smoothed_density,
			   (double) (lru->next_clean - lru->start) / lru->found);
	lru->found = 0;
	return lru->idle;
}

/*
 * Clean ahead of n hands, whose cycles have begun.  They share the pages that
 * may be written: equal parts first, then the unused rest of the others.  So a
 * hand with dirty pages only neither takes all nor leaves any unused.  The first
 * one changes from cycle to cycle, because of the last few pages.  Returns true
 * if all of them are idle.
 */
bool
pgsweep_lru_clean(PgSweepLruState *lru, uint32 n, struct WritebackContext *wb_context,
				  int max_pages, int *wrote)
{
	static uint32 begin = 0;
	uint32		wanting[PGSWEEP_MAX_LRU_SCANS];
	bool		idle = true;

	Assert(n <= PGSWEEP_MAX_LRU_SCANS);
	for (uint32 i = 0; i < n; i++)
		wanting[i] = (begin + i) % n;
	begin = (begin + 1) % n;	/* a wrap-around would repeat one */

	/* rounds, until none wants more or the pages are used up */
	for (uint32 left = n; left > 0 && *wrote < max_pages;)
	{
		int			share = Max((max_pages - *wrote) / (int) left, 1);
		uint32		still = 0;

		for (uint32 i = 0; i < left; i++)
		{
			uint32		k = wanting[i];
			int			limit = Min(*wrote + share, max_pages);

			if (clean_one(&lru[k], wb_context, limit, wrote))
				wanting[still++] = k;
		}
		left = still;
	}

	for (uint32 i = 0; i < n; i++)
		idle &= end_one(&lru[i]);
	return idle;
}
