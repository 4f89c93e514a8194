/*-------------------------------------------------------------------------
 *
 * bench/policies/made_first.h
 *	  Made traces on which the constants of clock2q were chosen.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MADE_FIRST_H
#define MADE_FIRST_H

#include "made.h"

#define FUTURE			(1 << 18)	/* operations that one can plan ahead */

/* What operations know; each load uses some of it */
static Table a, b, c;
static Index x, y;
static Zipf z, z2;
static uint32_t *order;
static uint32_t heap, heap2;
static uint64_t count;
static uint32_t at;

/* A row of the table a by a zipfian key */
static double
zipfian_key(uint32_t number)
{
	uint32_t	page = order[rank_of(&z)];

	return (page + part()) / number;
}

static void
get_or_change(double where, bool only_get)
{
	if (only_get)
		get(&a, where);
	else
		change(&a, where);
}

static void
uniform_op(int process)
{
	get(&a, part());
}

static void
uniform(void)
{
	a = make_table(70000, 12000);
	interleave(wanted, 8, uniform_op);
}

/* A page of the heap by its number, through the index x */
static void
get_page(uint32_t page, uint32_t number)
{
	search(&x, (double) page / number);
	refer(heap + page);
}

static void
moving_op(int process)
{
	if (++count % 2000 == 0)
		at += 60;
	get_page(order[(rank_of(&z) + at) % 90000], 90000);
}

static void
moving(void)
{
	z = make_zipf(90000, 0.95);
	order = shuffled(90000);
	heap = new_pages(90000);
	x = make_index(6000);
	interleave(wanted, 8, moving_op);
}

static const uint32_t loop_size[] = {3000, 8000, 16000, 33000, 55000};
static uint32_t loop_begin[5], loop_at[5];

static void
loops_op(int process)
{
	if (process >= 5)
	{
		get(&a, zipfian_key(15000));
		return;
	}
	for (int i = 0; i < 32; i++)
	{
		refer(loop_begin[process] + loop_at[process]);
		loop_at[process] = (loop_at[process] + 1) % loop_size[process];
	}
}

static void
loops(void)
{
	for (int i = 0; i < 5; i++)
		loop_begin[i] = new_pages(loop_size[i]);
	a = make_table(15000, 1500);
	z = make_zipf(15000, 0.8);
	order = shuffled(15000);
	interleave(wanted, 12, loops_op);
}

static void
scan_op(int process)
{
	if (process == 0)
		for (int i = 0; i < 8; i++)
		{
			refer_times(heap + at, 10 + below(20));
			at = (at + 1) % 30000;
		}
	else
	{
		double		where = zipfian_key(60000);

		get_or_change(where, below(5) != 0);
	}
}

static void
scan(void)
{
	a = make_table(60000, 6000);
	z = make_zipf(60000, 0.9);
	order = shuffled(60000);
	heap = new_pages(30000);
	interleave(wanted, 10, scan_op);
}

/* Pages that are used again by an operation to come, by its number modulo */
static List *future;

static void
refer_planned(uint32_t when)
{
	List	   *now = &future[when];

	for (size_t i = 0; i < now->length; i++)
		refer(now->page[i]);
	now->length = 0;
}

static void
bursts_op(int process)
{
	uint32_t	page;

	refer_planned(count % 20000);
	page = order[rank_of(&z)];
	get_page(page, 100000);
	for (uint32_t more = 1 + below(5); more > 0; more--)
		append(&future[(count + 1 + (uint32_t) pow(19990.0, part())) % 20000], heap + page);
	count++;
}

static void
bursts(void)
{
	z = make_zipf(100000, 0.7);
	order = shuffled(100000);
	heap = new_pages(100000);
	x = make_index(4000);
	future = allocate(FUTURE, sizeof(List));
	interleave(wanted, 8, bursts_op);
}

/* Rows come; most reads are of new ones */
static void
growing_op(int process)
{
	static double rows = 0;
	uint32_t	page;
	const uint32_t most = 60000;

	if (below(3) == 0)
	{
		rows += 1.0 / 25;
		page = (uint32_t) Min(most - 1.0, 10000 + rows);
		refer(heap + page);
		search(&x, part());
		refer(out->page[out->length - 1]);
		search(&y, (double) page / most);
		refer(out->page[out->length - 1]);
	}
	else
	{
		double		newest = 10000 + rows;
		double		back = -log(1 - part()) * 3000;

		page = back < newest ? (uint32_t) (newest - back) : below((uint32_t) newest + 1);
		if (below(10) == 0)
			page = below((uint32_t) newest + 1);
		page = Min(page, most - 1);
		search(&y, (double) page / most);
		refer(heap + page);
	}
}

static void
growing(void)
{
	x = make_index(30000);
	y = make_index(15000);
	heap = new_pages(60000);
	interleave(wanted, 8, growing_op);
}

