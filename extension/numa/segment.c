/*-------------------------------------------------------------------------
 *
 * extension/numa/segment.c
 *	  The named parts of core's shared memory that have no node of their own.
 *
 * Core's index has the start and size of each named part, but not what a hash
 * table has allocated for its elements, nor semaphores.  So a part reaches to
 * the start of the next one: core gives a hash table its first elements when it
 * makes it.  Tables of locks grow later, out of what is not allocated, which is
 * a part, too.  The parts together are the whole segment, and each page belongs
 * to one of them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/tuptable.h"
#include "funcapi.h"
#include "numa/numa.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"

/*
 * Parts smaller than this are shown as one, "other".  With 128 MB of shared
 * buffers, the table of buffers is larger, and a dozen of eighty parts.
 */
#define MIN_NAMED		(512 * 1024)

typedef struct NamedStart
{
	int64		offset;			/* in the segment */
	const char *name;
} NamedStart;

static int
compare_starts(const void *a, const void *b)
{
	const NamedStart *x = a;
	const NamedStart *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

static int
compare_pieces(const void *a, const void *b)
{
	const PgSweepNumaPiece *x = a;
	const PgSweepNumaPiece *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/*
 * The starts of all named parts, in order; at 0 what comes before the first.
 * *size becomes that of the segment, *anchor the offset of PgSweepNuma.
 *
 * From the function behind pg_shmem_allocations, because the index is private
 * to core.
 */
static NamedStart *
named_starts(FunctionCallInfo fcinfo, int *n, int64 *size, int64 *anchor)
{
	ReturnSetInfo rsinfo = *(ReturnSetInfo *) fcinfo->resultinfo;
	LOCAL_FCINFO(call, 0);
	FmgrInfo	flinfo;
	TupleTableSlot *slot;
	NamedStart *starts;

	rsinfo.setResult = NULL;
	rsinfo.setDesc = NULL;
	fmgr_info(F_PG_GET_SHMEM_ALLOCATIONS, &flinfo);
	InitFunctionCallInfoData(*call, &flinfo, 0, InvalidOid, NULL, (Node *) &rsinfo);
	(void) FunctionCallInvoke(call);

	starts = palloc((tuplestore_tuple_count(rsinfo.setResult) + 1) * sizeof(NamedStart));
	starts[0] = (NamedStart) {0, PGSWEEP_NUMA_PIECE_OTHER};
	*n = 1;
	*size = 0;
	*anchor = 0;
	slot = MakeSingleTupleTableSlot(rsinfo.setDesc, &TTSOpsMinimalTuple);
	while (tuplestore_gettupleslot(rsinfo.setResult, true, false, slot))
	{
		NamedStart *next = &starts[*n];

		slot_getallattrs(slot);
		if (slot->tts_isnull[1])	/* the sum of what has no name */
			continue;
		next->offset = DatumGetInt64(slot->tts_values[1]);
		if (slot->tts_isnull[0])
		{
			next->name = "unallocated";
			*size = next->offset + DatumGetInt64(slot->tts_values[2]);
		}
		else
			next->name = TextDatumGetCString(slot->tts_values[0]);
		if (strcmp(next->name, "pg_sweep numa") == 0)
			*anchor = next->offset;
		(*n)++;
	}
	ExecDropSingleTupleTableSlot(slot);
	tuplestore_end(rsinfo.setResult);
	qsort(starts, *n, sizeof(NamedStart), compare_starts);
	return starts;
}

static void
add_rest(PgSweepNumaPiece *pieces, int *n, const char *name, char *start, char *end)
{
	if (start < end)
		pieces[(*n)++] = (PgSweepNumaPiece) {
			.what = end - start >= MIN_NAMED ? name : PGSWEEP_NUMA_PIECE_OTHER,
			.owner = -1,
			.node = PGSWEEP_NUMA_NODE_INTERLEAVED,	/* or of none */
			.start = start,
			.size = end - start,
		};
}

PgSweepNumaPiece *
pgsweep_numa_rest(FunctionCallInfo fcinfo,
				  const PgSweepNumaPiece *placed, int nplaced, int *n)
{
	Size		page_size = pgsweep_numa_shmem_page_size();
	PgSweepNumaPiece *holes = palloc(nplaced * sizeof(PgSweepNumaPiece));
	PgSweepNumaPiece *pieces;
	NamedStart *starts;
	char	   *base;
	char	   *at;
	int64		size;
	int64		anchor;
	int			nstarts;
	int			hole = 0;

	memcpy(holes, placed, nplaced * sizeof(PgSweepNumaPiece));
	qsort(holes, nplaced, sizeof(PgSweepNumaPiece), compare_pieces);
	starts = named_starts(fcinfo, &nstarts, &size, &anchor);
	base = (char *) PgSweepNuma - anchor;

	/* each hole divides a part once at most */
	pieces = palloc((nstarts + nplaced) * sizeof(PgSweepNumaPiece));
	*n = 0;
	at = base;
	for (int i = 0; i < nstarts; i++)
	{
		/* a page belongs to the part that begins before its middle */
		int64		next = i + 1 < nstarts ? starts[i + 1].offset + page_size / 2 : size + page_size - 1;
		char	   *end = (char *) TYPEALIGN_DOWN(page_size, base + next);

		for (; hole < nplaced && holes[hole].start < end; hole++)
		{
			add_rest(pieces, n, starts[i].name, at, holes[hole].start);
			at = Max(at, holes[hole].start + holes[hole].size);
		}
		add_rest(pieces, n, starts[i].name, at, end);
		at = Max(at, end);
	}
	pfree(holes);
	return pieces;
}
