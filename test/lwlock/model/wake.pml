/*
 * wake.pml
 *	  Taking waiters out of the queue and waking them; unlock and release.
 */

/*
 * First come, first served: no process is woken before one of its kind that came
 * earlier, or one that goes first and was seen.  Exclusive waiters may be skipped
 * when another process is already woken.
 */
inline check_order(p)
{
	i = 1;
	do
	:: i <= N ->
		assert(mode[p] == WUF || (MODE(mode[i]) == EX && first != 0)
			|| !(g_before[p] & BIT(i)) || (GOES_FIRST(p) && !GOES_FIRST(i)));
		assert(GOES_FIRST(p) || (MODE(mode[i]) == EX && first != 0)
			|| !(g_linked & BIT(i)) || !GOES_FIRST(i));
		i++
	:: else -> break
	od
}

/* Take cur out of the queue, to be woken; part of a GRAIN */
inline take_out(defer)
{
	WORD { assert(waiting[cur] == WAITING && IN_QUEUE(cur)) }
	unlink(cur, defer);
	forget(cur);
	if
	:: tail == 0 -> head = cur
	:: else -> next[tail] = cur
	fi;
	tail = cur;
	waiting[cur] = PENDING
}

/*
 * One turn of LWLockTakeWaiters().  If a process that will retry was taken in an
 * earlier round, only those are taken that wait until the lock is free.
 */
inline take_next()
{
	newer = prev[cur];
	if
	:: tell_only && mode[cur] != WUF -> newer = 0
	:: !(tell_only && mode[cur] != WUF) && first != 0 && MODE(mode[cur]) == EX
	:: else ->
		WORD { check_order(cur) }
		take_out(true);
		if
		:: mode[cur] != WUF -> g_retriers = g_retriers | BIT(cur)
		:: else
		fi;
		if
		:: mode[cur] != WUF && first == 0 -> first = cur
		:: else
		fi;
		if
		:: MODE(mode[cur]) == EX -> newer = 0
		:: else
		fi
	fi;
	cur = newer;
	newer = 0
}

/* The compare-and-swap of LWLockUnlockAfterTaking(); part of a step */
inline unlock_after_taking()
{
	if
	:: taken_newest != 0 -> without_newest(taken_newest, taken_older)
	:: else
	fi;
	taken_newest = 0;
	taken_older = 0;
	again = (w_wake_wanted && w_newest != 0 && LOOKS_AGAIN);
	w_wake_wanted = 0;
	grant = (!again && w_reserved && FREE && first != 0 && GRANT_TO(mode[first]));
	if
	:: !again && first != 0 && DROP_RESERVATION -> w_reserved = 0
	:: else
	fi;
	if
	:: grant && MODE(mode[first]) == EX -> w_ex = 1; g_granted_ex++
	:: grant && MODE(mode[first]) == SH -> w_sh++; g_granted_sh++
	:: else
	fi;
	if
	:: first != 0 && !(w_ex && grant) && CLEARS_RELEASE_OK -> w_release_ok = 0
	:: !(first != 0 && !(w_ex && grant)) && !again -> w_release_ok = 1
	:: else
	fi;
	check_list();
	if
	:: again -> READ_STATE; rounds++; assert(rounds <= ROUNDS)
	:: else ->
		w_locked = 0;
		g_owner = 0;
		g_linked = 0;
		st_newest = 0;
		st_unlinked = 0;
		g_wakers--;
		rounds = 0;
		assert(g_told[me] == 0);
		check_reserved()
	fi;
	CHECK_WORD
}

/* LWLockWakeup(), the list locked */
inline wakeup()
{
	do
	:: link_waiters();
		GRAIN {
			tell_only = (first != 0);
			do
			:: cur != 0 && cur != NEWEST -> take_next()
			:: else -> break
			od;
			cur = 0;
			tell_only = 0
		}
		atomic {
			d_step { unlock_after_taking() }
			if
			:: !again -> break
			:: else
			fi
		}
	od;
	wake_up()
}

/* LWLockWakeup(); the waker is core's or pgsweep_lwlock_lock_list_or_leave() */
inline wakeup_or_leave()
{
	if
	:: lock_list();
#if WAYS == LOCKLESS
		d_step { READ_STATE };
#endif
		wakeup()
	:: d_step {
			(WAYS & LOCKLESS) && w_locked;
			w_wake_wanted = 1;
			g_wakers--;
			g_told[g_owner] = g_told[g_owner] | g_told[me];
			g_told[me] = 0;
			CHECK_WORD
		}
	fi
}

#define POST_IT		sem[cur]++; assert(sem[cur] <= 1 + STRAYS); cur = 0
#if STRAYS > 0 || defined(FINE) || defined(MUTANT_GRANT_TOLD_LATE)
#define POST		skip
#define POST_LATE	POST_IT
#define WAKE_GRAIN	GRAIN
#else
#define POST		POST_IT
#define WAKE_GRAIN	d_step
#endif
#define TELL_GRANT \
	if \
	:: grant -> mode[first] = mode[first] | GRANTED; grant = 0 \
	:: else \
	fi; \
	first = 0

/*
 * Awaken those taken out.  Without wakeups that were meant for something else, no
 * process notices lwWaiting before its semaphore.
 */
inline wake_up()
{
	do
	:: WAKE_GRAIN {
			head != 0;
#ifndef MUTANT_GRANT_TOLD_LATE
			TELL_GRANT;
#endif
			cur = head;
			head = next[cur];
			next[cur] = 0;
			assert(waiting[cur] == PENDING);
			waiting[cur] = NOT_WAITING;
			POST
		}
#ifdef POST_LATE
		d_step { POST_LATE }
#endif
#ifdef MUTANT_GRANT_TOLD_LATE
		TELL_GRANT
#endif
	:: else -> break
	od;
	tail = 0
}

#define START_UNLOCK \
	got = (w_wake_wanted && HEEDS_WAKE_WANTED); \
	w_wake_wanted = 0; \
	w_locked = 0; \
	g_owner = 0; \
	g_linked = 0; \
	st_newest = 0; \
	st_unlinked = 0; \
	check_reserved(); \
	if \
	:: got -> g_wakers++ \
	:: else -> assert(g_told[me] == 0) \
	fi; \
	CHECK_WORD

inline finish_unlock()
{
	if
	:: got -> got = 0; wakeup_or_leave()
	:: else
	fi
}

/* LWLockWaitListUnlock() */
inline unlock_list()
{
	d_step {
		if
		:: taken_newest != 0 -> without_newest(taken_newest, taken_older)
		:: else
		fi;
		taken_newest = 0;
		taken_older = 0;
		START_UNLOCK
	}
	finish_unlock()
}

/* LWLockReleaseInternal() */
inline release()
{
	atomic {
		d_step {
			if
			:: want == EX -> w_ex = 0; g_ex--
			:: else -> w_sh--; g_sh--
			fi;
			got = (w_newest != 0 && FREE && (w_release_ok || RESERVED_IN_RELEASE));
			if
			:: got ->
				g_wakers++;
				i = 1;
				do
				:: i <= N && IN_QUEUE(i) && mode[i] == WUF -> g_told[me] = g_told[me] | BIT(i); i++
				:: i <= N && !(IN_QUEUE(i) && mode[i] == WUF) -> i++
				:: else -> break
				od
			:: else -> assert(want == SH || !(g_var_asleep & g_queued))
			fi;
			CHECK_WORD;
			held = 0;
			DONE
		}
		if
		:: got -> got = 0; how = WAKER
		:: else
		fi
	}
	if
	:: how == WAKER -> how = 0; wakeup_or_leave()
	:: else
	fi
}
