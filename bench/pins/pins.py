"""What does a pin cost while others are held, and what do queries gain?

The test module measure_pins pins and unpins in a loop inside the server, with 0
to 512 pages held. Queries run one by one, in one session on each server, with all
data in the pool (but for those that are to read). The patched server, the stock
server, and the stock server once more are up at the same time and take turns
within milliseconds. A round ends with a restart of all of them: no side keeps
the luck of a place in memory.

--instructions counts with valgrind what a pin and an unpin execute. These figures
do not depend on how busy the machine is."""

import time
from statistics import median

from bench.lib import (callgrind, cluster, processes, report, runner, sides,
                       stats)
from bench.lib.paths import BenchError
from bench.lib.tables import LOWER, Metric
from bench.pins import queries
from bench.pins.load import Load

MODULE = "measure_pins"

PIN_TIME = "pin_ns"
PIN_CPU = "pin_cpu_ns"
QUERY_TIME = "query_ms"
QUERY_CPU = "query_cpu_ms"
HELD_PINS = "pins_seen_held"
COUNTED = "instructions_per_pin"

HELD = (0, 1, 2, 4, 8, 9, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512)
HELD_QUICK = (0, 1, 8, 9, 16, 64, 128)
HELD_FEW = (1, 8, 9, 16, 64, 128, 512)      # where more would say the same
HELD_READ = (0, 1, 2, 4, 8, 16, 32, 64, 128)
HELD_COUNTED = (0, 1, 8, 9, 16, 64, 128)
LOADS = (("again", "random", HELD), ("again", "cyclic", HELD),
         ("again", "last", HELD_FEW), ("other", "random", HELD),
         ("read", "random", HELD_READ), ("stream", "random", HELD),
         ("join", "random", HELD_FEW), ("owner", "random", (1,)))
LOADS_QUICK = (("again", "random"), ("other", "random"), ("read", "random"),
               ("owner", "random"))
COUNTED_LOADS = (("again", "random"), ("again", "last"), ("other", "random"),
                 ("read", "random"), ("stream", "random"), ("owner", "random"))
WIDE = 128, 1                   # held, which are compared with each other
HOLD_NOTHING = ("other", "read")    # kinds that do something nevertheless

COUNTED_OPERATIONS = 65536      # a whole sequence of hits
COUNTED_BUFFERS = "128MB"
PINNABLE_PAGES = 8192           # of the table that is pinned
PINNED_LOOKS = 40               # at how many buffers are pinned meanwhile

# A backend may pin its share of the pool: with few processes it is enough.
FEW_PROCESSES = {"max_connections": 20, "autovacuum_worker_slots": 1,
                 "max_worker_processes": 2}


def loads(quick, kinds):
    return [Load(kind, order, held) for kind, order, steps in LOADS
            if kind in kinds and (not quick or (kind, order) in LOADS_QUICK)
            for held in steps
            if (held > 0 or kind in HOLD_NOTHING)
            and (not quick or held in HELD_QUICK)]


