/*-------------------------------------------------------------------------
 *
 * stock.c
 *	  Waiting policy "stock": core's own.
 *
 * Every call is left to core.  It is here to be switched back to, and as the
 * baseline of every comparison on a running server.
 *
 * IDENTIFICATION
 *	  extension/lwwait/stock.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lwwait/lwwait.h"

const PgSweepLwWaitPolicy pgsweep_stock_lwwait = {
	.name = "stock",
};
