/*-------------------------------------------------------------------------
 *
 * sim/engine/engine.h
 *	  What the files of the engine share.
 *
 * Everything is a pure function of the configuration: no address, no clock of
 * the host and no order of a hash decides anything, and times are whole
 * numbers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef ENGINE_H
#define ENGINE_H

#include "sim.h"

#define likely(x)	__builtin_expect((x) != 0, 1)
#define unlikely(x) __builtin_expect((x) != 0, 0)
#define Max(a, b)	((a) > (b) ? (a) : (b))
#define Min(a, b)	((a) < (b) ? (a) : (b))
#define lengthof(a) (sizeof(a) / sizeof((a)[0]))

#define SIM_NEVER		INT64_MAX
#define SIM_MAX_CPUS	4096	/* numbers of CPUs are 16 bits wide in a line */
#define SIM_MAX_FIBERS	8192
#define SIM_MAX_GROUPS	256		/* numbers of groups are 8 bits wide in a line */

/*
 * Address space for shared memory.  Only what is used takes memory; this much is
 * a pool of 8 million buffers (64 GB) and all that goes with it.
 */
#define SIM_ARENA_BYTES	(INT64_C(1) << 30)
#define SIM_ARENA_LINES	(SIM_ARENA_BYTES / SIM_CACHE_LINE)
#define SIM_LINE_SHIFT	6

/* ---- cache.c ---- */

typedef enum SimAccess
{
	SIM_LOAD,
	SIM_STORE,
	SIM_RMW,					/* locked, always succeeds: xadd, xchg, ... */
	SIM_CAS,					/* lock cmpxchg, whether it succeeds or not */
} SimAccess;

/*
 * A line of shared memory, as it will be when all requests made so far have been
 * served.  That is known at once, as requests are served in the order in which
 * they come.  CPUs that have (or will have had) it before are in CpuWindow.
 */
typedef struct SimLine
{
	SimTime		free_at;		/* the next writer can be served from here on;
								 * all sharers have got it by then */
	SimTime		read_at;		/* the next reader */
	uint16_t	owner;			/* CPU that has it for itself + 1; 0 = none */
	uint16_t	nsharers;		/* CPUs that may read it, if there is no owner */
	uint16_t	fiber;			/* SIM_OWNED_BY: fiber + 1; 0 = any fiber's */
	uint8_t		region;
	uint8_t		touched_by;		/* group that touched it last */
	union
	{
		uint16_t	cpu[2];		/* up to two sharers */
		uint32_t	set;		/* more: number of their bitmap */
	}			sharers;
	uint32_t	touched;		/* that group's traffic then */
} SimLine;

_Static_assert(sizeof(SimLine) == 32, "SimLine has grown");

/*
 * A line that a CPU has for a short while although others have asked for it
 * since, or will have when it arrives.
 */
#define SIM_WINDOWS		8		/* that a CPU remembers */

typedef struct SimWindow
{
	uint32_t	line;			/* number + 1; 0 = none */
	bool		exclusive;
	SimTime		served;			/* when the transfer began */
	SimTime		from;
	SimTime		until;
} SimWindow;

typedef struct SimCpu
{
	uint16_t	core;
	uint16_t	group;
	uint16_t	node;
	uint16_t	socket;
	uint32_t	next_window;
	SimWindow	windows[SIM_WINDOWS];

	/* schedule.c */
	int			current;		/* fiber that has the CPU; -1 = idle */
	int			first;			/* fibers that wait for it */
	int			last;
	int			nwaiting;
} SimCpu;

extern char *sim_arena;
extern SimLine *sim_lines;

extern void sim_access_slow(SimLine *line, SimAccess what);
extern void sim_cache_setup(void);
extern void sim_cache_traffic(int cpu, int64_t bytes);
extern void sim_fence(void);

/* ---- cpus.c ---- */

extern SimCpu *sim_cpu_table;
extern int	sim_ncpus_all;		/* with those of SIM_NO_CPU */

extern void sim_cpus_setup(void);
extern int	sim_cpu_for(int cpu);

/* ---- arena.c ---- */

extern void sim_arena_setup(void);
extern int	sim_home_node(uint32_t line);
extern const char *sim_region_of(int region);
extern int	sim_nregions(void);
extern int	sim_region_id(const char *region);

/* ---- sharers.c: which CPUs share a line, and how far away they are ---- */

#define SET_WORDS	(SIM_MAX_CPUS / 64)

/* Sharers of a line that has more than two: one bit a CPU */
typedef struct SharerSet
{
	uint64_t	bits[SET_WORDS];
	uint32_t	next_free;
	uint16_t	source;			/* the first sharer, the last owner */
} SharerSet;

extern SharerSet *sim_sharer_sets;

typedef enum Distance
{
	SAME_CORE,
	SAME_GROUP,
	SAME_NODE,
	SAME_SOCKET,
	OTHER_SOCKET,
} Distance;

static inline Distance
distance(const SimCpu *a, const SimCpu *b)
{
	if (a->group == b->group)
		return a->core == b->core ? SAME_CORE : SAME_GROUP;
	if (a->node == b->node)
		return SAME_NODE;
	return a->socket == b->socket ? SAME_SOCKET : OTHER_SOCKET;
}

