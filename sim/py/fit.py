"""Fits the numbers that published/fit.json names to the cells that it names.

One number after the other, each by a search over the logarithm of the summed
squared errors of its own cells, then the same again until nothing moves: the
numbers hardly touch each other's cells."""

import json
import math

from bench.lib import report
from bench.lib.paths import BENCH

from . import binary, published, scans

SWEEPS = 3
STEPS = 7                       # halvings of the searched interval
CLOSE = 0.01                    # of the error of a cell: rounding of tps is more
START = {"page_ps": 1_500_000, "latency_percent": 100,
         "bandwidth_bytes_per_s": 63_000_000_000}
RESULT = BENCH / "sim" / "fit.json"


def fitted_cells(plan):
    return [(cell["clients"], cell["column"]) for cell in plan["cells"]]


class Fit:
    def __init__(self, simulator, machine, plan):
        self.simulator = simulator
        self.machine = machine
        self.plan = plan
        self.cells = fitted_cells(plan)
        self.published = dict(scans.cells())
        self.numbers = dict(START)

    def errors(self, cells):
        """Logarithms of predicted to published."""
        found = scans.simulate(self.simulator, self.machine, cells,
                               self.numbers, checked=False)
        return [math.log(found[cell] / self.published[cell])
                for cell in cells]

    def loss(self, number, value):
        kept = self.numbers[number["name"]]
        self.numbers[number["name"]] = value
        found = self.errors([self.cells[i] for i in number["from"]])
        self.numbers[number["name"]] = kept
        return sum(error * error for error in found)

    def search(self, number):
        """Golden section over the logarithm. What is searched need not be
        smooth; the best value seen is taken."""
        low, high = math.log(number["least"]), math.log(number["most"])
        ratio = (math.sqrt(5) - 1) / 2
        seen = {}

        def look(at):
            value = round(math.exp(at))
            if value not in seen:
                seen[value] = self.loss(number, value)
            return seen[value]

        look(math.log(self.numbers[number["name"]]))
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        for _ in range(2 * STEPS):
            if look(a) < look(b):
                high, b = b, a
                a = high - ratio * (high - low)
            else:
                low, a = a, b
                b = low + ratio * (high - low)
        return min(seen, key=lambda value: (seen[value], value))

    def run(self):
        for sweep in range(SWEEPS):
            before = dict(self.numbers)
            for number in self.plan["numbers"]:
                self.numbers[number["name"]] = self.search(number)
                report.progress(f"fit, sweep {sweep + 1}: {number['name']}"
                                f" = {self.numbers[number['name']]:,}")
            if all(abs(math.log(self.numbers[key] / before[key])) < CLOSE
                   for key in self.numbers):
                break
        return dict(self.numbers)


def fit(simulator, machine):
    """The fitted numbers. They are remembered while program, machine, table and
    plan are the same."""
    plan = published.plan("fit")
    basis = binary.digest([simulator.identity, machine.config(), plan,
                           sorted(map(str, scans.cells())),
                           scans.config(machine, (8, "master"), START),
                           scans.SEEDS])
    try:
        kept = json.loads(RESULT.read_text())
        if kept["basis"] == basis and not simulator.fresh:
            return kept["numbers"], fitted_cells(plan)
    except (OSError, ValueError, KeyError):
        pass
    numbers = Fit(simulator, machine, plan).run()
    RESULT.write_text(json.dumps({"basis": basis, "numbers": numbers}) + "\n")
    return numbers, fitted_cells(plan)
