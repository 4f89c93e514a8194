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
 * to 6.18: mincore_hugetlb() looks only into the page table).  So the caller
 * has to know: of buffers, see page_in_use; pieces with PGPROCs, descriptors
 * and slots have been touched wholly.  Of the rest, the postmaster has mapped
 * what core has set up, at the same address.  move_pages() can be asked about
 * another process, if this one has the right to trace it (ptrace).
 *
 * A page table has 4 kB for each 2 MB of 4 kB pages, and the kernel keeps it
 * until the process unmaps the memory.  So pages are read in a window: a
 * second mapping of a stretch of shared memory, which is unmapped at once.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef USE_LIBNUMA
#include <numaif.h>
#include <sys/mman.h>
#endif
#include <unistd.h>

#include "common/pg_prng.h"
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

static NodeMask
all_nodes(void)
{
	NodeMask	mask = {0};

	for (int node = 0; node < pgsweep_numa_topology.nnodes; node++)
		add_node(&mask, node);
	return mask;
}

/* The policy that the postmaster was started with */
static int	own_mode;
static NodeMask own_nodes;
static bool interleaving = false;

/* the kernel takes, and gives, one bit less than it is told */
#define MASK_SIZE		(PGSWEEP_NUMA_MAX_NODE_IDS + 1)

int
pgsweep_numa_interleave_process(void)
{
	NodeMask	all = all_nodes();

	/*
	 * The kernel reserves huge pages when core maps them: on the nodes of the
	 * process' policy if that binds, else on all.  A reservation on nodes that
	 * the server may not use would let "huge_pages = on" start, and kill
	 * processes later (SIGBUS).
	 */
	if (pgsweep_numa_topology.bound && huge_pages != HUGE_PAGES_OFF)
		return 0;

	if (get_mempolicy(&own_mode, own_nodes.bits, MASK_SIZE, NULL, 0) != 0 ||
		set_mempolicy(MPOL_INTERLEAVE, all.bits, MASK_SIZE) != 0)
		return errno;
	interleaving = true;
	return 0;
}

int
pgsweep_numa_restore_process(void)
{
	if (!interleaving)
		return 0;
	interleaving = false;
	if (set_mempolicy(own_mode, own_nodes.bits, MASK_SIZE) != 0)
	{
		int			error = errno;

		/* its nodes have been taken away since: not the interleaving, at least */
		(void) set_mempolicy(MPOL_DEFAULT, NULL, 0);
		return error;
	}
	return 0;
}

int
pgsweep_numa_place_piece(const PgSweepNumaPiece *piece, Size page_size)
{
	NodeMask	mask = {0};
	int			mode = MPOL_DEFAULT;
	uint64		npages;
	char	   *start = pgsweep_numa_whole_pages(piece, page_size, &npages);

	if (npages == 0)
		return 0;

	switch (piece->node)
	{
		case PGSWEEP_NUMA_NODE_DEFAULT:
			break;
		case PGSWEEP_NUMA_NODE_INTERLEAVED:
			mode = MPOL_INTERLEAVE;
			mask = all_nodes();
			break;
		default:
			Assert(piece->node >= 0 && piece->node < pgsweep_numa_topology.nnodes);
			mode = MPOL_PREFERRED;
			add_node(&mask, piece->node);
			break;
	}

	if (mbind(start, npages * page_size, mode,
			  mode == MPOL_DEFAULT ? NULL : mask.bits,
			  mode == MPOL_DEFAULT ? 0 : MASK_SIZE,
			  piece->touched ? MPOL_MF_MOVE : 0) != 0)
		return errno;
	return 0;
}

/*
 * Does this page exist, as far as that can be told without making it?
 */
static int
page_exists(const PgSweepNumaPiece *piece, char *page, Size page_size, bool huge)
{
	unsigned char resident;

	if (huge)
		return piece->page_in_use == NULL || piece->page_in_use(page, page_size);
	if (mincore(page, page_size, &resident) != 0)
		return -1;
	return resident & 1;
}

/*
 * Pages that the postmaster has not used are unknown to it: "untouched".
 */
