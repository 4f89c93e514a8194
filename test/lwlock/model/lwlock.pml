/*
 * lwlock.pml
 *	  Model of the LWLock wait queue, of waking, and of the switch of policy.
 *
 * Core's lwlock.c with the patches lwlock-state-word and lwlock-wait-hooks, and pg_sweep's policies in its
 * hooks.  Each process chooses at each step how it waits and how it wakes, which
 * is a switch of policy at any time; with -DWAYS, all do so in one way.  README.md says what is modelled and what is
 * not.  queue.pml has the queue, wake.pml waking, mutants.pml the mutants.
 *
 * An operation on the state word is one step, as in C: of a loop around a
 * compare-and-swap, only the last turn has an effect.  The links of the queue
 * belong to the holder of LOCKED, and each access asserts that (MINE).  Therefore
 * no process can notice steps of others between two accesses.  GRAIN makes one
 * step of such accesses and at most one operation on the word.  With -DFINE each
 * of them is a step.
 *
 * Ghost variables, which the C code does not have, begin with g_.
 */

#ifndef N
#define N			3			/* processes */
#endif
#ifndef OPS
#define OPS			2			/* operations of each */
#endif
#ifndef ROUNDS
#define ROUNDS		(2 * N)		/* how often one wakeup may look again at most */
#endif
#ifndef STRAYS
#define STRAYS		0			/* wakeups meant for something else */
#endif

#ifdef FINE
#define GRAIN					/* each statement is a step */
#define WORD		d_step
#define MINE(p)		skip
#define CHECKED		(!w_locked)
#else
#define GRAIN		d_step
#define WORD					/* part of a GRAIN */
#define MINE(p)		assert(g_owner == me && IN_QUEUE(p))
#define CHECKED		true
#endif

/* Operations, one bit each: -DMIX chooses some */
#define ACQUIRE_EX		1
#define ACQUIRE_SH		2
#define ACQUIRE_OR_WAIT	4
#define UPDATE_VAR		8
#define WAIT_FOR_VAR	16
#define CONDITIONAL		32			/* barges in, or does nothing */
#define CONDITIONAL_SH	64			/* the same, shared */
#ifndef MIX
#define MIX			(ACQUIRE_EX + ACQUIRE_SH)
#endif

/*
 * The role of a process: its operations, and how many of them, times 128.  Those of
 * the same role are next to each other, and begin one after the other: any other
 * order is the same but for their numbers.
 */
#ifndef R1
#define R1			(MIX + 128 * OPS)
#define R2			R1
#define R3			R1
#endif
#ifndef R4
#define R4			R3
#endif
#ifndef R5
#define R5			R4
#endif
#define ROLES			(R1 | R2 | R3 | R4 | R5)
#define OPERATIONS(r)	((r) & 127)
#define TIMES(r)		((r) >> 7)
#define AFTER_TWIN(p, q)	(p != q || (g_begun & BIT(me - 1)))
#define MAY_BEGIN \
	(left < TIMES(role) || me == 1 || (me == 2 && AFTER_TWIN(R2, R1)) || (me == 3 && AFTER_TWIN(R3, R2)) || \
	 (me == 4 && AFTER_TWIN(R4, R3)) || (me == 5 && AFTER_TWIN(R5, R4)))
#define BEGIN		g_begun = g_begun | BIT(me)

/* lwWaitMode: the mode, and flags */
#define EX			1
#define SH			2
#define WUF			4			/* LW_WAIT_UNTIL_FREE */
#define FRONT		8
#define RESERVED	16
#define GRANTED		32
#define MODE(m)		((m) & 7)

/* A process is 1..N in links; 0 is INVALID_PROC_NUMBER */
#define UNKNOWN		14
#define NEWEST		15

/* lwWaiting */
#define NOT_WAITING	0
#define WAITING		1
#define PENDING		2

/* the next step of a process */
#define CORE		1
#define LOCKLESS	2
#define WAKER		3
#define WOKEN		4
#define QUEUED		5

/* The ways to queue and to wake; WaitForVar always queues in core's way */
#ifndef WAYS
#define WAYS		(CORE + LOCKLESS)
#endif

