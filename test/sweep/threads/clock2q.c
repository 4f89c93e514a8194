/*-------------------------------------------------------------------------
 *
 * test/sweep/threads/clock2q.c
 *	  The rule of "clock2q" in threads, with the machine's atomic operations.
 *
 * Usage: clock2q CODE BUFFERS THREADS LOADS SEED DELAYS
 *
 * Each thread loads LOADS pages.  When all have ended: no buffer is passed over for
 * two laps more, as many slots were filled as pages loaded, and the length is within its
 * bounds.  With DELAYS, a thread now and then gives its processor away before or
 * after an atomic operation.  Prints counts.  Exit status 1: a property does not
 * hold, and its message is on stderr.
 *
 * t/sweep/clock2q_threads.pl compiles and runs it, for mutants too.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#undef printf
#undef fprintf

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "port/atomics.h"

static void point(void);

static inline uint32
delayed_read_u32(pg_atomic_uint32 *ptr)
{
	uint32		value;

	point();
	value = pg_atomic_read_u32(ptr);
	point();
	return value;
}

static inline void
delayed_write_u32(pg_atomic_uint32 *ptr, uint32 value)
{
	point();
	pg_atomic_write_u32(ptr, value);
	point();
}

#include "sweep/hand.h"

static inline uint64
delayed_read_u64(const pg_atomic_uint64 *ptr)
{
	uint64		value = pgsweep_read_u64(ptr);

	point();
	return value;
}

#define pg_atomic_read_u32 delayed_read_u32
#define pg_atomic_write_u32 delayed_write_u32
#define pgsweep_read_u64 delayed_read_u64

#include "clock2q_mutants.h"

#undef pg_atomic_read_u32
#undef pg_atomic_write_u32
#undef pgsweep_read_u64

#define MAX_THREADS		64
#define MAX_BATCH		16		/* slots of a lease */
#define LOCKED			0x100	/* a buffer's state: usage count, and this */
#define NOTHING			PG_UINT32_MAX
#define STUCK			UINT64_C(100000000) /* looks for one victim */

typedef struct Thread
{
	pthread_t	thread;
	PgSweepC2qLease lease;
	uint64		random;
	uint64		loads;
	uint64		young;			/* victims from probation */
	uint64		old;			/* from the main part */
	uint64		given_up;
	uint64		windows;
	uint64		returned;
	uint64		races;			/* victims that were on probation again */
} Thread;

static const Clock2qCode *code;
static uint32 num_buffers;
static uint32 num_pages;
static uint64 loads_of_each;
static bool delays;
static PgSweepClock2q c2q;
static pg_atomic_uint32 *states;
static uint32 *pages;
static pg_atomic_uint64 main_hand;
static Thread threads[MAX_THREADS];
static pthread_barrier_t start;
static __thread Thread *me;

/* What assertions call */
void
ExceptionalCondition(const char *condition, const char *file, int line)
{
	fprintf(stderr, "%s:%d: %s\n", file, line, condition);
	abort();
}

static uint32
draw(uint32 number)
{
	me->random ^= me->random << 13;
	me->random ^= me->random >> 7;
	me->random ^= me->random << 17;
	return (uint32) (me->random >> 20) % number;
}

static void
point(void)
{
	if (delays && me != NULL && draw(64) == 0)
		sched_yield();
}

static uint64
hash_of(uint32 page)
{
	uint64		x = (page + 1) * UINT64_C(0x9E3779B97F4A7C15);

	return x ^ x >> 29;
}

/* Lock an unlocked buffer that has at most this usage count */
static bool
lock_victim(uint32 buf, uint32 unused)
{
	uint32		state = pg_atomic_read_u32(&states[buf]);

	return !(state & LOCKED) && state <= unused &&
		pg_atomic_compare_exchange_u32(&states[buf], &state, state | LOCKED);
}

static void
set_usage(uint32 buf, uint32 usage)
{
	uint32		state = pg_atomic_read_u32(&states[buf]);

	if (!(state & LOCKED))
		pg_atomic_compare_exchange_u32(&states[buf], &state, usage);
}

/*
 * After a lap of buffers on probation, these will do, too, as in the server
 * (last_round() in walk.c): in tiny pools, all may be.
 */
static uint32
main_victim(void)
{
	uint32		passed = 0;

	for (uint64 looks = 0; looks < STUCK; looks++)
	{
		uint32		buf = (uint32) (pg_atomic_fetch_add_u64(&main_hand, 1) % num_buffers);
		uint32		state;

		if (passed < num_buffers && code->passes(&c2q, buf))
		{
			passed++;
			continue;
		}
		point();
		state = pg_atomic_read_u32(&states[buf]);
		if (state & LOCKED)
			sched_yield();
		else if (state > 0)
			set_usage(buf, state - 1);
		else if (lock_victim(buf, 0))
			return buf;
	}
	fprintf(stderr, "%u buffers: there is no victim\n", num_buffers);
	_exit(1);
}

static uint32
find_victim(PgSweepC2qSide *side)
{
	uint32		unused;

	while (code->has_to_judge(&c2q, &me->lease))
	{
		uint32		buf = code->judge(&c2q, &me->lease, &unused);

		if (buf == NOTHING)
			continue;
		if (lock_victim(buf, unused))
		{
			*side = PGSWEEP_C2Q_PROBATION;
			me->young++;
			return buf;
		}
		if (pg_atomic_read_u32(&states[buf]) > PGSWEEP_C2Q_USES)
			set_usage(buf, PGSWEEP_C2Q_USES);
	}
	*side = PGSWEEP_C2Q_MAIN;
	me->old++;
	return main_victim();
}

