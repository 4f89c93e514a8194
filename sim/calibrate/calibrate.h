/*
 * calibrate.h
 *	  What the measurements of this machine share: clock, pinning, lines.
 *
 * Each measurement is one call that returns one sample, in picoseconds (or
 * bytes a second).  Repeats, their order and medians are the caller's: a
 * sample says nothing alone.
 */
#ifndef CALIBRATE_H
#define CALIBRATE_H

#include <stdint.h>

/* As large as what any current CPU's prefetchers treat as one: two lines. */
#define LINE 128

typedef struct Line
{
	volatile uint64_t word;
	char		pad[LINE - sizeof(uint64_t)];
} __attribute__((aligned(LINE))) Line;

/* calibrate.c */
extern void fail(const char *what);
extern void bind_to(int cpu);
extern int64_t now_ns(void);
extern void *map_memory(int64_t bytes, int first_touch_cpu);
extern double middle_of(double *samples, int n);	/* sorts them */
extern uint32_t next_random(uint32_t *state);

/* Two threads, each bound to a CPU; returns when both have ended. */
extern void run_pair(void *(*one) (void *), int cpu_one, void *(*other) (void *), int cpu_other, void *arg);

/* own.c: what an operation costs on a line that is this CPU's own */
extern double load_hit(const int *cpus, int ncpus);
extern double store_hit(const int *cpus, int ncpus);
extern double xadd_hit(const int *cpus, int ncpus);
extern double cas_hit(const int *cpus, int ncpus);
extern double pause_time(const int *cpus, int ncpus);
extern double instruction_time(const int *cpus, int ncpus);
extern double together(const int *cpus, int ncpus);
extern double lease_spread(const int *cpus, int ncpus);

/* transfer.c: what it costs if it is another CPU's */
extern double transfer_load(const int *cpus, int ncpus);
extern double transfer_xadd(const int *cpus, int ncpus);
extern double transfer_both(const int *cpus, int ncpus);
extern double ping_pong(const int *cpus, int ncpus);
extern double contended_xadd(const int *cpus, int ncpus);

/* memory.c */
extern double memory_latency(const int *cpus, int ncpus);
extern double copy_rate(const int *cpus, int ncpus);

/* system.c: what the kernel does */
extern double wake_call(const int *cpus, int ncpus);
extern double wake_up(const int *cpus, int ncpus);
extern double sleep_call(const int *cpus, int ncpus);
extern double context_switch(const int *cpus, int ncpus);
extern double time_slice(const int *cpus, int ncpus);

#endif							/* CALIBRATE_H */
