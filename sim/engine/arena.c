/*-------------------------------------------------------------------------
 *
 * sim/engine/arena.c
 *	  Shared memory: one piece of address space, cut into regions.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine.h"

#define PAGE_SHIFT	12			/* memory is interleaved by pages of 4 kB */
#define MAX_PIECES	4096

typedef struct Piece
{
	uint32_t	first;			/* line */
	uint32_t	lines;
	int			home;			/* node or SIM_INTERLEAVE */
} Piece;

char	   *sim_arena;
SimLine    *sim_lines;

static Piece pieces[MAX_PIECES];
static int	npieces;
static size_t used;
static const char *regions[SIM_MAX_REGIONS] = {"other"};
static int	nregions = 1;

static void *
reserve(size_t size)
{
	void	   *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
						 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		sim_fail("cannot reserve %zu MB of address space", size >> 20);
	return p;
}

void
sim_arena_setup(void)
{
	sim_arena = reserve(SIM_ARENA_BYTES);
	sim_lines = reserve(SIM_ARENA_LINES * sizeof(SimLine));
}

int
sim_region_id(const char *region)
{
	for (int i = 0; i < nregions; i++)
		if (strcmp(regions[i], region) == 0)
			return i;
	if (nregions == SIM_MAX_REGIONS)
		sim_fail("more than %d regions", SIM_MAX_REGIONS);
	regions[nregions] = region;
	return nregions++;
}

const char *
sim_region_of(int region)
{
	return regions[region];
}

int
sim_nregions(void)
{
	return nregions;
}

/* The lines of a piece of memory that is made of whole lines */
static SimLine *
lines_of(void *start, size_t size)
{
	size_t		offset = (char *) start - sim_arena;

	if (offset >= SIM_ARENA_BYTES || offset % SIM_CACHE_LINE != 0 || size % SIM_CACHE_LINE != 0)
		sim_fail("a region must begin and end with a line of shared memory");
	return &sim_lines[offset >> SIM_LINE_SHIFT];
}

void
sim_region_name(const char *region, void *start, size_t size)
{
	SimLine    *line = lines_of(start, size);
	uint8_t		id = sim_region_id(region);

	for (size_t i = 0; i < size / SIM_CACHE_LINE; i++)
		line[i].region = id;
}

void
sim_region_owner(void *start, size_t size, int fiber)
{
	SimLine    *line = lines_of(start, size);

	if (fiber < 0 || fiber >= SIM_MAX_FIBERS)
		sim_fail("there can be no fiber %d", fiber);
	for (size_t i = 0; i < size / SIM_CACHE_LINE; i++)
		line[i].fiber = fiber + 1;
}

/*
 * Pieces begin and end with lines of their own: what shares a line must be in
 * one piece.  Reading an unwritten page costs no memory.
 */
void *
sim_shared_alloc(const char *region, size_t size, size_t align, int home)
{
	Piece	   *piece = &pieces[npieces];
	char	   *start;

	if (align < SIM_CACHE_LINE)
		align = SIM_CACHE_LINE;
	if ((align & (align - 1)) != 0)
		sim_fail("%zu is no alignment", align);
	if (npieces == MAX_PIECES)
		sim_fail("more than %d pieces of shared memory", MAX_PIECES);
	if (home >= sim_nodes())
		sim_fail("region %s: there is no node %d", region, home);

	used = (used + align - 1) & ~(align - 1);
	size = (size + SIM_CACHE_LINE - 1) & ~((size_t) SIM_CACHE_LINE - 1);
	if (size > SIM_ARENA_BYTES || used + size > SIM_ARENA_BYTES)
		sim_fail("region %s: no more than %lld MB of shared memory", region,
				 (long long) (SIM_ARENA_BYTES >> 20));
	start = sim_arena + used;
	piece->first = used >> SIM_LINE_SHIFT;
	piece->lines = size >> SIM_LINE_SHIFT;
	piece->home = home >= 0 ? home : SIM_INTERLEAVE;
	npieces++;
	used += size;

	sim_region_name(region, start, size);
	if (home < SIM_INTERLEAVE)
		sim_region_owner(start, size, -2 - home);
	return start;
}

/*
 * The node whose memory a line is in.  Pieces are in order.
 */
int
sim_home_node(uint32_t line)
{
	int			low = 0;
	int			high = npieces - 1;

	while (low < high)
	{
		int			mid = (low + high + 1) / 2;

		if (pieces[mid].first <= line)
			low = mid;
		else
			high = mid - 1;
	}
	if (npieces > 0 && pieces[low].home >= 0)
		return pieces[low].home;
	return (line >> (PAGE_SHIFT - SIM_LINE_SHIFT)) % sim_nodes();
}