/* Returns the victim */
static uint32
miss(uint32 batch)
{
	PgSweepC2qSide side;
	uint32		buf;

	if (me->lease.fill_left == 0)
		code->take_slots(&c2q, &me->lease, batch);
	code->miss(&c2q, &me->lease, 0);
	buf = code->end_window(&c2q, &me->lease);
	if (buf != NOTHING)
	{
		set_usage(buf, 0);
		me->windows++;
	}
	buf = find_victim(&side);
	code->left(&c2q, hash_of(pages[buf]), side);
	if (draw(64) == 0)
	{
		pg_atomic_write_u32(&states[buf], 1);
		me->given_up++;
		return buf;
	}
	pages[buf] = draw(num_pages);
	me->races += code->passes(&c2q, buf);
	side = code->loaded(&c2q, &me->lease, buf, hash_of(pages[buf]));
	me->returned += side != PGSWEEP_C2Q_STRANGER;
	me->loads++;
	pg_atomic_write_u32(&states[buf], side == PGSWEEP_C2Q_MAIN ? PGSWEEP_C2Q_USES : 1);
	return buf;
}

static void *
run(void *thread)
{
	uint32		batch;

	me = thread;
	pthread_barrier_wait(&start);
	while (me->loads < loads_of_each)
	{
		uint32		buf = draw(num_buffers);
		uint32		state = pg_atomic_read_u32(&states[buf]);

		batch = 1 + draw(MAX_BATCH);
		miss(batch);
		if (draw(3) == 0 && state < 5)
			set_usage(buf, state + 1);
	}
	return NULL;
}

/*
 * Two laps more, of all threads in turn: each slot is filled again.  Buffers that
 * are still passed over have been put into one since.
 */
static uint32
passed_for_laps(uint32 num_threads, uint32 *on_probation)
{
	bool	   *put = calloc(num_buffers, sizeof(bool));
	uint32		lost = 0;

	for (uint32 i = 0; i < 2 * num_buffers + 2 * MAX_BATCH * num_threads; i++)
	{
		me = &threads[i % num_threads];
		put[miss(MAX_BATCH)] = true;
	}
	for (uint32 buf = 0; buf < num_buffers; buf++)
	{
		bool		passed = code->passes(&c2q, buf);

		*on_probation += passed;
		lost += passed && !put[buf];
	}
	free(put);
	return lost;
}

static bool
good(uint32 num_threads, uint32 *on_probation)
{
	uint32		lost = passed_for_laps(num_threads, on_probation);
	uint32		length = pg_atomic_read_u32(&c2q.length);
	uint64		loads = 0;

	for (uint32 i = 0; i < num_threads; i++)
		loads += threads[i].loads + threads[i].lease.fill_left;
	if (lost > 0)
		fprintf(stderr, "%u buffers: %u are passed over for two laps\n", num_buffers, lost);
	if (pg_atomic_read_u64(&c2q.fill) != loads)
		fprintf(stderr, "%u buffers: the filling hand is at %llu after %llu slots\n", num_buffers,
				(unsigned long long) pg_atomic_read_u64(&c2q.fill), (unsigned long long) loads);
	if (length < Max(num_buffers / 10, 1) || length > num_buffers / 10.0 * 9)
		fprintf(stderr, "%u buffers: length is %u\n", num_buffers, length);
	return lost == 0 && pg_atomic_read_u64(&c2q.fill) == loads &&
		length >= Max(num_buffers / 10, 1) && length <= num_buffers / 10.0 * 9;
}

#define PRINT_SUM(what) \
	do { \
		uint64		sum = 0; \
		for (uint32 i = 0; i < num_threads; i++) \
			sum += threads[i].what; \
		printf("%s=%llu\n", #what, (unsigned long long) sum); \
	} while (0)

int
main(int argc, char **argv)
{
	uint32		num_threads;
	uint32		on_probation = 0;
	bool		holds;

	if (argc != 7)
		return 2;
	for (int i = 0; i < lengthof(clock2q_codes); i++)
		if (strcmp(clock2q_codes[i].name, argv[1]) == 0)
			code = &clock2q_codes[i];
	num_buffers = atoi(argv[2]);
	num_threads = atoi(argv[3]);
	loads_of_each = atoi(argv[4]);
	delays = atoi(argv[6]) != 0;
	if (code == NULL || num_buffers < 16 || num_threads < 1 || num_threads > MAX_THREADS)
		return 2;
	num_pages = num_buffers * 3;

	states = calloc(num_buffers, sizeof(*states));
	pages = calloc(num_buffers, sizeof(*pages));
	code->init(&c2q, num_buffers, calloc(num_buffers, sizeof(pg_atomic_uint32)),
			   calloc(num_buffers, sizeof(pg_atomic_uint32)),
			   aligned_alloc(64, sizeof(PgSweepC2qSet) * pgsweep_c2q_num_sets(num_buffers)));
	for (uint32 i = 0; i < num_threads; i++)
		threads[i].random = (atoi(argv[5]) * UINT64_C(64) + i + 1) * UINT64_C(88172645463325252);
	pthread_barrier_init(&start, NULL, num_threads);
	for (uint32 i = 0; i < num_threads; i++)
		if (pthread_create(&threads[i].thread, NULL, run, &threads[i]) != 0)
			return 2;
	for (uint32 i = 0; i < num_threads; i++)
		pthread_join(threads[i].thread, NULL);

	holds = good(num_threads, &on_probation);
	PRINT_SUM(loads);
	PRINT_SUM(young);
	PRINT_SUM(old);
	PRINT_SUM(given_up);
	PRINT_SUM(windows);
	PRINT_SUM(returned);
	PRINT_SUM(races);
	printf("on_probation=%u\n", on_probation);
	return holds ? 0 : 1;
}
