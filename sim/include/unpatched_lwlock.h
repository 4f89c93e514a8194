/*-------------------------------------------------------------------------
 *
 * unpatched_lwlock.h
 *	  Included before PostgreSQL's own lwlock.c, the one without our patches
 *	  (-include): other names for what it exports, as the patched one is played,
 *	  too.
 *
 * sim/include/unpatched_lwlock.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef UNPATCHED_LWLOCK_H
#define UNPATCHED_LWLOCK_H

#define CreateLWLocks unpatched_CreateLWLocks
#define ForEachLWLockHeldByMe unpatched_ForEachLWLockHeldByMe
#define GetLWLockIdentifier unpatched_GetLWLockIdentifier
#define GetNamedLWLockTranche unpatched_GetNamedLWLockTranche
#define InitLWLockAccess unpatched_InitLWLockAccess
#define LWLockAcquire unpatched_LWLockAcquire
#define LWLockAcquireOrWait unpatched_LWLockAcquireOrWait
#define LWLockAnyHeldByMe unpatched_LWLockAnyHeldByMe
#define LWLockConditionalAcquire unpatched_LWLockConditionalAcquire
#define LWLockDisown unpatched_LWLockDisown
#define LWLockHeldByMe unpatched_LWLockHeldByMe
#define LWLockHeldByMeInMode unpatched_LWLockHeldByMeInMode
#define LWLockInitialize unpatched_LWLockInitialize
#define LWLockNewTrancheId unpatched_LWLockNewTrancheId
#define LWLockRegisterTranche unpatched_LWLockRegisterTranche
#define LWLockRelease unpatched_LWLockRelease
#define LWLockReleaseAll unpatched_LWLockReleaseAll
#define LWLockReleaseClearVar unpatched_LWLockReleaseClearVar
#define LWLockReleaseDisowned unpatched_LWLockReleaseDisowned
#define LWLockShmemSize unpatched_LWLockShmemSize
#define LWLockUpdateVar unpatched_LWLockUpdateVar
#define LWLockWaitForVar unpatched_LWLockWaitForVar
#define MainLWLockArray unpatched_MainLWLockArray
#define NamedLWLockTrancheArray unpatched_NamedLWLockTrancheArray
#define NamedLWLockTrancheRequests unpatched_NamedLWLockTrancheRequests
#define RequestNamedLWLockTranche unpatched_RequestNamedLWLockTranche

#endif							/* UNPATCHED_LWLOCK_H */