static inline bool
is_sharer(const SimLine *line, int cpu)
{
	if (line->nsharers > 2)
		return (sim_sharer_sets[line->sharers.set].bits[cpu / 64] >> (cpu % 64)) & 1;
	return (line->nsharers >= 1 && line->sharers.cpu[0] == cpu) ||
		(line->nsharers == 2 && line->sharers.cpu[1] == cpu);
}

static inline int
first_sharer(const SimLine *line)
{
	return line->nsharers > 2 ? sim_sharer_sets[line->sharers.set].source : line->sharers.cpu[0];
}

extern void sim_clear_sharers(SimLine *line);

/* cpu is none yet */
extern void sim_add_sharer(SimLine *line, int cpu);

/*
 * Distances of the nearest and the farthest sharer but cpu itself, which must
 * have one.
 */
extern void sim_sharer_distances(const SimLine *line, int cpu, Distance *nearest,
								 Distance *farthest);

/* ---- fiber.c and schedule.c ---- */

typedef enum SimFiberState
{
	FIBER_READY,				/* in the event queue or running */
	FIBER_WAITING,				/* for its CPU */
	FIBER_ASLEEP,
	FIBER_DONE,
} SimFiberState;

typedef struct SimFiber
{
	SimTime		clock;
	SimTime		drained_at;		/* when the last store has got its line, */
	uint32_t	draining;		/* which is this one */
	SimTime		slice_end;		/* SIM_NEVER while no fiber waits for the CPU */
	int64_t		stall;			/* waited for lines so far */
	uint64_t	random;
	uint32_t	tenths;			/* of instructions not yet in clock */
	uint16_t	cpu;			/* + 1 */
	uint16_t	number;			/* + 1 */
	int			next;			/* in a list of waiters */
	SimFiberState state;
	bool		daemon;			/* the run does not wait for its end */
	const char *name;
	void	   *sp;				/* while not running */
	void		(*fn) (void *);
	void	   *arg;
	char	   *private_image;	/* its static variables while not running */
	SimTime		slice_start;	/* has the CPU since then */
	SimTime		ran;			/* before that */
	SimTime		ready_at;
	int64_t		allocations;
	SimTime		allocation_began;
	int64_t		stall_then;		/* when it did */
} SimFiber;

extern SimFiber *sim_me;		/* running now */
extern SimTime sim_limit;		/* it may go on up to here */

extern SimFiber *sim_fiber_table;
extern int	sim_nfibers;

extern void sim_fiber_create(SimFiber *fiber);
extern void sim_fiber_switch(SimFiber *to);
extern void sim_fiber_setup(void);
extern void sim_private_written(const char *address);
extern char *sim_private_start;
extern size_t sim_private_size;
extern void sim_large_touched(const char *address, bool write);
extern char *sim_large_start;
extern size_t sim_large_size;

extern void sim_schedule_setup(void);
extern void sim_schedule_run(void);
extern void sim_yield(void);
extern void sim_fiber_ended(void) __attribute__((noreturn));
extern int64_t sim_events;		/* turns given */

/* ---- config.c ---- */

extern void sim_config_read(void);
extern void sim_config_check(void);
extern void sim_machine_setup(void);
extern int64_t sim_seed;
extern int64_t sim_jitter;		/* of 1024 */

/* ---- report.c ---- */

#define SIM_MAX_REGIONS	64

typedef struct SimCounts
{
	int64_t		loads;
	int64_t		stores;
	int64_t		atomics;
	int64_t		transfers;
	int64_t		stall;
} SimCounts;

extern SimCounts sim_counts[SIM_MAX_REGIONS];

/* Allocations so far: how many, and the time in them */
typedef struct SimAllocations
{
	int64_t		number;
	SimTime		time;
	SimTime		stall;			/* of it, waiting for lines */
} SimAllocations;

extern SimAllocations sim_allocations;
extern void sim_report(void);

/* ---- chance ---- */

/* xorshift64* (Vigna 2016): a period of 2^64 - 1 and three shifts */
static inline uint32_t
sim_random_step(uint64_t *x)
{
	*x ^= *x >> 12;
	*x ^= *x << 25;
	*x ^= *x >> 27;
	return (uint32_t) ((*x * UINT64_C(0x2545F4914F6CDD1D)) >> 32);
}

/* splitmix64: makes good beginnings of bad seeds */
static inline uint64_t
sim_random_seed(uint64_t seed, uint64_t number)
{
	uint64_t	z = seed * UINT64_C(0xBF58476D1CE4E5B9) + (number + 1) * UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	z ^= z >> 31;
	return z ? z : 1;
}

/*
 * Time with jitter: up to sim_jitter / 1024 more or less, evenly.
 */
static inline SimTime
sim_jittered(SimFiber *fiber, SimTime ps)
{
	int64_t		r = (int64_t) (sim_random_step(&fiber->random) >> 21) - 1024;

	return ps + ((ps * sim_jitter * r) >> 20);
}

#endif							/* ENGINE_H */
