/*-------------------------------------------------------------------------
 *
 * record.c
 *	  Records which victims an allocating session gets, from which state, and
 *	  by which instructions.
 *
 * For comparing a simulation of the allocation (sim) with the server
 * itself.  A record begins with a copy of the pieces of shared memory that decide
 * about victims; a simulation that starts from the same must find the same.
 *
 * How a session steps through its own instructions
 * ------------------------------------------------
 * With the trap flag set, an x86 processor raises a debug exception after each
 * instruction, which the kernel turns into a SIGTRAP; the handler gets the
 * registers and stores them.  So what is recorded is what the processor did, with the
 * code that the server has, and nothing but the loop is slowed down (some 10 us an
 * instruction).  From the registers and the instruction, which is in the file that is mapped
 * there, follows which address it accessed.
 *
 * IDENTIFICATION
 *	  test/sweep/measure_sweep/record.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>
#include <ucontext.h>

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/fd.h"
#include "storage/shmem.h"
#include "measure_sweep.h"
#include "utils/array.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(measure_record);

#define RECORD_MAGIC	"swrec\0\0\1"	/* the last byte is the version */

/* 4 MB of victims */
#define MAX_RECORDED	(1 << 20)

/*
 * What is recorded before each instruction: the instruction pointer and the general
 * registers in the order of their numbers (rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi,
 * r8 .. r15).
 */
#define STEP_WORDS		17
#define MAX_STEPS		(4 * 1000 * 1000)	/* 544 MB, below 1 GB */

/* usage: not the same for all, but by spread_usage() */
#define USAGE_MIXED		(-1)

/*
 * The record's beginning; then a PieceHeader for each piece, then their contents,
 * each from a multiple of 8 on.
 */
typedef struct RecordHeader
{
	char		magic[8];
	uint32		nbuffers;
	int32		procno;
	uint32		hand;			/* buffer, as StrategySyncStart() tells */
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
 * The loop.  Ids come from addresses: reading them would be another access to the
 * descriptor.
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
 * Pin each pin_every-th buffer, or release it (by is 1 or -1), as if by another
 * process: this one's private counts know nothing of it.
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
 * Find the pieces; an error if one has another size.
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
 * Space for the record of what is there before the loop.  It is filled last, by
 * fill_start(), when nothing that could allocate comes after it.
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

#if defined(__x86_64__) && defined(__linux__)

/* for the signal handler */
static uint64 *step_next;
static uint64 *step_end;
static bool step_overflow;

static void
note_step(int signo, siginfo_t *info, void *context)
{
	const greg_t *r = ((ucontext_t *) context)->uc_mcontext.gregs;
	static const int order[STEP_WORDS] = {
		REG_RIP, REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI,
		REG_RDI, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15
	};

	if (step_next == step_end)
	{
		step_overflow = true;
		return;
	}
	for (int i = 0; i < STEP_WORDS; i++)
		step_next[i] = (uint64) r[order[i]];
	step_next += STEP_WORDS;
}

/* Below the 128 bytes that a function may use without moving the stack pointer */
#define CHANGE_TRAP_FLAG(instruction) \
	__asm__ __volatile__("lea -128(%%rsp), %%rsp\n\tpushfq\n\t" instruction \
						 "\n\tpopfq\n\tlea 128(%%rsp), %%rsp" : : : "memory", "cc")

/*
 * Run the loop with all its instructions recorded.
 */
static bytea *
step_victims(int64 allocations, int32 usage, int32 *victims, bytea *steps)
{
	struct sigaction action = {.sa_sigaction = note_step,.sa_flags = SA_SIGINFO};
	struct sigaction before;
	Size		size;

	step_next = (uint64 *) VARDATA(steps);
	step_end = step_next + (Size) MAX_STEPS * STEP_WORDS;
	step_overflow = false;
	sigfillset(&action.sa_mask);
	if (sigaction(SIGTRAP, &action, &before) != 0)
		elog(ERROR, "sigaction failed: %m");

	CHANGE_TRAP_FLAG("orq $0x100, (%%rsp)");
	record_victims(allocations, usage, victims);
	CHANGE_TRAP_FLAG("andq $~0x100, (%%rsp)");

	sigaction(SIGTRAP, &before, NULL);
	size = (char *) step_next - VARDATA(steps);
	SET_VARSIZE(steps, size + VARHDRSZ);
	return steps;
}

static bytea *
prepare_steps(void)
{
	return make_bytea((Size) MAX_STEPS * STEP_WORDS * sizeof(uint64));
}

static bool
steps_complete(void)
{
	return !step_overflow;
}

#else

static bytea *
prepare_steps(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("instructions are recorded on x86-64 Linux only")));
}

static bytea *
step_victims(int64 allocations, int32 usage, int32 *victims, bytea *steps)
{
	pg_unreachable();
}

static bool
steps_complete(void)
{
	pg_unreachable();
}

#endif							/* x86-64 Linux */

/*
 * Which file is mapped where.
 */
static text *
read_maps(void)
{
	FILE	   *file = AllocateFile("/proc/self/maps", "r");
	StringInfoData maps;
	char		line[4096];

	if (file == NULL)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not open file \"%s\": %m", "/proc/self/maps")));
	initStringInfo(&maps);
	while (fgets(line, sizeof(line), file) != NULL)
		appendStringInfoString(&maps, line);
	FreeFile(file);
	return cstring_to_text_with_len(maps.data, maps.len);
}

/*
 * measure_record - allocate, and record victims and what they follow from
 *
 * Between the copy of shared memory and the loop nothing is called that could
 * allocate.  If the loop fails (all are pinned by others), pins are left behind, and
 * the server is no good for anything else.
 */
Datum
measure_record(PG_FUNCTION_ARGS)
{
	int64		allocations = PG_GETARG_INT64(0);
	int32		usage = PG_GETARG_INT32(1);
	int32		pin_every = PG_GETARG_INT32(4);
	bool		step = PG_GETARG_BOOL(5);
	PieceHeader *pieces;
	int			npieces;
	bytea	   *start;
	bytea	   *victims;
	bytea	   *steps = NULL;
	int32	   *ids;
	TupleDesc	tupdesc;
	Datum		values[4] = {0};
	bool		nulls[4] = {0};

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
	ids = (int32 *) VARDATA(victims);
	if (step)
		steps = prepare_steps();

	/*
	 * Functions are bound to their addresses at their first call, which is not
	 * to be recorded.
	 */
	if (step)
		(void) cycle_victim(0);

	change_pins(pin_every, 1);
	fill_start(start, pieces, npieces);
	if (step)
		step_victims(allocations, usage, ids, steps);
	else
		record_victims(allocations, usage, ids);
	change_pins(pin_every, -1);

	if (step && !steps_complete())
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("more than %d instructions", MAX_STEPS)));

	values[0] = PointerGetDatum(start);
	values[1] = PointerGetDatum(victims);
	nulls[2] = nulls[3] = !step;
	if (step)
	{
		values[2] = PointerGetDatum(steps);
		values[3] = PointerGetDatum(read_maps());
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, nulls)));
}