class Bench(runner.Bench):
    rounds = 18, 2              # restarts
    boxed = True
    metrics = (Metric(PIN_CPU, "a pin and an unpin, CPU time in ns", 1, LOWER),
               Metric(PIN_TIME, "the same, time elapsed in ns", 1, LOWER),
               Metric(QUERY_CPU, "queries, CPU time in ms", 2, LOWER),
               Metric(QUERY_TIME, "queries, time elapsed in ms", 2, LOWER),
               Metric(HELD_PINS, "pins seen held by a query", 0),
               Metric(COUNTED, "instructions of a pin and an unpin", 2, LOWER))

    @staticmethod
    def options(add):
        names = [query.name for query in queries.QUERIES]
        add("--ms", 8, 5, "length of one sample of the loop")
        add("--samples", None, help="of the loop, per side and round",
            default="2 times as many as sides; quick: as many")
        add("--slices", None, help="executions of each query, per side and"
            " round", default="6 times as many as sides; quick: as many")
        add("--part", ("loop", "queries"), choices=["loop", "queries"])
        kinds = list(dict.fromkeys(kind for kind, _, _ in LOADS))
        add("--load", tuple(kinds), choices=kinds)
        add("--query", tuple(names), choices=names)
        add("--shared-buffers", "2GB", "256MB")

    @staticmethod
    def switches(switch):
        switch("--loaded", "adds the patched server with pg_sweep loaded")
        switch("--instructions", "counts instructions instead of times")

    @staticmethod
    def finish(args, error):
        args.sides = [sides.STOCK_SERVER,
                      *([] if args.instructions else [sides.CONTROL]),
                      sides.NOTHING_LOADED,
                      *([sides.SWEEP_STOCK] if args.loaded else [])]
        turns = len(args.sides)
        args.samples = args.samples or turns * (1 if args.quick else 2)
        args.slices = args.slices or turns * (1 if args.quick else 6)
        if args.samples % turns or args.slices % turns:
            error(f"with {turns} sides, --samples and --slices must be"
                  f" multiples of {turns}: each side must be first, and last,"
                  " equally often")

    def __init__(self, args):
        super().__init__(args)
        self.sides = args.sides
        self.scale = 0.1 if args.quick else 1
        self.loads = loads(args.quick, args.load) if "loop" in args.part else []
        self.queries = [query for query in queries.QUERIES
                        if "queries" in args.part and query.name in args.query
                        and not args.instructions]

    def result_name(self):
        return "pins_instructions" if self.args.instructions else "pins"

    # -- clusters

    def prepare(self):
        """One cluster with all data, and a copy of it for each side."""
        if self.args.instructions:
            callgrind.need_valgrind()
            return
        found_by = self.modules(MODULE)
        common = {"shared_buffers": self.args.shared_buffers,
                  "huge_pages": "off", "io_method": "sync",
                  "io_max_combine_limit": 128, "bgwriter_lru_maxpages": 0,
                  **FEW_PROCESSES}
        report.progress("making the tables")
        first = cluster.Cluster("pins", "template", self.patched,
                                {**common, **found_by[self.patched]})
        first.init()
        first.start()
        admin = first.session()
        for extension in ("pg_prewarm", "pg_buffercache", "pg_sweep", MODULE):
            admin.rows(f"CREATE EXTENSION {extension}")
        admin.rows(pinnable())
        if self.queries:
            queries.make_tables(admin, self.scale)
        else:
            admin.rows("CHECKPOINT")
        first.stop()
        self.copy_clusters(first, lambda key: {
            **common, **found_by[self.server(key)]})

    def start_servers(self, round_):
        for side in stats.rotated(self.sides, round_):
            here = self.clusters[side.cluster]
            here.start()
            here.admin = here.session()
            sides.activate(side, here.admin)
            sides.verify(side, here.admin, self.patched.version)
            here.pages = queries.fill_pool(here.admin)
            here.free = int(here.admin.value(
                "SELECT buffers_unused FROM pg_buffercache_summary()"))
            if here.free < here.pages:
                raise BenchError(
                    f"{here.pages} pages leave {here.free} of the buffers free:"
                    " shared_buffers are too small to have all in them and"
                    " read it once more")

    def measure(self):
        if self.args.instructions:
            self.count()
            return
        for round_ in self.each_round():
            if round_ > 0:
                for here in self.clusters.values():
                    here.stop()
                cluster.swap_files(self.clusters.values())
            self.start_servers(round_)
            if self.loads:
                self.run_loads(round_)
            for query in self.queries:
                self.run_query(query, round_)

    def in_turn(self, round_, times):
        """The sides, each this many times: ABC BCA CAB, then CBA BAC ACB. Each
        is first, and last, equally often ("times" is a multiple of their
        number). None comes after itself, with the CPU's caches still its
        own."""
        there = stats.rotated(self.sides, round_)
        orders = [order[shift:] + order[:shift]
                  for order in (there, there[::-1])
                  for shift in range(len(order))]
        for turn in range(times):
            yield from orders[turn % len(orders)]

    # -- the loop

    def run_loads(self, round_):
        sessions = {side: self.clusters[side.cluster].session()
                    for side in self.sides}
        for load in self.loads:
            found = {side: [] for side in self.sides}
            for side in self.in_turn(round_, self.args.samples):
                operations, pages, elapsed, cpu = map(int, sessions[side].row(
                    f"SELECT * FROM measure_pins_run('pinnable', '{load.kind}',"
                    f" {load.held}, '{load.order}',"
                    f" duration_ms => {self.args.ms})"))
                load.check(operations, pages)
                found[side].append((elapsed / operations, cpu / operations))
            for side, values in found.items():
                elapsed, cpu = map(median, zip(*values))
                self.note(load.where(), side, round_,
                          {PIN_TIME: elapsed, PIN_CPU: cpu})
        for side, session in sessions.items():
            session.close()
            self.clusters[side.cluster].sessions.remove(session)

    # -- queries

    def run_query(self, query, round_):
        sessions = {}
        answers = set()
        for side in self.sides:
            session = self.clusters[side.cluster].session()
            query.prepare(session, self.scale)
            query.check(session)
            # once more: the first execution fills caches
            query.before(session)
            answers.add(session.value(query.statement()))
            sessions[side] = session, int(session.value(
                "SELECT pg_backend_pid()"))
            # the first call reads catalogs, which would be counted
            queries.pages_moved(session)
        if len(answers) != 1 or "" in answers:
            raise BenchError(f"query {query.name}: the sides' answers"
                                   f" are {', '.join(sorted(answers))}")
        moved = {side: queries.pages_moved(session)
                 for side, (session, _) in sessions.items()}
        found = {side: [] for side in self.sides}
        for side in self.in_turn(round_, self.args.slices):
            session, pid = sessions[side]
            query.before(session)
            cpu, begin = processes.cpu_ns(pid), time.monotonic_ns()
            session.rows(query.statement())
            end, cpu_end = time.monotonic_ns(), processes.cpu_ns(pid)
            found[side].append(((end - begin) / 1e6, (cpu_end - cpu) / 1e6))
        for side, values in found.items():
            elapsed, cpu = map(median, zip(*values))
            self.note(query.name, side, round_,
                      {QUERY_TIME: elapsed, QUERY_CPU: cpu})
        for side, (session, _) in sessions.items():
            query.check_moved(moved[side], queries.pages_moved(session),
                              side.name)
            if round_ == 0:
                elapsed = median(value for value, _ in found[side])
                self.samples.add(HELD_PINS, query.name, side.name, round_,
                                 self.most_pinned(query, side, session,
                                                  elapsed))
            session.close()
            self.clusters[side.cluster].sessions.remove(session)

    def most_pinned(self, query, side, session, ms):
        """The largest of some looks at the pool while the query runs three
        times more. ms: how long it takes."""
        admin = self.clusters[side.cluster].admin
        pause = ms / 1000 / PINNED_LOOKS
        most = 0
        for _ in range(3):
            query.before(session)
            session.send(query.statement())
            most = max(most, int(admin.value(
                "SELECT max(buffers_pinned) FROM"
                " (SELECT (pg_buffercache_summary()).buffers_pinned,"
                f" pg_sleep({pause:.6f})::text"
                f" FROM generate_series(1, {PINNED_LOOKS}) OFFSET 0)")))
            session.receive()
        return most

    # -- instructions

    def count(self):
        found_by = self.modules(MODULE)
        steps = [load for load in (
            Load(kind, order, held) for kind, order in COUNTED_LOADS
            for held in (HELD_COUNTED if kind != "owner" else (1,)))
            if load.held > 0 or load.kind in HOLD_NOTHING]
        steps = [load for load in steps if load.kind in self.args.load]
        if self.args.quick:
            steps = [load for load in steps if load.held in (8, 9, 64)
                     and (load.kind, load.order) == ("again", "random")]
        for side in self.sides:
            key = side.cluster
            server = self.server(key)
            here = cluster.Cluster("pins", key, server, {})
            here.init()
            settings = {**sides.preload(key), **found_by[server],
                        **FEW_PROCESSES, "shared_buffers": COUNTED_BUFFERS,
                        "jit": "off", "fsync": "off", "wal_level": "minimal",
                        "max_wal_senders": 0}
            callgrind.single_user(here, settings, [
                f"CREATE EXTENSION {MODULE}", pinnable(1000), "CHECKPOINT"])
            for load in steps:
                report.progress(f"{side.name}: {load.where()}")
                total, output = callgrind.count(here, settings, [
                    "SELECT operations, pages FROM measure_pins_run('pinnable',"
                    f" '{load.kind}', {load.held}, '{load.order}',"
                    f" {COUNTED_OPERATIONS})",
                    "SHOW shared_preload_libraries"],
                    "measure_pins_turn", here.dir / "callgrind.out")
                load.check(int(callgrind.answer(output, "operations")),
                           int(callgrind.answer(output, "pages")))
                if (callgrind.answer(output, "shared_preload_libraries")
                        != settings["shared_preload_libraries"]):
                    raise BenchError(f"side {side.name!r} is not in"
                                           " force")
                self.note(load.where(), side, 0, {
                    COUNTED: total / COUNTED_OPERATIONS})
            here.remove()
        self.loads = steps

    # -- results

    def notes(self):
        for name in dict.fromkeys(load.name() for load in self.loads):
            for side in self.sides:
                ratios = self.wide_ratios(name, side)
                if ratios:
                    yield (f"{name}, {side.name}: CPU time with {WIDE[0]} held"
                           f" to that with {WIDE[1]} held:"
                           f" {median(ratios):.2f}")
        for query in self.queries:
            yield f"{query.name}: {query.what}"
        yield (f"shared_buffers = {self.args.shared_buffers},"
               f" {self.args.slices} executions of a query per side and round")

    def wide_ratios(self, name, side):
        """With many held to one held on the same side, round by round."""
        many, one = (self.samples.by_round(PIN_CPU, f"{name}, {held} held", side)
                     for held in WIDE)
        return [many[round_] / one[round_] for round_ in many if round_ in one]


def pinnable(pages=PINNABLE_PAGES):
    """The statement that makes a table of this many pages, one row each."""
    return ("CREATE TABLE pinnable WITH (fillfactor = 10) AS SELECT i,"
            " repeat('x', 1800) AS filler"
            f" FROM generate_series(1, {pages}) i")
