"""The suite: verdicts, sizes on machines of all kinds, and the report."""

import contextlib
import io
import random
import tempfile
import unittest
from pathlib import Path

from bench.__main__ import find
from bench.lib import rows
from bench.suite import document, scenarios
from bench.suite.machine import Machine
from bench.suite.scenarios import HIGHER, LOWER, SCENARIOS
from bench.test.test_lib import ROW

LARGE = Machine(384, 3 << 20, 2 << 20, 1 << 20)
SMALL = Machine(1, 2048, 8192, 1024)        # CPU, MB, MB, open files
NO_DISK = Machine(2, 16384, 2048, 1024)
MINUTES = 15                    # of a scenario


def row(low, high, count=8):
    return {**ROW, "rounds": count, "ratio": (low + high) / 2,
            "ratio_low": low, "ratio_high": high}


def plans(machine, minutes=MINUTES, factor=None):
    factor = factor or scenarios.factor_of(machine)
    return {name: scenario.plan(factor, machine, minutes)
            for name, scenario in SCENARIOS.items()}


def value(plan, option):
    """The values of an option."""
    found = []
    for argument in map(str, plan.arguments[plan.arguments.index(option) + 1:]):
        if argument.startswith("--"):
            break
        found.append(argument)
    return found


class Verdicts(unittest.TestCase):
    def test_verdicts(self):
        for arguments, expected in (
                ((row(1.05, 1.2), HIGHER), document.BETTER),
                ((row(1.05, 1.2), LOWER), document.WORSE),
                ((row(0.8, 0.95), HIGHER), document.WORSE),
                ((row(0.8, 0.95), LOWER), document.BETTER),
                ((row(0.95, 1.2), HIGHER), document.NO_DIFFERENCE),
                ((row(1.0, 1.2), HIGHER), document.NO_DIFFERENCE),
                ((row(1.05, 1.2, 5), HIGHER), document.TOO_FEW),
                # with a control
                ((row(1.05, 1.2), HIGHER, row(1.0, 1.1)),
                 document.NO_DIFFERENCE),
                ((row(1.15, 1.2), HIGHER, row(1.0, 1.1)), document.BETTER),
                ((row(1.05, 1.2), HIGHER, row(0.8, 0.9)), document.BETTER),
                (({**ROW, "ratio": None}, HIGHER), None)):
            with self.subTest(arguments=arguments):
                self.assertEqual(document.verdict(*arguments), expected)


class Sizes(unittest.TestCase):
    def test_factor(self):
        self.assertEqual(scenarios.factor_of(LARGE), 1)
        self.assertEqual(scenarios.factor_of(SMALL), 2048 / (1 << 20))
        self.assertEqual(scenarios.factor_of(
            Machine(384, 3 << 20, 65 << 10, 1 << 20)), 64 / 512)

    def test_factor_1_is_the_threads(self):
        large = plans(LARGE)
        hb176 = plans(Machine(176, 700 << 10, 1 << 20, 1 << 20))
        for plan, option, expected in (
                (large["pgbench_ro"], "--scale", "3000"),
                (large["pgbench_rw"], "--clients", "64 128 256 384 512"),
                (large["pgbench_ro"], "--pool-percent", "71"),
                (hb176["scans"], "--clients", "8 16 32 64 96 128"),
                (large["copy"], "--mb", "1024"),
                (large["copy"], "--writers", "1 4 16")):
            with self.subTest(option=option, expected=expected):
                self.assertEqual(value(plan, option), expected.split())
        self.assertEqual(value(large["insert"], "--connections")[-1], "2000")

    def test_least_sizes(self):
        small = plans(SMALL)
        self.assertEqual(value(small["scans"], "--clients"), ["8", "16"])
        self.assertLessEqual(int(value(small["insert"], "--connections")[-1]),
                             1024 - 200)
        self.assertIn("MB of disk", plans(NO_DISK)["copy"].problem(NO_DISK))

    def test_benches_accept_the_plans(self):
        benches = find()
        draw = random.Random(7)
        machines = [LARGE, SMALL, *(Machine(
            cpus, max(2048, int(cpus * 2 ** draw.uniform(9, 14))),
            max(8192, int(cpus * 2 ** draw.uniform(6, 16))),
            draw.choice((1024, 4096, 1 << 20)))
            for cpus in (1, 2, 3, 8, 16, 48, 96, 192, 512, 1024))]
        for machine in machines:
            for minutes in (None, 0.5, MINUTES, 600):
                for name, plan in plans(machine, minutes).items():
                    with self.subTest(machine=machine, scenario=name):
                        self.assertIsNone(plan.problem(machine))
                        said = io.StringIO()
                        with contextlib.redirect_stderr(said):
                            benches[SCENARIOS[name].bench].arguments(
                                list(map(str, plan.arguments)))

    def test_sizes_grow_with_the_factor(self):
        steps = [plans(LARGE, MINUTES, factor)
                 for factor in (0.001, 0.01, 0.1, 0.5, 1, 2, 4)]
        for smaller, larger in zip(steps, steps[1:]):
            for name in smaller:
                # whole megabytes per client make a little less
                self.assertLessEqual(smaller[name].disk_mb,
                                     1.02 * larger[name].disk_mb)
                self.assertLessEqual(smaller[name].memory_mb,
                                     1.02 * larger[name].memory_mb)


