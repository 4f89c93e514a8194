/*-------------------------------------------------------------------------
 *
 * sim_lwlock.h
 *	  LWLocks of a load: their processes, the library, and what is counted.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIM_LWLOCK_H
#define SIM_LWLOCK_H

#include "lwlock/lwlock.h"

extern int64 sim_lwlock_sleeps;	/* of this fiber */

/* server.c calls these, for all loads */
extern void sim_procs_setup(int n);
extern void sim_proc_attach(void);

extern LWLock *sim_lwlock(const char *region, int tranche);
extern void sim_lwlock_setup(PgSweepLwlockPolicyId policy, int nprocs);
extern PgSweepLwlockCounts sim_lwlock_counts(int proc, uint16 tranche, LWLockMode mode);

#endif							/* SIM_LWLOCK_H */