/* The end of an operation */
#define DONE		left--; op = 0; want = 0; wait_as = 0; mode[me] = 0

#define BIT(p)		(1 << (p))

/* The state word */
bool w_ex, w_locked, w_wake_wanted, w_reserved;
bool w_release_ok = 1, w_unlinked;
byte w_sh, w_newest;

byte oldest;					/* *LWLockOldest() */
/* of the holder of LOCKED: LWLockWakeupSet, and the state that it knows */
byte taken_newest, taken_older, granted;
bool retrier, exclusive, next_reserved, st_ex, st_sh, st_reserved;
byte next[N + 1], prev[N + 1], mode[N + 1], waiting[N + 1], sem[N + 1];
byte var;						/* what LWLockUpdateVar() changes */

byte g_owner;					/* the holder of LOCKED */
byte g_queued;					/* processes in the queue */
byte g_linked;					/* the queue when LWLockLinkWaiters() looked */
byte g_before[N + 1];			/* the queue when this one came */
byte g_ex, g_sh;				/* holders that know of it, */
byte g_granted_ex, g_granted_sh;	/* and those that do not yet */
byte g_wakers;					/* number of processes about to wake others */
byte g_told[N + 1];				/* processes that this one's wakeup must tell */
byte g_setters;					/* of the queue and just taken: those that reserved the lock */
byte g_lost;					/* of these, those that lost it to shared acquisitions */
byte g_begun;					/* processes that have begun */
byte g_retriers;				/* woken, or about to be, and to try again */
byte g_asleep;					/* will not look again before they are woken */
byte g_var_asleep;				/* of these, those in LWLockWaitForVar() */
byte g_old[N + 1];				/* value of var that this one wants changed, plus 1 */
byte g_strays, g_done;
hidden byte i, j;

#include "mutants.pml"

#define FREE		(!w_ex && w_sh == 0)
#define IN_QUEUE(p)	((g_queued & BIT(p)) != 0)
/* LWLockWaiterRank(); those below ORDINARY go to the front */
#define ORDINARY	3
#define RANK(p)		(mode[p] == WUF -> 0 : ((mode[p] & RESERVED) -> 1 : ((mode[p] & FRONT) -> 2 : ORDINARY)))
#define IS_MOVED(p)	(RANK(p) < ORDINARY)
/* can share the lock with its holders */
#define IS_READER(p)	(MODE(mode[p]) == SH)

/*
 * True after each operation on the word: its holders are right, and a free but
 * reserved lock is about to be handed over.  It is reserved by a process that is
 * queued, or that the holder of LOCKED has taken.
 */
#define CHECK_WORD \
	assert(!w_ex || w_sh == 0); \
	assert(w_ex == g_ex + g_granted_ex && w_sh == g_sh + g_granted_sh); \
	assert(!w_wake_wanted || w_locked); \
	assert(!w_reserved || w_sh == 0); \
	assert(!w_reserved || g_setters); \
	assert(!(FREE && (g_asleep & g_queued)) || g_retriers || g_wakers > 0 || w_wake_wanted); \
	assert(w_ex || !(g_var_asleep & g_queued) || g_wakers > 0 || w_wake_wanted); \
	assert(!(FREE && w_reserved) || g_wakers > 0 || w_wake_wanted)

/* The list from the newest on is complete, and has an end */
inline check_list()
{
	if
	:: CHECKED ->
		i = w_newest;
		j = 0;
		do
		:: i != 0 ->
			if
			:: i == taken_newest -> i = taken_older
			:: else ->
				assert(IN_QUEUE(i) && !(j & BIT(i)));
				j = j | BIT(i);
				i = next[i]
			fi
		:: else -> break
		od;
		assert(j == g_queued)
	:: else
	fi
}

/* ---- holding the lock ---- */

inline now_held(m)
{
	if
	:: m == EX -> assert(g_ex == 0 && g_sh == 0); g_ex++
	:: else -> assert(g_ex == 0); g_sh++
	fi
}

#define TO_BE_HAD		((want == EX && FREE || want == SH && !w_ex) && !RESERVED_IN_ATTEMPT)

