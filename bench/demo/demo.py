"""Strategies switched under one running load, then a tour of all the rest.

The demo makes a cluster of its own in build/demo and fills a pgbench database
larger than shared_buffers. One pgbench runs against it. Meanwhile the strategies
of pg_sweep are switched, several rounds, and the demo prints what each of them
did. The scenes follow, one file each in scenes/: the other features, what you
would type, and the server's answers. The server is left running.

environment: DEMO_STOP=1 (or CI=true) stops the server at the end; DEMO_SCALE,
DEMO_CLIENTS, DEMO_ROUNDS, DEMO_SLICE (seconds), DEMO_SHARED_BUFFERS"""

import argparse
import bisect
import importlib
import os
import re
import time
from dataclasses import dataclass, field
from pathlib import Path

from bench.demo.stage import NotHere, Stage
from bench.lib import (cluster, paths, pgbench, report, runner, sides,
                       stats)
from bench.lib.load import Load
from bench.lib.paths import BenchError
from bench.lib.session import quote

# With the clusters of benches, if these are elsewhere.
HERE = (paths.BENCH if os.environ.get("SWEEP_BENCH_DIR")
        else paths.BUILD) / "demo"
GONE = f"The server is stopped and {report.shown(HERE)} removed."
DATABASE = "pgbench"
BASELINE = "stock"
SCENES = ("balance", "waits", "pins", "ring", "ab", "reads", "sim")  # in this order
STEPS = 5               # without the scenes
WARM = 5.0              # seconds of load before the first slice
# Nothing counts for this time after a switch. Backends report blocks hit and
# read once a second: what is reported later was done after the switch.
SETTLE = 1.25
SLICE_LEAST = SETTLE + 0.5
BACKENDS = ("SELECT * FROM pg_sweep_backends"
            " ORDER BY allocations DESC LIMIT 10")
SETTINGS = (            # name, full, quick
    ("scale", 40, 10), ("clients", 8, 8), ("rounds", 8, 2),
    ("slice", 6.5, 2.5), ("shared_buffers", "128MB", "32MB"))
METRICS = (             # name shown, name written, digits
    ("transactions/s", "tps", 0),
    ("latency, ms", "latency_ms", 3),
    ("latency, 99 %, ms", "latency_p99_ms", 3),
    ("hit ratio", "hit_ratio", 4),
    ("allocations/s", "allocations_per_second", 0),
    ("shared atomics/allocation", "shared_atomics_per_allocation", 4),
)


def setting(name, default):
    """From the environment."""
    text = os.environ.get(name)
    if not text or isinstance(default, str):
        return text or default
    try:
        value = type(default)(text)
    except ValueError:
        value = 0
    if value <= 0:
        raise BenchError(f"{name}={text}: not a number greater than zero")
    return value


def scenes(text):
    names = [] if text == "none" else text.split(",")
    for name in names:
        if name not in SCENES:
            raise argparse.ArgumentTypeError(
                f"{name!r}: the scenes are {', '.join(SCENES)}")
    return [name for name in SCENES if name in names]


@dataclass
class Slice:
    """The time of one strategy in a round."""
    strategy: str
    round: int
    begin: tuple            # counters() after settling
    end: tuple              # counters() before the next switch
    latencies: list = field(default_factory=list)

    def seconds(self):
        return self.end[0] - self.begin[0]

    def delta(self, i):
        return self.end[i] - self.begin[i]

    def values(self):
        atomics = (None if None in (self.begin[2], self.end[2])
                   else self.delta(2))
        allocations = self.delta(1)
        blocks = self.delta(3) + self.delta(4)
        latencies = sorted(self.latencies)
        return {
            "tps": len(latencies) / self.seconds(),
            "allocations_per_second": allocations / self.seconds(),
            "hit_ratio": self.delta(3) / blocks if blocks else None,
            "latency_ms": sum(latencies) / len(latencies) / 1000,
            "latency_p99_ms": latencies[int(len(latencies) * 0.99)] / 1000,
            "shared_atomics_per_allocation":
                atomics / allocations
                if atomics is not None and allocations else None}


