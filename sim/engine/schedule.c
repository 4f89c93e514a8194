/*-------------------------------------------------------------------------
 *
 * sim/engine/schedule.c
 *	  The order of the fibers: event queue, time slices, sleepers.
 *
 * A fiber runs until it comes to something that others can see or change, at a
 * time later than another fiber's next event; then that one runs.  So
 * all that can be seen happens in the order of time.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "engine.h"

/*
 * Processes do not begin at the same moment: each within this time, by chance.
 */
#define START_SPREAD	SIM_US

/*
 * An event is a time and a fiber in one number: one comparison tells which of two is
 * earlier, and at the same time, the fiber with the smaller number is.
 */
typedef int64_t Event;

#define FIBER_BITS		13
#define LAST_TIME		(INT64_MAX >> FIBER_BITS)	/* 18 minutes */

_Static_assert(SIM_MAX_FIBERS <= 1 << FIBER_BITS, "numbers of fibers do not fit");

SimFiber   *sim_fiber_table;
int			sim_nfibers;
int64_t		sim_events;

static Event *heap;				/* the earliest first; equal ones by number */
static int	nheap;
static int	nalive;				/* fibers that the run waits for */
static SimTime *node_busy_until;	/* memory bandwidth */
static SimMachine machine;

/* ---- event queue: a heap in which each has four children ---- */

#define CHILDREN	4

static inline Event
event_of(SimTime time, const SimFiber *fiber)
{
	if (unlikely(time > LAST_TIME))
		sim_fail("more than %lld s of simulated time", (long long) (LAST_TIME / SIM_S));
	return (time << FIBER_BITS) + fiber->number - 1;
}

static inline SimTime
time_of(Event event)
{
	return event >> FIBER_BITS;
}

static inline SimFiber *
fiber_of(Event event)
{
	return &sim_fiber_table[event & ((1 << FIBER_BITS) - 1)];
}

/* In the place of the first event */
static void
sift_down(Event event)
{
	int			i = 0;

	for (;;)
	{
		int			first = CHILDREN * i + 1;
		int			best = first;

		if (first >= nheap)
			break;
		for (int child = first + 1; child < Min(first + CHILDREN, nheap); child++)
			if (heap[child] < heap[best])
				best = child;
		if (heap[best] >= event)
			break;
		heap[i] = heap[best];
		i = best;
	}
	heap[i] = event;
}

static void
push(SimTime time, const SimFiber *fiber)
{
	Event		event = event_of(time, fiber);
	int			i = nheap++;

	while (i > 0 && event < heap[(i - 1) / CHILDREN])
	{
		heap[i] = heap[(i - 1) / CHILDREN];
		i = (i - 1) / CHILDREN;
	}
	heap[i] = event;
	if (time < sim_limit)
		sim_limit = time;
}

static void
set_limit(const SimFiber *fiber)
{
	sim_limit = fiber->slice_end;
	if (nheap > 0 && time_of(heap[0]) < sim_limit)
		sim_limit = time_of(heap[0]);
}

/* ---- CPUs ---- */

static SimCpu *
cpu_of(const SimFiber *fiber)
{
	return &sim_cpu_table[fiber->cpu - 1];
}

static void
give_cpu(SimFiber *fiber, SimTime at)
{
	SimCpu	   *cpu = cpu_of(fiber);

	fiber->clock = Max(fiber->ready_at, at);
	fiber->slice_start = fiber->clock;
	fiber->slice_end = cpu->nwaiting > 0 ? fiber->clock + machine.timeslice_ps : SIM_NEVER;
	fiber->state = FIBER_READY;
	cpu->current = fiber->number - 1;
	push(fiber->clock, fiber);
}

static void
wait_for_cpu(SimFiber *fiber)
{
	SimCpu	   *cpu = cpu_of(fiber);
	int			number = fiber->number - 1;

	fiber->state = FIBER_WAITING;
	fiber->next = -1;
	if (cpu->first < 0)
		cpu->first = number;
	else
		sim_fiber_table[cpu->last].next = number;
	cpu->last = number;
	cpu->nwaiting++;
}