/* Will sleep until woken: has seen, after it came to the queue, that it must wait */
#define WILL_SLEEP		g_asleep = g_asleep | BIT(me); g_retriers = g_retriers & ~BIT(me)

/* The lock is acquired in shared mode: waiters may lose their reservations */
#define LOSE_RESERVATIONS	g_lost = g_lost | g_setters & g_queued

/* Acquire the lock if possible; part of a step */
inline try()
{
	got = TO_BE_HAD;
	if
	:: got -> g_retriers = g_retriers & ~BIT(me)
	:: else
	fi;
	assert(!got || !w_reserved);	/* a reserved lock is handed over */
	if
	:: got && want == EX -> w_ex = 1; now_held(EX)
	:: got && want == SH -> w_sh++; now_held(SH); LOSE_RESERVATIONS
	:: else
	fi;
	CHECK_WORD
}

/* LWLockAttemptLock() */
inline attempt()
{
	d_step {
		try();
		if
		:: !got && IN_QUEUE(me) -> WILL_SLEEP
		:: else
		fi
	}
}

#include "queue.pml"
#include "wake.pml"

/* ---- waiting ---- */

/*
 * LWLockQueueSelf(), the list locked: links this process as if the state were still
 * the one known, and takes that back if a waiter was pushed since.
 */
inline queue_self(as)
{
	assert(!IN_QUEUE(me) && waiting[me] == NOT_WAITING && next[me] == 0 && prev[me] == 0);
	do
	:: link_waiters();
		GRAIN {
			if
			:: as == WUF && cur != 0 ->
				MINE(cur);
				prev[me] = cur;
				next[cur] = me;
				oldest = me;
				WORD { COME_TO_QUEUE(as) }
				WORD { check_list() }
				how = QUEUED
			:: !(as == WUF && cur != 0) ->
				next[me] = st_newest;
				prev[me] = NEWEST;
				if
				:: st_newest != 0 -> MINE(st_newest); prev[st_newest] = me
				:: else -> oldest = me
				fi;
				WORD {
					if
					:: w_newest == st_newest ->
						w_newest = me;
						w_unlinked = 0;
						COME_TO_QUEUE(as);
						check_list();
						how = WOKEN;
						START_UNLOCK
					:: else ->
						if
						:: st_newest != 0 && TAKES_LINK_BACK -> prev[st_newest] = NEWEST
						:: else
						fi;
						READ_STATE
					fi
				}
			fi;
			cur = 0
		}
		if
		:: how == QUEUED -> how = CORE; unlock_list(); break
		:: how == WOKEN -> how = CORE; finish_unlock(); break
		:: else
		fi
	od;
	skip
}

/* Repeat absorbed wakeups that were meant for something else */
inline post_again()
{
	d_step { sem[me] = sem[me] + extra; extra = 0 }
}

inline sleep()
{
	assert(g_owner != me);
	do
	:: d_step {
			sem[me] > 0;
			sem[me]--;
			got = waiting[me] == NOT_WAITING;
			if
			:: !got -> extra++; assert(extra <= STRAYS)
			:: else
			fi
		}
		if
		:: got -> got = 0; break
		:: else
		fi
	od
}

/* LWLockDequeueSelf() */
inline dequeue_self()
{
#ifndef MUTANT_DEQUEUE_UNLOCKED
	lock_list();
#endif
	if
	:: waiting[me] == WAITING ->
		link_waiters();
		cur = 0;
		GRAIN { unlink(me, true); forget(me) }
	:: else -> how = WOKEN
	fi;
#ifndef MUTANT_DEQUEUE_UNLOCKED
	unlock_list();
#endif
	if
	:: how != WOKEN -> waiting[me] = NOT_WAITING
	:: else ->
		how = 0;
		d_step { w_release_ok = 1; g_retriers = g_retriers & ~BIT(me); CHECK_WORD }
		sleep();
		post_again()
	fi
}

/* ---- operations ---- */

