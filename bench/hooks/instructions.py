"""What do an allocation, and a pair of calls of a free LWLock, execute?

Instructions counted by callgrind, not timed; also what a hook costs that no
module uses. Each side runs a single-user server under valgrind, with a smaller
and a larger number of calls. The difference of the instructions is divided by
the difference of the numbers. Numbers of allocations are whole laps of the pool:
the quotient has nothing of the start, the end, or the ends of laps."""

from dataclasses import dataclass

from bench.lib import callgrind, cluster, report, runner, sides, stats
from bench.lib.paths import BenchError
from bench.lib.tables import LOWER, Metric

ALLOCATION = "instructions_per_allocation"
LWLOCK_PAIR = "instructions_per_lwlock_pair"

BUFFERS = 1024              # whole batches of every size that is a power of 2
FEW_LAPS = 2                # the first lap warms caches of the server's own
MANY_LAPS = 102
FEW_PAIRS, MANY_PAIRS = 1000, 101000
ROUNDING = 0.01             # of quotients: a lap's end is some instructions in 1024
MODULES = ("measure_sweep", "measure_lwlock")


@dataclass(frozen=True)
class Subject:
    """One call of a function with a number, which is counted on some sides."""
    metric: str
    what: str
    where: str
    function: str
    argument: object
    few: int
    many: int
    limits: tuple               # (side, instructions over the stock server's)
    sides: tuple


def allocation(usage, quick):
    others = () if quick else (sides.batched(64), sides.batched(0))
    return Subject(ALLOCATION, "allocation", f"usage {usage}",
                   "measure_sweep_exact", usage,
                   FEW_LAPS * BUFFERS, MANY_LAPS * BUFFERS,
                   ((sides.NOTHING_LOADED, 3), (sides.SWEEP_STOCK, 6)),
                   (sides.STOCK_SERVER, sides.NOTHING_LOADED,
                    sides.SWEEP_STOCK, *others))


def lwlock_pair(mode, quick):
    policies = sides.LWLOCK_WAITS[-1:] if quick else sides.LWLOCK_WAITS
    patched = (sides.NOTHING_LOADED, *map(sides.lwlock_policy, policies))
    return Subject(LWLOCK_PAIR, "acquisition and release of a free LWLock", mode,
                   "measure_lwlock_pairs", f"'{mode}'", FEW_PAIRS, MANY_PAIRS,
                   tuple((side, 2) for side in patched),
                   (sides.STOCK_SERVER, *patched))


def subjects(quick):
    return ([allocation(usage, quick) for usage in ([0] if quick else [0, 2])]
            + [lwlock_pair(mode, quick) for mode in ("exclusive", "shared")])


class Bench(runner.Bench):
    rounds = 2, 1               # two show that it repeats
    check = "exit 1 if a hook that does nothing costs too many instructions"
    metrics = (Metric(ALLOCATION, "instructions per allocation", 3, LOWER),
               Metric(LWLOCK_PAIR, "instructions per acquisition and release"
                      " of a free LWLock", 3, LOWER))

    def __init__(self, args):
        callgrind.need_valgrind()
        super().__init__(args)
        self.subjects = subjects(args.quick)
        self.settings = {}

    def prepare(self):
        found_by = self.modules(*MODULES)
        for key in {side.cluster for subject in self.subjects
                    for side in subject.sides}:
            server = self.server(key)
            here = cluster.Cluster("instructions", key, server, {})
            report.progress(f"making cluster {key}")
            here.init()
            self.settings[key] = {**sides.preload(key), **found_by[server],
                                  "shared_buffers": f"{BUFFERS * 8}kB",
                                  "jit": "off", "fsync": "off"}
            statements = [f"CREATE EXTENSION {name}" for name in MODULES]
            if key == sides.SWEEP:
                statements.append("CREATE EXTENSION pg_sweep")
            callgrind.single_user(here, self.settings[key], statements)
            # The first start after a change of the catalogs writes the relation
            # cache's file. It must not be counted.
            callgrind.single_user(here, self.settings[key],
                                  ["SELECT measure_sweep_preset(0)"])
            self.clusters[key] = here

    def statements(self, subject, side, number):
        if side.strategy is not None:
            yield f"SELECT pg_sweep_set_strategy('{side.strategy}')"
        if side.lwlock_policy is not None:
            yield f"SELECT pg_sweep_set_lwlock_policy('{side.lwlock_policy}')"
        if subject.function == "measure_sweep_exact":
            yield "SELECT measure_sweep_drain_freelist()"
            yield f"SELECT measure_sweep_preset({subject.argument})"
        yield f"SELECT {subject.function}({number}, {subject.argument})"
        # whether the side was in force
        yield "SHOW shared_preload_libraries"
        yield "SHOW server_version"
        if side.strategy is not None:
            yield "SELECT * FROM pg_sweep_status"

    def count(self, subject, side, number):
        here = self.clusters[side.cluster]
        settings = dict(self.settings[side.cluster])
        expected = {"shared_preload_libraries":
                    settings["shared_preload_libraries"]}
        if side.strategy is not None:
            expected.update(state="ok", strategy=side.strategy)
        if side.lwlock_policy is not None:
            expected["lwlock_policy"] = side.lwlock_policy
        if side.batch_size is not None:
            settings["pg_sweep.batch_size"] = side.batch_size
            expected["batch_size_configured"] = str(side.batch_size)
        total, output = callgrind.count(
            here, settings, self.statements(subject, side, number),
            subject.function, here.dir / "callgrind.out")
        for column, value in expected.items():
            found = callgrind.answer(output, column)
            if found != value:
                raise BenchError(f"side {side.name!r} is not in force:"
                                 f" {column} is {found!r} instead of {value!r}")
        return total

    def measure(self):
        for round_ in self.each_round():
            for subject in self.subjects:
                for side in stats.rotated(subject.sides, round_):
                    report.progress(f"{subject.what}, {subject.where}:"
                                    f" {side.name}")
                    few = self.count(subject, side, subject.few)
                    many = self.count(subject, side, subject.many)
                    numbers = subject.many - subject.few
                    self.note(subject.where, side, round_, {
                        subject.metric: (many - few) / numbers})

    def row(self, subject, side):
        return self.samples.row(subject.metric, subject.where, side)

    def wanted(self):
        for subject in self.subjects:
            base = self.row(subject, sides.STOCK_SERVER)["min"]
            for side, limit in subject.limits:
                more = self.row(subject, side)["max"] - base
                yield (more <= limit + ROUNDING,
                       f"{side.name}, {subject.what}, {subject.where}:"
                       f" {more:+.3f} instructions over the stock server, at"
                       f" most {limit} wanted")
