/*
 * mutants.pml
 *	  Each leaves out one part, and the test must notice.
 */

/* Those that are no expressions are in the code itself */
#ifdef MUTANT_ATTEMPT_IGNORES_RESERVED
#define RESERVED_IN_ATTEMPT		false
#else
#define RESERVED_IN_ATTEMPT		w_reserved
#endif
#ifdef MUTANT_RELEASE_IGNORES_RESERVED
#define RESERVED_IN_RELEASE		false
#else
#define RESERVED_IN_RELEASE		w_reserved
#endif
#if defined(MUTANT_RESERVATION_STAYS)
#define DROP_RESERVATION		false
#elif defined(MUTANT_DROPS_NEXT)
#define DROP_RESERVATION		true
#else
#define DROP_RESERVATION		!(granted == EX && next_reserved)
#endif
#ifdef MUTANT_ANY_NEXT_KEEPS
#define NEXT_KEEPS(m)			true
#else
#define NEXT_KEEPS(m)			((m & RESERVED) != 0)
#endif
#ifdef MUTANT_TAKES_OF_HOLDER
#define LEAVES_TO_HOLDER		false
#else
#define LEAVES_TO_HOLDER		true
#endif
#ifdef MUTANT_NO_LOOK_FOR_SETTERS
#define LOOKS_FOR_SETTERS		false
#else
#define LOOKS_FOR_SETTERS		true
#endif
#if defined(MUTANT_GRANT_TO_ANY)
#define GRANT_TO(m)				true
#elif defined(MUTANT_TAKES_OF_HOLDER)
#define GRANT_TO(m)				((m & RESERVED) && !st_ex)
#elif defined(MUTANT_GRANT_TO_FRONT)
#define GRANT_TO(m)				(m & FRONT)
#else
#define GRANT_TO(m)				(m & RESERVED)
#endif
#if defined(MUTANT_FRONT_NOT_IN_ORDER)
#define MOVE_RANK(p)			0
#elif defined(MUTANT_RESERVED_NOT_FIRST)
#define MOVE_RANK(p)			(RANK(p) == 1 -> 2 : RANK(p))
#else
#define MOVE_RANK(p)			RANK(p)
#endif
#if defined(MUTANT_ADMIT_TAKES_ALL)
#define ADMITS_MODE(m)			true
#elif defined(MUTANT_ADMIT_TAKES_ONE)
#define ADMITS_MODE(m)			(head == 0 && MODE(m) == SH)
#else
#define ADMITS_MODE(m)			(MODE(m) == SH)
#endif
#ifdef MUTANT_ADMIT_IGNORES_HOLDERS
#define LOOKS_FOR_HOLDERS		false
#else
#define LOOKS_FOR_HOLDERS		true
#endif
#ifdef MUTANT_ADMIT_CLEARS_RELEASE_OK
#define ADMITTED				WORD { w_release_ok = 0; g_retriers = g_retriers | BIT(cur) }
#else
#define ADMITTED				skip
#endif
#if defined(MUTANT_WAKER_LOOKS_ONCE)
#define LOOKS_AGAIN				false
#elif defined(MUTANT_WAKER_LOOKS_TWICE)
#define LOOKS_AGAIN				(rounds == 0)
#elif defined(MUTANT_WAKER_TELLS_NONE_LATE)
#define LOOKS_AGAIN				!retrier
#else
#define LOOKS_AGAIN				true
#endif
#ifdef MUTANT_GRANT_TOLD_LATE
byte late;						/* processes that are told after they were woken */
#define TELL_GRANT				late = late | BIT(cur)
#define TELL_LATE				d_step { mode[cur] = mode[cur] | (late & BIT(cur) -> GRANTED : 0); late = late & ~BIT(cur); cur = 0 }
#define FORGET_CUR				skip
#else
#define FORGET_CUR				cur = 0
#define TELL_GRANT				mode[cur] = mode[cur] | GRANTED
#endif
#ifdef MUTANT_UNLOCK_IGNORES_WAKE_WANTED
#define HEEDS_WAKE_WANTED		false
#else
#define HEEDS_WAKE_WANTED		true
#endif
#ifdef MUTANT_UNLINK_BLINDLY
#define UNLINK_BLINDLY			true
#else
#define UNLINK_BLINDLY			false
#endif
#ifdef MUTANT_NO_RELEASE_OK
#define SET_RELEASE_OK			skip
#else
#define SET_RELEASE_OK			w_release_ok = 1
#endif
#ifdef MUTANT_AGAIN_WITH_RELEASE_OK
#define CLEARS_RELEASE_OK		!again
#else
#define CLEARS_RELEASE_OK		true
#endif
#ifdef MUTANT_LATER_KEEP_LINK
#define LOOKS_AT_LATER			false
#else
#define LOOKS_AT_LATER			true
#endif
#ifdef MUTANT_NO_UNLINKED
#define SETS_UNLINKED			w_unlinked
#else
#define SETS_UNLINKED			1
#endif
#ifdef MUTANT_LINK_STAYS
#define TAKES_LINK_BACK			false
#else
#define TAKES_LINK_BACK			true
#endif
