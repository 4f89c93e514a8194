"""Against Borisov's counts of ProcArrayLock: how often acquisitions slept, under
two ways of waiting. Hold and think times are fitted to one, the other is
predicted."""

import json

from lib import report
from lib.paths import BenchError

from . import machine, published

PLAN = published.FOLDER / "fit_lwlock.json"
MODES = ("exclusive", "shared")
SLEEPS = ("0", "1", "2+")

# Enough for half a point in the shares of exclusive acquisitions, one of ten.
ACQUISITIONS = 150_000
QUICK_ACQUISITIONS = 40_000

# Steps of the fit: each number times or divided by these, as long as it helps.
STEPS = (1.5, 1.2, 1.1)


class Comparison:
    def __init__(self, simulator, quick):
        self.simulator = simulator
        self.acquisitions = QUICK_ACQUISITIONS if quick else ACQUISITIONS
        self.plan = read_plan()
        self.here = machine.named(self.plan["machine"])
        self.theirs = {self.plan[part]["variant"]: shares_of(
            published.read("borisov"), self.plan[part]["variant"])
            for part in ("fitted", "predicted")}
        self.numbers = dict(self.plan["found" if quick else "start"])
        self.tried = 0
        if not quick:
            self.fit()
        self.answers = {part: self.run(part, self.numbers)
                        for part in ("fitted", "predicted")}
        self.ours = {part: shares(answer)
                     for part, answer in self.answers.items()}

    # ---- runs and the fit ----

    def config(self, part, numbers):
        plan = self.plan[part]
        return {**self.here.config(), "seed": 1, "load": "lwlock",
                "backends": self.plan["backends"], "placement": "scatter",
                "load.kind": "procarray", "load.policy": plan["policy"],
                "load.snapshots_percent":
                    self.plan["snapshots_percent"][plan["variant"]],
                "load.acquisitions": self.acquisitions,
                **{f"load.{name}": int(value)
                   for name, value in numbers.items()}}

    def run(self, part, numbers):
        return self.simulator.run(self.config(part, numbers)).results

    def error(self, numbers):
        """Of the shares that may be fitted: root of the mean square."""
        self.tried += 1
        theirs = self.theirs[self.plan["fitted"]["variant"]]
        ours = shares(self.run("fitted", numbers))
        squares = [(ours[mode, str(sleeps)] - theirs[mode, str(sleeps)]) ** 2
                   for mode, sleeps in self.plan["fitted"]["shares"]]
        return (sum(squares) / len(squares)) ** 0.5

    def fit(self):
        best = self.error(self.numbers)
        for factor in STEPS:
            better = True
            while better:
                better = False
                for name in self.numbers:
                    for by in (factor, 1 / factor):
                        tried = {**self.numbers,
                                 name: round(self.numbers[name] * by)}
                        error = self.error(tried)
                        if error < best:
                            best, self.numbers, better = error, tried, True
                report.progress(f"fit of waits: {self.tried} runs, off by"
                                f" {best:.2f} points")

    # ---- what came out ----

    def differences(self, part):
        theirs = self.theirs[self.plan[part]["variant"]]
        return {key: self.ours[part][key] - theirs[key] for key in theirs}

    def worst(self, part):
        return max(map(abs, self.differences(part).values()))

    def show(self):
        rows = []
        for part in ("fitted", "predicted"):
            variant = self.plan[part]["variant"]
            for mode, sleeps in self.theirs[variant]:
                theirs = self.theirs[variant][mode, sleeps]
                ours = self.ours[part][mode, sleeps]
                fitted = part == "fitted" and sleeps != SLEEPS[-1]
                rows.append((f"{variant}, {mode}, {sleeps} sleeps",
                             f"{theirs:.2f}", f"{ours:.2f}",
                             f"{ours - theirs:+.2f}", "yes" if fitted else ""))
        report.table(["acquisitions of ProcArrayLock", "published, %",
                      "simulated, %", "points", "fitted"], rows,
                     f"Waits of {self.plan['backends']} connections on"
                     f" {self.here.name}")
        report.say("fitted: " + ", ".join(
            f"{name} {value:,}" for name, value in self.numbers.items()))
        for part, answer in self.answers.items():
            report.say(
                f"{self.plan[part]['variant']}, not fitted:"
                f" {answer['transactions_per_s']:,.0f} transactions a second,"
                f" {100 * answer['group_members']:.1f} % of them ended by a"
                " group")

    def rows(self):
        for part in ("fitted", "predicted"):
            variant = self.plan[part]["variant"]
            for (mode, sleeps), theirs in self.theirs[variant].items():
                where = f"{variant}, {mode}, {sleeps} sleeps ({part})"
                yield published.result_row("lwlock_share_percent", where,
                                           "published", theirs)
                yield published.result_row("lwlock_share_percent", where,
                                           "simulated",
                                           self.ours[part][mode, sleeps],
                                           theirs)

    def wanted(self):
        most = self.plan["points"]
        for part in ("fitted", "predicted"):
            yield (self.worst(part) <= most,
                   f"waits for LWLocks, {self.plan[part]['variant']} ({part}):"
                   f" largest difference {self.worst(part):.1f} points, at most"
                   f" {most} wanted")


def read_plan():
    try:
        return json.loads(PLAN.read_text())
    except (OSError, ValueError) as error:
        raise BenchError(f"cannot read {PLAN}: {error}")


def shares_of(rows, variant):
    """In percent, by (mode, sleeps)."""
    found = {}
    for mode in MODES:
        counts = {str(row["sleeps"]): row["acquisitions"] for row in rows
                  if row["variant"] == variant and row["mode"] == mode}
        total = sum(counts.values())
        if tuple(counts) != SLEEPS or not total:
            raise BenchError(f"borisov.csv lacks {mode} acquisitions of"
                             f" {variant}")
        found.update({(mode, sleeps): 100 * count / total
                      for sleeps, count in counts.items()})
    return found


def shares(results):
    return {(mode, sleeps): 100 * results.get(f"{mode}.share{i}", 0)
            for mode in MODES for i, sleeps in enumerate(SLEEPS)}
