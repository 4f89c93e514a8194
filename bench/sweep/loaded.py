"""What does the loaded library cost while "stock" is active?

One process allocates victims, as in alloc. A sample is short, and the best of
some: what else runs on the machine then spoils fewer of them. The stock server
is measured twice in each round, which shows the noise."""

from bench.lib import report, sides, stats
from bench.lib.tables import HIGHER, LOWER, Metric
from bench.sweep import alloc

CONTROL = "stock server, again"
BEST_OF = 3
ALLOCATIONS = 3 * 16384     # of a sample: three passes of the pool, about 1 ms
LEAST = 0.97                # of the stock server's rate


class Bench(alloc.Bench):
    rounds = 100, 10
    check = f"exit 1 if the rate is below {LEAST} of the stock server's"
    metrics = (Metric(alloc.TIME, "ns per allocation", 2, LOWER),
               Metric(alloc.RATE, "allocations/s", 0, HIGHER))

    @staticmethod
    def options(add):
        add("--shared-buffers", "128MB")

    @staticmethod
    def switches(add):
        """Not those of alloc."""

    def __init__(self, args):
        args.procs, args.batch, args.no_loads = (), (), True
        super().__init__(args)
        self.processes = [1]
        self.sides = [sides.STOCK_SERVER, sides.NOTHING_LOADED,
                      sides.SWEEP_STOCK]

    def best(self, side, usage):
        """ns per allocation"""
        worker = self.clusters[side.cluster].workers[0]
        found = []
        for _ in range(BEST_OF):
            count, ns = map(int, worker.row(
                "SELECT allocations, elapsed_ns FROM measure_sweep_run("
                f"{usage}, max_allocations => {ALLOCATIONS})"))
            found.append(ns / count)
        return min(found)

    def measure(self):
        here = self.clusters
        runs = [(side.name, side) for side in self.sides]
        runs.append((CONTROL, sides.STOCK_SERVER))
        for side in self.sides:
            self.verify(side, [here[side.cluster].admin])
        for usage in alloc.USAGES:
            for side in self.sides:
                here[side.cluster].admin.rows(
                    f"SELECT measure_sweep_preset({usage})")
                self.best(side, usage)
            for round_ in range(self.args.rounds):
                report.progress(f"usage {usage}: round {round_ + 1}"
                                f" of {self.args.rounds}")
                for name, side in stats.rotated(runs, round_):
                    ns = self.best(side, usage)
                    self.note(f"usage {usage}", name, round_,
                              {alloc.TIME: ns, alloc.RATE: 1e9 / ns})
        for side in self.sides:
            self.verify(side, [here[side.cluster].admin])

    def notes(self):
        yield (f"One process; each sample is the best of {BEST_OF} of"
               f" {ALLOCATIONS} allocations; shared_buffers ="
               f" {self.args.shared_buffers}")

    def wanted(self):
        for usage in alloc.USAGES:
            row = self.samples.row(alloc.RATE, f"usage {usage}",
                                   sides.SWEEP_STOCK)
            yield (row["ratio"] >= LEAST,
                   f"pg_sweep stock, usage {usage}: {row['ratio']:.3f} of the"
                   f" stock server's rate, at least {LEAST} wanted")
