/*-------------------------------------------------------------------------
 *
 * extension/numa/caches.h
 *	  Which CPUs are threads of one core, and which share a cache.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_NUMA_CACHES_H
#define PGSWEEP_NUMA_CACHES_H

#include "numa/topology.h"

#pragma GCC visibility push(hidden)

/* Where Linux describes CPUs */
#define PGSWEEP_NUMA_SYSFS_CPUS	"/sys/devices/system/cpu"

/*
 * Fill core[] and cache[] for the CPUs 0 .. ncpus - 1, from the files below
 * root.  Either is the number of one of the CPUs that share it.  All threads
 * of a core have the same cache.  A CPU of which nothing is known is a core of
 * its own, and its cache is PGSWEEP_NUMA_NO_CACHE.
 */
extern void pgsweep_numa_read_caches(const char *root, uint32 ncpus,
									 uint16 *core, uint16 *cache);

#pragma GCC visibility pop

#endif							/* PGSWEEP_NUMA_CACHES_H */
