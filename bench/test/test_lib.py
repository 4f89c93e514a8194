"""Rows of results, intervals, time boxes, pictures."""

import contextlib
import io
import random
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from bench.lib import box, plot, report, rows, stats, tables
from bench.lib.paths import BenchError

ROW = {"metric": "tps", "configuration": "8 clients", "side": "stock server",
       "rounds": 7, "median": 5.0, "min": 4, "max": 6.5, "ratio": 1.1,
       "ratio_min": 0.9, "ratio_max": 1.3, "ratio_low": 1.0, "ratio_high": 1.2}
NO_RATIOS = {**ROW, **dict.fromkeys(rows.RATIOS)}
WITHOUT = {key: value for key, value in ROW.items() if key != "ratio_low"}


class Rows(unittest.TestCase):
    def test_good(self):
        rows.check([ROW])
        rows.check([NO_RATIOS])

    def test_refused(self):
        for wrong, words in (
                ([], "no rows"), ({"metric": 1}, "no rows"),
                ([3], "the keys"), ([WITHOUT], "ratio_low"),
                ([{**ROW, "note": "x"}], "the keys"),
                ([ROW, {**ROW, "rounds": 3}], "row 2.* twice")):
            with self.subTest(words=words, wrong=wrong):
                self.assertRaisesRegex(BenchError, words, rows.check, wrong)

    def test_files(self):
        with tempfile.TemporaryDirectory() as name, mock.patch.object(
                report, "BENCH", Path(name)), contextlib.redirect_stdout(
                io.StringIO()):
            folder = Path(name)
            report.write_json("good", [ROW, {**NO_RATIOS, "side": "b"}])
            lines = (folder / "good.csv").read_text().splitlines()
            self.assertEqual(lines[0], ",".join(rows.KEYS))
            self.assertEqual(lines[1], ",".join(str(ROW[key])
                                                for key in rows.KEYS))
            self.assertTrue(lines[2].endswith(",,,,,"))
            # a refused result leaves the files alone
            self.assertRaises(ValueError, report.write_json, "good",
                              [{**ROW, "max": float("nan")}])
            self.assertRaisesRegex(BenchError, "the keys",
                                   report.write_json, "good", [WITHOUT])
            self.assertEqual(rows.read(folder / "good.json")[0], ROW)
            (folder / "bad.json").write_text('[{"metric": ')
            self.assertRaisesRegex(BenchError, "bad.json.* not JSON",
                                   rows.read, folder / "bad.json")


class Samples(unittest.TestCase):
    def test_interval_covers_the_median(self):
        draw = random.Random(39)
        hits = 0
        for _ in range(200):
            low, high = stats.interval([draw.gauss(1, 0.1) for _ in range(9)])
            hits += low <= 1 <= high
        self.assertGreaterEqual(hits, 180)

    def test_ratios_within_rounds(self):
        samples = stats.Samples("a")
        for i, (base, value) in enumerate(((10, 11), (20, 26), (40, 48))):
            samples.add("tps", "c", "a", i, base)
            samples.add("tps", "c", "b", i, value)
        found = samples.rows()[1]
        self.assertAlmostEqual(found["ratio"], 1.2)
        self.assertEqual([found[key] for key in
                          ("ratio_min", "ratio_low", "ratio_high")],
                         [1.1, 1.1, 1.3])


class Tables(unittest.TestCase):
    def shown(self, **arguments):
        samples = stats.Samples("a")
        for metric, side, where, values in (
                ("tps", "b", "20 clients", (20, 30)),
                ("tps", "a", "20 clients", (10, 10)),
                ("tps", "a", "3 clients", (7, 7)),
                ("sleeps", "b", "3 clients", (0.5, 0.5)),
                ("waits", "a", "3 clients", (0, 0)),
                ("waits", "b", "3 clients", (4, 4))):
            for round_, value in enumerate(values):
                samples.add(metric, where, side, round_, value)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            tables.show(samples, (
                tables.Metric("tps", "transactions/s", 0, tables.HIGHER, 2),
                tables.Metric("sleeps", "sleeps", 2),
                tables.Metric("waits", "waits", 0),
                tables.Metric("none", "no samples", 0)), **arguments)
        return [line.split() for line in out.getvalue().splitlines()]

    def test_per_metric(self):
        found = self.shown()
        for line in ("transactions/s (higher is better)", "a b",
                     "3 clients 7 -", "20 clients 10 2.50 [2.00 3.00]",
                     "3 clients 0.50", "3 clients 0 = 4"):
            with self.subTest(line=line):
                self.assertIn(line.split(), found)
        self.assertLess(found.index("3 clients 7 -".split()), found.index(
            "20 clients 10 2.50 [2.00 3.00]".split()))
        self.assertNotIn(["no", "samples"], found)

    def test_per_configuration(self):
        found = self.shown(by_configuration=True)
        self.assertEqual(found[1], ["3", "clients"])
        for line in ("transactions/s (higher is better) 7 -",
                     "sleeps - = 0.50", "waits 0 = 4"):
            with self.subTest(line=line):
                self.assertIn(line.split(), found)


class Box(unittest.TestCase):
    def rounds(self, minutes, most, length, parts=1):
        clock = [report.begin()]
        taken = []
        for round_ in box.Box(minutes, lambda: clock[0]).rounds(most, parts):
            taken.append(round_)
            clock[0] += length
        return taken

    def test_rounds(self):
        for arguments, expected in (
                ((None, 9, 1000), 9),       # no end
                ((2, 100, 13), 9),          # as many as have room
                ((60, 4, 1), 4),            # at most as many as asked for
                ((1, 100, 500), 2),         # at least two
                ((3, 100, 10, 3), 6)):      # a third of the box
            with self.subTest(arguments=arguments):
                self.assertEqual(self.rounds(*arguments),
                                 list(range(expected)))

    def test_no_time(self):
        self.assertRaisesRegex(BenchError, "--minutes", box.Box, 0)


class Plot(unittest.TestCase):
    def test_zero_on_a_logarithmic_axis(self):
        panel = plot.Lines("t", {"a": [(0, 1), (1, 2)]}, "x", "y")
        self.assertRaisesRegex(BenchError, "logarithmic", plot.write, "/x",
                               [panel])
