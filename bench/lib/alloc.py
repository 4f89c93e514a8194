"""Victims allocated in a loop inside the server (test module measure_sweep), in one or
more sessions at the same time: clusters that stay up, and one sample after the
other. For "partitioned", the sessions are in turn on one and the other of two
nodes that pg_sweep pretends to see, and so in partitions of their own."""

import os
import time
from dataclasses import dataclass

from . import cluster, module, report, sides
from .paths import BenchError

WARM_MS = 20            # of allocation before each sample, not measured
PLAN_MS = 1200          # the same where the background writer's plan of who is
                        # served where must follow: six of its cycles
START_MS = 30           # until the common start: time to reach every session
LATE_SHARE = 0.05       # a session this late (of the time measured) spoils it
LATE_SHARE_LOOSE = 0.5  # --quick, or more processes than CPUs: some must be late
TRIES = 20              # for a sample that a late session spoilt
NODES = 2               # that the sessions of "partitioned" are on


def configuration(usage, processes):
    return (f"usage {usage}, {processes}"
            f" process{'es' if processes > 1 else ''}")


@dataclass(frozen=True)
class Sample:
    rate: float         # allocations a second, all sessions together
    ns: float           # of one allocation
    atomics: float      # shared ones, of an allocation; None: not counted
    local: float        # per cent from the own node; None: of no interest
    looks: tuple        # what look() said right before and right after


class Allocations:
    """loose: late sessions matter little."""

    def __init__(self, stock, patched, processes, shared_buffers, loose=False):
        sides.check_servers(stock, patched)
        self.stock = stock
        self.patched = patched
        self.processes = processes          # at most
        self.shared_buffers = shared_buffers
        self.loose = loose
        self.clusters = {}
        self.admin = {}
        self.workers = {}
        self.spoilt = 0

    def start(self, keys=(sides.STOCK, sides.BARE, sides.SWEEP)):
        servers = {sides.STOCK: self.stock, sides.BARE: self.patched,
                   sides.SWEEP: self.patched}
        found_by = {server: module.build(server)
                    for server in (self.stock, self.patched)}
        for key in keys:
            self.start_one(key, servers[key], found_by[servers[key]])
        for i, worker in enumerate(self.workers[sides.SWEEP]):
            worker.rows(f"SET pg_sweep.numa_debug_node = {i % NODES}")

    def start_one(self, key, server, found_by):
        settings = {"shared_buffers": self.shared_buffers,
                    "max_connections": self.processes + 20,
                    # The background writer would look at buffers too.
                    "bgwriter_lru_maxpages": 0,
                    **sides.preload(key), **found_by}
        if key == sides.SWEEP:
            settings.update(sides.fake_nodes(NODES))
        if self.processes > 100:
            settings["huge_pages"] = "off"
        here = cluster.Cluster("alloc", key, server, settings)
        report.progress(f"starting cluster {key}")
        here.init()
        here.start()
        admin = here.session()
        admin.rows("CREATE EXTENSION measure_sweep")
        if key == sides.SWEEP:
            admin.rows("CREATE EXTENSION pg_sweep")
            sides.activate(sides.SWEEP_STOCK, admin)
        # What is dirty is written out now, not while we measure; and the
        # freelist, which only core's own replacement uses, goes first.
        admin.rows("CHECKPOINT")
        admin.rows("SELECT measure_sweep_drain_freelist()")
        self.clusters[key] = here
        self.admin[key] = admin
        self.workers[key] = [here.session() for _ in range(self.processes)]

    def remove(self):
        for here in self.clusters.values():
            here.remove()

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

    def late_share(self, processes):
        loose = self.loose or processes > len(os.sched_getaffinity(0))
        return LATE_SHARE_LOOSE if loose else LATE_SHARE

    def prepare(self, side, usage, processes):
        """Put the side in force and let the sessions get into their stride.
        Returns them."""
        admin = self.admin[side.cluster]
        workers = self.workers[side.cluster][:processes]
        sides.activate(side, admin)
        self.verify(side, [admin, *workers])
        admin.rows(f"SELECT measure_sweep_preset({usage})")
        self.allocate(workers, usage,
                      WARM_MS if side.nodes is None else PLAN_MS)
        return workers

    def sample(self, side, usage, processes, ms, look=lambda: None):
        """One sample, of a side that is put in force for it. look() is called
        right before and right after it: at the machine, for example."""
        admin = self.admin[side.cluster]
        workers = self.prepare(side, usage, processes)
        for _ in range(TRIES):
            before = sides.counters(side, admin)
            local_before = sides.local_allocations(side, admin)
            seen = look()
            answers = self.allocate(workers, usage, ms)
            looks = (seen, look())
            after = sides.counters(side, admin)
            local_after = sides.local_allocations(side, admin)
            late = max(late for _, _, late in answers)
            if late <= ms * 1e6 * self.late_share(processes):
                break
            self.spoilt += 1
        else:
            raise BenchError(
                f"{TRIES} times running a session began {late / 1e6:.0f} ms"
                " late: the machine is too busy to measure on")
        self.verify(side, [admin, *workers])

        rate = sum(count * 1e9 / ns for count, ns, _ in answers)
        local = None
        if side.nodes is not None:
            sides.check_homes(side, workers)
            ours, total = (now - then for now, then
                           in zip(local_after, local_before))
            local = 100 * ours / total
        return Sample(rate, processes * 1e9 / rate,
                      sides.atomics_per_allocation(before, after), local,
                      looks)
