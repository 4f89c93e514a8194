"""Tables, pictures and required figures of the bench lwlock."""

from bench.lib import paths, plot, report, sides, stats

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

LEAST_TPS = 0.98                # no interval wholly below
LEAST_HOT_RATE, MOST_HOT_CPU, MOST_HOT_LONGEST = 1.3, 1.0, 1.2
MOST_LATENCY = 1.2
SLEEPS_AT = 20                  # connections, where sleeps are compared


class LwlockTables:
    def __init__(self, bench):
        self.args = bench.args
        self.samples = bench.samples
        self.sides = bench.sides
        self.policies = [side for side in self.sides if side.lwlock_policy]
        self.cells = bench.cells
        self.hot_where = bench.hot_where()

    def others(self):
        return self.sides[1:]

    def show(self):
        for name in dict.fromkeys(cell.workload.name for cell in self.cells):
            cells = [cell for cell in self.cells if cell.workload.name == name]
            steps = [cell for cell in cells if not cell.tail]
            for metric, unit, digits in ((TPS, "tps", 0), (CPU, "us", 1),
                                         (SWITCHES, "switches", 2)):
                self.show_steps(f"{name}: {metric}", steps, metric, unit,
                                digits)
            self.show_sleeps(name, steps)
            for cell in cells:
                if cell.tail:
                    self.show_tail(cell)
        if "hot" in self.args.workload:
            self.show_hot()
        report.say()
        report.say("ratios: to the stock server in the same round, median of"
                   f" the rounds [bootstrap interval, {stats.SHARE:.0%}]; CPU"
                   " time and voluntary switches are those of the server's processes"
                   " (a switch is also each wait for the client)")

    def show_steps(self, title, cells, metric, unit, digits):
        rows = [(cell.connections,
                 self.samples.median(metric, cell.where(),
                                     sides.STOCK_SERVER, digits),
                 *(self.samples.ratio(metric, cell.where(), side, 2)
                   for side in self.others()))
                for cell in cells]
        report.table(["connections", f"stock, {unit}",
                      *(short(side) for side in self.others())], rows, title)

    def show_sleeps(self, name, cells):
        rows = []
        for cell in cells:
            rows.append((cell.connections, *(
                self.samples.median(metric, cell.where(), side, 3)
                for metric in (SLEEPS, OVERTAKEN) for side in self.policies)))
        names = [side.lwlock_policy for side in self.policies]
        report.table(["connections", *(f"{name_}: slept" for name_ in names),
                      *(f"{name_}: overtaken" for name_ in names)], rows,
                     f"{name}: times slept, and overtaken after a wake-up, per"
                     " contended acquisition, as pg_sweep_lwlock_waits counts")

    def show_tail(self, cell):
        self.show_sides(f"{cell.where()}, {cell.seconds:g} s per side",
                        cell.where(), ((LATENCY, "99.9 %, ms", 2),
                                       (LONGEST, "longest, ms", 1)))

    def show_hot(self):
        self.show_sides(
            f"one hot lock, exclusive, {self.args.processes} processes, held"
            f" for {self.args.hold} turns of an empty loop, left for"
            f" {self.args.think}", self.hot_where,
            ((HOT_RATE, "acquired/s", 0), (HOT_CPU, "CPU ns each", 0),
             (HOT_LONGEST, "longest wait, ms", 2),
             (HOT_WAIT, "99.9 % wait, us", 1)))
        rows = [(side.name, *(
            self.samples.median(metric, self.hot_where, side, 5)
            for metric in (HOT_SLEPT, HOT_SWITCHES))) for side in self.sides]
        report.table(["side", "slept/acquisition", "switches/acquisition"],
                     rows)

    def show_sides(self, title, where, metrics):
        rows = [(side.name, *(cell for metric, _, digits in metrics for cell in
                              (self.samples.median(metric, where, side, digits),
                               self.samples.ratio(metric, where, side, 2))))
                for side in self.sides]
        report.table(["side", *(heading for _, name, _ in metrics
                                for heading in (name, "ratio"))], rows, title)

    def draw(self):
        panels = []
        for name in dict.fromkeys(cell.workload.name for cell in self.cells):
            cells = sorted((cell for cell in self.cells if not cell.tail
                            and cell.workload.name == name),
                           key=lambda cell: cell.connections)
            if not cells:
                continue
            panels.append(plot.Lines(
                f"{name}: transactions per second",
                {side.name: [
                    (cell.connections, *(
                        self.samples.row(TPS, cell.where(), side)[key]
                        for key in ("ratio", "ratio_low", "ratio_high")))
                    for cell in cells] for side in self.others()},
                "connections", "ratio to the stock server", reference=1))
        if panels:
            report.say("plot: " + ", ".join(map(str, map(
                report.shown, plot.write(paths.BENCH / "lwlock", panels)))))

    # -- what is wanted

    def wanted(self):
        return [*self.wanted_tps(), *self.wanted_sleeps(),
                *self.wanted_hot(), *self.wanted_tail()]

    def wanted_tps(self):
        found = [(side, cell, self.samples.row(TPS, cell.where(), side))
                 for side in self.policies for cell in self.cells
                 if not cell.tail and cell.workload.name != "rw"]
        if not found:
            return
        slower = [f"{short(side)} at {cell.where()}" for side, cell, row
                  in found if row["ratio_high"] < LEAST_TPS]
        faster = [f"{short(side)} at {cell.where()}" for side, cell, row
                  in found if row["ratio_low"] > 1]
        report.say()
        report.say("intervals wholly above 1: " + ("; ".join(faster) or "none"))
        yield (not slower, f"of {len(found)} intervals of the thread's"
               f" workloads, wholly below {LEAST_TPS}:"
               f" {'; '.join(slower) or 'none'}; none wanted")

    def wanted_sleeps(self):
        where = [cell.where() for cell in self.cells if not cell.tail
                 and cell.workload.name == "insert"
                 and cell.connections == SLEEPS_AT]
        if not where:
            return
        stock, ours = (self.samples.row(SLEEPS, where[0], sides.lwlock_policy(policy))
                       for policy in ("stock", "lockless_spin"))
        if stock and ours:
            yield (ours["median"] <= stock["median"],
                   f"{where[0]}: {ours['median']:.3f} sleeps per contended"
                   " acquisition under lockless_spin, at most"
                   f" {stock['median']:.3f} (stock) wanted")

    def wanted_hot(self):
        if "hot" not in self.args.workload:
            return
        found = {side: [self.samples.row(metric, self.hot_where, side)["ratio"]
                        for metric in (HOT_RATE, HOT_CPU, HOT_LONGEST)]
                 for side in self.policies}

        def met(side):
            rate, cpu, longest = found[side]
            return (rate >= LEAST_HOT_RATE and cpu <= MOST_HOT_CPU
                    and longest <= MOST_HOT_LONGEST)

        best = max(found, key=lambda side: (met(side), found[side][0]))
        rate, cpu, longest = found[best]
        yield (met(best), f"{self.hot_where}, best policy {short(best)}:"
               f" {rate:.2f} of the stock server's acquisitions per second,"
               f" {cpu:.2f} of its CPU time each, {longest:.2f} of its longest"
               f" wait; at least {LEAST_HOT_RATE}, at most {MOST_HOT_CPU} and"
               f" {MOST_HOT_LONGEST} wanted")

    def wanted_tail(self):
        for cell in self.cells:
            for metric in (LATENCY, LONGEST) if cell.tail else ():
                ratios = {short(side): self.samples.row(metric, cell.where(),
                                                side)["ratio"]
                          for side in self.policies}
                worst = max(ratios, key=ratios.get)
                yield (ratios[worst] <= MOST_LATENCY,
                       f"{cell.where()}: {metric}, worst policy {worst}"
                       f" {ratios[worst]:.2f} of the stock server, at most"
                       f" {MOST_LATENCY} wanted")


def short(side):
    return side.lwlock_policy or side.name.removeprefix("patched, ")
