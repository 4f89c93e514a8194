/*-------------------------------------------------------------------------
 *
 * test/lwlock/measure_lwlock/release.c
 *	  Times LWLockRelease() with a queue of any length.
 *
 * Thousands of waiters would need thousands of processes.  Here they are
 * PGPROCs that no process uses.  This session takes each one's place for one
 * LWLockAcquire(), which queues as always, and leaves that function where it
 * would sleep: the PGPROC's semaphore is then a page that cannot be accessed,
 * and the handler of SIGSEGV jumps back.  So the queue is made by the server's
 * own code, with its links and its flags, in whatever way this server has.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "catalog/pg_type_d.h"
#include "portability/instr_time.h"
#include "storage/lwlock.h"
#include "storage/pg_sema.h"
#include "storage/proc.h"
#include "storage/spin.h"
#include "utils/array.h"
#include "utils/wait_event.h"

#include "test_module.h"

#define LINE	64				/* of an x86-64's caches */
#define PAGE	4096			/* at least as large as a semaphore */

#define SPARE	10				/* unused PGPROCs that are left alone */

/* In our own memory: only the PGPROCs are shared */
static LWLockPadded timed;
static LWLockPadded other;

static sigjmp_buf before_sleep;
static char *no_semaphore = NULL;	/* a page without access */

PG_FUNCTION_INFO_V1(measure_lwlock_release);

static inline int64
now_ns(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return INSTR_TIME_GET_NANOSEC(now);
}

static void
leave_acquire(int signo, siginfo_t *info, void *context)
{
	const char *where = info->si_addr;

	if (where >= no_semaphore && where < no_semaphore + PAGE)
		siglongjmp(before_sleep, 1);
	/* a real fault: it is repeated on return */
	signal(SIGSEGV, SIG_DFL);
}

/*
 * Queue for a lock, exclusively, as the process of "proc" would.  Returns
 * false if it got the lock.
 */
static bool
queue_as(PGPROC *proc, LWLock *lock)
{
	PGPROC	   *const own = MyProc;
	const ProcNumber own_number = MyProcNumber;
	const uint32 holdoff = InterruptHoldoffCount;
	const PGSemaphore semaphore = proc->sem;
	volatile bool queued = true;

	MyProc = proc;
	MyProcNumber = GetNumberFromPGProc(proc);
	proc->sem = (PGSemaphore) no_semaphore;
	if (sigsetjmp(before_sleep, 0) == 0)
	{
		LWLockAcquire(lock, LW_EXCLUSIVE);
		LWLockRelease(lock);
		queued = false;
	}
	proc->sem = semaphore;
	MyProc = own;
	MyProcNumber = own_number;
	InterruptHoldoffCount = holdoff;
	pgstat_report_wait_end();
	return queued;
}

static int
num_waiting(PGPROC **procs, int n)
{
	int			waiting = 0;

	for (int i = 0; i < n; i++)
		waiting += procs[i]->lwWaiting == LW_WS_WAITING;
	return waiting;
}

#if defined(__x86_64__)
static void
flush(const void *start, Size size)
{
	for (Size i = 0; i < size + LINE; i += LINE)
		_mm_clflush((const char *) start + Min(i, size - 1));
}
#define wait_for_flushes()	_mm_mfence()
#else
#define flush(start, size)	elog(ERROR, "flush is implemented for x86-64 only")
#define wait_for_flushes()	((void) 0)
#endif

static void
acquire_new(LWLock *lock)
{
	LWLockInitialize(lock, LWTRANCHE_BUFFER_CONTENT);
	LWLockAcquire(lock, LW_EXCLUSIVE);
}

/*
 * The time of one release with n procs queued, in nanoseconds.  An error
 * message in *problem if the queue was not as expected.
 *
 * Queueing takes so long for many that other processes may have had the CPU
 * and its caches.  So another lock, for which procs[n] is queued, is released
 * just before: only what a longer queue adds is cold then.
 */
