"""How should a process wait for a lightweight lock? With 1 to 2000 connections.

The sides are every policy of pg_sweep, the patched server with nothing loaded,
and the stock server. pgbench runs three workloads: inserts into an unlogged
table without an index, SELECT txid_current() (both from the thread that proposed
a lock-free queue), and tpcb-like. A fourth is one hot lock, which a test module
acquires and releases in many processes at once.

All sides are measured in every round, in an order that changes from round to
round. pgbench connects once per server, and policies are switched under it. Only
what happens within a side's span of time counts. CPU time and switches are
those of the server's processes alone, read from the kernel."""

import os
import random
import time
from dataclasses import dataclass

from bench.lib import (cluster, load, pgbench, processes, report, runner, sides,
                       stats)
from bench.lib.paths import BenchError
from bench.lib.tables import HIGHER, LOWER, Metric

TPS = "tps"
CPU = "cpu_us_per_transaction"
SWITCHES = "voluntary_switches_per_transaction"
LATENCY = "latency_99_9_ms"
LONGEST = "longest_latency_ms"
SLEEPS = "sleeps_per_contended_acquisition"
CONTENDED = "contended_acquisitions_per_transaction"
OVERTAKEN = "overtaken_per_contended_acquisition"

HOT_RATE = "hot_acquisitions_per_second"
HOT_CPU = "hot_cpu_ns_per_acquisition"
HOT_SLEPT = "hot_slept_per_acquisition"
HOT_SWITCHES = "hot_voluntary_switches_per_acquisition"
HOT_WAIT = "hot_wait_99_9_us"
HOT_LONGEST = "hot_longest_wait_ms"

MODULE = "measure_lwlock"

# Fewer than in the thread.
CONNECTIONS = (1, 2, 4, 8, 16, 20, 30, 62, 130, 270, 560, 1000, 2000)
CONNECTIONS_RW = (1, 20, 130, 560)
CONNECTIONS_QUICK = (1, 20, 130)
WARM_SECONDS = 0.2              # when all are at work, before the first side
SETTLE_SECONDS = 0.1            # after a switch, before a side's time begins


@dataclass(frozen=True)
class Workload:
    name: str
    database: str
    script: str                 # None: the builtin one
    connections: tuple
    prepare: tuple = ()

    def options(self, folder):
        if self.script is None:
            return ["-b", "tpcb-like"]
        path = folder / f"{self.name}.sql"
        path.write_text(self.script)
        return ["-f", path, "-s", 1]


WORKLOADS = {workload.name: workload for workload in (
    Workload("insert", "thread",
             "\\set aid random(1, 10 * :scale)\n"
             "\\set delta random(1, 100000 * :scale)\n"
             "INSERT INTO pgbench_accounts (aid, bid, abalance)"
             " VALUES (:aid, :aid, :delta);\n",
             CONNECTIONS, ("TRUNCATE pgbench_accounts",)),
    Workload("txid", "thread", "select txid_current();\n", CONNECTIONS),
    Workload("rw", "rw", None, CONNECTIONS_RW))}


def cpus():
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Cell:
    """A workload with a number of connections, for some time per side."""
    workload: Workload
    connections: int
    seconds: float
    tail: bool

    def where(self):
        return (f"{self.workload.name}, {self.connections} connection"
                f"{'s' if self.connections > 1 else ''}"
                f"{', tail' if self.tail else ''}")


