/*-------------------------------------------------------------------------
 *
 * test/lwlock/threads/sched.c
 *	  The scheduler, and semaphores.
 *
 * Two ways to play backends:
 *
 *	threads		The operating system schedules them, on all CPUs at once, with
 *				random delays at the points.  A watchdog looks for progress.
 *	fibers		All are in one thread, one at a time: at each point chance decides
 *				which goes on.  A run depends on its seed only, so a failure can
 *				be reproduced.  That all sleep is seen at once.  A switch takes
 *				some 20 ns, which allows many more interleavings than threads
 *				show.  But nothing happens between two points, and memory is
 *				sequentially consistent: threads and ThreadSanitizer find races
 *				and missing barriers.
 *
 *-------------------------------------------------------------------------
 */
#include "shim.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#undef clock_gettime

HarnessBackend harness_backends[HARNESS_MAX_BACKENDS];
PGPROC	   *harness_my_proc[HARNESS_MAX_BACKENDS];
int			harness_switch_one_in = 4;
int			harness_watchdog_seconds = 20;
int			harness_ns_per_point = 500;
int			harness_gone_one_in = 64;
uint64		harness_seed;
uint64		harness_round_seed;

static uint64 counts[HC_NUM];
static int	nbackends;
static void (*run_backend) (void);

struct PGSemaphoreData
{
	sem_t		sem;
	int			value;			/* fibers */
};
static struct PGSemaphoreData semaphores[HARNESS_MAX_BACKENDS];

void
harness_count(HarnessCount what)
{
	relaxed_add(&counts[what], 1);
}

uint64
harness_counted(HarnessCount what)
{
	return relaxed_read(&counts[what]);
}

void
harness_fail(const char *fmt,...)
{
	va_list		args;

	fprintf(stderr, "FAILED: ");
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fprintf(stderr, "\nbackend %d, --seed=%llu, seed of this round %llu\n", harness_self,
			(unsigned long long) harness_seed, (unsigned long long) harness_round_seed);
	harness_dump();
	fflush(NULL);
	_exit(3);
}

static uint32
xorshift(uint64 *x, uint32 below)
{
	*x ^= *x >> 12;
	*x ^= *x << 25;
	*x ^= *x >> 27;
	return (uint32) (((*x * UINT64CONST(0x2545F4914F6CDD1D)) >> 32) * below >> 32);
}

uint32
harness_random(uint32 below)
{
	return xorshift(&HARNESS_ME->random, below);
}

static void
prepare_run(int n, void (*backend) (void))
{
	nbackends = n;
	run_backend = backend;
	for (int i = 0; i < n; i++)
	{
		harness_backends[i].random =
			(harness_round_seed + i + 1) * UINT64CONST(0x9E3779B97F4A7C15) | 1;
		sem_init(&semaphores[i].sem, 0, 0);
		semaphores[i].value = 0;
		harness_my_proc[i]->sem = &semaphores[i];
	}
}

#ifdef HARNESS_FIBERS

/* ---- fibers ---- */

#define STACK_SIZE	(256 * 1024)

int			harness_self = 0;
int			(*harness_next) (void) = NULL;

typedef enum FiberState
{
	FIBER_DONE,
	FIBER_READY,
	FIBER_ASLEEP,				/* on its semaphore */
} FiberState;

typedef struct Fiber
{
	FiberState	state;
	uint64		not_before;		/* has lost its CPU until this point */
	bool		begun;
	ucontext_t	start;			/* where it begins */
	jmp_buf		at;				/* where it is after that */
	char	   *stack;
} Fiber;

static Fiber fibers[HARNESS_MAX_BACKENDS];
static jmp_buf all_done;
static uint64 points;
static uint64 chance;			/* the scheduler's own random state */

static uint32
scheduler_random(uint32 below)
{
	return xorshift(&chance, below);
}

/* The watchdog: points without a finished operation */
#define MOST_POINTS		UINT64CONST(20000000)

static void
look_for_livelock(void)
{
	static uint64 operations;
	static uint64 since;

	if (harness_counted(HC_OPERATIONS) != operations || since > points)
	{
		operations = harness_counted(HC_OPERATIONS);
		since = points;
	}
	else if (points - since > MOST_POINTS)
		harness_fail("no progress: a wakeup is lost, or all wait for each other");
}

