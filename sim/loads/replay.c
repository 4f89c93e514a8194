/*-------------------------------------------------------------------------
 *
 * sim/loads/replay.c
 *	  Load "replay": one backend allocates from the state that a real server
 *	  was in, as the test module measure_sweep has recorded it.
 *
 * Its victims are compared with those that the server found (sim/run victims).
 *
 *	 load.state		file with the state (what measure_sweep_record() calls start)
 *	 load.victims	file to write the ids of the victims to, 4 bytes each
 *	 load.allocations	1 .. 1048576
 *	 load.usage		usage count that buffers are given back with, 0 .. 5; -1: as
 *					spread_usage() says
 *
 * "buffers", "partitions" and the machine's nodes must be the server's; that is
 * checked.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "upstream/core.h"
#include "sweep/sweep.h"

#define RECORD_MAGIC	"swrec\0\0\1"
#define MAX_RECORDED	(1 << 20)
#define USAGE_MIXED		(-1)

/* as in test/sweep/measure_sweep/record.c */
typedef struct RecordHeader
{
	char		magic[8];
	uint32		nbuffers;
	int32		procno;
	uint32		hand;
	uint32		passes;
	uint32		npieces;
	uint32		unused;
} RecordHeader;

typedef struct PieceHeader
{
	char		name[48];
	uint64		address;		/* in the server */
	uint64		size;
} PieceHeader;

typedef struct Record
{
	char	   *content;
	size_t		size;
	const RecordHeader *header;
	const PieceHeader *pieces;
} Record;

static Record record;
static const char *victims_path;
static int64 allocations;
static int	usage;
static int32 *victims;

static void
read_record(const char *path)
{
	FILE	   *file = fopen(path, "rb");
	size_t		room = 1 << 20;
	size_t		got;

	if (file == NULL)
		sim_fail("load.state: cannot open %s", path);
	record.content = malloc(room);
	while ((got = fread(record.content + record.size, 1, room - record.size, file)) > 0)
	{
		record.size += got;
		if (record.size == room)
			record.content = realloc(record.content, room *= 2);
	}
	fclose(file);

	record.header = (const RecordHeader *) record.content;
	record.pieces = (const PieceHeader *) (record.header + 1);
	if (record.size < sizeof(RecordHeader) ||
		memcmp(record.header->magic, RECORD_MAGIC, sizeof(record.header->magic)) != 0 ||
		record.size < sizeof(RecordHeader) + record.header->npieces * sizeof(PieceHeader))
		sim_fail("load.state: %s is no record of measure_sweep", path);
}

/*
 * The content of a piece, or NULL if the server had none of that name.
 */
static const void *
find_piece(const char *name, const PieceHeader **header)
{
	size_t		at = sizeof(RecordHeader) + record.header->npieces * sizeof(PieceHeader);

	for (uint32 i = 0; i < record.header->npieces; i++)
	{
		const PieceHeader *piece = &record.pieces[i];

		if (at + piece->size > record.size)
			sim_fail("load.state: the record of \"%s\" is cut off", piece->name);
		if (strcmp(piece->name, name) == 0)
		{
			*header = piece;
			return record.content + at;
		}
		at += TYPEALIGN(8, piece->size);
	}
	return NULL;
}

static void
restore_descriptors(void)
{
	const PieceHeader *piece;
	const BufferDescPadded *from = find_piece("Buffer Descriptors", &piece);

	if (from == NULL || piece->size != NBuffers * sizeof(BufferDescPadded))
		sim_fail("load.state: the server had another number of buffers than %d", NBuffers);
	for (int i = 0; i < NBuffers; i++)
		pg_atomic_write_u32(&GetBufferDescriptor(i)->state,
							pg_atomic_read_u32((pg_atomic_uint32 *) &from[i].bufferdesc.state));
}

/*
 * Core's hand.  At the end of a lap it points beyond the last buffer, which is
 * reported as the first one.
 */
