/*-------------------------------------------------------------------------
 *
 * extension/sweep/strategy_stock.c
 *	  Strategy "stock": core's own freelist and clock sweep.
 *
 * Leaves every call to core: the strategy to switch back to, and the baseline
 * of comparisons on a running server.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/bufmgr.h"
#include "sweep/strategy.h"

static void
stock_position(int *hand, uint64 *passes)
{
	uint64		ticks = pgsweep_core_ticks();

	*hand = (int) (ticks % NBuffers);
	*passes = ticks / NBuffers;
}

const PgSweepStrategyRoutine pgsweep_stock_strategy = {
	.position = stock_position,
};
