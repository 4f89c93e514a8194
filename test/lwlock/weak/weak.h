/*-------------------------------------------------------------------------
 *
 * weak.h
 *	  PostgreSQL's primitives in terms of Relacy, with no more order than
 *	  they promise on any machine.
 *
 * code.inc, which is the server's own code, is compiled with these.
 *
 *-------------------------------------------------------------------------
 */
#ifndef WEAK_H
#define WEAK_H

#include <relacy/relacy.hpp>

typedef unsigned char uint8;
typedef unsigned short uint16;
typedef unsigned int uint32;
typedef unsigned long uint64;
typedef int ProcNumber;

#define INVALID_PROC_NUMBER		(-1)
#define MAX_BACKENDS			0x3FFFF /* as in procnumber.h */
#define MAX_SIMUL_LWLOCKS		4
#define NUM_PROCS				3

#define unlikely(x)				(x)
#define likely(x)				(x)
#define Assert(x)				((void) 0)
#define pg_unreachable()		abort()
#define elog(level, ...)		RL_ASSERT(!"elog")
#define StaticAssertDecl(x, message)	struct unused_assertion
#define AssertVariableIsOfTypeMacro(x, type)	((void) 0)
#define IsUnderPostmaster		true
#define PG_USED_FOR_ASSERTS_ONLY
#define LOG_LWDEBUG(...)		((void) 0)
#define PRINT_LWDEBUG(...)		((void) 0)
#define HOLD_INTERRUPTS()		((void) 0)
#define RESUME_INTERRUPTS()		((void) 0)
#define LWLockReportWaitStart(...)	((void) 0)
#define LWLockReportWaitEnd(...)	((void) 0)

/* Another process runs first, and an old value is not read forever. */
typedef int SpinDelayStatus;
#define init_local_spin_delay(status)	(*(status) = 0)
#define perform_spin_delay(status)		rl::yield(1, $)
#define finish_spin_delay(status)		((void) (status))

/* ---- what the command line switches off ---- */

/* Is this mutant of mutants.txt chosen? */
extern bool mutant_chosen(const char *name);

/* How much order does this primitive in this function give? */
extern rl::memory_order order_at(const char *function, const char *primitive);

#define MUTANT(name) \
	({ static const bool chosen_ = mutant_chosen(name); chosen_; })
#define ORDER_AT(primitive) \
	({ static const rl::memory_order order_ = order_at(__func__, primitive); order_; })

/* ---- memory ---- */

/*
 * A variable that is not atomic.  Relacy reports two accesses, one of them a
 * write, that no order connects.
 */
template<typename T>
struct Plain
{
	rl::var<T>	v;

	operator T() const
	{
		return v($).load();
	}

	T operator=(T x)
	{
		v($).store(x);
		return x;
	}

	T operator=(const Plain &x)
	{
		return *this = (T) x;
	}

	T operator|=(T x)
	{
		return *this = (T) *this | x;
	}
};

/* A variable that others read while it is written, such as lwWaiting */
template<typename T>
struct Racy
{
	rl::atomic<T> v;

	operator T() const
	{
		return v($).load(rl::mo_relaxed);
	}

	T operator=(T x)
	{
		v($).store(x, rl::mo_relaxed);
		return x;
	}
};

struct pg_atomic_uint64
{
	rl::atomic<uint64> v;
};

#define pg_atomic_read_u64(p)		((p)->v($).load(rl::mo_relaxed))
#define pg_atomic_fetch_or_u64(p, x) \
	((p)->v($).fetch_or(x, ORDER_AT("pg_atomic_fetch_or_u64")))
#define pg_atomic_fetch_and_u64(p, x) \
	((p)->v($).fetch_and(x, ORDER_AT("pg_atomic_fetch_and_u64")))
#define pg_atomic_fetch_add_u64(p, x) \
	((p)->v($).fetch_add(x, ORDER_AT("pg_atomic_fetch_add_u64")))
#define pg_atomic_fetch_sub_u64(p, x) \
	((p)->v($).fetch_sub(x, ORDER_AT("pg_atomic_fetch_sub_u64")))