static void
restore_hand(void)
{
	const RecordHeader *header = record.header;
	uint32		hand = header->hand == 0 && header->passes > 0 ? NBuffers : header->hand;

	pg_atomic_write_u32(&upstream_control->hand, hand);
}

/*
 * A partition's address in our PgSweepPool, for one in the server's.
 */
static PgSweepPartition *
relocate(const PgSweepPartition *part, uint64 base)
{
	return part == NULL ? NULL :
		(PgSweepPartition *) ((char *) PgSweepPool + ((uint64) (uintptr_t) part - base));
}

/*
 * What the strategies of the library go by; the lock and what is only for views
 * stay ours.
 */
static void
restore_sweep(void)
{
	const PieceHeader *piece;
	const PgSweepPoolShared *from = find_piece("pg_sweep", &piece);
	PgSweepSlot *slot = pgsweep_my_slot;

	if (from == NULL || offsetof(PgSweepPoolShared, slots[record.header->procno + 1]) >
		from->part_counters_offset)
		sim_fail("load.state: the server did not run pg_sweep");
	if (from->num_partitions != PgSweepPool->num_partitions)
		sim_fail("load.state: the server had %u partitions, not %u",
				 from->num_partitions, PgSweepPool->num_partitions);

	*slot = from->slots[record.header->procno].slot;
	slot->lease.part = relocate(slot->lease.part, piece->address);
	PgSweepPool->whole = from->whole;
	for (uint32 i = 0; i < from->num_partitions; i++)
	{
		if (from->parts[i].node != PgSweepPool->parts[i].node)
			sim_fail("load.state: partition %u was on node %u", i, from->parts[i].node);
		PgSweepPool->parts[i] = from->parts[i];
	}
	PgSweepPool->laps = from->laps;
	pg_atomic_write_u32(&PgSweepPool->batch, pg_atomic_read_u32((pg_atomic_uint32 *) &from->batch));
	pg_atomic_write_u64(&PgSweepPool->active, pg_atomic_read_u64((pg_atomic_uint64 *) &from->active));
}

/*
 * As in test/sweep/measure_sweep/record.c.
 */
static inline uint32
spread_usage(int64 i)
{
	return ((uint32) i * 2654435761U >> 16) % (BM_MAX_USAGE_COUNT + 1);
}

static void
replay(void *arg)
{
	const SimStrategy *strategy = sim_strategy();

	if (PgSweep != NULL)
	{
		(void) pgsweep_take_slot();
		restore_sweep();
	}

	sim_measure_begin();
	for (int64 i = 0; i < allocations; i++)
	{
		uint32		count = usage == USAGE_MIXED ? spread_usage(i) : (uint32) usage;
		uint32		buf_state;
		BufferDesc *buf = strategy->get_victim(&buf_state);

		UnlockBufHdr(buf, buf_state | count << BUF_USAGECOUNT_SHIFT);
		victims[i] = (int32) ((BufferDescPadded *) buf - BufferDescriptors);
	}
	sim_measure_end();
	sim_stop();
}

static void
replay_setup(void)
{
	read_record(sim_config_text("load.state", ""));
	victims_path = sim_config_text("load.victims", "");
	allocations = sim_config_int("load.allocations", 1, MAX_RECORDED, MAX_RECORDED);
	usage = sim_config_int("load.usage", USAGE_MIXED, BM_MAX_USAGE_COUNT, 0);
	victims = malloc(allocations * sizeof(victims[0]));
	if (sim_backends() != 1)
		sim_fail("load replay: backends must be 1");

	sim_pool_setup();
	restore_descriptors();
	restore_hand();
	sim_spawn("backend", replay, NULL, SIM_BY_PLACEMENT);
}

static void
replay_report(void)
{
	FILE	   *file = fopen(victims_path, "wb");

	if (file == NULL || fwrite(victims, sizeof(victims[0]), allocations, file) != allocations ||
		fclose(file) != 0)
		sim_fail("load.victims: cannot write %s", victims_path);
}

const SimLoad sim_load_replay = {"replay", replay_setup, replay_report};