def canned(scenario, low, high):
    """Rows as the bench would write them, of eight rounds."""
    wheres = [f"{'again, random' if scenario.bench == 'pins' else 'x'}, {n}"
              f" {'held' if scenario.bench == 'pins' else 'clients'}"
              for n in (1, 8, 64, 512)]
    bounds = {scenario.baseline: (1, 1), scenarios.CONTROL: (0.99, 1.01)}
    found = []
    for metric, *_ in scenario.metrics:
        for where in wheres:
            for side in (scenario.baseline, scenarios.CONTROL,
                         *scenario.sides):
                a, b = bounds.get(side, (low, high))
                found.append({
                    "metric": metric, "configuration": where,
                    "side": side, "rounds": 8, "median": 500 * (a + b),
                    "min": 500, "max": 3000, "ratio": (a + b) / 2,
                    "ratio_min": a, "ratio_max": b, "ratio_low": a,
                    "ratio_high": b})
    return found


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            sections = []
            for scenario_name, plan in plans(LARGE).items():
                scenario = SCENARIOS[scenario_name]
                bounds = {"scans": (2.5, 3), "copy": (0.7, 0.9),
                          "pgbench_rw": (0.98, 1.02)}.get(scenario_name,
                                                          (1.05, 1.2))
                (folder / f"{scenario_name}.json").write_text(
                    rows.to_json(canned(scenario, *bounds)))
                status = ("failed: it broke" if scenario_name == "insert"
                          else document.DONE)
                sections.append(document.Section(folder, scenario, plan,
                                                 status, 60))
            (folder / "insert.log").write_text("[1.0 s] working\nit broke\n")
            document.write(folder / "report.md", ["top\n"],
                           [("CPU", "one | two")], sections)
            cls.text = (folder / "report.md").read_text()
            cls.pictures = {path.stem: path.read_bytes()
                            for path in folder.glob("*.png")}

    def part(self, title):
        return self.text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]

    def test_sections(self):
        for name, scenario in SCENARIOS.items():
            part = self.part(name)
            with self.subTest(scenario=name):
                self.assertIn(scenario.thread.source, part)
                if name == "insert":
                    self.assertIn("**failed: it broke**", part)
                    self.assertIn("\nit broke\n", part)
                    self.assertNotIn(name, self.pictures)
                else:
                    self.assertIn(f"]({name}.png)", part)
                    self.assertGreater(len(self.pictures[name]), 5000)

    def test_verdicts(self):
        for name, text in (
                ("scans", "2.750 [2.500 3.000] **better**"),
                ("copy", "0.800 [0.700 0.900] **better**"),
                ("pgbench_rw", "1.000 [0.980 1.020] no difference shown"),
                ("pins", "**worse**")):
            self.assertIn(text, self.part(name))

    def test_summary(self):
        self.assertIn("**Not all scenarios have results: insert.**", self.text)
        self.assertIn("| CPU | one \\| two |", self.text)
        # one row per judged side, and one for the scenario that failed
        self.assertEqual(self.text.count("\n| ["), 1 + sum(
            len(scenario.sides) for name, scenario in SCENARIOS.items()
            if name != "insert"))
