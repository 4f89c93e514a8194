/*-------------------------------------------------------------------------
 *
 * test/lwlock/threads/observe.c
 *	  Checks and counts each change of a lock's word.
 *
 * The rules are those of the notes in lwlock.c and lwlock_queue.h.  All notes are
 * private to a backend: the harness adds no synchronization.
 *
 *-------------------------------------------------------------------------
 */
#include "shim.h"
#include "stress.h"

#include "storage/lwlock_queue.h"

#define FLAGS	"%s%s%s%s%s"
#define FLAGS_OF(s) \
	(s) & LW_FLAG_LOCKED ? " LOCKED" : "", (s) & LW_FLAG_RELEASE_OK ? " RELEASE_OK" : "", \
	(s) & LW_FLAG_WAKE_WANTED ? " WAKE_WANTED" : "", (s) & LW_FLAG_RESERVED ? " RESERVED" : "", \
	(s) & LW_FLAG_UNLINKED ? " UNLINKED" : ""

bool		harness_check_steps = true;

static LWLock *locks[HARNESS_MAX_LOCKS];

void
harness_lock_place(int i, LWLock *lock)
{
	locks[i] = lock;
}

static const char *
describe(uint64 state)
{
	static __thread char text[2][100];
	static __thread int which;

	which = !which;
	snprintf(text[which], sizeof(text[which]), "[%s%d shared, newest %d," FLAGS "]",
			 state & LW_VAL_EXCLUSIVE ? "exclusive, " : "",
			 (int) (state & LW_SHARED_MASK), (int) LWLockNewest(state), FLAGS_OF(state));
	return text[which];
}

#ifdef HARNESS_FIBERS

/* The latest changes, which have an order if all backends are in one thread */
#define HISTORY 40

static struct
{
	int			backend;
	int			lock;
	uint64		old;
	uint64		new;
}			history[HISTORY];
static uint64 nhistory;
static uint64 nshared[HARNESS_MAX_LOCKS];	/* acquisitions in LW_SHARED */

static void
remember(int i, uint64 old, uint64 new)
{
	history[nhistory % HISTORY].backend = harness_self;
	history[nhistory % HISTORY].lock = i;
	history[nhistory % HISTORY].old = old;
	history[nhistory % HISTORY].new = new;
	nhistory++;
	if ((new & LW_SHARED_MASK) > (old & LW_SHARED_MASK))
		nshared[i]++;
}

static void
dump_history(void)
{
	fprintf(stderr, "latest changes:\n");
	for (uint64 n = nhistory < HISTORY ? 0 : nhistory - HISTORY; n < nhistory; n++)
		fprintf(stderr, "backend %2d, lock %d: %s -> %s\n", history[n % HISTORY].backend, history[n % HISTORY].lock,
				describe(history[n % HISTORY].old), describe(history[n % HISTORY].new));
}

#else
#define remember(i, old, new)	((void) 0)
#define dump_history()			((void) 0)
#endif

void
harness_dump(void)
{
	dump_history();
	for (int i = 0; i < HARNESS_MAX_LOCKS; i++)
	{
		if (locks[i] == NULL)
			continue;
		fprintf(stderr, "lock %d: %s, oldest %d\n", i,
				describe(__atomic_load_n(&LWLockState(locks[i])->value, __ATOMIC_RELAXED)),
				relaxed_read(LWLockOldest(locks[i])));
	}
	for (int i = 0; i < HARNESS_MAX_BACKENDS; i++)
	{
		HarnessBackend *backend = &harness_backends[i];
		PGPROC	   *proc = harness_my_proc[i];

		if (proc == NULL || proc->sem == NULL)
			continue;
		fprintf(stderr, "backend %2d: operation %llu (%d) with lock %d, lwWaiting %d, lwWaitMode 0x%02x, "
				"older %d, newer %d, semaphore %d, spurious %d\n",
				i, (unsigned long long) relaxed_read(&backend->steps), relaxed_read(&backend->doing),
				relaxed_read(&backend->with), *(volatile uint8 *) &proc->lwWaiting,
				relaxed_read(&proc->lwWaitMode), relaxed_read(&proc->lwWaitLink.next),
				relaxed_read(&proc->lwWaitLink.prev), harness_sem_value(i),
				(int) (relaxed_read(&backend->posted) - relaxed_read(&backend->taken)));
	}
}

/* Hidden from ThreadSanitizer: the server itself does not read them here */
__attribute__((no_sanitize_thread))
HarnessLinks
harness_links(void)
{
	HarnessLinks links;

	links.older = MyProc->lwWaitLink.next;
	links.newer = MyProc->lwWaitLink.prev;
	links.mode = MyProc->lwWaitMode;
	return links;
}

__attribute__((no_sanitize_thread))
static int
newer_of(ProcNumber procno)
{
	return GetPGProcByNumber(procno)->lwWaitLink.prev;
}

