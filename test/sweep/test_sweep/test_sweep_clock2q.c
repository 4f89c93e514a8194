/*-------------------------------------------------------------------------
 *
 * test/sweep/test_sweep/test_sweep_clock2q.c
 *	  Property tests of the rule of "clock2q": pools that virtual processes load
 *	  pages into.
 *
 * With one process, a model without rings, leases of slots or prints says which
 * victim comes next (clock2q_model.h).  With several, each miss is whole, or
 * processes stop between its operations, or within them, before and after each
 * atomic one.  What must hold then is checked against the slots' contents as
 * the test knows them, and against all pages that left.
 *
 * clock2q_mutants.h	the code under test, and broken variants of it
 * clock2q_points.h	where processes may stop within operations
 * clock2q_pool.h		the pool, and cases
 * clock2q_model.h		the model
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "clock2q_points.h"
#include "clock2q_mutants.h"

#undef pg_atomic_read_u32
#undef pg_atomic_write_u32
#undef pg_atomic_compare_exchange_u32
#undef pg_atomic_fetch_add_u64
#undef pgsweep_read_u64

#include "property.h"

PG_MODULE_MAGIC_EXT(
					.name = "test_sweep_clock2q",
					.version = "1.0"
);

PG_FUNCTION_INFO_V1(test_sweep_clock2q);
PG_FUNCTION_INFO_V1(test_sweep_clock2q_codes);

#include "clock2q_pool.h"

/* ---- one step of a process, and what must hold ---- */

/* Contents of slots are known exactly unless processes stop within operations */
static bool
exact(void)
{
	return sim.mode != WITHIN;
}

static void
take_lease(Process *p)
{
	uint32		before = pg_atomic_read_u32(&c2q.length);
	int64		wanted = (int64) before + p->lease.change;
	uint32		length;

	code->take_slots(&c2q, &p->lease, sim.batch);
	length = pg_atomic_read_u32(&c2q.length);
	REQUIRE(length >= least_length() && length <= most_length(),
			"%u buffers: length %u is not within %u and %u", sim.n, length, least_length(), most_length());
	if (!exact())
		return;
	REQUIRE(length == Min(Max(wanted, least_length()), most_length()) && p->lease.change == 0,
			"%u buffers: length " INT64_FORMAT " was wanted, is %u, and %d is left", sim.n, wanted, length, p->lease.change);
	if (length > before)
		HAD(longer);
	if (length < before)
		HAD(shorter);
	if (length == most_length() && wanted > length)
		HAD(most);
	if (length == least_length() && wanted < length)
		HAD(least);
}

static void
end_window(Process *p)
{
	uint32		slot = sim.first + (p->lease.fill_slot - sim.first + sim.n - window_length()) % sim.n;
	uint32		expected = NOTHING;
	uint32		buf;

	if (exact() && window_length() > 0 && sim.content[slot] != NOTHING && !sim.ended[slot])
		expected = sim.content[slot];
	buf = code->end_window(&c2q, &p->lease);
	if (exact())
		REQUIRE(buf == expected, "%u buffers: the window of %d ends, not that of %d", sim.n, (int) buf, (int) expected);
	if (buf == NOTHING)
		return;
	HAD(windows);
	sim.usage[buf] = 0;
	sim.ended[slot] = true;
}

/* Whether it is done: no slot to be judged, or a victim */
static bool
judge(Process *p)
{
	uint32		unused;
	uint32		slot;
	uint32		buf;

	if (!code->has_to_judge(&c2q, &p->lease))
		return true;
	slot = p->lease.judge_slot;
	buf = code->judge(&c2q, &p->lease, &unused);
	if (++p->judged > 1)
		HAD(behind);
	if (exact())
	{
		REQUIRE(buf == sim.content[slot], "%u buffers: slot %u has %d, judged is %d", sim.n, slot, (int) sim.content[slot], (int) buf);
		REQUIRE(buf == NOTHING || unused == (sim.ended[slot] ? 0 : 1), "%u uses are none", unused);
		sim.content[slot] = NOTHING;
	}
	if (buf == NOTHING)
		return false;
	if (unused > 0)
		HAD(missed);
	if (sim.hand >= sim.n && !sim.locked[buf] && sim.usage[buf] <= unused)
	{
		sim.locked[buf] = true;
		p->victim = buf;
		p->side = PGSWEEP_C2Q_PROBATION;
		HAD(young);
		return true;
	}
	sim.usage[buf] = Min(sim.usage[buf], PGSWEEP_C2Q_USES);
	HAD(stayed);
	return false;
}