bool
pgsweep_numa_asks_postmaster(const PgSweepNumaPiece *piece, Size page_size)
{
	return page_size > sysconf(_SC_PAGESIZE) && IsPostmasterEnvironment &&
		piece->page_in_use == NULL && !piece->touched;
}

/*
 * Ask about one page in each stretch of `stride` of these npages.  At most
 * QUERY_PAGES are asked about.
 */
static int
query_window(const PgSweepNumaPiece *piece, char *start, uint64 npages, Size page_size,
			 uint64 stride, PgSweepNumaResidence *found)
{
	bool		huge = page_size > sysconf(_SC_PAGESIZE);
	void	   *pages[QUERY_PAGES];
	int			status[QUERY_PAGES];
	char	   *window = MAP_FAILED;
	int			existing = 0;
	int			error = 0;
	int			pid = pgsweep_numa_asks_postmaster(piece, page_size) ? PostmasterPid : 0;

	/*
	 * A length of 0 leaves the old mapping as it is.  Page tables of huge
	 * pages are small, and old kernels cannot map those again.
	 */
	if (!huge)
		window = mremap(start, 0, npages * page_size, MREMAP_MAYMOVE);
	if (window == MAP_FAILED)
		window = start;

	for (uint64 first = 0; first < npages && error == 0; first += stride)
	{
		uint64		last = Min(first + stride, npages) - 1;
		uint64		i = first;
		int			exists;

		/* random, as an even distance could be the pattern of interleaving */
		if (last > first)
			i = pg_prng_uint64_range(&pg_global_prng_state, first, last);

		exists = page_exists(piece, start + i * page_size, page_size, huge);
		if (exists < 0)
			error = errno;
		else if (exists == 0)
			found->untouched++;
		else
		{
			Assert(existing < QUERY_PAGES);
			pages[existing] = window + i * page_size;
			if (pid == 0)
				pg_numa_touch_mem_if_required(pages[existing]);
			existing++;
		}
	}

	/* it looks for interrupts, and the window must not be left behind */
	HOLD_INTERRUPTS();
	if (error == 0 && existing > 0 && pg_numa_query_pages(pid, existing, pages, status) != 0)
		error = errno;
	RESUME_INTERRUPTS();
	if (window != start)
		(void) munmap(window, npages * page_size);
	if (error != 0)
		return error;

	for (int i = 0; i < existing; i++)
	{
		/* negative: not mapped, or swapped out since it was read */
		if (status[i] >= 0 && status[i] < PGSWEEP_NUMA_MAX_NODE_IDS)
			found->on_node[status[i]]++;
		else
			found->untouched++;
	}
	return 0;
}

int
pgsweep_numa_query_piece(const PgSweepNumaPiece *piece, Size page_size,
						 uint64 stride, PgSweepNumaResidence *found)
{
	uint64		npages;
	char	   *start = pgsweep_numa_whole_pages(piece, page_size, &npages);

	found->pages += npages;
	for (uint64 done = 0; done < npages; done += QUERY_PAGES * stride)
	{
		int			error;

		CHECK_FOR_INTERRUPTS();
		error = query_window(piece, start + done * page_size,
							 Min(npages - done, QUERY_PAGES * stride),
							 page_size, stride, found);
		if (error != 0)
			return error;
	}
	return 0;
}

#else							/* !USE_LIBNUMA */

int
pgsweep_numa_interleave_process(void)
{
	return ENOSYS;
}

int
pgsweep_numa_restore_process(void)
{
	return 0;
}

int
pgsweep_numa_place_piece(const PgSweepNumaPiece *piece, Size page_size)
{
	return ENOSYS;
}

bool
pgsweep_numa_asks_postmaster(const PgSweepNumaPiece *piece, Size page_size)
{
	return false;
}

int
pgsweep_numa_query_piece(const PgSweepNumaPiece *piece, Size page_size,
						 uint64 stride, PgSweepNumaResidence *found)
{
	return ENOSYS;
}

#endif							/* USE_LIBNUMA */