static void
make_runnable(SimFiber *fiber, SimTime at)
{
	SimCpu	   *cpu = cpu_of(fiber);
	SimFiber   *current;

	fiber->ready_at = at;
	if (cpu->current < 0)
	{
		give_cpu(fiber, at);
		return;
	}
	wait_for_cpu(fiber);
	current = &sim_fiber_table[cpu->current];
	if (current->slice_end == SIM_NEVER)
	{
		current->slice_end = Max(current->slice_start + machine.timeslice_ps, at);
		if (current == sim_me)
			sim_limit = Min(sim_limit, current->slice_end);
	}
}

/* The next one that waits for the CPU gets it, if there is one */
static void
leave_cpu(SimFiber *fiber)
{
	SimCpu	   *cpu = cpu_of(fiber);

	fiber->ran += fiber->clock - fiber->slice_start;
	cpu->current = -1;
	if (cpu->first >= 0)
	{
		SimFiber   *next = &sim_fiber_table[cpu->first];

		cpu->first = next->next;
		cpu->nwaiting--;
		give_cpu(next, fiber->clock + machine.switch_ps);
	}
}

/* ---- turns ---- */

/*
 * Another fiber's turn.  Timers that go off on the way wake their fibers.
 */
static void
run_next(void)
{
	for (;;)
	{
		SimFiber   *fiber;
		SimTime		time;

		if (nheap == 0)
			sim_fail("all fibers sleep, and none can wake another");
		fiber = fiber_of(heap[0]);
		time = time_of(heap[0]);
		if (--nheap > 0)
			sift_down(heap[nheap]);
		if (fiber->state == FIBER_ASLEEP)
		{
			make_runnable(fiber, time + machine.wakeup_ps);
			continue;
		}
		sim_events++;
		set_limit(fiber);
		if (fiber != sim_me)
			sim_fiber_switch(fiber);
		return;
	}
}

/*
 * The fiber's clock is past sim_limit.
 */
void
sim_yield(void)
{
	SimFiber   *me = sim_me;

	if (unlikely(me->clock >= me->slice_end))
	{
		if (cpu_of(me)->first >= 0)
		{
			me->ready_at = me->clock;
			wait_for_cpu(me);
			leave_cpu(me);
			run_next();
			return;
		}
		me->slice_end = SIM_NEVER;
	}

	if (nheap > 0 && time_of(heap[0]) < me->clock)
	{
		SimFiber   *next = fiber_of(heap[0]);

		if (unlikely(next->state == FIBER_ASLEEP))
		{
			push(me->clock, me);
			run_next();
			return;
		}
		sift_down(event_of(me->clock, me));
		sim_events++;
		set_limit(next);
		sim_fiber_switch(next);
		return;
	}
	set_limit(me);
}

/* What follows is seen by others: not before its time */
static inline void
in_order(void)
{
	(void) sim_now();
	if (sim_me->clock > sim_limit)
		sim_yield();
}

void
sim_fiber_ended(void)
{
	SimFiber   *me = sim_me;

	in_order();
	me->state = FIBER_DONE;
	leave_cpu(me);
	if (!me->daemon && --nalive == 0)
		sim_fiber_switch(NULL);
	else
		run_next();
	abort();					/* not reached */
}

void
sim_stop(void)
{
	if (sim_me != NULL)
		sim_fiber_switch(NULL);
}

void
sim_daemon(int fiber)
{
	if (!sim_fiber_table[fiber].daemon)
		nalive--;
	sim_fiber_table[fiber].daemon = true;
}

void
sim_schedule_run(void)
{
	if (nalive > 0)
		run_next();
}

/* ---- sleep ---- */

static void
go_to_sleep(void)
{
	SimFiber   *me = sim_me;

	me->clock += sim_jittered(me, machine.sleep_call_ps);
	me->state = FIBER_ASLEEP;
	leave_cpu(me);
}

void
sim_sleep(SimTime ps)
{
	if (ps < 0)
		sim_fail("sleep of less than nothing");
	in_order();
	go_to_sleep();
	push(sim_me->clock + ps, sim_me);
	run_next();
}

