/*-------------------------------------------------------------------------
 *
 * extension/lwlock/policy_stock.c
 *	  Waiting policy "stock": core's own.
 *
 * Leaves every call to core.  It is the policy to switch back to, and the
 * baseline of comparisons on a running server.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lwlock/lwlock.h"

const PgSweepLwlockPolicy pgsweep_lwlock_stock_policy = {0};
