/*-------------------------------------------------------------------------
 *
 * bench/policies/made.h
 *	  What made traces are made of: chance, pages, tables with an index, and
 *	  processes that take turns.
 *
 * A table's index has three levels, and fewer leaves than the table has pages.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MADE_H
#define MADE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_PROCESSES	40
#define INNER			250		/* leaves for each inner page of an index */
#define TURN			6		/* pages at most */

#define Min(x, y)		((x) < (y) ? (x) : (y))
#define Max(x, y)		((x) > (y) ? (x) : (y))

typedef struct List
{
	uint32_t   *page;
	size_t		length;
	size_t		room;
} List;

typedef struct Index
{
	uint32_t	root;
	uint32_t	inner;
	uint32_t	leaf;
	uint32_t	inners;
	uint32_t	leaves;
} Index;

typedef struct Table
{
	uint32_t	heap;
	uint32_t	pages;
	Index		index;
} Table;

/* A distribution: rank i has the weight 1 / (i + 1)^exponent */
typedef struct Zipf
{
	double	   *sum;
	uint32_t	ranks;
} Zipf;

static uint64_t state = UINT64_C(88172645463325252);
static uint32_t pages = 0;		/* given out so far */
static size_t wanted;			/* references */
static List *out;				/* where references go */

/* ---- chance ---- */

static uint64_t
draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * UINT64_C(2685821657736338717);
}

/* From 0 to 1 */
static double
part(void)
{
	return (double) (draw() >> 11) * (1.0 / 9007199254740992.0);
}

static uint32_t
below(uint32_t number)
{
	return (uint32_t) ((draw() >> 32) * (uint64_t) number >> 32);
}

static void *
need(void *memory)
{
	if (memory == NULL)
	{
		fputs("made: out of memory\n", stderr);
		exit(1);
	}
	return memory;
}

static void *
allocate(size_t number, size_t size)
{
	return need(calloc(number, size));
}

static Zipf
make_zipf(uint32_t ranks, double exponent)
{
	Zipf		zipf = {allocate(ranks, sizeof(double)), ranks};
	double		sum = 0;

	for (uint32_t i = 0; i < ranks; i++)
		zipf.sum[i] = sum += pow(i + 1, -exponent);
	for (uint32_t i = 0; i < ranks; i++)
		zipf.sum[i] /= sum;
	return zipf;
}

static uint32_t
rank_of(const Zipf *zipf)
{
	double		x = part();
	uint32_t	low = 0;
	uint32_t	high = zipf->ranks;

	while (low < high)
	{
		uint32_t	middle = low + (high - low) / 2;

		if (zipf->sum[middle] < x)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint32_t *
shuffled(uint32_t number)
{
	uint32_t   *order = allocate(number, sizeof(uint32_t));

	for (uint32_t i = 0; i < number; i++)
		order[i] = i;
	for (uint32_t i = number; i > 1; i--)
	{
		uint32_t	other = below(i);
		uint32_t	swap = order[i - 1];

		order[i - 1] = order[other];
		order[other] = swap;
	}
	return order;
}

/* ---- pages ---- */

static void
append(List *list, uint32_t page)
{
	if (list->length == list->room)
	{
		list->room = Max(2 * list->room, 64);
		list->page = need(realloc(list->page, list->room * sizeof(uint32_t)));
	}
	list->page[list->length++] = page;
}

static void
refer(uint32_t page)
{
	append(out, page);
}

static void
refer_times(uint32_t page, uint32_t times)
{
	while (times-- > 0)
		refer(page);
}

static uint32_t
new_pages(uint32_t number)
{
	pages += number;
	return pages - number;
}

static Index
make_index(uint32_t leaves)
{
	Index		index = {.leaves = leaves, .inners = Max(1, leaves / INNER)};

	index.root = new_pages(1);
	index.inner = new_pages(index.inners);
	index.leaf = new_pages(leaves);
	return index;
}

static Table
make_table(uint32_t number, uint32_t leaves)
{
	Table		table = {.heap = new_pages(number), .pages = number};

	table.index = make_index(leaves);
	new_pages(1 + number / 32000);	/* its visibility map, never looked up */
	return table;
}

/* "where" is a key, from 0 to 1 */
static void
search(const Index *index, double where)
{
	uint32_t	leaf = Min(index->leaves - 1, (uint32_t) (where * index->leaves));

	refer(index->root);
	refer(index->inner + Min(index->inners - 1, leaf / INNER));
	refer(index->leaf + leaf);
}

static uint32_t
heap_page(const Table *table, double where)
{
	return table->heap + Min(table->pages - 1, (uint32_t) (where * table->pages));
}

static void
get(const Table *table, double where)
{
	search(&table->index, where);
	refer(heap_page(table, where));
}

static void
change(const Table *table, double where)
{
	get(table, where);
	refer_times(heap_page(table, where), 2);
}

/* ---- processes ---- */

/* One operation of a process */
typedef void (*Operation) (int process);

static void
interleave(size_t number, int processes, Operation operation)
{
	List		queue[MOST_PROCESSES] = {0};
	size_t		next[MOST_PROCESSES] = {0};
	List	   *whole = out;

	while (whole->length < number)
	{
		int			i = (int) below(processes);
		uint32_t	turn = 1 + below(TURN);

		while (turn-- > 0)
		{
			if (next[i] == queue[i].length)
			{
				queue[i].length = next[i] = 0;
				out = &queue[i];
				operation(i);
				out = whole;
				if (queue[i].length == 0)
					break;
			}
			append(whole, queue[i].page[next[i]++]);
		}
	}
	for (int i = 0; i < processes; i++)
		free(queue[i].page);
}

#endif							/* MADE_H */