#define pg_atomic_exchange_u64(p, x) \
	((p)->v($).exchange(x, ORDER_AT("pg_atomic_exchange_u64")))
#define pg_atomic_compare_exchange_u64(p, expected, desired) \
	compare_exchange(p, expected, desired, ORDER_AT("pg_atomic_compare_exchange_u64"), $)

/*
 * One that fails is an acquiring load.  It may have read an old value, which
 * Relacy's own never does.
 */
static inline bool
compare_exchange(pg_atomic_uint64 *p, uint64 *expected, uint64 desired,
				 rl::memory_order order, rl::debug_info_param info)
{
	rl::memory_order failed =
		order == rl::mo_acq_rel || order == rl::mo_acquire ? rl::mo_acquire : rl::mo_relaxed;
	rl::context &c = rl::ctx();
	uint64		seen;

	c.disable_preemption();
	seen = p->v(info).load(failed);
	c.enable_preemption();
	if (seen != *expected)
	{
		*expected = seen;
		return false;
	}
	return p->v(info).compare_exchange_strong(*expected, desired, order, failed);
}

#define pg_read_barrier()	BARRIER("pg_read_barrier", rl::mo_acquire)
#define pg_write_barrier()	BARRIER("pg_write_barrier", rl::mo_release)
#define pg_memory_barrier()	BARRIER("pg_memory_barrier", rl::mo_seq_cst)
#define BARRIER(primitive, order) \
	do { \
		if (ORDER_AT(primitive) != rl::mo_relaxed) \
			rl::atomic_thread_fence(order, $); \
	} while (0)

/*
 * A semaphore.  While "strays" are left, it may let its process through
 * without a post, as a post for something else does.  Such a wakeup gives no
 * order at all.
 */
struct Semaphore
{
	rl::sema_data *data;
	int			strays;
};

static inline void
PGSemaphoreLock(Semaphore &sem)
{
	if (sem.strays > 0 && rl::rand(2) == 1)
		sem.strays--;
	else
		sem.data->wait(false, false, $);
}

static inline void
PGSemaphoreUnlock(Semaphore &sem)
{
	unsigned	before;

	sem.data->post(1, before, $);
}

/* ---- types of the server ---- */

enum LWLockMode
{
	LW_EXCLUSIVE, LW_SHARED, LW_WAIT_UNTIL_FREE
};
enum LWLockWaitState
{
	LW_WS_NOT_WAITING, LW_WS_WAITING, LW_WS_PENDING_WAKEUP
};

struct proclist_node
{
	Plain<ProcNumber> next,
				prev;
};
struct proclist_head
{
	ProcNumber	head,
				tail;
};
struct proclist_mutable_iter
{
	ProcNumber	cur,
				next;
};

struct PGPROC
{
	Racy<uint8> lwWaiting;
	Plain<uint8> lwWaitMode;
	proclist_node lwWaitLink;
	Semaphore	sem;
};

struct LWLock
{
	uint16		tranche;
	pg_atomic_uint64 state;
	Plain<ProcNumber> oldest;
};

static inline pg_atomic_uint64 *
LWLockState(LWLock *lock)
{
	return &lock->state;
}

static inline Plain<ProcNumber> *
LWLockOldest(LWLock *lock)
{
	return &lock->oldest;
}

#define LWLockReadState(lock)	pg_atomic_read_u64(LWLockState(lock))

/* ---- processes ---- */

struct LWLockWaitRoutine;

/* What is private to a process */
struct Backend
{
	const LWLockWaitRoutine *routine;
	int			num_held;
	struct
	{
		LWLock	   *lock;
		LWLockMode	mode;
	}			held[MAX_SIMUL_LWLOCKS];
};

extern PGPROC *procs;			/* of the test that runs */
extern Backend backends[NUM_PROCS];

#define MyProcNumber			((ProcNumber) rl::thread_index())
#define MyProc					(&procs[MyProcNumber])
#define GetPGProcByNumber(n)	(&procs[n])
#define LWLockWait				(backends[MyProcNumber].routine)
#define held_lwlocks			(backends[MyProcNumber].held)
#define num_held_lwlocks		(backends[MyProcNumber].num_held)

#endif							/* WEAK_H */
