/*-------------------------------------------------------------------------
 *
 * test_sweep_layout.c
 *	  Property tests of how many partitions a pool has, and where they end.
 *
 * layout_mutants.h		the code under test, and broken variants of it
 *
 * IDENTIFICATION
 *	  test/sweep/test_sweep/test_sweep_layout.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "sweep/layout.h"
#include "utils/builtins.h"

#include "layout_mutants.h"

PG_MODULE_MAGIC_EXT(
					.name = "test_sweep_layout",
					.version = "1.0"
);

PG_FUNCTION_INFO_V1(test_sweep_layout);
PG_FUNCTION_INFO_V1(test_sweep_layout_codes);

#define MIN_BUFFERS		16
#define MAX_BUFFERS		PG_INT32_MAX
#define MAX_NODES		64
#define MAX_CPUS		1024

/* What was exercised; int64 each, as the SQL function's columns */
typedef struct LayoutCounts
{
	int64		cases;
	int64		fewer_than_nodes;	/* the pool has no room for one a node */
	int64		reduced;		/* fewer than wished for */
	int64		rounded_up;		/* more than asked for, because of the nodes */
	int64		automatic;
	int64		single;			/* one partition */
	int64		most;			/* 64 */
	int64		off_grid;		/* too small for the grid */
	int64		with_head;		/* the grid does not begin with the pool */
	int64		uneven;			/* sizes differ */
} LayoutCounts;

static LayoutCounts counts;
static pg_prng_state prng;
static char violation[256];

static bool violated(const char *fmt,...) pg_attribute_printf(1, 2);

/* Always false, for return violated(...) */
static bool
violated(const char *fmt,...)
{
	va_list		args;

	va_start(args, fmt);
	vsnprintf(violation, sizeof(violation), fmt, args);
	va_end(args);
	return false;
}

static uint32
random_in(uint32 low, uint32 high)
{
	return (uint32) pg_prng_uint64_range(&prng, low, high);
}

/* Each order of magnitude as often as the others */
static uint32
random_magnitude(uint32 low, uint32 high)
{
	double		number = low * pow((double) high / low, pg_prng_double(&prng));

	return (uint32) Min(Max(number, low), high);
}

/* ---- how many ---- */

/*
 * From the definition, by trying all: the fewest that are a multiple of the
 * nodes and no less than was wished for.  If the pool has no room for so many,
 * the most that it has room for, and that are a multiple of the nodes; if there
 * are none, the most that it has room for.
 */
static uint32
expected_number(uint32 wish, uint32 limit, uint32 nnodes)
{
	uint32		best = 0;

	for (uint32 n = 1; n <= limit; n++)
	{
		if (n % nnodes != 0)
			continue;
		best = n;
		if (n >= wish)
			break;
	}
	return best > 0 ? best : limit;
}

static bool
check_number(const LayoutCode *code, uint32 configured, uint32 nbuffers,
			 uint32 nnodes, uint32 cpus_per_node, uint32 *number)
{
	uint32		room = nbuffers / (configured > 0 ? 16 : 128);
	uint32		limit = Max(Min(room, 64), 1);
	uint32		wish = configured;
	uint32		n = code->number(configured, nbuffers, nnodes, cpus_per_node);

	*number = n;
	if (n < 1 || n > 64)
		return violated("there are %u partitions", n);
	if (n > 1 && n > room)
		return violated("%u partitions of %u buffers", n, nbuffers);
	if (n % nnodes != 0 && n > nnodes)
		return violated("%u partitions do not go into %u nodes", n, nnodes);

	if (configured == 0)
	{
		/* a hand is for 12 CPUs at most, and a pool has four hands at least */
		while (wish < 4 || wish < nnodes || wish / nnodes * 12 < cpus_per_node)
			wish++;
		counts.automatic++;
	}
	if (n != expected_number(wish, limit, nnodes))
		return violated("%u partitions, %u wished for, %u nodes, room for %u",
						n, wish, nnodes, limit);

	counts.fewer_than_nodes += n < nnodes;
	counts.reduced += n < wish;
	counts.rounded_up += configured > 0 && n > configured;
	counts.single += n == 1;
	counts.most += n == 64;
	return true;
}

/* ---- where they end ---- */

