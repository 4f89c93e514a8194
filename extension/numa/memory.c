/*-------------------------------------------------------------------------
 *
 * extension/numa/memory.c
 *	  Puts pages of shared memory on nodes, and tells where they are.
 *
 * Putting: mbind() before the first use.  The policy of anonymous shared
 * memory belongs to the shared object, and holds for any process that touches
 * a page first.  The policy of huge pages belongs to the mapping, which
 * children inherit by fork.  So all of it must be done before the first child
 * is forked.
 *
 * Asking: move_pages() without a target tells the node of each page that this
 * process has mapped.  Reading a page maps it, but would also give out
 * untouched pages. mincore() tells which pages exist, and only these are
 * read.  For huge pages mincore() knows no more than move_pages() (Linux up
 * to 6.18: mincore_hugetlb() looks only into the page table).  For them the
 * caller has to know, see page_in_use.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef USE_LIBNUMA
#include <numaif.h>
#include <sys/mman.h>
#endif
#include <unistd.h>

#include "miscadmin.h"
#include "numa/numa.h"
#include "port/pg_numa.h"
#include "storage/pg_shmem.h"

/*
 * Core's pg_get_shmem_pagesize() is for children only.
 */
Size
pgsweep_numa_shmem_page_size(void)
{
	Size		size = sysconf(_SC_PAGESIZE);

	if (huge_pages_status == HUGE_PAGES_ON)
		GetHugePageSize(&size, NULL);
	return size;
}

char *
pgsweep_numa_whole_pages(const PgSweepNumaPiece *piece, Size page_size, uint64 *npages)
{
	char	   *start = (char *) TYPEALIGN(page_size, piece->start);
	char	   *end = (char *) TYPEALIGN_DOWN(page_size, piece->start + piece->size);

	*npages = end > start ? (end - start) / page_size : 0;
	return start;
}

#ifdef USE_LIBNUMA

/* Pages asked about at once; as many as pg_numa_query_pages() does */
#define QUERY_PAGES		1024

#define MASK_BITS		(sizeof(unsigned long) * BITS_PER_BYTE)

typedef struct NodeMask
{
	unsigned long bits[PGSWEEP_NUMA_MAX_NODE_IDS / MASK_BITS];
} NodeMask;

static void
add_node(NodeMask *mask, int node)
{
	int			id = pgsweep_numa_topology.node_id[node];

	Assert(id >= 0 && id < PGSWEEP_NUMA_MAX_NODE_IDS);
	mask->bits[id / MASK_BITS] |= 1UL << (id % MASK_BITS);
}

int
pgsweep_numa_place_piece(const PgSweepNumaPiece *piece, Size page_size)
{
	NodeMask	mask = {0};
	int			mode;
	uint64		npages;
	char	   *start = pgsweep_numa_whole_pages(piece, page_size, &npages);

	if (npages == 0)
		return 0;

	switch (piece->node)
	{
		case PGSWEEP_NUMA_NODE_DEFAULT:
			mode = MPOL_DEFAULT;
			break;
		case PGSWEEP_NUMA_NODE_INTERLEAVED:
			mode = MPOL_INTERLEAVE;
			for (int node = 0; node < pgsweep_numa_topology.nnodes; node++)
				add_node(&mask, node);
			break;
		default:
			Assert(piece->node >= 0 && piece->node < pgsweep_numa_topology.nnodes);
			mode = MPOL_PREFERRED;
			add_node(&mask, piece->node);
			break;
	}

	/* the kernel takes one bit less than it is told */
	if (mbind(start, npages * page_size, mode,
			  mode == MPOL_DEFAULT ? NULL : mask.bits,
			  mode == MPOL_DEFAULT ? 0 : PGSWEEP_NUMA_MAX_NODE_IDS + 1,
			  piece->touched ? MPOL_MF_MOVE : 0) != 0)
		return errno;
	return 0;
}

/*
 * Read up to QUERY_PAGES pages, as far as they exist, to map them, and
 * collect their addresses.  Returns their number, or -1 with errno set.
 */
static int
map_existing_pages(const PgSweepNumaPiece *piece, char *start, int npages,
				   Size page_size, void **pages)
{
	bool		huge = page_size > sysconf(_SC_PAGESIZE);
	unsigned char resident[QUERY_PAGES];
	int			n = 0;

	if (!huge && mincore(start, npages * page_size, resident) != 0)
		return -1;

	for (int i = 0; i < npages; i++)
	{
		char	   *page = start + i * page_size;

		if (!huge ? (resident[i] & 1) != 0 :
			piece->touched || (piece->page_in_use && piece->page_in_use(page, page_size)))
		{
			pg_numa_touch_mem_if_required(page);
			pages[n++] = page;
		}
	}
	return n;
}

int
pgsweep_numa_query_piece(const PgSweepNumaPiece *piece, Size page_size,
						 uint64 on_node[PGSWEEP_NUMA_MAX_NODE_IDS], uint64 *untouched)
{
	void	   *pages[QUERY_PAGES];
	int			status[QUERY_PAGES];
	uint64		npages;
	char	   *start = pgsweep_numa_whole_pages(piece, page_size, &npages);

	for (uint64 done = 0; done < npages; done += QUERY_PAGES)
	{
		int			chunk = Min(npages - done, QUERY_PAGES);
		int			existing;

		CHECK_FOR_INTERRUPTS();
		existing = map_existing_pages(piece, start + done * page_size, chunk,
									  page_size, pages);
		if (existing < 0)
			return errno;
		*untouched += chunk - existing;

		if (existing > 0 && pg_numa_query_pages(0, existing, pages, status) != 0)
			return errno;
		for (int i = 0; i < existing; i++)
		{
			/* negative: swapped out since it was read */
			if (status[i] >= 0 && status[i] < PGSWEEP_NUMA_MAX_NODE_IDS)
				on_node[status[i]]++;
			else
				(*untouched)++;
		}
	}
	return 0;
}

#else							/* !USE_LIBNUMA */

int
pgsweep_numa_place_piece(const PgSweepNumaPiece *piece, Size page_size)
{
	return ENOSYS;
}

int
pgsweep_numa_query_piece(const PgSweepNumaPiece *piece, Size page_size,
						 uint64 on_node[PGSWEEP_NUMA_MAX_NODE_IDS], uint64 *untouched)
{
	return ENOSYS;
}

#endif							/* USE_LIBNUMA */
