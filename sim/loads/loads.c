/*-------------------------------------------------------------------------
 *
 * sim/loads/loads.c
 *	  The loads that there are.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/sim.h"

extern const SimLoad sim_load_alloc, sim_load_counters, sim_load_lines,
			sim_load_lwlock, sim_load_replay, sim_load_scans, sim_load_uneven;

const SimLoad *const sim_loads[] = {
	&sim_load_alloc,
	&sim_load_counters,
	&sim_load_lines,
	&sim_load_lwlock,
	&sim_load_replay,
	&sim_load_scans,
	&sim_load_uneven,
	NULL
};
