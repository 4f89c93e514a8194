"""How fast are victims allocated, by 1, 2, N processes at once?

The test module measure_sweep allocates victims in a loop inside the server, in
one or more sessions at the same time, and loads a made-up page into each. On all
sides a buffer gets a tag and a usage count; "clock2q" is told of the load, as core
does it. A quarter of the pages have been in the pool before. For "partitioned",
the sessions are in turn on two emulated nodes, and so in partitions of their own.
Shared atomics per allocation are counted as well, without loads."""

import os
import time
from statistics import median

from bench.lib import cluster, report, runner, sides, stats
from bench.lib.paths import BenchError
from bench.lib.tables import HIGHER, LOWER, Metric

RATE = "allocations_per_second"
TIME = "ns_per_allocation"
ATOMICS = "shared_atomics_per_allocation"
LOCAL = "local_allocations_percent"

NODES = 2               # of the sessions of "partitioned"
USAGES = (0, 2)         # usage counts of the buffers
LOADED_USAGES = (0, 1, 2)   # of loaded pages; core's is 1
COUNTED = 64 * 20000    # allocations of the count: a multiple of every batch
COUNTED_WHERE = f"counted: {COUNTED} allocations, usage 0, 1 process"

MOST_ATOMICS = 1 / 64   # per allocation, of "partitioned"
MOST_TIME = 1.6         # of an allocation by "clock2q", to "batched auto"

# Of the loads of a sample: pages that had left. The module's is a quarter; a
# page is not found again if others have left meanwhile, or another process has
# stored a ghost in the same moment.
RETURNED = 0.2, 0.3
LOADED = 0.98           # of allocations: the other buffers had a real page

WARM_MS = 20            # of allocation before each sample, not measured
WARM_LAPS = 10          # of the pool, instead, with loads
START_MS = 30           # until the common start: time to reach every session
LATE_SHARE = 0.05       # a later start than this share of a sample spoils it
LATE_SHARE_LOOSE = 0.5  # --quick, or more processes than CPUs
TRIES = 20              # for a sample that a late session has spoilt


def configuration(usage, processes):
    return (f"usage {usage}, {processes}"
            f" process{'es' if processes > 1 else ''}")


