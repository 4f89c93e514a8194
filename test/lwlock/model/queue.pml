/*
 * queue.pml
 *	  The queue: push, link, unlink, move to the front.
 */

/* The state that the holder of LOCKED proceeds from; it does not know later waiters */
#define READ_STATE \
	st_newest = w_newest; \
	st_unlinked = w_unlinked; \
	st_ex = w_ex; \
	st_sh = (w_sh > 0); \
	st_reserved = w_reserved; \
	g_linked = g_queued

/* LOCKED is released, and what only its holder knows is forgotten */
#define FORGET_STATE \
	w_locked = 0; \
	g_owner = 0; \
	g_linked = 0; \
	st_newest = 0; \
	st_unlinked = 0; \
	st_ex = 0; \
	st_sh = 0; \
	st_reserved = 0; \
	g_setters = g_setters & g_queued; \
	g_lost = g_lost & g_queued

/* LWLockWaitListLock() */
inline lock_list()
{
	d_step {
		!w_locked;
		w_locked = 1;
		g_owner = me;
		READ_STATE;
		CHECK_WORD
	}
}

/* LWLockTryQueue() as it succeeds; part of a step */
inline push(as)
{
	assert(!IN_QUEUE(me) && waiting[me] == NOT_WAITING && next[me] == 0 && prev[me] == 0);
	assert(!((as) & RESERVED) || w_ex || w_reserved);
	waiting[me] = WAITING;
	mode[me] = as;
	prev[me] = UNKNOWN;
	if
	:: (as) & RESERVED -> w_reserved = 1; g_setters = g_setters | BIT(me); g_lost = g_lost & ~BIT(me)
	:: else
	fi;
#ifdef MUTANT_LINK_AFTER_PUSH
	other = w_newest;
#else
	next[me] = w_newest;
#endif
	g_before[me] = g_queued;
	w_newest = me;
	w_unlinked = SETS_UNLINKED;
	g_queued = g_queued | BIT(me);
#ifndef MUTANT_LINK_AFTER_PUSH
	check_list();
#endif
	CHECK_WORD
}

/* What core writes of itself, beside its links */
#define COME_TO_QUEUE(as) \
	waiting[me] = WAITING; \
	mode[me] = as; \
	g_before[me] = g_queued; \
	g_queued = g_queued | BIT(me); \
	g_linked = g_linked | BIT(me)

#ifdef MUTANT_LINK_AFTER_PUSH
#define LINK_AFTER_PUSH		d_step { next[me] = other; other = 0 }
#else
#define LINK_AFTER_PUSH		skip
#endif

/*
 * LWLockWithoutNewest() and the compare-and-swap after it: remove the newest
 * waiter p, before which there is "older"; part of a step
 */
inline without_newest(p, older)
{
	if
	:: w_newest == p || UNLINK_BLINDLY ->
		w_newest = older;
		w_unlinked = (w_unlinked && older != 0)
	:: else ->
		other = w_newest;
		do
		:: other != older && LOOKS_AT_LATER ->
			if
			:: next[other] == p -> next[other] = older
			:: else
			fi;
			other = next[other]
		:: else -> break
		od;
		other = 0
	fi
}

/* LWLockUnlinkWaiter(); part of a GRAIN */
inline unlink(p, defer)
{
	MINE(p);
	assert(prev[p] != UNKNOWN && prev[p] != 0);
	if
	:: prev[p] == NEWEST && defer ->
		taken_newest = p;
		taken_older = next[p];
		side = NEWEST
	:: prev[p] == NEWEST && !defer ->
		WORD { without_newest(p, next[p]); READ_STATE; CHECK_WORD }
		side = NEWEST
	:: else ->
		side = prev[p];
		next[side] = next[p]
	fi;
	if
	:: next[p] != 0 -> prev[next[p]] = side
	:: else -> oldest = side
	fi;
	side = 0;
	next[p] = 0;
	prev[p] = 0
}

/* Remove it from the ghosts */
inline forget(p)
{
	WORD {
		g_queued = g_queued & ~BIT(p);
		g_linked = g_linked & ~BIT(p);
		g_asleep = g_asleep & ~BIT(p);
		g_var_asleep = g_var_asleep & ~BIT(p);
		i = 1;
		do
		:: i <= N ->
			g_before[i] = g_before[i] & ~BIT(p);
			g_told[i] = g_told[i] & ~BIT(p);
			i++
		:: else -> break
		od;
		g_before[p] = 0;
		check_list()
	}
}

/* LWLockMoveToFront(); part of a GRAIN */
inline move_to_front(p)
{
	place = oldest;
	if
	:: MOVE_RANK(p) == 1 ->
		if
		:: last_setter != 0 -> place = last_setter
		:: else
		fi;
		last_setter = p
	:: MOVE_RANK(p) == 2 ->
		if
		:: last != 0 -> place = last
		:: else
		fi;
		last = p
	:: else
	fi;
	if
	:: MOVE_RANK(p) > 0 ->
		do
		:: place != p && MOVE_RANK(place) <= MOVE_RANK(p) -> MINE(place); place = prev[place]
		:: else -> break
		od
	:: else
	fi;
	if
	:: place != p ->
		unlink(p, false);
		MINE(place);
		next[p] = next[place];
		prev[p] = place;
		next[place] = p;
		if
		:: next[p] != 0 -> prev[next[p]] = p
		:: else -> oldest = p
		fi;
		WORD { check_list() }
	:: else
	fi;
	place = 0
}

/* Whether moving this one to the front changes the word */
#define MOVES_ON_WORD(p)	(IS_MOVED(p) && prev[p] == NEWEST && oldest != p)

inline move_next()
{
	newer = prev[cur];
	if
	:: IS_MOVED(cur) -> move_to_front(cur)
	:: else
	fi;
	cur = newer;
	newer = 0
}

/* LWLockLinkWaiters(): cur is the oldest, or 0 */
inline link_waiters()
{
	do
	:: GRAIN {
			cur = st_newest;
			last = 0;
			last_setter = 0;
			if
			:: cur != 0 && st_unlinked ->
				newer = NEWEST;
				do
				:: prev[cur] == NEWEST -> prev[cur] = newer; break
				:: else ->
					MINE(cur);
					assert(prev[cur] == UNKNOWN);	/* each is visited once */
					prev[cur] = newer;
					newer = cur;
					if
					:: next[cur] == 0 -> oldest = cur; break
					:: else -> cur = next[cur]
					fi
				od;
				cur = newer;
				newer = 0
			:: cur != 0 && !st_unlinked -> cur = NEWEST
			:: else
			fi;
			do
			:: cur != 0 && cur != NEWEST && !MOVES_ON_WORD(cur) -> move_next()
			:: else -> break
			od;
			if
			:: cur == NEWEST -> cur = oldest; MINE(cur); last = 0; last_setter = 0; side = 1
			:: cur == 0 -> side = 1
			:: else
			fi
		}
		if
		:: side == 0 -> GRAIN { move_next(); cur = 0; last = 0; last_setter = 0 }
		:: else -> side = 0; break
		fi
	od;
	skip						/* no jump into a step that follows */
}
