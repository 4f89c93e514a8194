/*-------------------------------------------------------------------------
 *
 * extension/lwlock/counts.c
 *	  Counters of waits for LWLocks, and their sums.
 *
 * A process counts in the slot of its ProcNumber, by atomic additions; a
 * reader adds up all slots.  There are at most PGSWEEP_LWLOCK_MAX_SLOTS, since
 * one for each possible process would take 14 kB of shared memory per
 * connection.
 *
 * Counters are never reset: a reset remembers the totals instead.  Only the
 * longest wait, which has no meaningful difference, is zeroed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lwlock/lwlock.h"
#include "port/atomics.h"
#include "port/pg_bitutils.h"
#include "storage/proc.h"

/* The members of PgSweepLwlockCounts before longest_ns, which only grow */
#define NUM_PLAIN	(offsetof(PgSweepLwlockCounts, longest_ns) / sizeof(uint64))

StaticAssertDecl(NUM_PLAIN == 8, "counters are not the first members of PgSweepLwlockCounts");

/* Knuth's multiplicative hash, scaled to 0 .. size - 1 */
static inline uint32
hash_key(uint32 key, uint32 size)
{
	return (uint32) (((uint64) (key * 0x9E3779B1U) * size) >> 32);
}

/*
 * Does the entry have this key?  An unused entry is given it.
 */
static inline bool
take_entry(PgSweepLwlockEntry *entry, uint32 key)
{
	uint32		found = *(volatile uint32 *) &entry->key;

	/* its counts are zero, so another process may use it at once */
	if (found == 0 &&
		pg_atomic_compare_exchange_u32((pg_atomic_uint32 *) &entry->key, &found, key))
		return true;
	return found == key;
}

/*
 * The counters that this process uses for a tranche and mode.  NULL if it has
 * no PGPROC.
 */
PgSweepLwlockCounts *
pgsweep_lwlock_counts(uint16 tranche, LWLockMode mode)
{
	/* contention comes in runs of one lock; a process' slot never changes */
	static uint32 last_key = 0;
	static PgSweepLwlockCounts *last = NULL;

	uint32		key = pgsweep_lwlock_key(tranche, mode);
	PgSweepLwlockSlot *mine;
	uint32		i;

	if (PgSweepLwlock == NULL || MyProc == NULL)
		return NULL;
	if (key == last_key)
		return last;

	mine = &PgSweepLwlock->slots[(uint32) MyProcNumber % PgSweepLwlock->num_slots].slot;
	last_key = key;
	last = &mine->other;
	i = hash_key(key, PGSWEEP_LWLOCK_ENTRIES);
	for (int probes = 0; probes < PGSWEEP_LWLOCK_ENTRIES; probes++)
	{
		if (take_entry(&mine->entries[i], key))
		{
			last = &mine->entries[i].counts;
			break;
		}
		i = (i + 1) % PGSWEEP_LWLOCK_ENTRIES;
	}
	return last;
}

static inline int
bucket(uint64 ns)
{
	uint64		us = ns / 1000;

	if (us == 0)
		return 0;
	return Min(pg_leftmost_one_pos64(us) + 1, PGSWEEP_LWLOCK_BUCKETS - 1);
}

/*
 * Note that a wait has lasted for ns so far.  before_ns is the duration noted
 * for it before, or 0.
 */
void
pgsweep_lwlock_note_wait(PgSweepLwlockCounts *counts, uint64 before_ns, uint64 ns)
{
	pg_atomic_uint64 *longest = (pg_atomic_uint64 *) &counts->longest_ns;
	uint64		longest_ns = pg_atomic_read_u64(longest);

	if (ns <= before_ns)
		return;

	pgsweep_lwlock_add(&counts->wait_ns, ns - before_ns);
	pgsweep_lwlock_add(&counts->histogram[bucket(ns)], 1);
	if (before_ns != 0)
		pgsweep_lwlock_add(&counts->histogram[bucket(before_ns)], -1);

	while (ns > longest_ns &&
		   !pg_atomic_compare_exchange_u64(longest, &longest_ns, ns))
		 /* retry */ ;
}

/*
 * Totals under construction: entries[0] is "other".  "where" is a hash of the
 * other entries, with their numbers; 0 = unused.
 */
typedef struct Totals
{
	PgSweepLwlockEntry *entries;	/* PGSWEEP_LWLOCK_BASE */
	int			n;
	uint16		where[PGSWEEP_LWLOCK_BASE * 2];
} Totals;

