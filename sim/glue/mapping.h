/*-------------------------------------------------------------------------
 *
 * mapping.h
 *	  The table that maps pages to buffers.
 *
 * sim/glue/mapping.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef MAPPING_H
#define MAPPING_H

/* After sim_pool_setup().  From then on, buf_internals.h's functions. */
extern void sim_mapping_setup(void);

#endif							/* MAPPING_H */
