/*-------------------------------------------------------------------------
 *
 * test/sweep/measure_sweep/record.c
 *	  Records the victims of an allocating session, and the state before.
 *
 * For comparing the simulator (sim) with the server.  A record begins with a copy
 * of the pieces of shared memory that decide about victims; a simulation that
 * starts from the same state must find the same victims.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "storage/bufmgr.h"
#include "storage/shmem.h"
#include "measure_sweep.h"
#include "utils/array.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(measure_sweep_record);

#define RECORD_MAGIC	"swrec\0\0\1"	/* the last byte is the version */

/* 4 MB of victims */
#define MAX_RECORDED	(1 << 20)

/* usage: by spread_usage() instead of the same for all */
#define USAGE_MIXED		(-1)

/*
 * The record's beginning.  A PieceHeader for each piece follows, then their
 * contents, each aligned to 8.
 */
typedef struct RecordHeader
{
	char		magic[8];
	uint32		nbuffers;
	int32		procno;
	uint32		hand;			/* buffer, of StrategySyncStart() */
	uint32		passes;
	uint32		npieces;
	uint32		unused;
} RecordHeader;

typedef struct PieceHeader
{
	char		name[48];
	uint64		address;
	uint64		size;
} PieceHeader;

/*
 * A usage count from 0 to 5 for the i-th victim; sim/loads/replay.c has the
 * same (multiplicative hashing: Knuth, vol. 3, 6.4).
 */
static inline uint32
spread_usage(int64 i)
{
	return ((uint32) i * 2654435761U >> 16) % (BM_MAX_USAGE_COUNT + 1);
}

/*
 * The loop.  Buffer numbers come from addresses: reading them would be another
 * access to the descriptor.
 */
static pg_noinline void
record_victims(int64 allocations, int32 usage, int32 *victims)
{
	for (int64 i = 0; i < allocations; i++)
	{
		uint32		count = usage == USAGE_MIXED ? spread_usage(i) : (uint32) usage;
		BufferDesc *buf = cycle_victim(count << BUF_USAGECOUNT_SHIFT);

		victims[i] = (int32) ((BufferDescPadded *) buf - BufferDescriptors);
	}
}

/*
 * Pin each pin_every-th buffer, or release it (by is 1 or -1).  As with pins of
 * another process, this one's private counts do not include them.
 */
static void
change_pins(int32 pin_every, int by)
{
	for (int32 i = 0; pin_every > 0 && i < NBuffers; i += pin_every)
	{
		BufferDesc *buf = GetBufferDescriptor(i);
		uint32		buf_state = LockBufHdr(buf);

		UnlockBufHdr(buf, buf_state + by * BUF_REFCOUNT_ONE);
	}
}

static bytea *
make_bytea(Size size)
{
	bytea	   *result = MemoryContextAllocHuge(CurrentMemoryContext, size + VARHDRSZ);

	SET_VARSIZE(result, size + VARHDRSZ);
	return result;
}

/*
 * Find the pieces; it is an error if one has another size.
 */
static PieceHeader *
find_pieces(ArrayType *names, ArrayType *sizes, int *npieces)
{
	Datum	   *name;
	Datum	   *size;
	int			nsizes;
	PieceHeader *pieces;

	deconstruct_array_builtin(names, TEXTOID, &name, NULL, npieces);
	deconstruct_array(sizes, INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE,
					  &size, NULL, &nsizes);
	if (*npieces != nsizes)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("there are %d pieces and %d sizes", *npieces, nsizes)));

	pieces = palloc0(sizeof(PieceHeader) * Max(nsizes, 1));
	for (int i = 0; i < nsizes; i++)
	{
		bool		found;

		strlcpy(pieces[i].name, TextDatumGetCString(name[i]), sizeof(pieces[i].name));
		pieces[i].size = DatumGetInt64(size[i]);
		pieces[i].address = (uintptr_t) ShmemInitStruct(pieces[i].name, pieces[i].size, &found);
		if (!found)
			elog(ERROR, "there was no \"%s\" in shared memory", pieces[i].name);
	}
	return pieces;
}

/*
 * Space for the record of the state before the loop.  fill_start() fills it last,
 * when nothing that could allocate comes after it.
 */
static bytea *
prepare_start(const PieceHeader *pieces, int npieces)
{
	Size		size = sizeof(RecordHeader) + npieces * sizeof(PieceHeader);

	for (int i = 0; i < npieces; i++)
		size += TYPEALIGN(8, pieces[i].size);
	return make_bytea(size);
}

static void
fill_start(bytea *start, const PieceHeader *pieces, int npieces)
{
	RecordHeader header = {
		.magic = RECORD_MAGIC,
		.nbuffers = NBuffers,
		.procno = MyProcNumber,
		.npieces = npieces
	};
	char	   *to = VARDATA(start);

	header.hand = StrategySyncStart(&header.passes, NULL);
	memcpy(to, &header, sizeof(header));
	to += sizeof(header);
	memcpy(to, pieces, npieces * sizeof(PieceHeader));
	to += npieces * sizeof(PieceHeader);
	for (int i = 0; i < npieces; i++)
	{
		Size		padded = TYPEALIGN(8, pieces[i].size);

		memcpy(to, (const void *) (uintptr_t) pieces[i].address, pieces[i].size);
		memset(to + pieces[i].size, 0, padded - pieces[i].size);
		to += padded;
	}
}

/*
 * measure_sweep_record - allocate, and record the state before and the victims
 *
 * Between the copy of shared memory and the loop, nothing is called that could
 * allocate.  If the loop fails because other processes have pinned all buffers,
 * pins are left behind, and the server must be restarted.
 */
Datum
measure_sweep_record(PG_FUNCTION_ARGS)
{
	int64		allocations = PG_GETARG_INT64(0);
	int32		usage = PG_GETARG_INT32(1);
	int32		pin_every = PG_GETARG_INT32(4);
	PieceHeader *pieces;
	int			npieces;
	bytea	   *start;
	bytea	   *victims;
	TupleDesc	tupdesc;
	Datum		values[2];
	bool		nulls[2] = {0};

	if (allocations < 0 || allocations > MAX_RECORDED)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("allocations must be between 0 and %d", MAX_RECORDED)));
	if (usage != USAGE_MIXED)
		(void) usage_to_bits(usage);
	if (pin_every < 0 || pin_every == 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("pin_every must be 0 or greater than 1")));
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	pieces = find_pieces(PG_GETARG_ARRAYTYPE_P(2), PG_GETARG_ARRAYTYPE_P(3), &npieces);
	start = prepare_start(pieces, npieces);
	victims = make_bytea(allocations * sizeof(int32));

	change_pins(pin_every, 1);
	fill_start(start, pieces, npieces);
	record_victims(allocations, usage, (int32 *) VARDATA(victims));
	change_pins(pin_every, -1);

	values[0] = PointerGetDatum(start);
	values[1] = PointerGetDatum(victims);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, nulls)));
}