/* One tick of the main part's hand; whether there is a victim */
static bool
look(Process *p)
{
	uint32		buf = (uint32) (sim.hand++ % sim.n);

	p->looks++;
	if (code->passes(&c2q, buf))
		return false;
	point();
	if (sim.locked[buf])
		return false;
	if (sim.usage[buf] > 0)
	{
		sim.usage[buf]--;
		return false;
	}
	sim.locked[buf] = true;
	p->victim = buf;
	p->side = PGSWEEP_C2Q_MAIN;
	HAD(old);
	return true;
}

static void
leave(Process *p)
{
	uint32		page = sim.page[p->victim];

	if (page == NOTHING)
		return;
	code->left(&c2q, hash_of(page), p->side);
	sim.where[page] = NOTHING;
	sim.page[p->victim] = NOTHING;
	sim.ghost[page] = p->side;
	sim.nth[page] = sim.gone[p->side][set_of(page)]++;
	if (p->side == PGSWEEP_C2Q_PROBATION)
		sim.latest = page;
}

/* What the page was part of, if that is still known */
static PgSweepC2qSide
ghost_of(uint32 page, int32 *change)
{
	PgSweepC2qSide side = sim.ghost[page];
	uint32		later;

	*change = 0;
	sim.ghost[page] = STRANGER;
	if (side == STRANGER)
		return STRANGER;
	later = sim.gone[side][set_of(page)] - 1 - sim.nth[page];
	if (later >= PGSWEEP_C2Q_WAYS)
	{
		HAD(forgotten);
		return STRANGER;
	}
	if (side == PGSWEEP_C2Q_MAIN)
		HAD(from_main);
	else
		HAD(from_probation);
	if (later < PGSWEEP_C2Q_SOON)
	{
		*change = side == PGSWEEP_C2Q_PROBATION ? step_length() : -step_length();
		HAD(soon);
	}
	else
		HAD(late);
	return side;
}

static void
load(Process *p)
{
	uint32		slot = p->lease.fill_slot;
	uint32		buf = p->victim;
	int32		change = p->lease.change;
	int32		expected_change;
	PgSweepC2qSide expected = ghost_of(p->page, &expected_change);
	PgSweepC2qSide side;
	uint32		entry;

	sim.page[buf] = p->page;
	sim.where[p->page] = buf;
	sim.usage[buf] = 1;
	side = code->loaded(&c2q, &p->lease, buf, hash_of(p->page));
	REQUIRE(side == expected, "%u buffers: page %u was of side %d, found is %d", sim.n, p->page, expected, side);
	REQUIRE(p->lease.change - change == expected_change, "%u buffers: a page of side %d changes the length by %d, not by %d",
			sim.n, expected, p->lease.change - change, expected_change);
	if (side == PGSWEEP_C2Q_MAIN)
		sim.usage[buf] = PGSWEEP_C2Q_USES;
	model_loaded(buf, expected, expected_change);
	sim.loads++;
	sim.coming[p->page] = false;
	sim.locked[buf] = false;
	sim.put_at[buf] = sim.loads;
	if (!exact())
		return;

	/* no number stays longer than a lap */
	entry = pg_atomic_read_u32(&slots[slot]);
	REQUIRE(entry == (expected == STRANGER ? buf : NOTHING),
			"%u buffers: slot %u has %d after buffer %u was loaded", sim.n, slot, (int) entry, buf);
	if (sim.content[slot] != NOTHING)
	{
		counts.worst_age = Max(counts.worst_age, (int64) ((sim.loads - sim.filled_at[slot]) * 1000 / sim.n));
		HAD(overtaken);
	}
	sim.content[slot] = expected == STRANGER ? buf : NOTHING;
	sim.ended[slot] = false;
	sim.filled_at[slot] = sim.loads;
}

/* A victim has been found: is it that of the model? */
static void
compare(const Process *p)
{
	uint32		victim = sim.mode == ALONE ? model_victim() : p->victim;

	REQUIRE(victim == p->victim && (sim.mode != ALONE || sim.usage[victim] == model.usage[victim]),
			"%u buffers, load " UINT64_FORMAT ": the victim is %u, that of the model %u", sim.n, sim.loads, p->victim, victim);
	REQUIRE(sim.mode != ALONE || pg_atomic_read_u32(&c2q.length) == model.length,
			"%u buffers: length is %u, that of the model %u", sim.n, pg_atomic_read_u32(&c2q.length), model.length);
}