/* Let another fiber run, or the same one */
static void
switch_fiber(void)
{
	Fiber	   *from = &fibers[harness_self];
	int			ready[HARNESS_MAX_BACKENDS];
	int			nready = 0;
	int			earliest = -1;
	int			next;

	if (points % 4096 == 0)
		look_for_livelock();

	for (int i = 0; i < nbackends; i++)
	{
		if (fibers[i].state == FIBER_ASLEEP && semaphores[i].value > 0)
			fibers[i].state = FIBER_READY;
		if (fibers[i].state != FIBER_READY)
			continue;
		if (fibers[i].not_before <= points)
			ready[nready++] = i;
		if (earliest < 0 || fibers[i].not_before < fibers[earliest].not_before)
			earliest = i;
	}
	if (harness_next != NULL && (next = harness_next()) >= 0)
	{
		if (fibers[next].state != FIBER_READY)
			harness_fail("backend %d cannot go on as the script says", next);
	}
	else if (nready > 0)
		next = ready[scheduler_random(nready)];
	else if (earliest >= 0)
		next = earliest;
	else
	{
		for (int i = 0; i < nbackends; i++)
			if (fibers[i].state != FIBER_DONE)
				harness_fail("all sleep: a wakeup is lost");
		_longjmp(all_done, 1);
	}

	if (next == harness_self && from->state == FIBER_READY)
		return;
	if (_setjmp(from->at) == 0)
	{
		harness_self = next;
		if (fibers[next].begun)
			_longjmp(fibers[next].at, 1);
		fibers[next].begun = true;
		setcontext(&fibers[next].start);
	}
}

void
harness_point(void)
{
	points++;
	if (harness_next != NULL)
	{
		switch_fiber();
		return;
	}
	if (scheduler_random(harness_switch_one_in) != 0)
		return;
	/* now and then one is off its CPU for long */
	if (scheduler_random(harness_gone_one_in) == 0)
		fibers[harness_self].not_before = points + (1 << scheduler_random(14));
	switch_fiber();
}

void
harness_pause(void)
{
	points++;
	switch_fiber();
}

int
harness_clock_gettime(clockid_t id, struct timespec *now)
{
	uint64		ns = points * harness_ns_per_point;

	now->tv_sec = ns / 1000000000;
	now->tv_nsec = ns % 1000000000;
	return 0;
}

void
PGSemaphoreLock(PGSemaphore sema)
{
	harness_point();
	while (sema->value == 0)
	{
		fibers[harness_self].state = FIBER_ASLEEP;
		switch_fiber();
	}
	sema->value--;
	harness_count(HC_SLEPT);
	HARNESS_ME->pushed = false;

	/* a woken process need not run at once: let others be quicker */
	if (scheduler_random(3) == 0)
	{
		fibers[harness_self].not_before = points + scheduler_random(1 << scheduler_random(11));
		switch_fiber();
	}
	harness_point();
}

void
PGSemaphoreUnlock(PGSemaphore sema)
{
	harness_point();
	sema->value++;
	harness_point();
}

bool
harness_sem_try(int backend)
{
	if (semaphores[backend].value == 0)
		return false;
	semaphores[backend].value--;
	return true;
}

int
harness_sem_value(int backend)
{
	return semaphores[backend].value;
}

bool
harness_sleeps(int backend)
{
	return fibers[backend].state == FIBER_ASLEEP && semaphores[backend].value == 0;
}

static void
fiber_main(void)
{
	run_backend();
	fibers[harness_self].state = FIBER_DONE;
	switch_fiber();
	abort();
}

/* Each second of the CPU: a loop without a point would never end */
static void
look_for_loop(int signal)
{
	static uint64 last;

	if (points == last)
		harness_fail("the list of waiters has become a ring");
	last = points;
}