static PgSweepLwlockCounts *
find_total(Totals *totals, uint32 key)
{
	uint32		i;

	if (key == 0)
		return &totals->entries[0].counts;

	for (i = hash_key(key, lengthof(totals->where)); totals->where[i] != 0;
		 i = (i + 1) % lengthof(totals->where))
		if (totals->entries[totals->where[i]].key == key)
			return &totals->entries[totals->where[i]].counts;

	if (totals->n == PGSWEEP_LWLOCK_BASE)
		return &totals->entries[0].counts;
	totals->where[i] = totals->n;
	memset(&totals->entries[totals->n], 0, sizeof(PgSweepLwlockEntry));
	totals->entries[totals->n].key = key;
	return &totals->entries[totals->n++].counts;
}

/*
 * Start with a zero entry for each entry of the last reset, in the same
 * order.  Keys that found no entry then find none now: they are "other" in
 * both.
 */
static void
begin_totals(Totals *totals, PgSweepLwlockEntry *entries)
{
	memset(totals, 0, sizeof(Totals));
	totals->entries = entries;
	totals->n = 1;
	memset(&entries[0], 0, sizeof(PgSweepLwlockEntry));
	for (uint32 i = 1; i < PgSweepLwlock->nbase; i++)
		(void) find_total(totals, PgSweepLwlock->base[i].key);
}

/*
 * Add counters that may keep changing.  Each number is read atomically, but
 * they may be from different events.
 */
static void
add_counts(PgSweepLwlockCounts *to, const volatile PgSweepLwlockCounts *from)
{
	const volatile uint64 *plain = (const volatile uint64 *) from;

	for (int i = 0; i < NUM_PLAIN; i++)
		((uint64 *) to)[i] += plain[i];
	for (int i = 0; i < PGSWEEP_LWLOCK_BUCKETS; i++)
		to->histogram[i] += from->histogram[i];
	to->longest_ns = Max(to->longest_ns, from->longest_ns);
}

static void
add_slots(Totals *totals)
{
	for (uint32 i = 0; i < PgSweepLwlock->num_slots; i++)
	{
		PgSweepLwlockSlot *slot = &PgSweepLwlock->slots[i].slot;

		for (int k = 0; k < PGSWEEP_LWLOCK_ENTRIES; k++)
		{
			uint32		key = *(volatile uint32 *) &slot->entries[k].key;

			if (key != 0)
				add_counts(find_total(totals, key), &slot->entries[k].counts);
		}
		add_counts(&totals->entries[0].counts, &slot->other);
	}
}

/*
 * Subtract the totals of the last reset.  A wait that continued after the
 * reset has left the bucket it was counted in then.
 */
static void
subtract_base(PgSweepLwlockCounts *to, const PgSweepLwlockCounts *base)
{
	for (int i = 0; i < NUM_PLAIN; i++)
		((uint64 *) to)[i] -= ((const uint64 *) base)[i];
	for (int i = 0; i < PGSWEEP_LWLOCK_BUCKETS; i++)
		to->histogram[i] -= Min(base->histogram[i], to->histogram[i]);
}

/*
 * Compute the totals of all processes since the last reset, at most
 * PGSWEEP_LWLOCK_BASE, and return their number.  The first one, with key 0,
 * is "other".  The caller holds PgSweep->lock.
 */
int
pgsweep_lwlock_sum(PgSweepLwlockEntry *totals)
{
	Totals		sum;

	begin_totals(&sum, totals);
	add_slots(&sum);
	for (uint32 i = 0; i < PgSweepLwlock->nbase; i++)
		subtract_base(&totals[i].counts, &PgSweepLwlock->base[i].counts);
	return sum.n;
}

/*
 * Reset the counters.  The caller holds PgSweep->lock exclusively.
 */
void
pgsweep_lwlock_reset(void)
{
	Totals		sum;

	/*
	 * First the longest waits: a wait that ends meanwhile may be in the base,
	 * and its length shown, but no wait that is counted lacks its length.
	 */
	for (uint32 i = 0; i < PgSweepLwlock->num_slots; i++)
	{
		PgSweepLwlockSlot *slot = &PgSweepLwlock->slots[i].slot;

		for (int k = 0; k < PGSWEEP_LWLOCK_ENTRIES; k++)
			pg_atomic_write_u64((pg_atomic_uint64 *) &slot->entries[k].counts.longest_ns, 0);
		pg_atomic_write_u64((pg_atomic_uint64 *) &slot->other.longest_ns, 0);
	}

	begin_totals(&sum, PgSweepLwlock->base);
	add_slots(&sum);
	PgSweepLwlock->nbase = sum.n;
}
