"""Does a release take longer if more processes are queued?

One session holds an exclusive lock for which others are queued, all exclusively
and in core's way, and times LWLockRelease(). It wakes the first of them. The
others are PGPROCs that no process uses, in whose names the session has queued, so
thousands fit. "flushed": their cache lines are in no cache, as those of processes
that sleep on other CPUs; "warm": they have just been written by this CPU. The
servers take turns for each length, and start anew for each round."""

from bench.lib import cluster, report, runner, sides, stats
from bench.lib.tables import LOWER, Metric

MODULE = "measure_lwlock"
TIME = "release_ns"
WAITERS = 1, 10, 100, 1000, 5000
WAITERS_QUICK = 1, 10, 100
QUEUED = 40_000                 # waiters queued for one figure, at most
SAMPLES = 200                   # releases for one figure, at most
QUANTILE = 0.25                 # of them: what disturbs a release makes it longer
LIMIT = 1.2                     # of the stock server's time
UNUSED = 30                     # PGPROCs that are not used as waiters


class Bench(runner.Bench):
    rounds = 10, 2
    boxed = controlled = True
    check = f"exit 1 if a ratio to the stock server is above {LIMIT}"
    metrics = (Metric(TIME, "LWLockRelease(), ns", 0, LOWER, 2),)

    @staticmethod
    def options(add):
        add("--waiters", WAITERS, WAITERS_QUICK, "processes queued")

    def __init__(self, args):
        super().__init__(args)
        self.sides = self.with_control([sides.STOCK_SERVER,
                                        sides.NOTHING_LOADED])

    def prepare(self):
        found_by = self.modules(MODULE)
        common = {"max_connections": max(self.args.waiters) + UNUSED,
                  "shared_buffers": "16MB"}
        first = cluster.Cluster(self.name(), "template", self.patched,
                                {**common, **found_by[self.patched]})
        first.init()
        first.start()
        admin = first.session()
        admin.rows(f"CREATE EXTENSION {MODULE}")
        first.stop()
        self.copy_clusters(first, lambda key: {
            **common, **found_by[self.server(key)]})

    def measure(self):
        for round_ in self.each_round():
            for here in self.clusters.values():
                here.start()
                here.admin = here.session()
            for waiters in self.args.waiters:
                for flushed in (True, False):
                    for side in stats.rotated(self.sides, round_):
                        self.sample(side, waiters, flushed, round_)
            for here in self.clusters.values():
                here.stop()

    def sample(self, side, waiters, flushed, round_):
        samples = max(min(SAMPLES, QUEUED // waiters), 4)
        # the first few warm the code
        found = self.clusters[side.cluster].admin.value(
            f"SELECT measure_lwlock_release({waiters}, {flushed},"
            f" {samples + samples // 4})")
        clock, *times = map(int, found.strip("{}").split(","))
        self.note(where(waiters, flushed), side, round_, {
            TIME: stats.quantile(sorted(times[samples // 4:]), QUANTILE) - clock})

    def notes(self):
        yield ("what reading the clock takes has been subtracted; each figure is"
               f" the lower quartile of up to {SAMPLES} releases")

    def wanted(self):
        for waiters in self.args.waiters:
            for flushed in (True, False):
                row = self.samples.row(TIME, where(waiters, flushed),
                                       sides.NOTHING_LOADED)
                if row is not None:
                    yield (row["ratio"] <= LIMIT,
                           f"{where(waiters, flushed)}: at most {LIMIT} of the"
                           f" stock server's time ({row['ratio']:.2f})")


def where(waiters, flushed):
    return (f"{waiters} waiter{'s' if waiters > 1 else ''},"
            f" {'flushed' if flushed else 'warm'}")