static void
prepare_fiber(int i)
{
	Fiber	   *fiber = &fibers[i];

	if (fiber->stack == NULL)
		fiber->stack = malloc(STACK_SIZE);
	getcontext(&fiber->start);
	fiber->start.uc_stack.ss_sp = fiber->stack;
	fiber->start.uc_stack.ss_size = STACK_SIZE;
	fiber->start.uc_link = NULL;
	makecontext(&fiber->start, fiber_main, 0);
	fiber->state = FIBER_READY;
	fiber->not_before = 0;
	fiber->begun = false;
}

void
harness_run(int n, void (*backend) (void))
{
	static const struct itimerval second = {{1, 0}, {1, 0}};

	signal(SIGPROF, look_for_loop);
	setitimer(ITIMER_PROF, &second, NULL);

	prepare_run(n, backend);
	chance = harness_round_seed * UINT64CONST(0x9E3779B97F4A7C15) | 1;
	for (int i = 0; i < n; i++)
		prepare_fiber(i);
	if (_setjmp(all_done) == 0)
	{
		harness_self = 0;
		fibers[0].begun = true;
		setcontext(&fibers[0].start);
	}
	harness_self = 0;
}

#else							/* !HARNESS_FIBERS */

/* ---- threads ---- */

__thread int harness_self = 0;

static pthread_barrier_t start_line;

/* Time runs faster: 1 ms, the least handoff_after, must elapse */
#define CLOCK_SPEED		50

void
harness_point(void)
{
	if (harness_random(harness_switch_one_in * 8) != 0)
		return;
	switch (harness_random(64))
	{
		case 0:
			usleep(harness_random(50));
			break;
		case 1:
		case 2:
		case 3:
			for (uint32 i = harness_random(2000); i > 0; i--)
				pg_compiler_barrier();
			break;
		default:
			sched_yield();
	}
}

void
harness_pause(void)
{
	harness_point();
	sched_yield();
}

int
harness_clock_gettime(clockid_t id, struct timespec *now)
{
	uint64		ns;

	clock_gettime(CLOCK_MONOTONIC, now);
	ns = ((uint64) now->tv_sec * 1000000000 + now->tv_nsec) * CLOCK_SPEED;
	now->tv_sec = ns / 1000000000;
	now->tv_nsec = ns % 1000000000;
	return 0;
}

void
PGSemaphoreLock(PGSemaphore sema)
{
	harness_point();
	while (sem_wait(&sema->sem) != 0)
		 /* EINTR */ ;
	harness_count(HC_SLEPT);
	HARNESS_ME->pushed = false;

	/* let others be quicker */
	if (harness_random(8) == 0)
		usleep(harness_random(50));
	harness_point();
}

void
PGSemaphoreUnlock(PGSemaphore sema)
{
	harness_point();
	if (sem_post(&sema->sem) != 0)
		harness_fail("sem_post: %m");
	harness_point();
}

bool
harness_sem_try(int backend)
{
	return sem_trywait(&semaphores[backend].sem) == 0;
}

int
harness_sem_value(int backend)
{
	int			value;

	sem_getvalue(&semaphores[backend].sem, &value);
	return value;
}

static void *
thread_main(void *arg)
{
	harness_self = (int) (intptr_t) arg;
	pthread_barrier_wait(&start_line);
	run_backend();
	return NULL;
}

static void *
watchdog(void *arg)
{
	uint64		last = 0;
	int			seconds = 0;

	for (;;)
	{
		sleep(1);
		if (harness_counted(HC_OPERATIONS) != last)
			seconds = 0;
		else if (++seconds >= harness_watchdog_seconds)
			harness_fail("no progress for %d s: a wakeup is lost", seconds);
		last = harness_counted(HC_OPERATIONS);
	}
	return NULL;
}

void
harness_run(int n, void (*backend) (void))
{
	static pthread_t dog;
	pthread_t	threads[HARNESS_MAX_BACKENDS];

	if (dog == 0 && pthread_create(&dog, NULL, watchdog, NULL) != 0)
		harness_fail("pthread_create: %m");

	prepare_run(n, backend);
	pthread_barrier_init(&start_line, NULL, n);
	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, thread_main, (void *) (intptr_t) i) != 0)
			harness_fail("pthread_create: %m");
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&start_line);
}

#endif							/* HARNESS_FIBERS */