void
sim_sem_wait(SimSem *sem)
{
	in_order();
	if (sem->count > 0)
	{
		sem->count--;
		return;
	}
	sim_me->next = -1;
	if (sem->first == 0)
		sem->first = sim_me->number;
	else
		sim_fiber_table[sem->last - 1].next = sim_me->number - 1;
	sem->last = sim_me->number;
	go_to_sleep();
	run_next();
}

void
sim_sem_post(SimSem *sem)
{
	SimFiber   *fiber;

	in_order();
	if (sem->first == 0)
	{
		sem->count++;
		return;
	}
	fiber = &sim_fiber_table[sem->first - 1];
	sem->first = fiber->next + 1;
	sim_me->clock += sim_jittered(sim_me, machine.wake_call_ps);
	make_runnable(fiber, sim_me->clock + machine.wakeup_ps);
}

/* ---- bandwidth ---- */

/* Without rounding to zero, and without overflow: up to 9 GB at a time */
static SimTime
time_for(int64_t bytes, int64_t bytes_per_s)
{
	return (SimTime) ((__int128) bytes * SIM_S / bytes_per_s);
}

/*
 * A copy takes as long as its core needs, or until its turn at the node's memory
 * has come and gone: that is given out in the order of requests.
 */
void
sim_copy(int node, int64_t bytes)
{
	SimTime		end;

	if (node < 0 || node >= sim_nodes() || bytes < 0)
		sim_fail("copy of %lld bytes from node %d", (long long) bytes, node);
	in_order();
	end = sim_me->clock;
	if (machine.copy_bytes_per_s > 0)
		end += sim_jittered(sim_me, time_for(bytes, machine.copy_bytes_per_s));
	if (machine.bandwidth_bytes_per_s > 0)
	{
		SimTime    *busy = &node_busy_until[node];

		*busy = Max(*busy, sim_me->clock) + time_for(bytes, machine.bandwidth_bytes_per_s);
		end = Max(end, *busy);
	}
	sim_cache_traffic(sim_me->cpu - 1, bytes);
	sim_me->clock = end;
}

/* ---- this fiber ---- */

int
sim_self(void)
{
	return sim_me ? sim_me->number - 1 : -1;
}

int
sim_cpu(void)
{
	return sim_me ? sim_me->cpu - 1 : 0;
}

SimTime
sim_cpu_time(void)
{
	SimTime		sum = 0;

	for (int i = 0; i < sim_nfibers; i++)
	{
		const SimFiber *fiber = &sim_fiber_table[i];

		sum += fiber->ran;
		if (fiber->cpu > 0 && cpu_of(fiber)->current == i)
			sum += fiber->clock - fiber->slice_start;
	}
	return sum;
}

uint32_t
sim_random(void)
{
	return sim_random_step(&sim_me->random);
}

uint32_t
sim_random_below(uint32_t below)
{
	return (uint32_t) (((uint64_t) sim_random_step(&sim_me->random) * below) >> 32);
}

int
sim_spawn(const char *name, void (*fn) (void *), void *arg, int cpu)
{
	SimFiber   *fiber = &sim_fiber_table[sim_nfibers];
	SimTime		now = sim_now();

	if (sim_nfibers == SIM_MAX_FIBERS)
		sim_fail("more than %d fibers", SIM_MAX_FIBERS);
	fiber->number = ++sim_nfibers;
	fiber->name = name;
	fiber->fn = fn;
	fiber->arg = arg;
	fiber->cpu = sim_cpu_for(cpu) + 1;
	fiber->random = sim_random_seed(sim_seed, fiber->number);
	sim_fiber_create(fiber);
	nalive++;
	if (now == 0 && sim_jitter > 0)
		now = (SimTime) sim_random_step(&fiber->random) % START_SPREAD;
	make_runnable(fiber, now);
	return fiber->number - 1;
}

void
sim_schedule_setup(void)
{
	machine = *sim_machine();
	heap = calloc(SIM_MAX_FIBERS + 1, sizeof(*heap));
	sim_fiber_table = calloc(SIM_MAX_FIBERS, sizeof(*sim_fiber_table));
	node_busy_until = calloc(sim_nodes(), sizeof(*node_busy_until));
	if (heap == NULL || sim_fiber_table == NULL || node_busy_until == NULL)
		sim_fail("out of memory");
	sim_limit = SIM_NEVER;
}
