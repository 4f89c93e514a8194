"""Against Freund's totals: threads that increment a word, all the same one or
each its own."""

from bench.lib import report

from . import machine, published

MACHINE = "gold5215"
THREADS = 20                    # "a thread for each physical core", 2 x 10
MOST_ERROR = 0.10
# Simulated, with five rounds per millisecond: rounds with a shared line differ
# by some per cent.
MS = {"shared": 16, "own": 1}


def config(here, row):
    return {**here.config(), "load": "counters", "backends": THREADS,
            "placement": "compact", "load.op": row["operation"],
            "load.bits": row["width"], "load.shared":
            int(row["line"] == "shared"), "load.ms": MS[row["line"]], "seed": 1}


class Comparison:
    def __init__(self, simulator, quick):
        here = machine.named(MACHINE)
        self.table = published.read("freund")
        answers = simulator.run_all([config(here, row) for row in self.table])
        self.predicted = [answer.results["ops_per_s"] / 1e6
                          for answer in answers]
        self.errors = [ours / row["total_m_per_s"] - 1 for ours, row
                       in zip(self.predicted, self.table)]
        self.fitted = [key for key, why in here.source.items()
                       if why.startswith("fitted")]

    def show(self):
        report.table(["line, operation, bits", "published, M/s", "simulated",
                      "error, %"],
                     [(where(row), row["total_m_per_s"], f"{ours:.2f}",
                       f"{100 * error:+.1f}") for row, ours, error
                      in zip(self.table, self.predicted, self.errors)],
                     f"Counters of {THREADS} threads on {MACHINE}")
        report.say(f"fitted: {', '.join(self.fitted) or 'nothing'}")

    def data(self):
        return [[where(row), row["total_m_per_s"], ours]
                for row, ours in zip(self.table, self.predicted)]

    def wanted(self):
        worst = max(map(abs, self.errors))
        yield (worst <= MOST_ERROR,
               f"counters: largest error {100 * worst:.1f} %, at most"
               f" {100 * MOST_ERROR:.0f} % wanted")
        yield (len(self.fitted) <= 5,
               f"counters: {len(self.fitted)} numbers fitted, at most 5 wanted")


def where(row):
    return f"{row['line']}, {row['operation']}, {row['width']}"
