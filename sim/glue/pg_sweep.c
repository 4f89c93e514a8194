/*-------------------------------------------------------------------------
 *
 * sim/glue/pg_sweep.c
 *	  Stand-ins for the rest of the extension, and its strategies as those of
 *	  the simulator.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "feature.h"
#include "glue/glue.h"
#include "miscadmin.h"
#include "numa/pool.h"
#include "numa/topology.h"
#include "storage/proc.h"
#include "sweep/partitions.h"
#include "sweep/probation.h"
#include "upstream/core.h"

/* ---- parameters, as gucs.c has them ---- */

SIM_COMMON int pgsweep_strategy = PGSWEEP_STOCK;
SIM_COMMON int pgsweep_batch_size = 0;
SIM_COMMON int pgsweep_partitions = 0;
SIM_COMMON bool pgsweep_balance = true;
SIM_COMMON int pgsweep_numa_debug_node = -1;

/* ---- the machine ---- */

SIM_COMMON PgSweepNumaTopology pgsweep_numa_topology;

uint32
pgsweep_numa_current_cpu(void)
{
	return sim_cpu() % sim_cpus();	/* the background writer's is beyond them */
}

uint32
pgsweep_numa_current_node(void)
{
	return pgsweep_numa_topology.cpu_node[pgsweep_numa_current_cpu()];
}

Size
pgsweep_numa_shmem_page_size(void)
{
	return 4096;
}

/*
 * Distances as firmware gives them: the local one is 10, others in proportion to
 * the latency of memory.
 */
static uint8
distance(int a, int b)
{
	const SimMachine *machine = sim_machine();
	SimTime		far = machine->memory_other;

	if (a == b)
		return PGSWEEP_NUMA_DISTANCE_LOCAL;
	if (a / machine->nodes_per_socket == b / machine->nodes_per_socket)
		far = machine->memory_socket;
	return Max(PGSWEEP_NUMA_DISTANCE_LOCAL + 1,
			   Min(254, PGSWEEP_NUMA_DISTANCE_LOCAL * far / Max(machine->memory_local, 1)));
}

static void
make_topology(void)
{
	PgSweepNumaTopology *t = &pgsweep_numa_topology;
	const SimMachine *machine = sim_machine();

	t->nnodes = sim_nodes();
	t->ncpus = t->cpu_limit = sim_cpus();
	if (t->nnodes > PGSWEEP_NUMA_MAX_NODES)
		sim_fail("pg_sweep knows up to %d nodes", PGSWEEP_NUMA_MAX_NODES);
	if (t->ncpus > PGSWEEP_NUMA_MAX_CPUS)
		sim_fail("pg_sweep knows up to %d CPUs", PGSWEEP_NUMA_MAX_CPUS);
	for (uint32 cpu = 0; cpu < t->ncpus; cpu++)
	{
		t->cpu_usable[cpu] = true;
		t->cpu_node[cpu] = sim_node_of_cpu(cpu);
		t->node_cpus[t->cpu_node[cpu]]++;
		t->cpu_core[cpu] = cpu % machine->cores;
		t->cpu_cache[cpu] = t->cpu_core[cpu] / machine->cores_per_group * machine->cores_per_group;
	}
	for (uint32 a = 0; a < t->nnodes; a++)
	{
		t->node_id[a] = a;
		for (uint32 b = 0; b < t->nnodes; b++)
			t->distance[a][b] = distance(a, b);
	}
}

/* ---- other files of the extension ---- */

uint64
pgsweep_numa_room_for_parts(uint32 node)
{
	return PG_UINT64_MAX;
}

static const PgSweepFeature sweep_feature = {
	.works_without_patch = true,
	.take_slot = pgsweep_enter_slot,
	.leave_slot = pgsweep_leave_slot,
};

const PgSweepFeature *const pgsweep_features[] = {&sweep_feature, NULL};

void
pgsweep_numa_set_parts(const PgSweepNumaPart *parts, int n, bool (*in_use) (void))
{
}

void
pgsweep_numa_add_slots(void *start, Size element, uint32 n)
{
}