#define MUST(cond) \
	do { \
		if (harness_check_steps && !(cond)) \
			harness_fail("lock %d was changed from %s to %s: must be %s", i, describe(old), describe(new), #cond); \
	} while (0)

/*
 * The bound of extension/lwlock/queue.c: a reservation is not lost, but to
 * shared acquisitions.
 */
static void
observe_reservation(int i, uint64 old, uint64 new)
{
#ifdef HARNESS_FIBERS
	HarnessBackend *me = HARNESS_ME;

	MUST(me->reservations == 0 || me->shared_at_reservation != nshared[i]);
	me->shared_at_reservation = nshared[i];
	me->reservations++;
#endif
}

/* A new waiter, which is the newest now */
static void
observe_push(int i, uint64 old, uint64 new, bool list_is_mine, const HarnessLinks *mine)
{
	uint8		mode = mine->mode;

	HARNESS_ME->pushed = true;
	harness_count(list_is_mine ? HC_PUSHED_LOCKED : HC_PUSHED_LOCKLESS);
	if (mode & (LW_WAIT_FRONT | LW_WAIT_RESERVED))
		harness_count(HC_PUSHED_FRONT);
	if (mode & LW_WAIT_RESERVED)
		observe_reservation(i, old, new);
	if (mode == LW_WAIT_UNTIL_FREE)
		harness_count(HC_PUSHED_UNTIL_FREE);

	/* otherwise no process may come to wake it */
	if (!list_is_mine)
	{
		MUST((old & (LW_LOCK_MASK | LW_FLAG_RESERVED)) != 0);
		MUST((new & LW_FLAG_UNLINKED) != 0);
	}
	MUST((new & LW_LOCK_MASK) == (old & LW_LOCK_MASK));
}

void
harness_observe(const volatile void *word, uint64 old, uint64 new, const HarnessLinks *mine)
{
	HarnessBackend *me = HARNESS_ME;
	bool		list_is_mine;
	int			i;

	for (i = 0; i < HARNESS_MAX_LOCKS; i++)
		if (locks[i] != NULL && (const volatile void *) LWLockState(locks[i]) == word)
			break;
	if (i == HARNESS_MAX_LOCKS)
		return;					/* a variable of LWLockWaitForVar() */

	if (old != new)
		remember(i, old, new);
	list_is_mine = me->list_locked[i];

	/* the list's lock */
	if (new & ~old & LW_FLAG_LOCKED)
		me->list_locked[i] = true;
	if (old & ~new & LW_FLAG_LOCKED)
	{
		MUST(list_is_mine);
		MUST((new & LW_FLAG_WAKE_WANTED) == 0);
		me->list_locked[i] = false;
	}
	if (old & ~new & LW_FLAG_UNLINKED)
		MUST(list_is_mine);
	/* the list is locked now, so no process changes that link */
	if (new & ~old & LW_FLAG_LOCKED && (new & LW_FLAG_UNLINKED) == 0 &&
		LWLockNewest(new) != INVALID_PROC_NUMBER)
		MUST(newer_of(LWLockNewest(new)) == LW_LINK_NEWEST);
	if (new & ~old & LW_FLAG_WAKE_WANTED)
	{
		MUST(old & new & LW_FLAG_LOCKED);
		harness_count(HC_WAKE_WANTED);
	}

	/* the queue */
	if (LWLockNewest(new) != LWLockNewest(old))
	{
		/*
		 * Or the newest waiter itself holds the list's lock, and takes out
		 * another one, which it is not linked to.
		 */
		if (LWLockNewest(new) == MyProcNumber && mine->older == LWLockNewest(old))
			observe_push(i, old, new, list_is_mine, mine);
		else
			MUST(list_is_mine);
	}

	/* the lock */
	MUST((new & LW_VAL_EXCLUSIVE) == 0 || (new & LW_SHARED_MASK) == 0);
	if ((new & LW_LOCK_MASK) > (old & LW_LOCK_MASK))
	{
		MUST((old & LW_VAL_EXCLUSIVE) == 0);
		if (old & LW_FLAG_RESERVED)
		{
			MUST((old & LW_LOCK_MASK) == 0);
			MUST((new & LW_FLAG_RESERVED) == 0 || (new & LW_VAL_EXCLUSIVE) != 0);
			MUST(list_is_mine);
			for (uint64 n = new & LW_VAL_EXCLUSIVE ? 1 : new & LW_SHARED_MASK; n > 0; n--)
				harness_count(HC_GRANTED);
		}
		else if (me->pushed)
		{
			me->pushed = false;
			harness_count(HC_UNDONE);
		}
	}

	if (old & ~new & LW_FLAG_RESERVED)
		MUST((old & LW_LOCK_MASK) == 0 && (new & LW_LOCK_MASK) != 0);
	if (new & ~old & LW_FLAG_RESERVED)
	{
		MUST((old & LW_VAL_EXCLUSIVE) != 0);
		MUST((mine->mode & LW_WAIT_RESERVED) != 0);
		MUST(LWLockNewest(new) != INVALID_PROC_NUMBER);
		harness_count(HC_RESERVED);
	}
}