static void
do_step(Process *p)
{
	p->busy = true;
	switch (p->step)
	{
		case BEGIN:
			p->victim = NOTHING;
			p->judged = p->looks = 0;
			p->page = next_miss();
			sim.coming[p->page] = true;
			if (p->lease.fill_left == 0)
				take_lease(p);
			code->miss(&c2q, &p->lease, 0);
			REQUIRE(p->lease.may_judge <= PGSWEEP_C2Q_CATCH_UP * sim.batch,
					"%u slots may be judged for %u loads", p->lease.may_judge, sim.batch);
			p->step = END_WINDOW;
			break;
		case END_WINDOW:
			end_window(p);
			p->step = JUDGE;
			break;
		case JUDGE:
			if (judge(p))
				p->step = p->victim == NOTHING ? LOOK : LEAVE;
			break;
		case LOOK:
			if (look(p))
				p->step = LEAVE;
			REQUIRE(exact() ? p->looks <= 64 * sim.n : true, "%u buffers: there is no victim", sim.n);
			break;
		case LEAVE:
			compare(p);
			leave(p);
			p->step = LOAD;
			break;
		case LOAD:
			load(p);
			p->step = BEGIN;
			break;
	}
	p->busy = false;
	sim.steps++;
}

static void
some_steps(uint32 number)
{
	while (number-- > 0 && !sim.failed && sim.steps < sim.last_step)
	{
		Process    *p = &sim.procs[random_in(0, sim.nprocs - 1)];

		if (!p->busy && p->asleep <= sim.steps)
			do_step(p);
		else
			sim.steps++;
	}
}

/* A long stop lets others go round the slots, a short one a few operations */
static void
point(void)
{
	if (sim.mode != WITHIN || sim.depth >= MAX_DEPTH || random_in(0, 15) > 0)
		return;
	sim.depth++;
	some_steps(random_in(0, 63) == 0 ? random_in(1, 4 * Min(sim.n, 256)) : random_in(1, 12));
	sim.depth--;
}

/* ---- many victims before the first load ---- */

#define MOST_VICTIMS	64

/* A victim of a pool whose pages are never used again; whether it was judged */
static bool
unused_victim(PgSweepC2qLease *lease, uint32 outstanding, uint32 *buf)
{
	uint32		unused;

	if (lease->fill_left == 0)
		code->take_slots(&c2q, lease, sim.batch);
	code->miss(&c2q, lease, outstanding);
	while (code->has_to_judge(&c2q, lease))
		if ((*buf = code->judge(&c2q, lease, &unused)) != NOTHING)
			return true;
	do
		*buf = (uint32) (sim.hand++ % sim.n);
	while (code->passes(&c2q, *buf));
	return false;
}

/*
 * Extensions of a relation: several victims, then their loads, of which some may
 * be missing.  Each victim has one slot judged, as a single one has, and the
 * judging hand stays where it should be.
 */
static void
check_extensions(void)
{
	PgSweepC2qLease lease = {0};
	uint32		victims[MOST_VICTIMS];
	uint32		page = 0;
	int64		off = 0;

	/* half the least length has room for them, and for a lease */
	if (least_length() / 2 < MOST_VICTIMS + PGSWEEP_C2Q_BATCH)
		return;
	init_rule();
	for (uint32 turn = 0; turn < 40 + sim.n / 16 && !sim.failed; turn++)
	{
		uint32		number = random_in(0, 1) == 0 ? 1 : random_in(2, MOST_VICTIMS);
		uint32		given_up = random_in(0, 3) == 0 ? random_in(0, number) : 0;
		bool		good = turn > sim.n / 16 && off == 0;
		uint32		judged = 0;

		for (uint32 i = 0; i < number; i++)
			judged += unused_victim(&lease, i, &victims[i]);
		REQUIRE(!good || judged == number, "%u buffers, leases of %u: %u of %u victims were judged",
				sim.n, sim.batch, judged, number);
		for (uint32 i = given_up; i < number; i++)
		{
			if (lease.fill_left == 0)
				code->take_slots(&c2q, &lease, sim.batch);
			code->loaded(&c2q, &lease, victims[i], hash_of(page) + ((uint64) turn << 40));
			page = (page + 1) % sim.npages;
		}
		lease.change = 0;
		off = (int64) (pgsweep_read_u64(&c2q.fill) - lease.fill_left - pgsweep_read_u64(&c2q.judge) + lease.judge_left) -
			pg_atomic_read_u32(&c2q.length);
		REQUIRE(turn <= sim.n / 16 || (off >= -MOST_VICTIMS && off <= sim.batch),
				"%u buffers, leases of %u: the judging hand is off by " INT64_FORMAT, sim.n, sim.batch, off);
		HAD(extensions);
	}
}