class Bench(runner.Bench):
    rounds = 5, 2
    boxed = controlled = True
    metrics = (
        Metric(TPS, "transactions/s", 0, HIGHER, 2),
        Metric(CPU, "CPU time per transaction, us", 1, LOWER, 2),
        Metric(SWITCHES, "voluntary switches per transaction", 2, LOWER, 2),
        Metric(LATENCY, "99.9 % latency, ms", 2, LOWER, 2),
        Metric(LONGEST, "longest latency, ms", 1, LOWER, 2),
        Metric(CONTENDED, "contended acquisitions per transaction", 3),
        Metric(SLEEPS, "sleeps per contended acquisition", 3, LOWER),
        Metric(OVERTAKEN, "times overtaken after a wakeup, per contended"
               " acquisition", 3, LOWER),
        Metric(HOT_RATE, "acquisitions/s", 0, HIGHER, 2),
        Metric(HOT_CPU, "CPU time per acquisition, ns", 0, LOWER, 2),
        Metric(HOT_LONGEST, "longest wait, ms", 2, LOWER, 2),
        Metric(HOT_WAIT, "99.9 % wait, us", 1, LOWER, 2),
        Metric(HOT_SLEPT, "sleeps per acquisition", 5, LOWER, 2),
        Metric(HOT_SWITCHES, "voluntary switches per acquisition", 5, LOWER,
               2))

    @staticmethod
    def options(add):
        add("--seconds", 0.8, 0.5, "of a side's time")
        add("--connections", None, CONNECTIONS_QUICK, "of the pgbench"
            " workloads", nargs="+",
            default=f"{runner.shown(CONNECTIONS)};"
            f" rw: {runner.shown(CONNECTIONS_RW)}")
        add("--workload", (*WORKLOADS, "hot"), choices=[*WORKLOADS, "hot"])
        add("--tail-connections", 500, 130, "for the 99.9th percentile and the"
            " longest latency; 0 leaves it out", least=0)
        add("--tail-seconds", 2.0, 0.5)
        add("--jobs", cpus(), help="threads of pgbench")
        add("--scale", 20, 5, "of the tables of rw")
        add("--shared-buffers", "1GB")
        add("--processes", 64, help="of hot")
        add("--hold", 200, help="turns of an empty loop while the hot lock is"
            " held", least=0)
        add("--think", 200, help="the same between two acquisitions", least=0)
        add("--hot-ms", 1000, 200)
        add("--hot-rounds", 10, 2)

    def __init__(self, args):
        super().__init__(args)
        self.sides = self.with_control([
            sides.STOCK_SERVER, sides.NOTHING_LOADED,
            *map(sides.lwlock_policy, sides.LWLOCK_WAITS)])
        self.cells = [
            Cell(workload, connections, seconds, tail)
            for workload in WORKLOADS.values() if workload.name in args.workload
            for connections, seconds, tail in
            [*((n, args.seconds, False)
               for n in args.connections or workload.connections),
             *([(args.tail_connections, args.tail_seconds, True)]
               if args.tail_connections else [])]]
        self.most = max([args.processes,
                         *(cell.connections for cell in self.cells)])
        load.need_files(self.most)
        self.ready = 0.0            # the longest start of pgbench

    # -- clusters

    def prepare(self):
        """One cluster with all data, and a copy of it for each server."""
        found_by = self.modules(MODULE)
        common = {"shared_buffers": self.args.shared_buffers,
                  "huge_pages": "off", "full_page_writes": "off",
                  # as in the thread: a commit waits until WAL is written
                  "synchronous_commit": "on",
                  "max_connections": self.most + 20}
        report.progress("making the databases")
        first = cluster.Cluster("lwlock", "template", self.patched,
                                {**common, **found_by[self.patched]})
        first.init()
        first.start()
        pgbench.initialize(first, "thread", 1, "--unlogged-tables")
        first.session("thread").rows("ALTER TABLE pgbench_accounts"
                                   " DROP CONSTRAINT pgbench_accounts_pkey")
        pgbench.initialize(first, "rw", self.args.scale)
        admin = first.session()
        admin.rows("CREATE EXTENSION pg_sweep")
        admin.rows("CREATE EXTENSION measure_lwlock")
        first.stop()
        self.copy_clusters(first, lambda key: {
            **common, **found_by[self.server(key)],
            **sides.preload(key, MODULE)})
        self.start_servers()

    def start_servers(self):
        for here in self.clusters.values():
            here.start()
            here.admin = here.session()

    def sides_of(self, key):
        return [side for side in self.sides if side.cluster == key]

    def put_in_force(self, side):
        admin = self.clusters[side.cluster].admin
        sides.activate(side, admin)
        sides.verify(side, admin, self.patched.version, MODULE)

    def still_in_force(self, side):
        """A short form of verify(), for the end of a side's time."""
        if side.lwlock_policy is None:
            return
        found = self.clusters[side.cluster].admin.value(
            "SELECT lwlock_policy FROM pg_sweep_status")
        if found != side.lwlock_policy:
            raise BenchError(f"side {side.name!r} has not stayed in"
                                   f" force: lwlock_policy is {found!r}")

    def waits(self, side):
        """The counters of pg_sweep since its reset, or None."""
        if side.lwlock_policy is None:
            return None
        return [int(value) for value in self.clusters[side.cluster].admin.row(
            "SELECT coalesce(sum(contended), 0), coalesce(sum(slept), 0),"
            " coalesce(sum(overtaken), 0) FROM pg_sweep_lwlock_waits")]

    # -- pgbench

    def measure(self):
        hot = "hot" in self.args.workload
        for round_ in self.each_round(parts=2 if hot else 1):
            if round_ > 0 and self.cells:
                report.progress("restarting the servers")
                for here in self.clusters.values():
                    here.stop()
                cluster.swap_files(self.clusters.values())
                self.start_servers()
            cells = list(self.cells)
            random.Random(round_).shuffle(cells)
            for i, cell in enumerate(cells):
                report.progress(f"{i + 1} of {len(cells)}: {cell.where()}")
                for key in stats.rotated(self.clusters, round_):
                    self.sample(cell, self.clusters[key], round_)
        if hot:
            self.measure_hot()

    def sample(self, cell, here, round_):
        """All sides of one server, in turn under one load."""
        database = cell.workload.database
        if cell.workload.prepare:
            session = here.session(database)
            for statement in cell.workload.prepare:
                session.rows(statement)
            session.close()
            here.sessions.remove(session)
        spans = {}
        with load.Load(self.stock, here, database, cell.connections,
                       self.args.jobs,
                       *cell.workload.options(here.dir)) as running:
            for side in stats.rotated(self.sides_of(here.name), round_):
                self.put_in_force(side)
                if not spans:
                    self.ready = max(
                        self.ready, running.wait_until_ready(here.admin))
                    pids = self.processes_of(here)
                    time.sleep(WARM_SECONDS)
                spans[side] = self.span(side, pids, cell.seconds)
                self.still_in_force(side)
            transactions = list(running.stop())
        for side, span in spans.items():
            self.note_span(cell, side, round_, span, transactions)

    def processes_of(self, here):
        """All of the server's processes that use lightweight locks."""
        return [int(pid) for pid, in here.admin.rows(
            "SELECT pid FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid()")]

    def span(self, side, pids, seconds):
        time.sleep(SETTLE_SECONDS)
        waits_before = self.waits(side)
        before = processes.usage(pids)
        time.sleep(seconds)
        after = processes.usage(pids, last=True)
        return before, after, waits_before, self.waits(side)

    def note_span(self, cell, side, round_, span, transactions):
        before, after, waits_before, waits_after = span
        where = cell.where()
        latencies = sorted(latency for end, latency in transactions
                           if before.at < end <= after.at)
        switched_over = sum(before.switched_at < end <= after.switched_at
                            for end, _ in transactions)
        if not latencies or not switched_over:
            raise BenchError(f"{side.name}, {where}: no transaction ended in"
                             f" {after.at - before.at:.1f} s")
        self.note(where, side, round_, {
            TPS: len(latencies) / (after.at - before.at),
            CPU: (after.cpu_ns - before.cpu_ns) / 1000 / len(latencies),
            SWITCHES: (after.switches - before.switches) / switched_over,
            LATENCY: stats.quantile(latencies, 0.999) / 1000,
            LONGEST: latencies[-1] / 1000})
        if waits_before is not None:
            contended, slept, overtaken = (
                now - then for now, then in zip(waits_after, waits_before))
            self.note(where, side, round_, {
                CONTENDED: contended / switched_over,
                SLEEPS: slept / contended if contended else None,
                OVERTAKEN: overtaken / contended if contended else None})

    # -- one hot lock

    def measure_hot(self):
        workers = {}
        for key, here in self.clusters.items():
            report.progress(f"connecting {self.args.processes} sessions to"
                            f" cluster {key}")
            workers[key] = [here.session()
                            for _ in range(self.args.processes)]
        for round_ in self.each_round("hot", self.args.hot_rounds):
            for side in stats.rotated(self.sides, round_):
                self.put_in_force(side)
                self.sample_hot(side, workers[side.cluster], round_)
                self.still_in_force(side)

    def hot_where(self):
        return f"hot, {self.args.processes} processes"

    def sample_hot(self, side, workers, round_):
        for worker in workers:
            worker.send("SELECT * FROM measure_lwlock_hot(duration_ms =>"
                        f" {self.args.hot_ms}, hold => {self.args.hold},"
                        f" think => {self.args.think},"
                        f" participants => {len(workers)})")
        answers = [worker.receive()[0] for worker in workers]
        columns = [list(map(int, column))
                   for column in zip(*(answer[:7] for answer in answers))]
        acquisitions, slept, elapsed, _, longest, cpu, switches = columns
        waits = [sum(bucket) for bucket in zip(
            *(map(int, answer[7].strip("{}").split(","))
              for answer in answers))]
        total = sum(acquisitions)
        self.note(self.hot_where(), side, round_, {
            HOT_RATE: total * 1e9 / max(elapsed),
            HOT_CPU: sum(cpu) * 1000 / total,
            HOT_SLEPT: sum(slept) / total,
            HOT_SWITCHES: sum(switches) / total,
            HOT_WAIT: bucket_quantile(waits, 0.999) / 1000,
            HOT_LONGEST: max(longest) / 1e6})

    # -- results

    def notes(self):
        yield ("CPU time and voluntary switches are those of the server's"
               " processes (a switch is also each wait for the client)")
        if "hot" in self.args.workload:
            yield (f"hot: one exclusive lock, {self.args.processes} processes,"
                   f" held for {self.args.hold} turns of an empty loop, left"
                   f" for {self.args.think}")
        if self.cells:
            yield ("not measured: connecting and the first transactions, at most"
                   f" {self.ready:.1f} s")


def bucket_quantile(buckets, share):
    """The lower end of the bucket with this quantile. measure_lwlock_hot() has
    16 buckets for each power of two."""
    left = share * sum(buckets)
    for i, count in enumerate(buckets):
        left -= count
        if left <= 0:
            return i if i < 16 else (16 + i % 16) << (i // 16 - 1)
    raise AssertionError("more than all")
