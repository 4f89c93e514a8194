/*-------------------------------------------------------------------------
 *
 * extension/pins/pins.h
 *	  Number of buffers that each process has pinned, readable by others.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGSWEEP_PINS_H
#define PGSWEEP_PINS_H

#include "compat.h"
#include "storage/procnumber.h"

#pragma GCC visibility push(hidden)

/* pins.c */
extern bool pgsweep_pins_read(ProcNumber procno, int pid, PrivateRefCountInfo *info);

#pragma GCC visibility pop

#endif							/* PGSWEEP_PINS_H */