static void
fits_op(int process)
{
	if (process == 0 && below(4) == 0)
		refer_times(heap + below(86000), 3);
	else
		get(&a, part());
}

static void
fits(void)
{
	a = make_table(14000, 1500);
	heap = new_pages(86000);
	interleave(wanted, 8, fits_op);
}

static void
phases_op(int process)
{
	uint32_t	phase = (uint32_t) (++count / (wanted / 4 / 6));

	get_page(order[(rank_of(&z) + phase * 20000) % 90000], 90000);
}

static void
phases(void)
{
	z = make_zipf(30000, 0.8);
	heap = new_pages(90000);
	x = make_index(5000);
	order = shuffled(90000);
	interleave(wanted, 8, phases_op);
}

static void
twice_op(int process)
{
	refer_planned(count & (FUTURE - 1));
	if (below(2) != 0)
	{
		uint32_t	page = heap + at;

		at = (at + 1) % 100000;
		refer_times(page, 2);
		append(&future[(count + (uint32_t) (500 * pow(240.0, part()))) & (FUTURE - 1)], page);
	}
	else
		refer(heap2 + order[rank_of(&z)]);
	count++;
}

static void
twice(void)
{
	heap = new_pages(100000);
	z = make_zipf(20000, 0.9);
	heap2 = new_pages(20000);
	order = shuffled(20000);
	future = allocate(FUTURE, sizeof(List));
	interleave(wanted, 4, twice_op);
}

/* How far back the next reference was: a power of "most" */
static void
recent(uint32_t number, double strange, size_t most, bool bent)
{
	heap = new_pages(number);
	while (out->length < wanted)
	{
		size_t		length = out->length;
		double		back;

		if (length < 1000 || part() < strange)
		{
			refer(heap + below(number));
			continue;
		}
		back = part();
		back = pow((double) Min(length - 1, most), bent ? pow(back, 0.7) : back);
		refer(out->page[length - 1 - (size_t) Min(back, (double) (length - 1))]);
	}
}

static void
recency(void)
{
	recent(110000, 0.01, 1500000, true);
}

static void
recency2(void)
{
	recent(130000, 0.02, 3000000, false);
}

/* ---- TPC-H-like ---- */

static Table lineitem, orders, partsupp, parts, customer, supplier;
static Index by_part, by_date;

static void
order_lines(double where, int times)
{
	search(&lineitem.index, where);
	refer_times(lineitem.heap + (uint32_t) (where * 60000), times);
}

static void
analytic_op(int process)
{
	double		where;
	uint32_t	first;

	switch (below(7))
	{
		case 0:					/* a range of orders and their lines */
			where = part() * 0.97;
			for (int i = 0; i < 4000; i++)
			{
				double		key = where + i * 0.03 / 4000;

				get(&orders, key);
				order_lines(key, 2);
			}
			break;
		case 1:					/* lines of a part, by a secondary index */
			for (int i = 0; i < 120; i++)
			{
				where = part();
				get(&parts, where);
				search(&by_part, where);
				for (int j = 0; j < 30; j++)
					refer(lineitem.heap + below(60000));
			}
			break;
		case 2:					/* a bitmap scan by date */
			first = below(50000);
			for (int i = 0; i < 100; i++)
				refer(by_date.leaf + Min(5999, first / 10 + i));
			for (int i = 0; i < 10000; i++)
				if (below(4) != 0)
					refer(lineitem.heap + first + i);
			break;
		case 3:					/* all customers, orders of some */
			for (int i = 0; i < 2200; i++)
				refer(customer.heap + i);
			for (int i = 0; i < 1500; i++)
			{
				search(&orders.index, part());
				refer(orders.heap + below(15000));
				refer(supplier.heap + below(150));
			}
			break;
		case 4:					/* all parts, suppliers of some */
			for (int i = 0; i < 2500; i++)
				refer(parts.heap + i);
			for (int i = 0; i < 3000; i++)
			{
				get(&partsupp, part());
				get(&supplier, part());
			}
			break;
		case 5:					/* a scan with a join by index */
			for (int i = 0; i < 10000; i++)
			{
				refer(partsupp.heap + i);
				if (below(8) == 0)
					get(&supplier, part());
			}
			break;
		default:				/* single orders */
			for (int i = 0; i < 2000; i++)
			{
				where = part();
				get(&orders, where);
				get(&customer, part());
				order_lines(where, 1);
			}
	}
}

static void
analytic(void)
{
	lineitem = make_table(60000, 9000);
	orders = make_table(15000, 2500);
	partsupp = make_table(10000, 1500);
	parts = make_table(2500, 400);
	customer = make_table(2200, 300);
	supplier = make_table(150, 30);
	by_part = make_index(9000);
	by_date = make_index(6000);
	free(shuffled(60000));
	interleave(wanted, 3, analytic_op);
}

#endif							/* MADE_FIRST_H */