inline choose()
{
	if
	:: op != 0
	:: op == 0 && MAY_BEGIN && (role & ACQUIRE_EX) -> op = ACQUIRE_EX; want = EX; wait_as = EX; BEGIN
	:: op == 0 && MAY_BEGIN && (role & ACQUIRE_SH) -> op = ACQUIRE_SH; want = SH; wait_as = SH; BEGIN
	:: op == 0 && MAY_BEGIN && (role & ACQUIRE_OR_WAIT) -> op = ACQUIRE_OR_WAIT; want = EX; wait_as = WUF; BEGIN
	:: op == 0 && MAY_BEGIN && (role & UPDATE_VAR) -> op = UPDATE_VAR; want = EX; wait_as = EX; BEGIN
	:: op == 0 && MAY_BEGIN && (role & CONDITIONAL) && FREE && !RESERVED_IN_ATTEMPT ->
		op = CONDITIONAL; want = EX; BEGIN
	:: op == 0 && MAY_BEGIN && (role & CONDITIONAL_SH) && !w_ex && !RESERVED_IN_ATTEMPT ->
		op = CONDITIONAL; want = SH; BEGIN
	fi
}

/*
 * LWLockAcquire(); and LWLockAcquireOrWait(), which waits in another mode and
 * does not try again.  held says whether it has got the lock.
 *
 * A failed attempt changes nothing, and has no step: core sometimes queues where
 * it would have succeeded.  pgsweep_lwlock_acquire_or_queue() queues in the
 * compare-and-swap that proves that it cannot succeed.  Any process that was
 * woken may be overdue.  It then also sets RESERVED in it, if the lock is held
 * exclusively or reserved already.  LW_STEP_QUEUED_ADMIT is "admits".
 */
inline acquire()
{
	do
	:: atomic {
			choose();
			if
			:: d_step { TO_BE_HAD; try(); got = 0; held = 1 } break
			:: (WAYS & CORE) && op != CONDITIONAL -> lock_list(); how = CORE
#ifdef MUTANT_NO_PROOF
			:: d_step { !TO_BE_HAD; how = LOCKLESS }
#else
			:: d_step { (WAYS & LOCKLESS) && !(woken && want == EX) && !TO_BE_HAD; push(wait_as); WILL_SLEEP; how = LOCKLESS }
			:: d_step {
					(WAYS & LOCKLESS) && woken && want == EX && !TO_BE_HAD;
					push(want | FRONT);
					admits = (w_sh > 0);
					WILL_SLEEP;
					how = LOCKLESS
				}
			:: d_step {
					(WAYS & LOCKLESS) && woken && !TO_BE_HAD && (w_ex || w_reserved);
					push(want | RESERVED);
					WILL_SLEEP;
					how = LOCKLESS
				}
#endif
			fi
		}
#ifdef MUTANT_NO_PROOF
		if
		:: how == LOCKLESS && woken -> d_step { push(want | FRONT) }
		:: how == LOCKLESS && !woken -> d_step { push(wait_as) }
		:: else
		fi;
#endif
		LINK_AFTER_PUSH;
		if
#if WAYS & CORE
		:: how == CORE ->
			queue_self(wait_as);
#ifndef MUTANT_NO_SECOND_ATTEMPT
			atomic {
				attempt();
				if
				:: got -> got = 0; held = 1
				:: else
				fi
			}
			if
			:: held -> dequeue_self(); break
			:: else
			fi
#endif
#endif
#if (WAYS & LOCKLESS) && (ROLES & (ACQUIRE_SH + CONDITIONAL_SH))
		:: how == LOCKLESS && admits -> admit()
#endif
		:: else
		fi;
		how = 0;
		sleep();
		if
		:: op == ACQUIRE_OR_WAIT -> break
		:: else
		fi;
		atomic {
			d_step {
				SET_RELEASE_OK;
				got = ((mode[me] & GRANTED) != 0);
				assert(!got || (mode[me] & RESERVED));	/* not to another */
				if
				:: got && want == EX -> g_granted_ex--; now_held(EX)
				:: got && want == SH -> g_granted_sh--; now_held(SH)
				:: else
				fi;
				if
				:: got -> g_retriers = g_retriers & ~BIT(me)
				:: else
				fi;
				CHECK_WORD
			}
			if
			:: got -> got = 0; held = 1; break
			:: else -> woken = 1
			fi
		}
	od;
	how = 0;
	woken = 0;
	post_again()
}

