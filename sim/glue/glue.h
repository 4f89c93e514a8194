/*-------------------------------------------------------------------------
 *
 * glue.h
 *	  What the stand-ins for the server share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GLUE_H
#define GLUE_H

/* Process ids are this plus the number of the fiber */
#define GLUE_FIRST_PID	1000

/* server.c */
extern void glue_procs_setup(int n);

#endif							/* GLUE_H */
