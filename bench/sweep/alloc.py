"""How fast are victims allocated, by 1, 2, N processes at once?

The test module measure_sweep allocates victims in a loop inside the server, in
one or more sessions at the same time. For "partitioned", the sessions are in
turn on two emulated nodes, and so in partitions of their own. Shared atomics per
allocation are counted as well."""

import os
import time

from bench.lib import cluster, report, runner, sides, stats
from bench.lib.paths import BenchError
from bench.lib.tables import HIGHER, LOWER, Metric

RATE = "allocations_per_second"
TIME = "ns_per_allocation"
ATOMICS = "shared_atomics_per_allocation"
LOCAL = "local_allocations_percent"

NODES = 2               # of the sessions of "partitioned"
USAGES = (0, 2)         # usage counts of the buffers
COUNTED = 64 * 20000    # allocations of the count: a multiple of every batch
COUNTED_WHERE = f"counted: {COUNTED} allocations, usage 0, 1 process"

MOST_ATOMICS = 1 / 64   # per allocation, of "partitioned"

WARM_MS = 20            # of allocation before each sample, not measured
START_MS = 30           # until the common start: time to reach every session
LATE_SHARE = 0.05       # a later start than this share of a sample spoils it
LATE_SHARE_LOOSE = 0.5  # --quick, or more processes than CPUs
TRIES = 20              # for a sample that a late session has spoilt


def configuration(usage, processes):
    return (f"usage {usage}, {processes}"
            f" process{'es' if processes > 1 else ''}")