static int64
time_release(PGPROC **procs, int n, bool flushed, const char **problem)
{
	int64		before;
	int64		after;

	acquire_new(&timed.lock);
	acquire_new(&other.lock);
	for (int i = 0; i <= n; i++)
		if (!queue_as(procs[i], i < n ? &timed.lock : &other.lock))
			*problem = "a process got a lock that was held";
	if (num_waiting(procs, n + 1) != n + 1)
		*problem = "not all processes are waiting";

	if (flushed)
		for (int i = 0; i < n; i++)
			flush(procs[i], sizeof(PGPROC));
	wait_for_flushes();
	LWLockRelease(&other.lock);
	before = now_ns();
	LWLockRelease(&timed.lock);
	after = now_ns();

	if (procs[0]->lwWaiting == LW_WS_WAITING || num_waiting(procs, n + 1) != n - 1)
		*problem = "the release has not woken the first process alone";

	/* as if they had never waited */
	for (int i = 0; i <= n; i++)
	{
		procs[i]->lwWaiting = LW_WS_NOT_WAITING;
		memset(&procs[i]->lwWaitLink, 0, sizeof(procs[i]->lwWaitLink));
	}
	PGSemaphoreReset(procs[0]->sem);
	PGSemaphoreReset(procs[n]->sem);
	return after - before;
}

/*
 * Find n PGPROCs that no process uses.  Returns how many there are, up to n,
 * beside SPARE others.
 *
 * They stay in the free list, whose lock is core's own.  A process that starts
 * takes the first of it and one that ends becomes its last, so these are the
 * last: SPARE processes may start meanwhile.
 */
static int
find_unused(PGPROC **procs, int n)
{
	dlist_head *list = &ProcGlobal->freeProcs;
	int			found = 0;

	for (dlist_node *node = list->head.prev; node != &list->head; node = node->prev)
	{
		if (found < n)
			procs[found] = dlist_container(PGPROC, links, node);
		if (++found == n + SPARE)
			break;
	}
	return Max(found - SPARE, 0);
}

static void
catch_faults(struct sigaction *old)
{
	struct sigaction action = {.sa_sigaction = leave_acquire,
	.sa_flags = SA_SIGINFO | SA_NODEFER};

	if (no_semaphore == NULL)
	{
		void	   *page = mmap(NULL, PAGE, PROT_NONE,
								MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (page == MAP_FAILED)
			elog(ERROR, "could not map a page: %m");
		no_semaphore = page;
	}
	sigemptyset(&action.sa_mask);
	if (sigaction(SIGSEGV, &action, old) != 0)
		elog(ERROR, "could not set a handler: %m");
}

/*
 * measure_lwlock_release - times of releases with that many processes queued
 */
Datum
measure_lwlock_release(PG_FUNCTION_ARGS)
{
	int32		waiters = PG_GETARG_INT32(0);
	bool		flushed = PG_GETARG_BOOL(1);
	int32		samples = PG_GETARG_INT32(2);
	const char *problem = NULL;
	struct sigaction old;
	PGPROC	  **procs;
	Datum	   *times;
	int			found;
	int64		clock;

	if (waiters <= 0 || samples <= 0)
		elog(ERROR, "waiters and samples must be greater than zero");
	procs = palloc_array(PGPROC *, waiters + 1);
	times = palloc_array(Datum, samples + 1);
	if (flushed)
		flush(procs, 1);		/* an error where it cannot */
	found = find_unused(procs, waiters + 1);
	if (found <= waiters)
		elog(ERROR, "only %d PGPROCs are unused", found);
	catch_faults(&old);

	/* no error is raised before the handler is core's again */
	HOLD_INTERRUPTS();
	for (int i = 0; i < samples && problem == NULL; i++)
		times[i + 1] = Int64GetDatum(time_release(procs, waiters, flushed, &problem));
	RESUME_INTERRUPTS();
	sigaction(SIGSEGV, &old, NULL);
	if (problem != NULL)
		elog(ERROR, "%s", problem);

	/* the first element: what the clock takes */
	clock = PG_INT64_MAX;
	for (int i = 0; i < 1000; i++)
	{
		int64		before = now_ns();

		clock = Min(clock, now_ns() - before);
	}
	times[0] = Int64GetDatum(clock);
	PG_RETURN_ARRAYTYPE_P(construct_array_builtin(times, samples + 1, INT8OID));
}
