/*-------------------------------------------------------------------------
 *
 * sim/glue/glue.h
 *	  What the stand-ins for the server share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GLUE_H
#define GLUE_H

#include "lwlock/lwlock.h"

extern int64 sim_lwlock_sleeps;	/* of this fiber */

/* PGPROCs, for loads that have locks */
extern bool sim_have_procs;
extern void sim_procs_setup(int n);
extern void sim_proc_attach(void);

extern LWLock *sim_lwlock(const char *region, int tranche);
extern void sim_lwlock_setup(PgSweepLwlockPolicyId policy, int nprocs);
extern PgSweepLwlockCounts sim_lwlock_counts(int proc, uint16 tranche, LWLockMode mode);

#endif							/* GLUE_H */
