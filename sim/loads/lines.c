/*-------------------------------------------------------------------------
 *
 * sim/loads/lines.c
 *	  One operation, again and again: for tests of the machine model by times
 *	  that can be worked out by hand.
 *
 * backends			fibers
 * load.op			load, store, xadd, cas (until it has succeeded), fetch_or,
 *					store_xadd (a store, and an xadd of a line of the fiber's own),
 *					prefetch_store (a prefetch, load.work_ps, a store), spinlock
 *					(a counter under it), work, copy (load.bytes from node 0),
 *					store_last (xadd; but the last fiber, which comes 1 ns after the
 *					others, stores 100),
 *					ping (two fibers, compare-and-swaps of a word to and fro, as
 *					core-to-core-latency measures it: last_ps is 2 x times hops),
 *					sleep (for load.work_ps), wake (the next fiber, and wait for
 *					the one before)
 * load.times		1 .. 10^7: operations of each fiber
 * load.stride		0 .. 4096, default 0: bytes from one fiber's word to the next
 *					one's
 * load.step		0 .. 4096, default 1: fiber i is on CPU i x step, modulo CPUs
 * load.work_ps		0 .. 1 s, default 0: private work after each operation
 * load.bytes		0 .. 2^30, default 8192
 * load.first		0 .. 10^6, default 0: in that many operations before, each a load
 *					of the word, nothing is measured
 *
 * Results: sum, of the words; last_ps, when the last fiber was done.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/atomics.h"
#include "storage/spin.h"

#define MOST_STRIDE	4096

static SIM_COMMON char *words = NULL;
static SIM_COMMON char *own_lines = NULL;
static SIM_COMMON SimSem *sems = NULL;
static SIM_COMMON SimTime last = 0;
static SIM_COMMON uint64 done = 0;

static int	nfibers;
static int64 times;
static int64 stride;
static int64 first;
static int64 bytes;
static SimTime work;
static void (*operate) (void *word);

static void
op_load(void *word)
{
	(void) *(volatile uint64 *) word;
}

static void
op_store(void *word)
{
	*(volatile uint64 *) word = 1;
}

static void
op_xadd(void *word)
{
	(void) __atomic_fetch_add((uint64 *) word, 1, __ATOMIC_SEQ_CST);
}

static void
op_cas(void *word)
{
	uint64		old = *(volatile uint64 *) word;

	while (!__atomic_compare_exchange_n((uint64 *) word, &old, old + 1, false,
										__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

static void
op_store_last(void *word)
{
	if (sim_self() < nfibers - 1)
	{
		op_xadd(word);
		return;
	}
	sim_work(SIM_NS);
	*(volatile uint64 *) word = 100;
	sim_full_fence();
}

static void
op_ping(void *word)
{
	uint64		me = sim_self();
	uint64		expected;

	do
		expected = me;
	while (!__atomic_compare_exchange_n((uint64 *) word, &expected, 1 - me, false,
										__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
}

static void
op_fetch_or(void *word)
{
	if (__atomic_fetch_or((uint32 *) word, 1, __ATOMIC_SEQ_CST) > 1)
		sim_fail("fetch_or: the word is not 0 or 1");
}

static void
op_store_xadd(void *word)
{
	op_store(word);
	op_xadd(own_lines + sim_self() * SIM_CACHE_LINE);
}

static void
op_prefetch_store(void *word)
{
	sim_prefetch_for_write(word);
	sim_work(work);
	op_store(word);
	sim_full_fence();
}

/* the word's first byte is the lock, its last four are the counter */
static void
op_spinlock(void *word)
{
	slock_t    *lock = word;
	volatile uint32 *counter = (uint32 *) ((char *) word + 4);

	SpinLockAcquire(lock);
	(*counter)++;
	SpinLockRelease(lock);
}

static void
op_work(void *word)
{
}

static void
op_copy(void *word)
{
	sim_copy(0, bytes);
}

static void
op_sleep(void *word)
{
	sim_sleep(work);
}

static void
op_wake(void *word)
{
	sim_sem_post(&sems[(sim_self() + 1) % nfibers]);
	sim_sem_wait(&sems[sim_self()]);
}

static const struct
{
	const char *name;
	void		(*operate) (void *word);
}			ops[] = {
	{"load", op_load},
	{"store", op_store},
	{"xadd", op_xadd},
	{"cas", op_cas},
	{"fetch_or", op_fetch_or},
	{"ping", op_ping},
	{"store_last", op_store_last},
	{"store_xadd", op_store_xadd},
	{"prefetch_store", op_prefetch_store},
	{"spinlock", op_spinlock},
	{"work", op_work},
	{"copy", op_copy},
	{"sleep", op_sleep},
	{"wake", op_wake},
};

static void
fiber(void *arg)
{
	void	   *word = words + sim_self() * stride;
	bool		works = operate != op_sleep && operate != op_prefetch_store;

	for (int64 i = 0; i < first; i++)
		op_load(word);
	for (int64 i = 0; i < times; i++)
	{
		operate(word);
		if (works && work > 0)
			sim_work(work);
	}
	last = Max(last, sim_now());
	done++;
}

static void
setup(void)
{
	const char *op = sim_config_text("load.op", NULL);
	int64		step = sim_config_int("load.step", 0, 4096, 1);

	nfibers = sim_backends();
	times = sim_config_int("load.times", 1, 10000000, 0);
	stride = sim_config_int("load.stride", 0, MOST_STRIDE, 0);
	first = sim_config_int("load.first", 0, 1000000, 0);
	work = sim_config_int("load.work_ps", 0, SIM_S, 0);
	bytes = sim_config_int("load.bytes", 0, 1 << 30, 8192);
	if (stride % sizeof(uint64) != 0)
		sim_fail("load.stride must be a multiple of %d", (int) sizeof(uint64));
	for (int i = 0; i < lengthof(ops); i++)
		if (strcmp(ops[i].name, op) == 0)
			operate = ops[i].operate;
	if (operate == NULL)
		sim_fail("load.op: there is no \"%s\"", op);
	if (operate == op_ping && nfibers != 2)
		sim_fail("load.op ping is for 2 backends");

	words = sim_shared_alloc("words", nfibers * Max(stride, SIM_CACHE_LINE), SIM_CACHE_LINE, 0);
	own_lines = sim_shared_alloc("own", nfibers * SIM_CACHE_LINE, SIM_CACHE_LINE, 0);
	sems = calloc(nfibers, sizeof(SimSem));
	if (sems == NULL)
		sim_fail("out of memory");
	for (int i = 0; i < nfibers; i++)
		sim_spawn("fiber", fiber, NULL, i * step % sim_cpus());
}

static void
report(void)
{
	uint64		sum = 0;

	if (done != nfibers)
		sim_fail("%d of %d fibers are done", (int) done, nfibers);
	for (int i = 0; i < nfibers; i++)
	{
		if (operate == op_spinlock)
			sum += *(uint32 *) (words + i * stride + 4);
		else
			sum += *(uint64 *) (words + i * stride);
		if (stride == 0)
			break;
	}
	sim_result("sum", sum);
	sim_result("last_ps", last);
}

const SimLoad sim_load_lines = {"lines", setup, report};
