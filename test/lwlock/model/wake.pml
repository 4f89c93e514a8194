/*
 * wake.pml
 *	  Taking waiters out of the queue and waking them; unlock and release.
 */

/*
 * First come, first served: no process is woken before one of its rank that came
 * earlier, or one of a better rank that was seen.  Exclusive waiters may be skipped
 * when another process is already woken, and all but readers when readers are let in
 * to share the lock with its holders.
 */
#define MAY_SKIP(i) \
	(MODE(mode[i]) == EX && (retrier || granted) || admits && st_sh && !IS_READER(i))

inline check_order(p)
{
	i = 1;
	do
	:: i <= N ->
		assert(!(g_before[p] & BIT(i)) || MAY_SKIP(i) || mode[p] == WUF || RANK(p) < RANK(i));
		assert(!(g_linked & BIT(i)) || !IN_QUEUE(i) || MAY_SKIP(i) || RANK(p) <= RANK(i));
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

/* LWLockHandsOver(); "granted" is EX, or SH with the number of those that share */
#define HANDS_OVER(m)	(st_reserved && GRANT_TO(m) && (granted == 0 || granted != EX && MODE(m) == SH))

/* One turn of the loop in LWLockTakeWaiters() */
inline take_next()
{
	newer = prev[cur];
	takes = true;
	if
	:: mode[cur] == WUF
	:: mode[cur] != WUF && st_reserved && st_ex && LEAVES_TO_HOLDER -> takes = false; newer = 0
	:: else ->
		assert(!st_reserved || !st_sh);
		hands = HANDS_OVER(mode[cur]);
		if
		:: hands
		:: !hands && exclusive -> takes = false; newer = 0; next_reserved = NEXT_KEEPS(mode[cur])
		:: !hands && !exclusive && MODE(mode[cur]) == EX && (retrier || granted) -> takes = false
		:: else
		fi
	fi;
	if
	:: takes ->
		WORD {
			check_order(cur);
			/* a reservation is lost only to shared acquisitions */
			assert(!(mode[cur] & RESERVED) || hands || (g_lost & BIT(cur)))
		}
		take_out(true);
		if
		:: hands && MODE(mode[cur]) == EX -> granted = EX
		:: hands && MODE(mode[cur]) == SH -> granted = granted + SH
		:: !hands && mode[cur] != WUF -> retrier = 1; g_retriers = g_retriers | BIT(cur)
		:: else
		fi;
		if
		:: hands -> TELL_GRANT
		:: else
		fi;
		if
		:: MODE(mode[cur]) == EX -> exclusive = 1; newer = (hands -> newer : 0)
		:: else
		fi
	:: else
	fi;
	takes = false;
	hands = false;
	cur = newer;
	newer = 0
}

/* The compare-and-swap of LWLockUnlockAfterTaking(); part of a step */
inline unlock_after_taking()
{
	again = (granted != 0 && w_newest != st_newest && LOOKS_FOR_SETTERS);
	if
	:: taken_newest != 0 -> without_newest(taken_newest, taken_older)
	:: else
	fi;
	taken_newest = 0;
	taken_older = 0;
	again = (again || w_wake_wanted && w_newest != 0 && LOOKS_AGAIN);
	w_wake_wanted = 0;
	if
	:: retrier && CLEARS_RELEASE_OK -> w_release_ok = 0
	:: !retrier && !again -> w_release_ok = 1
	:: else
	fi;
	check_list();
	if
	:: again -> READ_STATE; rounds++; assert(rounds <= ROUNDS)
	:: else ->
		if
		:: granted != 0 && DROP_RESERVATION -> w_reserved = 0
		:: else
		fi;
		if
		:: granted == EX -> w_ex = 1; g_granted_ex++
		:: granted != 0 && granted != EX ->
			w_sh = w_sh + granted / SH;
			g_granted_sh = g_granted_sh + granted / SH;
			LOSE_RESERVATIONS
		:: else
		fi;
		granted = 0;
		retrier = 0;
		exclusive = 0;
		rounds = 0;
		g_wakers--;
		assert(g_told[me] == 0);
		FORGET_STATE
	fi;
	next_reserved = 0;
	CHECK_WORD
}

/* LWLockWakeup(), the list locked */
inline wakeup()
{
	do
	:: link_waiters();
		GRAIN {
			do
			:: cur != 0 && cur != NEWEST -> take_next()
			:: else -> break
			od;
			cur = 0
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

#define POST_IT		sem[cur]++; assert(sem[cur] <= 1 + STRAYS); FORGET_CUR
#if STRAYS > 0 || defined(FINE) || defined(MUTANT_GRANT_TOLD_LATE)
#define POST		skip
#define POST_LATE	POST_IT
#define WAKE_GRAIN	GRAIN
#else
#define POST		POST_IT
#define WAKE_GRAIN	d_step
#endif
/*
 * Awaken those taken out.  Without wakeups that were meant for something else, no
 * process notices lwWaiting before its semaphore.
 */
inline wake_up()
{
	do
	:: WAKE_GRAIN {
			head != 0;
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
		TELL_LATE
#endif
	:: else -> break
	od;
	tail = 0
}

#define START_UNLOCK \
	got = (w_wake_wanted && HEEDS_WAKE_WANTED); \
	w_wake_wanted = 0; \
	FORGET_STATE; \
	if \
	:: got -> g_wakers++ \
	:: else -> assert(g_told[me] == 0) \
	fi; \
	CHECK_WORD

inline finish_unlock()
{
	if
	:: got ->
		d_step { got = 0; kept = head; head = 0; tail = 0 }
		wakeup_or_leave();
		d_step { head = kept; kept = 0 }
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
		check_list();
		START_UNLOCK
	}
	finish_unlock()
}

/* One turn of the loop in LWLockAdmitShared() */
inline admit_next()
{
	newer = prev[cur];
	if
	:: ADMITS_MODE(mode[cur]) ->
		WORD { check_order(cur); assert(MODE(mode[cur]) == SH && (!(mode[cur] & RESERVED) || (g_lost & BIT(cur)))) }
		take_out(true);
		ADMITTED
	:: else
	fi;
	cur = newer;
	newer = 0
}

/* No reader that was linked is left; part of a step */
inline check_admitted()
{
	i = 1;
	do
	:: i <= N ->
		assert(!st_sh || !(g_linked & g_queued & BIT(i)) || !IS_READER(i));
		i++
	:: else -> break
	od
}

/* LWLockAdmitShared() */
inline admit()
{
	d_step {
		got = !w_locked;
		if
		:: got -> w_locked = 1; g_owner = me; READ_STATE
		:: else -> admits = 0
		fi;
		CHECK_WORD
	}
	if
	:: got ->
		got = 0;
		link_waiters();
		GRAIN {
			if
			:: !st_sh && LOOKS_FOR_HOLDERS -> cur = 0
			:: else
			fi;
			do
			:: cur != 0 && cur != NEWEST -> admit_next()
			:: else -> break
			od;
			cur = 0;
			WORD { check_admitted() }
			admits = 0
		}
		unlock_list();
		wake_up()
	:: else
	fi
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