/*
 * Buffers get into a second slot, as they can if a process stops for long: only
 * that one has them.  What is put into the first one, or judged there, leaves them
 * alone.  What is put into the second one takes their place.
 */
static void
check_second_place(void)
{
	const uint32 loads[] = {3, 3, 6, 6};
	PgSweepC2qLease lease = {0};
	PgSweepC2qLease late;
	uint32		unused;

	init_rule();
	code->take_slots(&c2q, &lease, lengthof(loads));
	late = lease;
	for (uint32 i = 0; i < lengthof(loads); i++)
		(void) code->loaded(&c2q, &lease, loads[i], hash_of(i));

	(void) code->loaded(&c2q, &late, 4, hash_of(4));
	REQUIRE(code->passes(&c2q, 3) && code->passes(&c2q, 4), "%u buffers: one has lost its second place", sim.n);
	late.fill_slot = sim.first + window_length() + 2;
	REQUIRE(window_length() == 0 || code->end_window(&c2q, &late) == NOTHING,
			"%u buffers: a window ends where one was before", sim.n);
	late.fill_slot = sim.first + 1;
	(void) code->loaded(&c2q, &late, 5, hash_of(5));
	REQUIRE(!code->passes(&c2q, 3) && code->passes(&c2q, 5), "%u buffers: one keeps a place that another has", sim.n);

	lease.judge_slot = sim.first + 2;
	lease.may_judge = lease.judge_left = 2;
	REQUIRE(code->judge(&c2q, &lease, &unused) == NOTHING && code->passes(&c2q, 6),
			"%u buffers: one is judged where it was before", sim.n);
	REQUIRE(pg_atomic_read_u32(&slots[sim.first + 2]) == NOTHING, "%u buffers: a slot has been judged, and is not empty", sim.n);
	REQUIRE(code->judge(&c2q, &lease, &unused) == 6, "%u buffers: one is not judged in its place", sim.n);
}

/* ---- at rest ---- */

static void
check_places(void)
{
	static uint8 in_slots[MAX_POOL];
	uint64		fill = pgsweep_read_u64(&c2q.fill);
	uint64		left = sim.unfilled;
	int			depth = sim.depth;

	sim.depth = MAX_DEPTH;		/* no stops meanwhile */
	memset(in_slots, 0, sizeof(in_slots));
	for (uint32 slot = sim.first; slot < sim.first + sim.n; slot++)
	{
		uint32		entry = pg_atomic_read_u32(&slots[slot]);

		if (entry != NOTHING)
			in_slots[entry & ~PGSWEEP_C2Q_ENDED]++;
		if (exact())
			REQUIRE(entry == NOTHING ? sim.content[slot] == NOTHING : (entry & ~PGSWEEP_C2Q_ENDED) == sim.content[slot],
					"%u buffers: slot %u has %d, not %d", sim.n, slot, (int) entry, (int) sim.content[slot]);
	}
	for (uint32 buf = 0; buf < sim.n; buf++)
	{
		uint32		place = pg_atomic_read_u32(&places[buf]);
		bool		passed = code->passes(&c2q, buf);

		if (!exact())
			continue;
		REQUIRE(in_slots[buf] == (place == NOTHING ? 0 : 1), "%u buffers: %u is in %u slots, its place is %d", sim.n, buf, in_slots[buf], (int) place);
		REQUIRE(passed == (place != NOTHING), "%u buffers: the place of %u is %d, passed over is %d", sim.n, buf, (int) place, passed);
		if (sim.mode == WHOLE && passed)
			REQUIRE(sim.loads - sim.put_at[buf] <= sim.n + 2 * sim.nprocs * sim.batch,
					"%u buffers: %u has been passed over for " UINT64_FORMAT " loads", sim.n, buf, sim.loads - sim.put_at[buf]);
	}
	for (uint32 i = 0; i < sim.nprocs; i++)
		left += sim.procs[i].lease.fill_left;
	REQUIRE(fill == sim.loads + left, "%u buffers: " UINT64_FORMAT " slots were filled in " UINT64_FORMAT " loads",
			sim.n, fill - left, sim.loads);
	for (uint32 set = 0; set < c2q.num_sets; set++)
		for (int side = 0; side < 2; side++)
			REQUIRE(sets[set].side[side].next <= PGSWEEP_C2Q_WAYS, "next ghost is %u", sets[set].side[side].next);
	sim.depth = depth;
}