class Bench(runner.Bench):
    rounds = 15, 3
    check = ("exit 1 if \"partitioned\" takes too many shared atomics, or"
             " \"clock2q\" too long")
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

    @staticmethod
    def switches(add):
        add("--no-loads", "victims are given back with the pages that they"
            " had, as in figures of before; without clock2q")

    def __init__(self, args):
        super().__init__(args)
        self.processes = sorted({1, 2, *args.procs})
        sizes = sorted({64, *args.batch} - {0}, reverse=True)
        self.sides = [sides.STOCK_SERVER, sides.NOTHING_LOADED,
                      sides.SWEEP_STOCK, *map(sides.batched, sizes),
                      sides.batched(0), sides.partitioned(NODES)]
        if not args.no_loads:
            self.sides.append(sides.clock2q())
        self.usages = USAGES if args.no_loads else LOADED_USAGES
        self.spoilt = 0
        self.clock2q_loads = {}     # sums of what pg_sweep_clock2q has counted

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

    def allocate(self, side, workers, usage, ms):
        """All workers at once. Returns (allocations, ns, late ns) of each."""
        if self.args.no_loads:
            start = time.time() + START_MS / 1000
            call = ("allocations, elapsed_ns, started_late_ns"
                    f" FROM measure_sweep_run({usage}, duration_ms => {ms},"
                    f" start_at => to_timestamp({start:.6f}))")
        else:
            call = ("allocations, elapsed_ns, started_late_ns,"
                    f" loads FROM measure_sweep_loads({usage}, {side.loads},"
                    f" {len(workers)}, max_ms => {ms},"
                    f" warm_laps => {WARM_LAPS})")
        for worker in workers:
            worker.send(f"SELECT {call}")
        answers = [tuple(map(int, worker.receive()[0])) for worker in workers]
        for count, _, _, *loads in answers:
            if loads and loads[0] < LOADED * count:
                raise BenchError(f"only {loads[0]} of {count} allocations"
                                 " loaded a page: there were real ones")
        return [answer[:3] for answer in answers]

    def most_late_ns(self, processes):
        loose = self.args.quick or processes > len(os.sched_getaffinity(0))
        return self.args.ms * 1e6 * (LATE_SHARE_LOOSE if loose else LATE_SHARE)

    def prepare_sample(self, side, admin, workers, usage):
        """measure_sweep_loads() warms the pool itself."""
        sides.activate(side, admin)
        self.verify(side, [admin, *workers])
        if self.args.no_loads:
            admin.rows(f"SELECT measure_sweep_preset({usage})")
            self.allocate(side, workers, usage, WARM_MS)

    def sample(self, side, usage, processes):
        """The values of one sample of a side, which is put in force for it."""
        here = self.clusters[side.cluster]
        admin, workers = here.admin, here.workers[:processes]
        self.prepare_sample(side, admin, workers, usage)
        for _ in range(TRIES):
            before = sides.counters(side, admin)
            local_before = sides.local_allocations(side, admin)
            told_before = told_of(side, admin)
            answers = self.allocate(side, workers, usage, self.args.ms)
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
        if side.loads:
            self.check_loads(usage, processes, sum(count for count, _, _
                                                   in answers),
                             told_before, told_of(side, admin))

        rate = sum(count * 1e9 / ns for count, ns, _ in answers)
        found = {RATE: rate, TIME: processes * 1e9 / rate,
                 # leases of slots are not among those of "clock2q"
                 ATOMICS: None if side.loads
                 else sides.atomics_per_allocation(before, after)}
        if side.nodes is not None:
            sides.check_homes(side, workers)
            ours, total = (now - then for now, then
                           in zip(local_after, local_before))
            found[LOCAL] = 100 * ours / total
        return found

    def check_loads(self, usage, processes, allocations, before, after):
        """Was the strategy told of each load, and of pages that return?"""
        told = {name: after[name] - before[name] for name in before}
        loads = told["entered"] + told["returned"]
        if loads < LOADED * allocations:
            raise BenchError(f"{allocations} allocations, but pg_sweep_clock2q"
                             f" counts {loads} loads")
        if not RETURNED[0] <= told["returned"] / loads <= RETURNED[1]:
            raise BenchError(f"of {loads} loads, {told['returned']} were of"
                             " pages that clock2q remembers")
        sums = self.clock2q_loads.setdefault(configuration(usage, processes),
                                             dict.fromkeys(told, 0))
        for name in told:
            sums[name] += told[name]

    def measure(self):
        for round_ in self.each_round():
            for usage in self.usages:
                for processes in self.processes:
                    for side in stats.rotated(self.sides, round_):
                        self.note(configuration(usage, processes), side,
                                  round_, self.sample(side, usage, processes))
        for side in self.sides:
            if side.strategy is not None and not side.loads:
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
        loads = ("given back with their pages" if self.args.no_loads
                 else "a made-up page is loaded into each, one of four has"
                 " been there before")
        yield ("Victims allocated in a loop inside the server;"
               f" {loads}; shared_buffers = {self.args.shared_buffers},"
               f" {self.args.ms} ms per sample")
        yield ("shared atomics: read-modify-writes on lines that all backends"
               " share: leases, or stock's allocations and looks")
        admin = self.clusters[sides.SWEEP].admin
        sides.activate(sides.batched(0), admin)
        yield ("batched auto: batch_size "
               + admin.value("SELECT batch_size FROM pg_sweep_status")
               + " in force")
        for where, told in self.clock2q_loads.items():
            victims = told["victims_main"] + told["victims_probation"]
            yield (f"clock2q, {where}: for each victim"
                   f" {told['returned'] / victims:.2f} pages return,"
                   f" {told['victims_main'] / victims:.2f} victims are of the"
                   f" main part, {told['judged'] / victims:.2f} buffers are"
                   f" judged, {told['looked_at'] / victims:.2f} looked at")
        if self.spoilt:
            yield (f"{self.spoilt} samples were repeated because a session"
                   " began late")

    def wanted(self):
        atomics = self.samples.row(ATOMICS, COUNTED_WHERE,
                                   sides.partitioned(NODES))["median"]
        yield (atomics <= MOST_ATOMICS,
               f"partitioned: {atomics:.6f} shared atomics/alloc counted, at"
               f" most {MOST_ATOMICS:.6f} wanted")
        if self.args.no_loads:
            return
        for where in self.samples.configurations(TIME):
            ratio, low, high = self.ratio(where)
            yield (ratio <= MOST_TIME,
                   f"clock2q to batched auto, {where}: "
                   + stats.with_interval(ratio, low, high)
                   + f" of the time, at most {MOST_TIME} wanted")

    def ratio(self, where):
        """Of the times of clock2q and "batched auto", with its interval."""
        ours = self.samples.by_round(TIME, where, sides.clock2q())
        base = self.samples.by_round(TIME, where, sides.batched(0))
        ratios = [ours[round_] / base[round_] for round_ in ours]
        low, high = stats.interval(ratios) or (min(ratios), max(ratios))
        return median(ratios), low, high


def told_of(side, session):
    """What "clock2q" has counted; None for other sides."""
    if not side.loads:
        return None
    names = ("entered", "returned", "judged", "victims_probation",
             "victims_main", "looked_at")
    return dict(zip(names, map(int, session.row(
        "SELECT entered, returned_probation + returned_main, judged,"
        " victims_probation, victims_main, looked_at FROM pg_sweep_clock2q"
        " JOIN pg_sweep_strategies USING (strategy)"
        " WHERE strategy = 'clock2q'"))))
