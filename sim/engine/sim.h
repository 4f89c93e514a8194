/*-------------------------------------------------------------------------
 *
 * sim/engine/sim.h
 *	  What loads, strategies and stand-ins for the server may ask of the
 *	  simulator.
 *
 * A fiber is a process of the simulated machine.  Code that is compiled with
 * -fsanitize=thread (strategies, upstream/, loads/, glue/) may simply read
 * and write what sim_shared_alloc() gave: each access reaches the simulator
 * and takes the time it would take.  Other memory is private to the process.
 *
 * Static variables of these files are private to the fiber: it starts with a
 * copy of what they are when it is spawned, as after fork(); of large ones
 * (fiber.c), of what they are at the start of the run.  What is to be common
 * to all fibers without being simulated (totals for the report, say) is marked
 * SIM_COMMON.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int64_t SimTime;		/* picoseconds */

#define SIM_NS	INT64_C(1000)
#define SIM_US	INT64_C(1000000)
#define SIM_MS	INT64_C(1000000000)
#define SIM_S	INT64_C(1000000000000)

#define SIM_CACHE_LINE	64		/* what moves between cores */

/* A static variable that all fibers have in common, at no cost */
#define SIM_COMMON	__attribute__((section("sim_common")))

/* ---- the machine, as its file says; times in ps ---- */

typedef struct SimMachine
{
	/* shape */
	int			cores;
	int			threads_per_core;
	int			cores_per_group;	/* that share an L3 or a cluster */
	int			groups_per_node;
	int			nodes_per_socket;
	int			sockets;

	/* a line comes from a core ... */
	SimTime		latency_same_core;	/* the other thread of this core */
	SimTime		latency_group;
	SimTime		latency_node;
	SimTime		latency_socket;
	SimTime		latency_other_socket;

	/* ... or from memory */
	SimTime		memory_local;
	SimTime		memory_socket;
	SimTime		memory_other;

	/* the line is here already */
	SimTime		load_hit;
	SimTime		store_hit;
	SimTime		rmw_hit;
	SimTime		cas_hit;
	SimTime		pause;

	SimTime		keep_ps;
	SimTime		instruction_ps;

	/* the operating system */
	SimTime		wakeup_ps;
	SimTime		wake_call_ps;
	SimTime		sleep_call_ps;
	SimTime		switch_ps;
	SimTime		timeslice_ps;

	/* bytes a second; 0 = no limit */
	int64_t		copy_bytes_per_s;	/* one core */
	int64_t		bandwidth_bytes_per_s;	/* one node */
	int64_t		llc_bytes;		/* of a group; 0 = everything fits */
} SimMachine;

extern const SimMachine *sim_machine(void);
extern int	sim_nodes(void);
extern int	sim_cpus(void);		/* cores x threads_per_core */
extern int	sim_node_of_cpu(int cpu);

/* ---- memory ---- */

/* home of a piece of memory, if not a node's number */
#define SIM_INTERLEAVE		(-1)
#define SIM_OWNED_BY(fiber) (-2 - (fiber))	/* only that fiber writes it
											 * (asserted); its own accesses
											 * need not wait for their turn */

/*
 * Zeroed, and never freed.  Accesses are counted under the region's name, a string
 * constant; several pieces may have the same.
 */
extern void *sim_shared_alloc(const char *region, size_t size, size_t align, int home);

/*
 * Part of a piece under a name of its own, from now on: whole lines only.
 */
extern void sim_region_name(const char *region, void *start, size_t size);
extern void sim_region_owner(void *start, size_t size, int fiber);

/* Starts fetching a line to write it, without waiting (prefetchw) */
extern void sim_prefetch_for_write(const volatile void *address);

/* ---- this fiber, and the time ---- */

extern SimTime sim_now(void);	/* of this fiber */
extern int	sim_self(void);		/* this fiber: 0, 1, ... in order of
								 * sim_spawn(); -1 outside of fibers */
extern int	sim_cpu(void);		/* that it runs on */
extern SimTime sim_cpu_time(void);	/* that all fibers have had so far */

