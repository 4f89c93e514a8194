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
		assert(mode[p] == WUF || (MODE(mode[i]) == EX && wk)
			|| !(g_before[p] & BIT(i)) || (GOES_FIRST(p) && !GOES_FIRST(i)));
		assert(GOES_FIRST(p) || (MODE(mode[i]) == EX && wk)
			|| !(g_linked & BIT(i)) || !GOES_FIRST(i));
		i++
	:: else -> break
	od
}

/* Take cur out of the queue, to be woken; part of a GRAIN */
inline take_out()
{
	WORD { assert(waiting[cur] == WAITING && IN_QUEUE(cur)) }
	unlink(cur);
	forget(cur);
	if
	:: tail == 0 -> head = cur
	:: else -> next[tail] = cur
	fi;
	tail = cur;
	waiting[cur] = PENDING
}

/* One turn of LWLockWakeup()'s loop */
inline wake_next()
{
	newer = prev[cur];
	if
	:: tell_only && mode[cur] != WUF -> newer = 0
	:: !(tell_only && mode[cur] != WUF) && wk && MODE(mode[cur]) == EX
	:: else ->
		WORD { check_order(cur) }
		take_out();
		if
		:: mode[cur] != WUF && !wk -> first = cur; wk = 1
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

/* LWLockWakeup(), the list locked */
inline wakeup()
{
	do
	:: link_waiters();
		GRAIN {
			do
			:: cur != 0 && cur != NEWEST -> wake_next()
			:: else -> break
			od;
			cur = 0
		}
		atomic {
			d_step {
				if
				:: w_wake_wanted && !tell_only && w_newest != 0 && LOOKS_AGAIN ->
					w_wake_wanted = 0;
					if
					:: wk -> w_release_ok = 0; tell_only = 1
					:: else
					fi;
					got = 0
				:: else ->
					w_wake_wanted = 0;
					grant = (w_reserved && FREE && first != 0 && GRANT_TO(mode[first]));
					if
					:: first != 0 && DROP_RESERVATION -> w_reserved = 0
					:: else
					fi;
					if
					:: grant && MODE(mode[first]) == EX -> w_ex = 1; g_granted_ex++
					:: grant && MODE(mode[first]) == SH -> w_sh++; g_granted_sh++
					:: else
					fi;
					w_release_ok = (!wk || (w_ex && grant));
					w_locked = 0;
					g_owner = 0;
					g_linked = 0;
					g_wakers--;
					wk = 0;
					tell_only = 0;
					check_reserved();
					got = 1
				fi;
				CHECK_WORD
			}
			if
			:: got -> got = 0; break
			:: else
			fi
		}
	od;
	wake_up()
}

#define TELL_GRANT \
	if \
	:: grant -> mode[first] = mode[first] | GRANTED; grant = 0 \
	:: else \
	fi; \
	first = 0

/* Awaken those taken out */
inline wake_up()
{
	do
	:: GRAIN {
			head != 0;
#ifndef MUTANT_GRANT_TOLD_LATE
			TELL_GRANT;
#endif
			cur = head;
			head = next[cur];
			next[cur] = 0;
			assert(waiting[cur] == PENDING);
			waiting[cur] = NOT_WAITING
		}
		d_step { sem[cur]++; assert(sem[cur] <= 1 + STRAYS); cur = 0 }
#ifdef MUTANT_GRANT_TOLD_LATE
		TELL_GRANT
#endif
	:: else -> break
	od;
	tail = 0
}

/* LWLockWaitListUnlock() */
inline unlock_list()
{
	d_step {
		got = (w_wake_wanted && HEEDS_WAKE_WANTED);
		w_wake_wanted = 0;
		if
		:: got -> g_wakers++
		:: else -> w_locked = 0; g_owner = 0; g_linked = 0; check_reserved()
		fi;
		CHECK_WORD
	}
	if
	:: got -> got = 0; wakeup()
	:: else
	fi
}

/* LWLockReleaseInternal(); the waker is core's or pgsweep_lwlock_lock_list_or_leave() */
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
				:: i <= N && IN_QUEUE(i) && mode[i] == WUF -> g_told = g_told | BIT(i); i++
				:: i <= N && !(IN_QUEUE(i) && mode[i] == WUF) -> i++
				:: else -> break
				od
			:: else
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
	:: how == WAKER ->
		if
		:: lock_list(); how = 0; wakeup()
		:: d_step { w_locked; w_wake_wanted = 1; g_wakers--; how = 0; CHECK_WORD }
		fi
	:: else
	fi
}
