/*-------------------------------------------------------------------------
 *
 * policy_stock.c
 *	  Waiting policy "stock": core's own.
 *
 * Every call is left to core.  It is here to be switched back to, and as the
 * baseline of every comparison on a running server.
 *
 * IDENTIFICATION
 *	  extension/lwlock/policy_stock.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lwlock/lwlock.h"

const PgSweepLwlockPolicy pgsweep_lwlock_stock_policy = {0};