/* A whole miss of each process, one after the other */
static void
whole_misses(void)
{
	for (uint32 i = 0; i < sim.nprocs && !sim.failed; i++)
	{
		Process    *p = &sim.procs[i];

		do
		{
			do_step(p);
		} while (p->step != BEGIN && !sim.failed);
	}
}

/*
 * Whatever has happened: when each slot has been filled again, no buffer is passed
 * over that was put into one before.
 */
static void
check_laps(void)
{
	uint64		before = sim.loads;

	while (sim.loads < before + 2 * sim.n + 2 * sim.nprocs * sim.batch && !sim.failed)
		whole_misses();
	for (uint32 buf = 0; buf < sim.n; buf++)
		REQUIRE(!code->passes(&c2q, buf) || sim.put_at[buf] > before,
				"%u buffers: %u is passed over for two laps", sim.n, buf);
}

/* Now and then a process sleeps while others go round the slots */
static void
maybe_sleep(void)
{
	Process    *p = &sim.procs[random_in(0, sim.nprocs - 1)];

	if (p != &sim.procs[0] && p->asleep <= sim.steps && random_in(0, 7) == 0)
		p->asleep = sim.steps + random_in(0, 16 * sim.n);
}

/* Now and then a process ends, and another begins in its place */
static void
maybe_exit(void)
{
	Process    *p = &sim.procs[random_in(0, sim.nprocs - 1)];

	if (p->step != BEGIN || p->lease.fill_left == 0 || random_in(0, 31) > 0)
		return;
	sim.unfilled += p->lease.fill_left;
	memset(&p->lease, 0, sizeof(p->lease));
	HAD(exits);
}

static void
add_counts(void)
{
	const int64 *had = (const int64 *) &sim.had;
	int64	   *sum = (int64 *) &counts;

	for (int i = 1; i < offsetof(Clock2qCounts, worst_age) / sizeof(int64); i++)
		sum[i] += had[i];
}

static bool
check_case(const void *entry)
{
	uint64		loads;
	uint64		next = 0;

	code = entry;
	make_case();
	loads = 12 * sim.n + random_in(200, 2000);
	sim.last_step = 400 * loads;

	REQUIRE(c2q.num_sets * PGSWEEP_C2Q_WAYS * 2 <= Max(sim.n, 2 * PGSWEEP_C2Q_WAYS) &&
			(c2q.num_sets + 2) * PGSWEEP_C2Q_WAYS * 2 > sim.n, "%u buffers: %u sets of ghosts", sim.n, c2q.num_sets);
	REQUIRE(sim.batch <= 16, "leases of %u slots", sim.batch);
	while (sim.loads < loads && !sim.failed)
	{
		if (sim.steps >= sim.last_step)
			return violated("%u buffers: only " UINT64_FORMAT " loads in " UINT64_FORMAT " steps", sim.n, sim.loads, sim.steps);
		if (sim.mode <= WHOLE)
			whole_misses();
		else
		{
			maybe_sleep();
			maybe_exit();
			some_steps(random_in(1, 64));
		}
		if (sim.loads >= next)
		{
			check_places();
			next = sim.loads + random_in(1, sim.n);
		}
	}
	check_places();
	sim.depth = MAX_DEPTH;		/* no stops any more */
	check_laps();
	check_extensions();
	check_second_place();
	add_counts();
	return !sim.failed;
}

/*
 * test_sweep_clock2q(seed, cases, code)
 */
Datum
test_sweep_clock2q(PG_FUNCTION_ARGS)
{
	return run_cases(fcinfo, check_case, FIND_CODE(clock2q_codes, 2), &counts.cases, sizeof(counts));
}

Datum
test_sweep_clock2q_codes(PG_FUNCTION_ARGS)
{
	return code_names(fcinfo, clock2q_codes, sizeof(clock2q_codes[0]), lengthof(clock2q_codes));
}
