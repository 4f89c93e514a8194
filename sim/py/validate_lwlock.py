"""Against Borisov's counts of ProcArrayLock: how often acquisitions slept, under
two ways of waiting. Hold and think times are fitted to one, the other is
predicted."""

from bench.lib import report

from . import machine, published

MODES = ("exclusive", "shared")
SLEEPS = ("0", "1", "2+")

# Enough for half a point in the shares of exclusive acquisitions, one of ten.
ACQUISITIONS = 150_000

# Fits whose errors differ by less (in points) cannot be told apart: 6,000
# exclusive acquisitions give shares within about half a point.
AS_GOOD = 0.5

# Steps of the fit: each number times or divided by these, as long as it helps.
STEPS = (1.5, 1.2, 1.1)


class Comparison:
    def __init__(self, simulator, quick):
        self.simulator = simulator
        self.quick = quick
        self.plan = published.plan("fit_lwlock")
        self.here = machine.named(self.plan["machine"])
        self.theirs = {self.plan[part]["variant"]: shares_of(
            published.read("borisov"), self.plan[part]["variant"])
            for part in ("fitted", "predicted")}
        self.tried = 0
        self.ends = self.fit_all()
        _, self.numbers = self.ends[0]
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
                "load.snapshots_percent": self.plan["snapshots_percent"],
                "load.acquisitions": ACQUISITIONS,
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

    def fit_all(self):
        """(error, numbers) where fits have ended, the best one first. Quick: only
        the last steps, from where an earlier one has ended."""
        if self.quick:
            return [self.fit(self.plan["found"], STEPS[-1:])]
        return sorted((self.fit(start, STEPS) for start in
                       self.plan["starts"]), key=lambda end: end[0])

    def fit(self, start, steps):
        numbers = dict(start)
        best = self.error(numbers)
        for factor in steps:
            better = True
            while better:
                better = False
                for name in numbers:
                    for by in (factor, 1 / factor):
                        tried = {**numbers, name: round(numbers[name] * by)}
                        error = self.error(tried)
                        if error < best:
                            best, numbers, better = error, tried, True
        report.progress(f"fit of waits: {self.tried} runs, off by"
                        f" {best:.2f} points")
        return best, numbers

    # ---- what came out ----

    def worst_of(self, numbers):
        """Of a prediction from other numbers than those of the best fit."""
        return self.worst("predicted", shares(self.run("predicted", numbers)))

    def as_good(self):
        """The numbers of all fits that cannot be told from the best one."""
        return [numbers for error, numbers in self.ends
                if error < self.ends[0][0] + AS_GOOD]

    def worst(self, part, ours=None):
        theirs = self.theirs[self.plan[part]["variant"]]
        ours = ours or self.ours[part]
        return max(abs(ours[key] - theirs[key]) for key in theirs)

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
        what = "numbers of an earlier fit" if self.quick else "fitted"
        for error, numbers in self.ends:
            report.say(f"{what}: {told(numbers)}; off by {error:.2f} points"
                       f" (root of the mean square), the prediction by"
                       f" {self.worst_of(numbers):.1f} at most")
        for part, answer in self.answers.items():
            report.say(
                f"{self.plan[part]['variant']}, not fitted:"
                f" {answer['transactions_per_s']:,.0f} transactions per second,"
                f" {100 * answer['group_members']:.1f} % of them ended by a"
                " group")

    def data(self):
        return [[part, variant, mode, sleeps, theirs,
                 self.ours[part][mode, sleeps]]
                for part in ("fitted", "predicted")
                for variant in [self.plan[part]["variant"]]
                for (mode, sleeps), theirs in self.theirs[variant].items()]

    def wanted(self):
        most = self.plan["points"]
        for part in ("fitted", "predicted"):
            yield (self.worst(part) <= most,
                   f"waits for LWLocks, {self.plan[part]['variant']} ({part}):"
                   f" largest difference {self.worst(part):.1f} points, at most"
                   f" {most} wanted")
        good = self.as_good()
        worst = max(map(self.worst_of, good))
        yield (worst <= most,
               f"waits for LWLocks, predicted from each of the {len(good)} fits"
               f" that are as good: largest difference {worst:.1f} points, at"
               f" most {most} wanted")
        yield (self.numbers == self.plan["found"],
               "waits for LWLocks: the fit ends where fit_lwlock.json says")


def told(numbers):
    return ", ".join(f"{name} {value:,}" for name, value in numbers.items())


def shares_of(rows, variant):
    """In percent, by (mode, sleeps)."""
    found = {}
    for mode in MODES:
        counts = {str(row["sleeps"]): row["acquisitions"] for row in rows
                  if row["variant"] == variant and row["mode"] == mode}
        found.update({(mode, sleeps): 100 * counts[sleeps]
                      / sum(counts.values()) for sleeps in SLEEPS})
    return found


def shares(results):
    return {(mode, sleeps): 100 * results.get(f"{mode}.share{i}", 0)
            for mode in MODES for i, sleeps in enumerate(SLEEPS)}
