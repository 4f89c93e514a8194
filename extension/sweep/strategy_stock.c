/*-------------------------------------------------------------------------
 *
 * extension/sweep/strategy_stock.c
 *	  Strategy "stock": core's own freelist and clock sweep.
 *
 * Leaves everything to core, which does not even call the library to find a
 * victim (ActivateBufferReplacement): the strategy to switch back to, and the
 * baseline of comparisons on a running server.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/bufmgr.h"
#include "sweep/strategy.h"

static void
stock_position(int *hand, uint64 *passes)
{
	uint32		core_passes;

	/* without taking core's count of allocations */
	*hand = StrategySyncStart(&core_passes, NULL);
	*passes = core_passes;
}

const PgSweepStrategyRoutine pgsweep_stock_strategy = {
	.position = stock_position,
};
