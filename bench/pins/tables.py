"""Loads, tables and required figures of the bench pins."""

from dataclasses import dataclass
from statistics import median

from bench.lib import report, sides, stats
from bench.lib.paths import BenchError

PIN_TIME = "pin_ns"
PIN_CPU = "pin_cpu_ns"
QUERY_TIME = "query_ms"
QUERY_CPU = "query_cpu_ms"
HELD_PINS = "pins_seen_held"
COUNTED = "instructions_per_pin"

ENOUGH_HITS = 20                # per held page: chance misses none

# Required of the patched server, as medians of the rounds. With FEW held, every
# kind that pins is judged. With MANY and WIDE only pins of held pages are: most of
# the other kinds' time has nothing to do with the tracking of pins.
FEW, MOST_FEW = 8, 1.0          # held at most: times the stock server's time
FEW_KINDS = ("again", "other", "read", "stream", "join")
MANY, MOST_MANY = (16, 32, 64), 0.35
MANY_LOADS = ("again, random", "again, cyclic")
WIDE, MOST_WIDE = (128, 1), 2.0     # held, times its own time with the other
WIDE_LOADS = (*MANY_LOADS, "again, last")
MOST_QUERY = 1 / 0.99           # of a query: 0.99 of the stock server's speed


@dataclass(frozen=True)
class Load:
    kind: str
    order: str
    held: int

    def name(self):
        return f"{self.kind}, {self.order}" if self.kind == "again" else (
            self.kind)

    def where(self):
        return f"{self.name()}, {self.held} held"

    def check(self, operations, pages):
        """Abort unless a load has pinned as many different pages as its name
        says. On a busy machine a sample may have few operations, and may have
        missed some held pages by chance."""
        expected = {"again": 1 if self.order == "last" else self.held,
                    "owner": self.held, "other": 16, "read": 16,
                    "join": self.held + 12, "stream": 2 * self.held + 16}[self.kind]
        by_chance = self.kind in ("again", "join", "owner") and (
            self.order == "random")
        hits = operations // (4 if self.kind == "join" else 1)
        least = (expected // 2 if by_chance and hits < ENOUGH_HITS * self.held
                 else expected)
        if not least <= pages <= expected or operations <= 0:
            raise BenchError(f"{self.where()}: {operations} operations on"
                                   f" {pages} pages instead of {expected}")


