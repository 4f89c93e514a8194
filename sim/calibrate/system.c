/*
 * system.c
 *	  What the kernel takes for waking, sleeping and changing processes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "calibrate.h"

#define WAKES 2000
#define SETTLE_NS 20000			/* until the other is asleep for sure */
#define YIELDS 50000
#define SLICE_NS 300000000
#define LEAST_GAP_NS 100000		/* shorter ones are interrupts */

static uint32_t futex_word;

static long
futex(int operation, uint32_t value)
{
	return syscall(SYS_futex, &futex_word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

typedef struct Wakes
{
	Line		asleep;			/* rounds in which the sleeper is about to sleep */
	Line		called;			/* when the waker called */
	Line		awake;			/* rounds in which the sleeper woke up */
	int64_t		call_ns;
	int64_t		wake_ns;
	int64_t		sleep_ns;
} Wakes;

static void *
sleeper(void *arg)
{
	Wakes	   *wakes = arg;

	for (uint32_t i = 0; i < WAKES; i++)
	{
		__atomic_store_n(&wakes->asleep.word, i + 1, __ATOMIC_SEQ_CST);
		while (__atomic_load_n(&futex_word, __ATOMIC_SEQ_CST) == i)
			(void) futex(FUTEX_WAIT, i);
		wakes->wake_ns += now_ns() - (int64_t) wakes->called.word;
		__atomic_store_n(&wakes->awake.word, i + 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void *
waker(void *arg)
{
	Wakes	   *wakes = arg;

	for (uint32_t i = 0; i < WAKES; i++)
	{
		int64_t		from;

		while (wakes->asleep.word != i + 1)
			__builtin_ia32_pause();
		from = now_ns();
		while (now_ns() - from < SETTLE_NS)
			;
		__atomic_store_n(&futex_word, i + 1, __ATOMIC_SEQ_CST);
		from = now_ns();
		wakes->called.word = from;
		(void) futex(FUTEX_WAKE, 1);
		wakes->call_ns += now_ns() - from;
		while (wakes->awake.word != i + 1)
			__builtin_ia32_pause();
	}
	return NULL;
}

static Wakes *
wake_often(const int *cpus)
{
	static Wakes wakes;

	run_pair(waker, cpus[0], sleeper, cpus[1], &wakes);
	return &wakes;
}

double
wake_call(const int *cpus, int ncpus)
{
	return wake_often(cpus)->call_ns * 1000.0 / WAKES;
}

/* From the beginning of the waker's call until the other runs. */
double
wake_up(const int *cpus, int ncpus)
{
	return wake_often(cpus)->wake_ns * 1000.0 / WAKES;
}

/*
 * Into the kernel and back without sleeping, because the word has changed: what
 * who goes to sleep pays before he sleeps.
 */
double
sleep_call(const int *cpus, int ncpus)
{
	int64_t		from = now_ns();

	futex_word = 1;
	for (int i = 0; i < YIELDS; i++)
		if (futex(FUTEX_WAIT, 0) == 0 || errno != EAGAIN)
			fail("futex");
	return (now_ns() - from) * 1000.0 / YIELDS;
}

static void *
yield(void *arg)
{
	bind_to(*(int *) arg);
	for (int i = 0; i < YIELDS; i++)
		sched_yield();
	return NULL;
}

/* Two threads on one CPU that give way to each other. */
double
context_switch(const int *cpus, int ncpus)
{
	pthread_t	threads[2];
	int			cpu = cpus[0];
	int64_t		from = now_ns();

	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, yield, &cpu) != 0)
			fail("pthread_create");
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return (now_ns() - from) * 1000.0 / (2 * YIELDS);
}

typedef struct Slices
{
	int			cpu;
	int			gaps;
	int64_t		length_ns;
} Slices;

static int64_t slices_end;

static void *
spin(void *arg)
{
	Slices	   *mine = arg;
	int64_t		last;

	bind_to(mine->cpu);
	last = now_ns();
	while (last < slices_end)
	{
		int64_t		now = now_ns();

		if (now - last > LEAST_GAP_NS)
		{
			mine->gaps++;
			mine->length_ns += now - last;
		}
		last = now;
	}
	return NULL;
}

/* Two threads on one CPU that never give way: how long one has to wait. */
double
time_slice(const int *cpus, int ncpus)
{
	pthread_t	threads[2];
	Slices		slices[2] = {{.cpu = cpus[0]}, {.cpu = cpus[0]}};
	int			gaps;

	slices_end = now_ns() + SLICE_NS;
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, spin, &slices[i]) != 0)
			fail("pthread_create");
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	gaps = slices[0].gaps + slices[1].gaps;
	if (gaps == 0)
	{
		errno = EBUSY;
		fail("two threads on one CPU never took turns");
	}
	return (slices[0].length_ns + slices[1].length_ns) * 1000.0 / gaps;
}