static bool
check_sizes(const LayoutCode *code, uint32 nbuffers, uint32 n, uint32 wanted_unit,
			uint32 start)
{
	uint32		unit = code->unit(nbuffers, n, wanted_unit);
	uint32		head;
	uint32		size[PGSWEEP_MAX_PARTITIONS + 1] = {0};
	uint32		smallest = PG_UINT32_MAX;
	uint32		largest = 0;
	uint64		end = 0;

	/* The grid is used unless partitions would be of very few units */
	if (unit != wanted_unit && unit != 1)
		return violated("unit %u became %u", wanted_unit, unit);
	if (unit != wanted_unit && nbuffers / n >= 4 * wanted_unit)
		return violated("no grid of %u with %u buffers in %u partitions", wanted_unit,
						nbuffers, n);
	if (unit > 1 && nbuffers / n < 4 * unit)
		return violated("a grid of %u with %u buffers in %u partitions", unit, nbuffers, n);

	size[n] = 4711;
	head = start % unit;
	code->sizes(nbuffers, n, unit, head, size);
	if (size[n] != 4711)
		return violated("wrote beyond the last of %u partitions", n);

	/* One after the other they cannot overlap; that leaves where they end */
	for (uint32 i = 0; i < n; i++)
	{
		if (size[i] == 0)
			return violated("partition %u of %u has no buffers", i, n);
		end += size[i];
		if (i < n - 1 && (end < head || (end - head) % unit != 0))
			return violated("partition %u of %u ends at %llu, off a grid of %u from %u", i, n,
							(unsigned long long) end, unit, head);
		smallest = Min(smallest, size[i]);
		largest = Max(largest, size[i]);
	}
	if (end != nbuffers)
		return violated("%u partitions cover %llu of %u buffers", n, (unsigned long long) end,
						nbuffers);
	if (largest - smallest > unit)
		return violated("%u partitions of %u to %u buffers, unit %u", n, smallest, largest, unit);

	counts.off_grid += unit != wanted_unit;
	counts.with_head += head > 0;
	counts.uneven += largest > smallest;
	return true;
}

static bool
check_case(const LayoutCode *code)
{
	/* descriptors in pages of 4 and 64 kB, blocks in pages of 64 kB, 2 MB, 1 GB */
	static const uint32 units[] = {1, 8, 64, 256, 1024, 131072};
	uint32		nbuffers = random_magnitude(MIN_BUFFERS, MAX_BUFFERS);
	uint32		nnodes = random_magnitude(1, MAX_NODES);
	uint32		configured = random_in(0, 2) == 0 ? 0 : random_in(1, 64);
	uint32		unit = units[random_in(0, lengthof(units) - 1)];
	uint32		start = random_in(0, 1) == 0 ? 0 : random_in(0, unit - 1);
	uint32		number;

	/* pools are most often of a whole number of megabytes */
	if (random_in(0, 1) == 0 && nbuffers >= 128)
		nbuffers -= nbuffers % 128;
	/* the ends of the range are where it breaks first */
	if (random_in(0, 99) == 0)
		nbuffers = MAX_BUFFERS - random_in(0, 64);
	if (random_in(0, 99) == 0)
		nbuffers = MIN_BUFFERS + random_in(0, 64);

	counts.cases++;
	if (!check_number(code, configured, nbuffers, nnodes, random_magnitude(1, MAX_CPUS),
					  &number))
		return false;
	return check_sizes(code, nbuffers, number, unit, start);
}

/*
 * test_sweep_layout(seed, cases, code): so many random cases.
 */
Datum
test_sweep_layout(PG_FUNCTION_ARGS)
{
	const LayoutCode *code = NULL;
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(2));
	TupleDesc	tupdesc;
	Datum		values[1 + sizeof(LayoutCounts) / sizeof(int64)];
	bool		nulls[lengthof(values)] = {0};

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE ||
		tupdesc->natts != lengthof(values))
		elog(ERROR, "return type must be a row type");

	for (int i = 0; i < lengthof(layout_codes); i++)
		if (strcmp(layout_codes[i].name, name) == 0)
			code = &layout_codes[i];
	if (code == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("there is no code \"%s\"", name)));

	pg_prng_seed(&prng, PG_GETARG_INT64(0));
	memset(&counts, 0, sizeof(counts));
	violation[0] = '\0';
	for (int32 i = PG_GETARG_INT32(1); i > 0 && check_case(code); i--)
		CHECK_FOR_INTERRUPTS();

	nulls[0] = violation[0] == '\0';
	if (!nulls[0])
		values[0] = CStringGetTextDatum(violation);
	for (int i = 1; i < lengthof(values); i++)
		values[i] = Int64GetDatum(((int64 *) &counts)[i - 1]);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc), values, nulls)));
}

/*
 * test_sweep_layout_codes(): what can be tested; the first is pg_sweep's own.
 */
Datum
test_sweep_layout_codes(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	for (int i = 0; i < lengthof(layout_codes); i++)
	{
		Datum		value = CStringGetTextDatum(layout_codes[i].name);
		bool		null = false;

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, &value, &null);
	}
	return (Datum) 0;
}