/*
 * A new process that runs fn(arg), from the time on it is now (0 before the
 * start).  cpu -1: the next one by "placement"; these may be shared by several
 * fibers, which get time slices in turn.  cpu SIM_NO_CPU: has a CPU of its
 * own that no one else uses (the background writer), on node 0.
 */
#define SIM_BY_PLACEMENT	(-1)
#define SIM_NO_CPU			(-2)
extern void sim_daemon(int fiber);	/* the run does not wait for it */
extern int	sim_spawn(const char *name, void (*fn) (void *), void *arg, int cpu);

/* Called by each fiber before its own function; glue/server.c */
extern void sim_process_begins(void);

/* ---- time passes ---- */

extern void sim_work(SimTime ps);	/* private work, jittered */
extern void sim_wait_until(SimTime when);	/* busy, not asleep */
extern void sim_pause(void);	/* the instruction in spin loops */
extern void sim_sleep(SimTime ps);	/* leaves the CPU, is woken by a timer */
extern void sim_copy(int node, int64_t bytes);	/* at the core's speed, and
												 * within what the node's
												 * memory gives to all */

typedef struct SimSem
{
	int			count;
	int			first;			/* fiber waiting longest + 1; 0 = none */
	int			last;
} SimSem;						/* zeroed = 0; private or SIM_COMMON memory */

extern void sim_sem_wait(SimSem *sem);	/* no call to the system if count > 0 */
extern void sim_sem_post(SimSem *sem);

/* ---- chance: of this fiber, by the run's seed ---- */

extern uint32_t sim_random(void);
extern uint32_t sim_random_below(uint32_t below);

/* ---- configuration; what is out of range or of no known name ends the run ---- */

extern int64_t sim_config_int(const char *key, int64_t min, int64_t max, int64_t dflt);
extern const char *sim_config_text(const char *key, const char *dflt);
extern int	sim_backends(void);	/* key "backends" */

/* ---- the report ---- */

/* sim_get_victim() calls these by "warmup" and "allocations" */
extern void sim_measure_begin(void);
extern void sim_measure_end(void);
extern bool sim_measuring(void);
extern void sim_stop(void);		/* the run ends; does not return in a fiber */
extern void sim_result(const char *key, double value);
extern void sim_fail(const char *fmt,...) __attribute__((noreturn, format(printf, 1, 2)));

/* ---- loads and strategies ---- */

/* loads/NAME.c has one const table, which loads/loads.c lists */
typedef struct SimLoad
{
	const char *name;
	void		(*setup) (void);	/* reads its load.* keys, spawns */
	void		(*report) (void);	/* sim_result()s; may be NULL */
} SimLoad;

extern const SimLoad *const sim_loads[];	/* NULL at the end */

struct BufferDesc;

typedef struct SimStrategy
{
	const char *name;
	void		(*setup) (void);	/* shared memory; before fibers */
	struct BufferDesc *(*get_victim) (uint32_t *buf_state);	/* header locked */
	void		(*bgwriter_cycle) (void);	/* may be NULL */
	void		(*report) (void);	/* sim_result()s; may be NULL */
	void		(*loaded) (struct BufferDesc *buf);	/* a page has come; NULL: does
													 * not matter */
} SimStrategy;

extern const SimStrategy *const sim_strategies[];	/* NULL at the end */

/* glue/strategies.c: the configured one; NULL without sim_pool_setup() */
extern const SimStrategy *sim_strategy(void);

/*
 * For loads that allocate: makes the pool ("buffers") and the strategy's
 * shared memory, and spawns the background writer after all backends are.
 * Backends must be the first fibers, in order.
 */
extern void sim_pool_setup(void);
extern void sim_bgwriter_spawn(void);
extern int64_t sim_bgwriter_cycles(void);

/* To be called around what is one allocation, in place of sim_get_victim() */
extern void sim_allocations_setup(void);
extern void sim_allocation_begins(void);
extern void sim_allocation_ends(void);

/* Counts the allocation, and begins and ends the measurement by it */
extern struct BufferDesc *sim_get_victim(uint32_t *buf_state);

#endif							/* SIM_H */