class PinTables:
    def __init__(self, bench):
        self.args = bench.args
        self.samples = bench.samples
        self.sides = bench.sides
        self.loads = bench.loads
        self.queries = bench.queries

    def others(self):
        return self.sides[1:]

    def patched(self):
        return [side for side in self.sides
                if side.cluster in (sides.BARE, sides.SWEEP)]

    # -- tables

    def show(self):
        if self.args.instructions:
            self.show_counted()
            return
        for name in dict.fromkeys(load.name() for load in self.loads):
            self.show_load(name)
        if self.loads:
            self.show_wide()
        if self.queries:
            self.show_queries()
        report.say()
        report.say("ratios: to the stock server in the same round, median of"
                   f" the rounds [bootstrap interval,"
                   f" {stats.SHARE:.0%}]; CPU: time of the backend")
        report.say(f"{self.sides[1].name}: what noise alone does")

    def show_load(self, name):
        loads = [load for load in self.loads if load.name() == name]
        rows = []
        for load in loads:
            rows.append((load.held, *(
                self.samples.median(PIN_CPU, load.where(), side, 1)
                for side in (sides.STOCK_SERVER, sides.NOTHING_LOADED)),
                         *(self.samples.ratio(PIN_CPU, load.where(), side)
                           for side in self.others()),
                         self.samples.ratio(PIN_TIME, load.where(),
                                    sides.NOTHING_LOADED)))
        report.table(["held", "stock, CPU ns", "patched", *(
            f"{short(side)}, CPU" for side in self.others()),
            "patched, elapsed"], rows, f"a pin and an unpin: {name}")

    def wide_ratios(self, name, side):
        """With many held to one held on the same side, round by round."""
        many, one = (self.samples.by_round(PIN_CPU, f"{name}, {held} held",
                                           side) for held in WIDE)
        return [many[round_] / one[round_] for round_ in many if round_ in one]

    def show_wide(self):
        rows = []
        for name in dict.fromkeys(load.name() for load in self.loads):
            found = [self.wide_ratios(name, side) for side in self.sides]
            if all(found):
                rows.append((name, *map(median_and_interval, found)))
        report.table(["load", *map(short, self.sides)], rows,
                     f"CPU time with {WIDE[0]} held to that with {WIDE[1]}"
                     " held, on the same side")

    def show_queries(self):
        rows = []
        for query in self.queries:
            rows.append((query.name,
                         self.samples.median(HELD_PINS, query.name,
                                             sides.NOTHING_LOADED, 0),
                         self.samples.median(QUERY_CPU, query.name,
                                             sides.STOCK_SERVER, 2),
                         *(self.samples.ratio(QUERY_CPU, query.name, side)
                           for side in self.others()),
                         self.samples.ratio(QUERY_TIME, query.name,
                                    sides.NOTHING_LOADED)))
        report.table(["query", "pins seen", "stock, CPU ms", *(
            f"{short(side)}, CPU" for side in self.others()),
            "patched, elapsed"], rows,
            f"queries; shared_buffers = {self.args.shared_buffers},"
            f" {self.args.slices} executions per side and round")
        for query in self.queries:
            report.say(f"{query.name}: {query.what}")

    def show_counted(self):
        rows = []
        for load in self.loads:
            found = [self.samples.row(COUNTED, load.where(), side)
                     for side in self.sides]
            rows.append((load.where(), *(f"{row['median']:.2f}"
                                         for row in found),
                         *(f"{row['ratio']:.3f}" for row in found[1:])))
        report.table(["load", *map(short, self.sides), *(
            f"{short(side)}, ratio" for side in self.others())], rows,
            "instructions of a pin and an unpin")

    # -- what is wanted

    def wanted(self):
        return [*self.wanted_few(), *self.wanted_many(), *self.wanted_wide(),
                *self.wanted_queries()]

    def worst(self, metric, wheres, limit, what, time="CPU time"):
        """One line for several configurations: the worst of all sides of the
        patched server."""
        found = {(where, side): self.samples.row(metric, where, side)["ratio"]
                 for where in wheres for side in self.patched()}
        if not found:
            return
        worst = max(found, key=found.get)
        noise = self.samples.row(metric, worst[0], self.sides[1])["ratio"]
        most_noise = max(self.samples.row(metric, where, self.sides[1])["ratio"]
                         for where in wheres)
        yield (found[worst] <= limit,
               f"{what}: {found[worst]:.3f} of the stock server's {time} at"
               f" worst ({worst[0]}, {short(worst[1])}), at most {limit:.3f}"
               f" wanted (the stock server again: {noise:.3f} there,"
               f" {most_noise:.3f} at worst)")

    def wanted_few(self):
        for kind in FEW_KINDS:
            yield from self.worst(
                PIN_CPU, [load.where() for load in self.loads
                          if load.kind == kind and load.held <= FEW],
                MOST_FEW, f"0 to {FEW} held, {kind}")

    def wanted_many(self):
        for held in MANY:
            yield from self.worst(
                PIN_CPU, [load.where() for load in self.loads
                          if load.held == held
                          and load.name() in MANY_LOADS],
                MOST_MANY, f"{held} held, again")

    def wanted_wide(self):
        found = {(name, side): median(ratios)
                 for name in WIDE_LOADS
                 for side in self.patched()
                 if (ratios := self.wide_ratios(name, side))}
        if found:
            worst = max(found, key=found.get)
            yield (found[worst] <= MOST_WIDE,
                   f"{WIDE[0]} held, again: {found[worst]:.2f} of the time with"
                   f" {WIDE[1]} held at worst ({worst[0]}, {short(worst[1])}),"
                   f" at most {MOST_WIDE} wanted")

    def wanted_queries(self):
        yield from self.worst(QUERY_CPU, [query.name for query in self.queries],
                              MOST_QUERY, "queries")
        yield from self.worst(QUERY_TIME,
                              [query.name for query in self.queries],
                              MOST_QUERY, "queries", "elapsed time")


def median_and_interval(ratios):
    return stats.with_interval(median(ratios),
                                 *stats.interval(ratios), 2)


def short(side):
    return {sides.STOCK_SERVER: "stock", sides.NOTHING_LOADED: "patched"}.get(
        side, side.name.removesuffix(" server (again)") + (
            " again" if side.name.endswith("(again)") else ""))