class Bench(runner.Program):
    quick = "less data, fewer and shorter rounds"

    @classmethod
    def add_options(cls, options):
        options.parser.add_argument(
            "what", nargs="?", choices=("start", "stop"), default="start",
            help="stop: stops the server and removes build/demo")
        options.parser.add_argument(
            "--scenes", type=scenes, default=[*SCENES], metavar="NAME,...",
            help=f"after the load (default: {','.join(SCENES)}); or none")
        super().add_options(options)

    @staticmethod
    def finish(args, error):
        for name, full, quick in SETTINGS:
            setattr(args, name, setting(f"DEMO_{name.upper()}",
                                        quick if args.quick else full))
        if args.slice < SLICE_LEAST:
            raise BenchError(f"DEMO_SLICE must be at least {SLICE_LEAST}")
        args.stop_at_end = (os.environ.get("DEMO_STOP", "") not in ("", "0")
                            or os.environ.get("CI") == "true")

    def run(self):
        cluster.stop_all_at_exit()
        stopped = stop_earlier()
        if self.args.what == "stop":
            report.say(GONE if stopped else "There is no demo to stop.")
            return 0
        if stopped:
            report.say(f"An earlier demo is stopped and {report.shown(HERE)}"
                       " removed.")
        self.prepare()
        self.make()
        self.extend()
        self.switch_under_load()
        samples = self.samples()
        self.show(samples)
        report.write_json("demo", samples.rows())
        failed = self.tour()
        self.say_goodbye()
        if failed:
            raise BenchError("scenes that failed: " + ", ".join(failed))
        return 0

    def prepare(self):
        self.server = paths.patched_server(self.args)
        self.cluster = cluster.Cluster(
            "demo", "demo", self.server,
            {"shared_preload_libraries": "pg_sweep",
             "shared_buffers": self.args.shared_buffers,
             "max_connections": max(100, self.args.clients + 20)},
            directory=HERE)
        self.slices = []
        self.under_load = ""
        self.steps = 0

    # -- the load

    def step(self, what):
        self.steps += 1
        report.progress(f"{self.steps}/{STEPS + len(self.args.scenes)} {what}")

    def make(self):
        self.step(f"making a cluster in {report.shown(HERE)} (PostgreSQL"
                  f" {self.server.version}, shared_buffers ="
                  f" {self.args.shared_buffers}, pg_sweep preloaded)")
        self.cluster.init()
        self.cluster.start()
        self.step(f"making a pgbench database of scale {self.args.scale}")
        pgbench.initialize(self.cluster, DATABASE, self.args.scale)

    def extend(self):
        self.step("CREATE EXTENSION pg_sweep")
        self.admin = self.cluster.session(DATABASE)
        self.admin.rows("CREATE EXTENSION pg_sweep")
        state, note = self.admin.row("SELECT state, note FROM pg_sweep_status")
        if state != "ok":
            raise BenchError(f"pg_sweep says: {state}: {note}")
        # stock first: the others are compared with it
        self.strategies = [name for (name,) in self.admin.rows(
            "SELECT strategy FROM pg_sweep_strategies"
            f" ORDER BY strategy <> {quote(BASELINE)}, strategy")]
        megabytes, buffers = self.admin.row(
            "SELECT pg_database_size(current_database()) / (1024 * 1024),"
            " pg_size_bytes(current_setting('shared_buffers'))"
            " / (1024 * 1024)")
        if int(megabytes) <= int(buffers):
            raise BenchError(
                f"the database ({megabytes} MB) must be larger than"
                f" shared_buffers ({buffers} MB): raise DEMO_SCALE or lower"
                " DEMO_SHARED_BUFFERS")
        report.progress(f"    database {megabytes} MB, shared_buffers"
                        f" {buffers} MB; strategies: "
                        + ", ".join(self.strategies))

    def switch_under_load(self):
        args = self.args
        seconds = WARM + args.rounds * len(self.strategies) * args.slice
        self.step(f"one pgbench of {seconds:.0f} s, read-only,"
                  f" {args.clients} clients; strategies switched under it"
                  f" every {args.slice:g} s, {args.rounds} rounds")
        with Load(self.server, self.cluster, DATABASE, args.clients, 2,
                  "-S") as load:
            time.sleep(WARM)
            self.admin.rows("SELECT pg_sweep_reset_stats()")
            for round_ in range(args.rounds):
                for strategy in stats.rotated(self.strategies, round_):
                    self.slice(strategy, round_)
            transactions = load.stop()
            self.step("reading the log of all transactions")
            begins = [each.begin[0] for each in self.slices]
            for end, latency in transactions:
                i = bisect.bisect_left(begins, end) - 1
                if i >= 0 and end <= self.slices[i].end[0]:
                    self.slices[i].latencies.append(latency)
        if not all(each.latencies for each in self.slices):
            raise BenchError("a slice without a single transaction")

    def slice(self, strategy, round_):
        before = self.admin.value(
            f"SELECT pg_sweep_set_strategy({quote(strategy)})")
        until = time.time() + self.args.slice
        time.sleep(SETTLE)
        begin = self.counters(strategy)
        time.sleep(max(0.0, until - time.time()))
        end = self.counters(strategy)
        if strategy != BASELINE:
            # while the clients are connected and have leases
            self.under_load = self.psql(BACKENDS)
        done = Slice(strategy, round_, begin, end)
        self.slices.append(done)
        what = (f"{before} -> {strategy}" if before != strategy
                else f"{strategy} goes on")
        report.progress(f"    round {round_ + 1}/{self.args.rounds}: {what}:"
                        f" {done.delta(1) / done.seconds():,.0f}"
                        " allocations/s")

    def counters(self, strategy):
        """(time, allocations, shared atomics, blocks hit, blocks read)"""
        active, *values = self.admin.row(
            "SELECT s.active, extract(epoch FROM clock_timestamp()),"
            f" s.allocations, {sides.ATOMICS}, d.blks_hit, d.blks_read"
            " FROM pg_sweep_strategies s, pg_stat_database d"
            f" WHERE s.strategy = {quote(strategy)}"
            " AND d.datname = current_database()")
        if active != "t":
            raise BenchError(f"{strategy} is not the active strategy any more:"
                             " another session has switched it")
        return (float(values[0]),
                *(int(value) if value else None for value in values[1:]))

    def samples(self):
        samples = stats.Samples(BASELINE)
        for done in self.slices:
            for metric, value in done.values().items():
                if value is not None:
                    samples.add(metric, self.configuration(), done.strategy,
                                done.round, value)
        return samples

    def configuration(self):
        return (f"read-only, scale {self.args.scale},"
                f" {self.args.clients} clients,"
                f" shared_buffers {self.args.shared_buffers}")

    # -- output

    def psql(self, sql, *options):
        return self.server.run("psql", "-X", "-P", "pager=off", *options,
                               "-h", self.cluster.sockets, "-U", "postgres",
                               "-d", DATABASE, "-c", sql)

    def show(self, samples):
        headings = ["", BASELINE]
        for strategy in self.strategies[1:]:
            headings += [strategy, f"to {BASELINE}"]
        rows = []
        for shown, metric, digits in METRICS:
            cells = [shown]
            for strategy in self.strategies:
                row = samples.row(metric, self.configuration(), strategy)
                cells.append("-" if row is None
                             else f"{row['median']:,.{digits}f}")
                if strategy != BASELINE:
                    cells.append(report.spread(row, 3))
            rows.append(cells)
        report.table(headings, rows,
                     f"{self.configuration()}: median of {self.args.rounds}"
                     " rounds")
        report.say(f"""
to {BASELINE}: ratio within a round, median (min..max) of the rounds
shared atomics: read-modify-writes of memory that all backends share, per
allocated buffer
switched by: SELECT pg_sweep_set_strategy('batched');
This machine has {os.cpu_count()} CPUs. With few CPUs there is little contention
for that memory, and little difference in transactions/s.""")
        for sql in ("SELECT * FROM pg_sweep_status",
                    "SELECT * FROM pg_sweep_strategies"):
            report.say(f"\n{DATABASE}=# {sql} \\gx\n{self.psql(sql, '-x')}")
        report.say("\nThe same for each process, taken under the load (for"
                   f" {BASELINE}, only its allocations are known):")
        report.say(f"{DATABASE}=# {BACKENDS};\n{self.under_load}")

    def tour(self):
        """Plays the scenes; returns those that failed."""
        stage = Stage(self.args, self.server, self.cluster, DATABASE,
                      self.admin)
        failed = []
        for name in self.args.scenes:
            scene = importlib.import_module(f"bench.demo.scenes.{name}")
            self.step(f"scene {name}")
            report.say(f"\n== {scene.TITLE} ==\n")
            try:
                scene.play(stage)
            except NotHere as reason:
                report.say(f"This cannot be shown here: {reason}")
            except BenchError as error:
                # the others are worth seeing
                report.say(f"Scene {name} FAILED: {error}")
                failed.append(name)
        return failed

    def say_goodbye(self):
        if self.args.stop_at_end:
            self.cluster.remove()
            report.say(f"\n{GONE}")
            return
        self.cluster.leave_running()
        sockets = self.cluster.sockets
        if not self.cluster.sockets_temporary:
            sockets = f"$PWD/{os.path.relpath(sockets, paths.ROOT)}"
        report.say(f"""
The server is still running. To look around (from the top of the source):
  {report.shown(self.server.bin('psql'))} -h {sockets} -U postgres {DATABASE}
  for example: SELECT pg_sweep_set_strategy('batched');
To see one scene again, on a new server:
  tools/demo --quick --scenes waits
To stop it and remove {report.shown(HERE)}:
  tools/demo stop""")


def stop_earlier():
    """Stops and removes an earlier demo; returns whether there was one."""
    here = cluster.Cluster("demo", "demo", None, {}, directory=HERE)
    if (here.data / "postmaster.pid").exists():
        # with the programs of the server that runs there
        options = here.data / "postmaster.opts"
        program = re.match(r"(\S+)", options.read_text()).group(1)
        here.server = paths.Server("demo", Path(program).parents[1])
    return here.remove_old()