void
ActivateBufferReplacement(bool active, bool loads_wanted)
{
}

void
pgsweep_advice_tell(struct BufferDesc *buf, uint32 hash, bool ring)
{
}

void
StrategyEmptyFreelist(void)
{
}

/* ---- strategies ---- */

/*
 * The lines of the two hands and the length, and the arrays.
 */
static void
name_clock2q(void)
{
	PgSweepClock2q *c = &PgSweepPool->whole_probation.c2q;
	Size		hands = offsetof(PgSweepClock2q, first_slot);

	sim_region_name("read_mostly", c, (char *) &PgSweepPool->flow - (char *) c);
	sim_region_name("c2q_hands", c, hands);
	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
		sim_region_name("c2q_hands", &PgSweepPool->probation[i], hands);
	sim_region_name("c2q_slots", c->slot, CACHELINEALIGN(NBuffers * sizeof(c->slot[0])));
	sim_region_name("c2q_places", c->place, CACHELINEALIGN(NBuffers * sizeof(c->place[0])));
	sim_region_name("c2q_ghosts", c->set, c->num_sets * sizeof(c->set[0]));
}

/*
 * Shared memory by the extension's own code, and names for what is in it.
 * Backends are the first fibers, and have the slots of their numbers.
 */
static void
name_regions(void)
{
	Size		stride = PgSweepPool->part_counters_stride;
	char	   *counters = (char *) PgSweepPool + PgSweepPool->part_counters_offset;

	sim_region_name("read_mostly", PgSweepPool, offsetof(PgSweepPoolShared, ncpus));
	sim_region_name("partitions", PgSweepPool->parts, sizeof(PgSweepPool->parts));
	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
		sim_region_name("hands", &PgSweepPool->parts[i].hand, sizeof(PgSweepHand));
	sim_region_name("partitions", &PgSweepPool->whole, sizeof(PgSweepPool->whole));
	sim_region_name("hands", &PgSweepPool->whole.hand, sizeof(PgSweepHand));
	sim_region_name("laps", &PgSweepPool->laps,
					(char *) PgSweepPool->flow - (char *) &PgSweepPool->laps);
	name_clock2q();
	sim_region_name("flow", PgSweepPool->flow, sizeof(PgSweepPool->flow));
	sim_region_name("slots", PgSweepPool->slots, counters - (char *) PgSweepPool->slots);
	sim_region_name("part_counters", counters, PgSweep->num_slots * stride);
	for (int i = 0; i < sim_backends(); i++)
	{
		sim_region_owner(&PgSweepPool->slots[i], sizeof(PgSweepSlotPadded), i);
		sim_region_owner(counters + i * stride, stride, i);
	}
}

static void
setup(PgSweepStrategyId id)
{
	pgsweep_strategy = id;
	pgsweep_batch_size = sim_config_int("batch", 0, 1024, 0);
	pgsweep_partitions = sim_config_int("partitions", 0, PGSWEEP_MAX_PARTITIONS, 0);
	pgsweep_balance = sim_config_int("balance", 0, 1, 1);
	make_topology();
	upstream_setup();
	pgsweep_pool_init();
	pgsweep_shared_init();
	name_regions();
}

static void
setup_batched(void)
{
	setup(PGSWEEP_BATCHED);
}

static void
setup_partitioned(void)
{
	setup(PGSWEEP_PARTITIONED);
}

/*
 * The load begins with a pool in use: there is no first lap, in which free buffers
 * are found.
 */
static void
no_first_lap(PgSweepProbation *p)
{
	pg_atomic_write_u64(&p->lap_end, 0);
	pg_atomic_write_u32(&p->free_buffers, 0);
}

static void
setup_clock2q(void)
{
	setup(PGSWEEP_CLOCK2Q);
	no_first_lap(&PgSweepPool->whole_probation);
}

static void
setup_clock2q_partitioned(void)
{
	setup(PGSWEEP_CLOCK2Q_PARTITIONED);
	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
		no_first_lap(&PgSweepPool->probation[i]);
	pg_atomic_write_u64(&PgSweepPool->first_laps, 0);
}

