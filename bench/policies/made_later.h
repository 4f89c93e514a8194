/*-------------------------------------------------------------------------
 *
 * bench/policies/made_later.h
 *	  Made traces that clock2q was tried on when its rule was done.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MADE_LATER_H
#define MADE_LATER_H

#include "made_first.h"

static void
tpcb_op(int process)
{
	static double history = 0;

	change(&a, part());
	change(&b, part());
	change(&c, part());
	refer(heap + (uint32_t) history);
	history = Min(39999.0, history + 0.007);
}

static void
tpcb(void)
{
	a = make_table(80000, 11000);
	b = make_table(400, 40);
	c = make_table(40, 4);
	heap = new_pages(40000);
	interleave(wanted, 8, tpcb_op);
}

/* A row of the queue, by how many pages it is behind the first one */
static void
queue_row(double position, bool heap_first)
{
	double		page = position < 0 ? 0 : fmod(position, 90000);

	if (heap_first)
		refer(heap + (uint32_t) page);
	search(&x, page / 90000);
	if (!heap_first)
		refer(heap + (uint32_t) page);
}

static void
queue_op(int process)
{
	static double head = 2000;
	double		lag;

	lag = 15000 + 12000 * sin(++count * 6.28 / 300000);
	head += 0.05;
	queue_row(head, true);
	if (below(2) != 0)
		queue_row(head - lag * part() * 0.2, false);
	if (below(3) == 0)
		queue_row(head - lag, false);
	get(&a, part());
}

static void
queue(void)
{
	heap = new_pages(90000);
	x = make_index(9000);
	a = make_table(3000, 300);
	interleave(wanted, 8, queue_op);
}

static void
ranges_op(int process)
{
	double		where = zipfian_key(400);
	uint32_t	length = 20 + below(400);
	uint32_t	first = (uint32_t) (where * 80000);

	search(&a.index, where);
	for (uint32_t i = 0; i < length; i++)
	{
		uint32_t	page = Min(79999, first + i);

		refer_times(a.heap + page, 2);
		if (i % 10 == 0)
			refer(a.index.leaf + page / 10);
	}
}

static void
ranges(void)
{
	a = make_table(80000, 8000);
	z = make_zipf(400, 0.9);
	order = shuffled(400);
	interleave(wanted, 6, ranges_op);
}

static void
daynight_op(int process)
{
	bool		night = ++count / 60000 % 3 == 2;

	if (night && process < 6)
	{
		uint32_t	first = below(49000);

		for (int i = 0; i < 200; i++)
			refer_times(b.heap + first + i, 2);
	}
	else
	{
		double		where = zipfian_key(40000);

		get_or_change(where, below(3) != 0);
	}
}

static void
daynight(void)
{
	a = make_table(40000, 4000);
	z = make_zipf(40000, 1.0);
	order = shuffled(40000);
	b = make_table(50000, 5000);
	interleave(wanted, 8, daynight_op);
}

static void
zipf8_op(int process)
{
	refer(heap + order[rank_of(&z)]);
}

static void
zipf8(void)
{
	z = make_zipf(100000, 0.8);
	order = shuffled(100000);
	heap = new_pages(100000);
	interleave(wanted, 8, zipf8_op);
}

static double walker[40];

static void
walks_op(int process)
{
	const double most = 100000;
	double	   *place = &walker[process];

	for (int i = 0; i < 20; i++)
	{
		*place += (part() - 0.5) * 60;
		if (part() < 0.0005)
			*place = part() * most;
		if (*place < 0)
			*place += most;
		if (*place >= most)
			*place -= most;
		refer(heap + (uint32_t) *place);
	}
}

static void
walks(void)
{
	heap = new_pages(100000);
	for (int i = 0; i < 40; i++)
		walker[i] = part() * 100000;
	interleave(wanted, 40, walks_op);
}

static void
loop_lengths_op(int process)
{
	static const uint32_t size[] = {6000, 13000, 26000, 52000, 70000, 95000};
	uint32_t	length = size[++count / 40000 % 6];

	if (process < 3)
		for (int i = 0; i < 64; i++)
			refer_times(heap + at++ % length, 2);
	else
		for (int i = 0; i < 10; i++)
			get(&a, part());
}

static void
loop_lengths(void)
{
	heap = new_pages(100000);
	a = make_table(5000, 500);
	interleave(wanted, 6, loop_lengths_op);
}

static void
jumping_op(int process)
{
	uint32_t	page;

	if (++count % 150000 == 0)
		at = below(100000);
	page = below(3) != 0 ? order[rank_of(&z)] : (at + rank_of(&z2)) % 100000;
	get_page(page, 100000);
}

static void
jumping(void)
{
	z = make_zipf(100000, 0.75);
	z2 = make_zipf(3000, 0.5);
	order = shuffled(100000);
	heap = new_pages(100000);
	x = make_index(5000);
	interleave(wanted, 8, jumping_op);
}

#endif							/* MADE_LATER_H */
