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
#ifdef MUTANT_RESERVATION_STAYS
#define DROP_RESERVATION		grant
#else
#define DROP_RESERVATION		true
#endif
#ifdef MUTANT_GRANT_TO_ANY
#define GRANT_TO(m)				true
#else
#define GRANT_TO(m)				(m & FRONT)
#endif
#if defined(MUTANT_WAKER_LOOKS_ONCE)
#define LOOKS_AGAIN				false
#elif defined(MUTANT_WAKER_LOOKS_TWICE)
#define LOOKS_AGAIN				(rounds == 0)
#elif defined(MUTANT_WAKER_TELLS_NONE_LATE)
#define LOOKS_AGAIN				(first == 0)
#else
#define LOOKS_AGAIN				true
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
#ifdef MUTANT_ALL_TO_FRONT
#define IS_MOVED(p)				true
#else
#define IS_MOVED(p)				GOES_FIRST(p)
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