/* LWLockConflictsWithVar(): got if there is nothing to wait for */
inline look_at_var()
{
	d_step { got = !w_ex }
	if
	:: !got -> d_step {
			got = var + 1 != g_old[me];
			if
			:: !got && IN_QUEUE(me) ->
				g_asleep = g_asleep | BIT(me);
				g_var_asleep = g_var_asleep | BIT(me);
				CHECK_WORD
			:: else
			fi
		}
	:: else
	fi
}

/* LWLockWaitForVar() */
inline wait_for_var()
{
	d_step { MAY_BEGIN; BEGIN; g_old[me] = var + 1 }
	do
	:: look_at_var();
		if
		:: got -> break
		:: else
		fi;
		if
		:: lock_list(); queue_self(WUF)
#ifdef MUTANT_VAR_UNLOCKED
		:: d_step { w_ex -> push(WUF) }
#endif
		fi;
		d_step { w_release_ok = 1; CHECK_WORD }
#ifndef MUTANT_NO_LOOK_AT_VAR
		look_at_var();
		if
		:: got -> got = 0; dequeue_self(); break
		:: else
		fi;
#endif
		sleep()
	od;
	got = 0;
	g_old[me] = 0;
	post_again()
}

#define SEES_NEW(p)				(g_old[p] == 0 || g_old[p] == var + 1)
#if N == 5
#define NONE_WAITS_FOR_OLD	(SEES_NEW(1) && SEES_NEW(2) && SEES_NEW(3) && SEES_NEW(4) && SEES_NEW(5))
#elif N == 4
#define NONE_WAITS_FOR_OLD	(SEES_NEW(1) && SEES_NEW(2) && SEES_NEW(3) && SEES_NEW(4))
#else
#define NONE_WAITS_FOR_OLD	(SEES_NEW(1) && SEES_NEW(2) && SEES_NEW(3))
#endif

/* LWLockUpdateVar() */
inline update_var()
{
	var++;
	lock_list();
	link_waiters();
	do
	:: GRAIN {
			cur != 0 && cur != NEWEST;
			if
			:: mode[cur] != WUF -> newer = 0
			:: else -> newer = prev[cur]; take_out(false)
			fi;
			cur = newer;
			newer = 0
		}
	:: else -> break
	od;
	cur = 0;
	unlock_list();
	wake_up()
}

proctype Process(byte me; short role)
{
	byte op, left = TIMES(role), want, wait_as, how, cur, newer, other, side, place, head, kept, tail, last, last_setter, rounds, extra, st_newest;
	bool got, held, woken, again, takes, hands, admits, st_unlinked;

	do
	:: left > 0 ->
		if
#if ROLES & WAIT_FOR_VAR
		:: role & WAIT_FOR_VAR -> wait_for_var()
#endif
		:: OPERATIONS(role) != WAIT_FOR_VAR -> acquire()
		fi;
#if ROLES & UPDATE_VAR
		if
		:: held && op == UPDATE_VAR ->
			update_var();
			/* the holder may wait for the waiters for the change */
			NONE_WAITS_FOR_OLD
		:: else
		fi;
#endif
		if
		:: held -> release()
		:: else -> d_step { DONE }
		fi
	:: else -> break
	od;
	skip;
	d_step {
		g_done++;
		if
		:: g_done == N ->
			assert(FREE && !w_locked && !w_wake_wanted && !w_reserved && w_release_ok);
			assert(w_newest == 0 && g_queued == 0 && g_wakers == 0);
			i = 1;
			j = 0;
			do
			:: i <= N -> j = j + sem[i]; i++
			:: else -> break
			od;
			assert(j == g_strays)
		:: else
		fi
	}
}

#if STRAYS > 0
/* Wakes any process at any time, as for another reason */
active proctype Stray()
{
	byte p;

	do
	:: g_strays < STRAYS ->
		select(p : 1 .. N);
		d_step { sem[p]++; g_strays++ }
	:: break
	od
}
#endif

init
{
	atomic {
		run Process(1, R1);
		run Process(2, R2);
		run Process(3, R3)
#if N >= 4
		;
		run Process(4, R4)
#endif
#if N >= 5
		;
		run Process(5, R5)
#endif
	}
}
