/*-------------------------------------------------------------------------
 *
 * bench/policies/made.c
 *	  Makes traces of page references: loads of which the answer is known, or
 *	  that are hard for a policy.
 *
 * Usage: made NAME SEED REFERENCES FILE
 *
 * Writes page numbers of 32 bits (.u32), numbered by their first reference.
 * The same arguments give the same file on any machine with the same pow() and
 * log().  Without arguments it lists the names.
 *
 * Most loads are those of several processes: whole operations, of which now
 * and then one gets a turn of up to six pages.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <string.h>

#include "made_later.h"

static const struct
{
	const char *name;
	void		(*make) (void);
	const char *what;
}			loads[] = {
	{"uniform", uniform, "uniform"},
	{"moving", moving, "zipfian, hot set moves"},
	{"loops", loops, "five loops beside points"},
	{"scan", scan, "a scan again and again beside points"},
	{"bursts", bursts, "bursts"},
	{"growing", growing, "growing table, random index"},
	{"fits", fits, "a part that fits, and pages used once"},
	{"phases", phases, "phases: another hot set"},
	{"twice", twice, "used twice, far apart"},
	{"recency", recency, "recency only"},
	{"analytic", analytic, "TPC-H-like: joins by index, bitmap scans"},
	{"tpcb", tpcb, "pgbench TPC-B"},
	{"queue", queue, "queue: rows come, are worked on, go"},
	{"ranges", ranges, "ranges of an index"},
	{"daynight", daynight, "points by day, scans by night"},
	{"recency2", recency2, "recency only, other exponent"},
	{"zipf8", zipf8, "zipfian 0.8"},
	{"walks", walks, "forty walks"},
	{"looplengths", loop_lengths, "loops of six lengths in turn"},
	{"jumping", jumping, "zipfian, and a hot range that jumps"},
};

/*
 * Pages that are never used get no number.
 */
static void
renumber(List *list)
{
	uint32_t   *number = allocate(pages, sizeof(uint32_t));
	uint32_t	used = 0;

	for (size_t i = 0; i < list->length; i++)
	{
		uint32_t   *mine = &number[list->page[i]];

		if (*mine == 0)
			*mine = ++used;
		list->page[i] = *mine - 1;
	}
	free(number);
}

int
main(int argc, char **argv)
{
	List		list = {0};
	size_t		load = 0;
	FILE	   *file;

	if (argc == 1)
	{
		for (load = 0; load < sizeof(loads) / sizeof(loads[0]); load++)
			printf("%-12s %s\n", loads[load].name, loads[load].what);
		return 0;
	}
	if (argc != 5 || (wanted = strtoull(argv[3], NULL, 10)) < 100)
	{
		fputs("usage: made NAME SEED REFERENCES FILE\n", stderr);
		return 2;
	}
	while (load < sizeof(loads) / sizeof(loads[0]) && strcmp(loads[load].name, argv[1]) != 0)
		load++;
	if (load == sizeof(loads) / sizeof(loads[0]))
	{
		fprintf(stderr, "made: there is no load \"%s\"\n", argv[1]);
		return 2;
	}
	state ^= strtoull(argv[2], NULL, 10) * UINT64_C(0x9E3779B97F4A7C15);
	for (int i = 0; i < 20; i++)
		draw();
	out = &list;
	loads[load].make();
	list.length = Min(list.length, wanted);
	renumber(&list);

	file = fopen(argv[4], "wb");
	if (file == NULL || fwrite(list.page, sizeof(uint32_t), list.length, file) != list.length ||
		fclose(file) != 0)
	{
		fprintf(stderr, "made: \"%s\": %s\n", argv[4], strerror(errno));
		return 1;
	}
	return 0;
}
