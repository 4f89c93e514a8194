"""Rows of results, intervals, time boxes, pictures."""

import contextlib
import io
import random
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from bench.lib import box, plot, report, rows, stats
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
                ([3], "not an object"), ([WITHOUT], "no ratio_low"),
                ([{**ROW, "note": "x"}], "unknown 'note'"),
                ([{**ROW, "side": " "}], "as side"),
                ([{**ROW, "rounds": 0}], "as rounds"),
                ([{**ROW, "rounds": True}], "as rounds"),
                ([{**ROW, "min": "4"}], "as min"),
                ([{**ROW, "max": float("nan")}], "as max"),
                ([{**ROW, "ratio": float("inf")}], "as ratio"),
                ([{**ROW, "median": 7}], "not between"),
                ([{**ROW, "ratio": None}], "as ratio"),
                ([{**ROW, "ratio": 1.25}], "interval"),
                ([{**ROW, "ratio_high": 1.4}], "interval"),
                ([ROW, {**ROW, "rounds": 3}], "row 2")):
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
            self.assertRaisesRegex(BenchError, "no ratio_low",
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
