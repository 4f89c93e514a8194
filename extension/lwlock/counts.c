/*-------------------------------------------------------------------------
 *
 * extension/lwlock/counts.c
 *	  Counters of waits for LWLocks in each process, and their sums.
 *
 * A process writes only its own slot, without locked instructions; a reader
 * adds up all slots.  Slots are never reset: a reset remembers the totals
 * instead.  A longest wait has no meaningful difference, so it is noted with
 * the number of resets before it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lwlock/lwlock.h"
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
 * Zero the unused slot of this process.  That is not done at start, because
 * most slots of a server with many connections are never used.
 */
static void
prepare_slot(PgSweepLwlockSlot *mine)
{
	memset(mine, 0, sizeof(PgSweepLwlockSlot));
	pg_write_barrier();			/* pairs with add_slots() */
	PgSweepLwlock->has_waited[MyProcNumber] = true;
}

/*
 * Counters of this process for a tranche and mode.  NULL if it has no PGPROC.
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

	if (PgSweepLwlock == NULL || MyProc == NULL ||
		(uint32) MyProcNumber >= PgSweepLwlock->num_slots)
		return NULL;
	if (key == last_key)
		return last;

	mine = &PgSweepLwlock->slots[MyProcNumber].slot;
	if (!PgSweepLwlock->has_waited[MyProcNumber])
		prepare_slot(mine);

	last_key = key;
	last = &mine->other;
	i = hash_key(key, PGSWEEP_LWLOCK_ENTRIES);
	for (int probes = 0; probes < PGSWEEP_LWLOCK_ENTRIES; probes++)
	{
		PgSweepLwlockEntry *entry = &mine->entries[i];

		/* its counts are zero, so no barrier is needed before */
		if (entry->key == 0)
			entry->key = key;
		if (entry->key == key)
		{
			last = &entry->counts;
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
	uint32		epoch = *(volatile uint32 *) &PgSweepLwlock->epoch;

	if (ns <= before_ns)
		return;

	counts->wait_ns += ns - before_ns;
	if (before_ns != 0)
		counts->histogram[bucket(before_ns)]--;
	counts->histogram[bucket(ns)]++;

	if (counts->longest_epoch != epoch)
	{
		counts->longest_ns = ns;
		pg_write_barrier();		/* pairs with add_counts() */
		counts->longest_epoch = epoch;
	}
	else if (ns > counts->longest_ns)
		counts->longest_ns = ns;
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
 * Add the counters of a process, which may keep changing.  Each number is
 * read atomically, but they may be from different events.
 */
static void
add_counts(PgSweepLwlockCounts *to, const volatile PgSweepLwlockCounts *from)
{
	const volatile uint64 *plain = (const volatile uint64 *) from;

	for (int i = 0; i < NUM_PLAIN; i++)
		((uint64 *) to)[i] += plain[i];
	for (int i = 0; i < PGSWEEP_LWLOCK_BUCKETS; i++)
		to->histogram[i] += from->histogram[i];

	if (from->longest_epoch == PgSweepLwlock->epoch)
	{
		uint64		longest_ns;

		pg_read_barrier();		/* pairs with pgsweep_lwlock_note_wait() */
		longest_ns = from->longest_ns;
		to->longest_ns = Max(to->longest_ns, longest_ns);
	}
}

static void
add_slots(Totals *totals)
{
	for (uint32 i = 0; i < PgSweepLwlock->num_slots; i++)
	{
		PgSweepLwlockSlot *slot = &PgSweepLwlock->slots[i].slot;

		if (!*(volatile bool *) &PgSweepLwlock->has_waited[i])
			continue;
		pg_read_barrier();		/* pairs with prepare_slot() */
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

	begin_totals(&sum, PgSweepLwlock->base);
	add_slots(&sum);
	PgSweepLwlock->nbase = sum.n;
	PgSweepLwlock->epoch++;
}