/*
 * TellLoad() of the patched server.
 */
static void
loaded(BufferDesc *buf)
{
	pgsweep_replacement_routine.loaded(buf, NULL);
}

/*
 * StrategyGetBuffer() of the patched server: look whether the background writer
 * wants to be woken, and ask the extension.
 */
static BufferDesc *
get_victim(uint32 *buf_state)
{
	upstream_wake_bgwriter();
	return pgsweep_replacement_routine.get_victim(NULL, buf_state);
}

static void
cycle(void)
{
	const PgSweepStrategyRoutine *strategy = pgsweep_strategies[pgsweep_strategy];

	if (strategy->cycle)
		strategy->cycle();
	upstream_bgwriter_cycle();
}

/*
 * Of all leases that have ended: how many per cent of their allocations were by
 * processes on the node of the buffer, and by those whose home it is in; and how
 * many times the mean the busiest partition has given out.  (Not by pgsweep_sum_partitions(): a process may have
 * been stopped while it wrote its counters.)
 */
static void
report_partitions(void)
{
	uint64		sum = 0;
	uint64		local = 0;
	uint64		away = 0;
	uint64		most = 0;

	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
	{
		uint64		allocations = 0;

		for (uint32 slot = 0; slot < PgSweep->num_slots; slot++)
		{
			const PgSweepPartCounters *count =
				&pgsweep_part_counters(&PgSweepPool->slots[slot].slot)[i];

			allocations += count->allocations;
			local += count->local;
			away += count->redirected_in;
		}
		sum += allocations;
		most = Max(most, allocations);
	}
	sim_result("local_percent", sum ? 100.0 * local / sum : 0);
	sim_result("home_percent", sum ? 100.0 * (sum - away) / sum : 0);
	sim_result("busiest_partition", sum ? (double) most * PgSweepPool->num_partitions / sum : 0);
}

const SimStrategy sim_strategy_batched = {
	"batched", setup_batched, get_victim, cycle
};

const SimStrategy sim_strategy_partitioned = {
	"partitioned", setup_partitioned, get_victim, cycle, report_partitions
};

/*
 * Of the whole run, for each victim: pages that returned, and victims of the main
 * part.  At its end: how long probation is, and leases of slots.
 */
static void
report_probation(PgSweepStrategyId id, uint64 length)
{
	PgSweepC2qCounters sum = {0};
	double		victims;

	for (int i = 0; i < sim_backends(); i++)
	{
		const PgSweepC2qCounters *own = &PgSweepPool->slots[i].slot.c2q.counters[pgsweep_c2q_kind(id)];

		for (int side = 0; side < 2; side++)
		{
			sum.victims[side] += own->victims[side];
			sum.returned[side] += own->returned[side];
		}
	}
	victims = Max(sum.victims[0] + sum.victims[1], 1);
	sim_result("returned_percent", 100.0 * (sum.returned[0] + sum.returned[1]) / victims);
	sim_result("main_percent", 100.0 * sum.victims[PGSWEEP_C2Q_MAIN] / victims);
	sim_result("length_percent", 100.0 * length / NBuffers);
	sim_result("slots_of_lease", pg_atomic_read_u32(&PgSweepPool->c2q_batch));
}

static void
report_clock2q(void)
{
	report_probation(PGSWEEP_CLOCK2Q,
					 pg_atomic_read_u32(&PgSweepPool->whole_probation.c2q.length));
}

static void
report_clock2q_partitioned(void)
{
	uint64		length = 0;

	for (uint32 i = 0; i < PgSweepPool->num_partitions; i++)
		length += pg_atomic_read_u32(&PgSweepPool->probation[i].c2q.length);
	report_probation(PGSWEEP_CLOCK2Q_PARTITIONED, length);
	report_partitions();
}

const SimStrategy sim_strategy_clock2q = {
	"clock2q", setup_clock2q, get_victim, cycle, report_clock2q, loaded
};

const SimStrategy sim_strategy_clock2q_partitioned = {
	"clock2q_partitioned", setup_clock2q_partitioned, get_victim, cycle,
	report_clock2q_partitioned, loaded
};
