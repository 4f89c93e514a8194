/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/laps_mutants.h
 *	  pg_sweep's balance by laps, and broken variants of it.
 *
 * t/sweep/laps.pl demands that each is caught.
 *
 *-------------------------------------------------------------------------
 */
#ifndef LAPS_MUTANTS_H
#define LAPS_MUTANTS_H

#include "sweep/laps.h"

typedef struct LapsCode
{
	const char *name;
	void		(*publish) (PgSweepLaps *laps, uint32 i, const PgSweepPartition *part);
	bool		(*changing) (const PgSweepLaps *laps, uint32 i);
	void		(*look) (PgSweepLaps *laps, uint32 n);
	uint32		(*serving) (const PgSweepLaps *laps, const PgSweepOrder *order, uint32 n);
	void		(*cycle) (PgSweepLaps *laps, PgSweepPartition *parts, uint32 n, bool balance);
} LapsCode;

/* ---- looks and choices ---- */

/* Never looks: each home serves its own */
static bool
changing_never(const PgSweepLaps *laps, uint32 i)
{
	return false;
}

/* Looks while none is ahead: then some are for ever */
static bool
changing_ahead(const PgSweepLaps *laps, uint32 i)
{
	return pgsweep_read_u64(&laps->ahead) == 0 &&
		pgsweep_laps_changing(laps, i);
}

/* Looks only while some are ahead: none ever is */
static bool
changing_slowest(const PgSweepLaps *laps, uint32 i)
{
	return pgsweep_read_u64(&laps->ahead) != 0 &&
		pgsweep_laps_changing(laps, i);
}

/* Positions are not compared from a common base */
static void
publish_without_base(PgSweepLaps *laps, uint32 i, const PgSweepPartition *part)
{
	static const PgSweepLaps no_base;

	pgsweep_laps_write(&laps->done[i],
					   pgsweep_laps_done(&no_base, i, part,
										 pgsweep_read_u64(&part->epoch) << part->epoch_shift));
}

/* Compares ways without regard to sizes */
static void
publish_without_sizes(PgSweepLaps *laps, uint32 i, const PgSweepPartition *part)
{
	PgSweepPartition same = *part;

	same.num_buffers = 4096;
	pgsweep_laps_publish(laps, i, &same);
}

/* The last partition is overlooked */
static void
look_short(PgSweepLaps *laps, uint32 n)
{
	pgsweep_laps_look(laps, n - 1);
}

/* The next one serves, wherever its hand is */
static uint32
serving_next(const PgSweepLaps *laps, const PgSweepOrder *order, uint32 n)
{
	return order->part[pgsweep_read_u64(&laps->ahead) >> order->part[0] & 1];
}

/* Of other nodes, too, any that is not ahead, which takes it from its own */
static uint32
serving_not_ahead(const PgSweepLaps *laps, const PgSweepOrder *order, uint32 n)
{
	PgSweepOrder one_node = *order;

	one_node.near = n;
	return pgsweep_laps_serving(laps, &one_node, n);
}

/* Of the own node, too, only those that are behind */
static uint32
serving_behind(const PgSweepLaps *laps, const PgSweepOrder *order, uint32 n)
{
	PgSweepOrder no_node = *order;

	no_node.near = 1;
	return pgsweep_laps_serving(laps, &no_node, n);
}

/* All serve the same, the slowest */
static uint32
serving_slowest(const PgSweepLaps *laps, const PgSweepOrder *order, uint32 n)
{
	uint64		behind = pgsweep_read_u64(&laps->behind);

	for (uint32 i = 0; i < n; i++)
		if (behind >> i & 1)
			return i;
	return order->part[0];
}

/* Looks at each epoch */
static bool
changing_always(const PgSweepLaps *laps, uint32 i)
{
	return true;
}

/* ---- the background writer's cycle ---- */

/* Counts laps anew after each walk that found pins */
static void
cycle_anew(PgSweepLaps *laps, PgSweepPartition *parts, uint32 n, bool balance)
{
	if (laps->passed_on)
		laps->balanced = !balance;
	pgsweep_laps_cycle(laps, parts, n, balance);
}

/* Never counts them anew because of pins */
static void
cycle_not_anew(PgSweepLaps *laps, PgSweepPartition *parts, uint32 n, bool balance)
{
	laps->passed_on = false;
	pgsweep_laps_cycle(laps, parts, n, balance);
}

/* Goes on counting where it was without balance */
static void
cycle_switched(PgSweepLaps *laps, PgSweepPartition *parts, uint32 n, bool balance)
{
	laps->balanced = balance;
	pgsweep_laps_cycle(laps, parts, n, balance);
}

/* Does not mend positions */
static void
cycle_unpublished(PgSweepLaps *laps, PgSweepPartition *parts, uint32 n, bool balance)
{
	PgSweepLaps before = *laps;

	pgsweep_laps_cycle(laps, parts, n, balance);
	memcpy(laps->done, before.done, sizeof(laps->done));
	if (balance)
		pgsweep_laps_look(laps, n);
}

/* Does not mend the words */
static void
cycle_without_look(PgSweepLaps *laps, PgSweepPartition *parts, uint32 n, bool balance)
{
	PgSweepLaps before = *laps;

	pgsweep_laps_cycle(laps, parts, n, balance);
	if (balance)
	{
		laps->ahead = before.ahead;
		laps->behind = before.behind;
		laps->slowest = before.slowest;
	}
}

/* Leaves partitions ahead without balance */
static void
cycle_uncleared(PgSweepLaps *laps, PgSweepPartition *parts, uint32 n, bool balance)
{
	PgSweepLaps before = *laps;

	pgsweep_laps_cycle(laps, parts, n, balance);
	if (!balance)
		laps->ahead = before.ahead;
}

#define REAL_CODE \
	.publish = pgsweep_laps_publish, \
	.changing = pgsweep_laps_changing, \
	.look = pgsweep_laps_look, \
	.serving = pgsweep_laps_serving, \
	.cycle = pgsweep_laps_cycle

/* A mutant is the real code with a part replaced, of which compilers warn */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"

static const LapsCode laps_codes[] = {
	{"pg_sweep", REAL_CODE},
	{"never looks", REAL_CODE, .changing = changing_never},
	{"looks always", REAL_CODE, .changing = changing_always},
	{"looks only if it is ahead", REAL_CODE, .changing = changing_ahead},
	{"looks only while others are ahead", REAL_CODE, .changing = changing_slowest},
	{"has no base", REAL_CODE, .publish = publish_without_base},
	{"ignores sizes", REAL_CODE, .publish = publish_without_sizes},
	{"overlooks the last", REAL_CODE, .look = look_short},
	{"takes the next", REAL_CODE, .serving = serving_next},
	{"takes from others' own", REAL_CODE, .serving = serving_not_ahead},
	{"leaves its node early", REAL_CODE, .serving = serving_behind},
	{"takes the slowest", REAL_CODE, .serving = serving_slowest},
	{"counts anew after any pins", REAL_CODE, .cycle = cycle_anew},
	{"never counts anew after pins", REAL_CODE, .cycle = cycle_not_anew},
	{"counts on after a switch", REAL_CODE, .cycle = cycle_switched},
	{"keeps a late position", REAL_CODE, .cycle = cycle_unpublished},
	{"keeps late words", REAL_CODE, .cycle = cycle_without_look},
	{"is ahead without balance", REAL_CODE, .cycle = cycle_uncleared},
};

#pragma GCC diagnostic pop

#endif							/* LAPS_MUTANTS_H */