class Bench(runner.Bench):
    rounds = 15, 3
    check = "exit 1 if \"partitioned\" takes too many shared atomics"
    metrics = (Metric(TIME, "ns per allocation", 1, LOWER),
               Metric(RATE, "allocations/s", 0, HIGHER),
               Metric(ATOMICS, "shared atomics per allocation", 6, LOWER),
               Metric(LOCAL, "% of allocations from the own node", 1, HIGHER))

    @staticmethod
    def options(add):
        add("--ms", 250, 50, "length of a sample")
        add("--procs", (), help="more numbers of processes than 1 and 2")
        add("--batch", (), help="more values of batch_size than 64 and auto",
            least=0)
        add("--shared-buffers", "128MB")

    def __init__(self, args):
        super().__init__(args)
        self.processes = sorted({1, 2, *args.procs})
        sizes = sorted({64, *args.batch} - {0}, reverse=True)
        self.sides = [sides.STOCK_SERVER, sides.NOTHING_LOADED,
                      sides.SWEEP_STOCK, *map(sides.batched, sizes),
                      sides.batched(0), sides.partitioned(NODES)]
        self.spoilt = 0

    def prepare(self):
        if max(self.processes) > (os.cpu_count() or 1):
            report.say(f"note: more processes than the {os.cpu_count()} CPUs")
        found_by = self.modules("measure_sweep")
        for key in self.keys():
            self.start_one(key, found_by[self.server(key)])
        for i, worker in enumerate(self.clusters[sides.SWEEP].workers):
            worker.rows(f"SET pg_sweep.numa_debug_node = {i % NODES}")

    def start_one(self, key, found_by):
        settings = {"shared_buffers": self.args.shared_buffers,
                    "max_connections": max(self.processes) + 20,
                    # The background writer would look at buffers, too.
                    "bgwriter_lru_maxpages": 0,
                    **sides.preload(key), **found_by}
        if key == sides.SWEEP:
            settings.update(sides.emulate_nodes(NODES))
        if max(self.processes) > 100:
            settings["huge_pages"] = "off"
        here = cluster.Cluster("alloc", key, self.server(key), settings)
        report.progress(f"starting cluster {key}")
        here.init()
        here.start()
        here.admin = here.session()
        here.admin.rows("CREATE EXTENSION measure_sweep")
        if key == sides.SWEEP:
            here.admin.rows("CREATE EXTENSION pg_sweep")
            sides.activate(sides.SWEEP_STOCK, here.admin)
        # Dirty buffers are written now, not during a sample. The freelist goes
        # first, because only core's own replacement uses it.
        here.admin.rows("CHECKPOINT")
        here.admin.rows("SELECT measure_sweep_drain_freelist()")
        here.workers = [here.session() for _ in range(max(self.processes))]
        self.clusters[key] = here

    # -- a sample

    def verify(self, side, sessions):
        for session in sessions:
            sides.verify(side, session, self.patched.version)

    def allocate(self, workers, usage, ms):
        """All workers at once. Returns (allocations, ns, late ns) of each."""
        start = time.time() + START_MS / 1000
        for worker in workers:
            worker.send("SELECT allocations, elapsed_ns, started_late_ns"
                        f" FROM measure_sweep_run({usage}, duration_ms => {ms},"
                        f" start_at => to_timestamp({start:.6f}))")
        return [tuple(map(int, worker.receive()[0])) for worker in workers]

    def most_late_ns(self, processes):
        loose = self.args.quick or processes > len(os.sched_getaffinity(0))
        return self.args.ms * 1e6 * (LATE_SHARE_LOOSE if loose else LATE_SHARE)

    def sample(self, side, usage, processes):
        """The values of one sample of a side, which is put in force for it."""
        here = self.clusters[side.cluster]
        admin, workers = here.admin, here.workers[:processes]
        sides.activate(side, admin)
        self.verify(side, [admin, *workers])
        admin.rows(f"SELECT measure_sweep_preset({usage})")
        self.allocate(workers, usage, WARM_MS)
        for _ in range(TRIES):
            before = sides.counters(side, admin)
            local_before = sides.local_allocations(side, admin)
            answers = self.allocate(workers, usage, self.args.ms)
            after = sides.counters(side, admin)
            local_after = sides.local_allocations(side, admin)
            late = max(late for _, _, late in answers)
            if late <= self.most_late_ns(processes):
                break
            self.spoilt += 1
        else:
            raise BenchError(
                f"a session began {late / 1e6:.0f} ms late, after {TRIES}"
                " tries: the machine is too busy to measure on")
        self.verify(side, [admin, *workers])

        rate = sum(count * 1e9 / ns for count, ns, _ in answers)
        found = {RATE: rate, TIME: processes * 1e9 / rate,
                 ATOMICS: sides.atomics_per_allocation(before, after)}
        if side.nodes is not None:
            sides.check_homes(side, workers)
            ours, total = (now - then for now, then
                           in zip(local_after, local_before))
            found[LOCAL] = 100 * ours / total
        return found

    def measure(self):
        for round_ in self.each_round():
            for usage in USAGES:
                for processes in self.processes:
                    for side in stats.rotated(self.sides, round_):
                        self.note(configuration(usage, processes), side,
                                  round_, self.sample(side, usage, processes))
        for side in self.sides:
            if side.strategy is not None:
                self.count(side)

    def count(self, side):
        """Shared atomics of an exact number of allocations. The number is a
        multiple of every batch: what is left of a lease at the start is left
        at the end."""
        report.progress(f"counting atomics: {side.name}")
        here = self.clusters[side.cluster]
        sides.activate(side, here.admin)
        fresh = here.session()
        self.verify(side, [here.admin, fresh])
        # The first time does not count: a session's first statements read
        # catalogs, and a page that was read is not free at once.
        for _ in range(2):
            fresh.rows("SELECT measure_sweep_preset(0)")
            before = sides.counters(side, here.admin)
            fresh.rows(f"SELECT measure_sweep_exact({COUNTED}, 0)")
            after = sides.counters(side, here.admin)
        fresh.close()
        self.note(COUNTED_WHERE, side, 0, {
            ATOMICS: sides.atomics_per_allocation(before, after)})

    # -- results

    def notes(self):
        yield ("Victims allocated in a loop inside the server; shared_buffers ="
               f" {self.args.shared_buffers}, {self.args.ms} ms per sample")
        yield ("shared atomics: read-modify-writes on lines that all backends"
               " share: leases, or stock's allocations and looks")
        admin = self.clusters[sides.SWEEP].admin
        sides.activate(sides.batched(0), admin)
        yield ("batched auto: batch_size "
               + admin.value("SELECT batch_size FROM pg_sweep_status")
               + " in force")
        if self.spoilt:
            yield (f"{self.spoilt} samples were repeated because a session"
                   " began late")

    def wanted(self):
        atomics = self.samples.row(ATOMICS, COUNTED_WHERE,
                                   sides.partitioned(NODES))["median"]
        yield (atomics <= MOST_ATOMICS,
               f"partitioned: {atomics:.6f} shared atomics/alloc counted, at"
               f" most {MOST_ATOMICS:.6f} wanted")
