"""The arithmetic, deterministic, against what must be true of it."""

import itertools
import math
import random
import unittest

from ab import analysis
from ab.analysis import Comparison

SIZES = [.001, .02, .003, .5, .07, .011, 1.3, .017, .19]
TEN = [100 + i for i in range(10)]


def verdict(name, a, b):
    """On side b, by metric name: the values of a and b by block."""
    blocks = [{side: {"tps": 1, name: value, "half": {"tps": .5, name: .5}}
               for side, value in (("a", x), ("b", y))}
              for x, y in zip(a, b)]
    rows = analysis.analyse(blocks, ["a", "b"], "c")
    return next(row["verdict"] for row in rows
                if row["metric"] == name and row["side"] == "b")


class TestComparison(unittest.TestCase):
    def setUp(self):
        self.draw = random.Random(1)

    def alarms(self, runs, blocks):
        """The rate of false alarms of normal noise."""
        found = [Comparison([self.draw.gauss(0, .1) for _ in range(blocks)]).p
                 for _ in range(runs)]
        return sum(p <= .05 for p in found) / runs

    def test_rate_of_false_alarms_is_exact(self):
        # An A/A is one of 2^n equally likely ways to give signs to differences
        # of any size. The rate is the share of false alarms among all of them.
        for n in (6, 7, 8, 9):
            alarms = covered = 0
            for signs in itertools.product((-1, 1), repeat=n):
                c = Comparison([s * d for s, d in zip(signs, SIZES)])
                inside = c.low <= 1 <= c.high
                self.assertNotEqual(c.p <= .05, inside, signs)
                alarms += c.p <= .05
                covered += inside
            self.assertTrue(.02 <= alarms / 2 ** n <= .05, n)
            self.assertEqual(covered + alarms, 2 ** n)

    def test_rate_with_many_blocks(self):
        self.assertTrue(.02 <= self.alarms(400, 20) <= .085)
        for n in (7, 12, 49, 50, 51):
            self.assertLessEqual(self.alarms(200, n), .11, n)

    def test_normal_distribution_takes_over(self):
        self.assertLess(abs(analysis.chances(51)[450]
                            - analysis.chance(51, 450)), .002)
        self.assertEqual([analysis.outside(n) for n in (6, 10)], [0, 8])

    def test_few_blocks(self):
        five = Comparison([.1] * 5)
        self.assertEqual((five.p, five.low), (None, None))
        self.assertAlmostEqual(five.ratio, 1.105171, 6)
        six = Comparison([math.log(1.1)] * 6)
        self.assertEqual(six.p, 0.03125)
        self.assertAlmostEqual(six.low, 1.1)
        self.assertAlmostEqual(six.high, 1.1)

    def test_difference_is_found(self):
        c = Comparison([.05 + self.draw.gauss(0, .02) for _ in range(20)])
        self.assertLess(c.p, .001)
        self.assertTrue(1.03 < c.low < 1.0513 < c.high < 1.07)

    def test_difference_is_found_despite_outliers(self):
        found = [Comparison([.05 + self.draw.gauss(0, .01)
                             + self.draw.choice((0,) * 10 + (.7, -.7))
                             for _ in range(40)]) for _ in range(20)]
        self.assertGreaterEqual(sum(c.p < .05 for c in found), 18)
        self.assertGreaterEqual(
            sum(1.02 < c.low < 1.0513 < c.high < 1.09 for c in found), 16)

    def test_ratio_is_of_a_typical_block(self):
        self.assertAlmostEqual(Comparison([.1] * 9 + [5]).ratio, 1.1052, 4)

    def test_holm(self):
        self.assertEqual([round(p, 3) for p
                          in analysis.holm([.04, .01, .03, 1])],
                         [.09, .04, .09, 1])


class TestVerdict(unittest.TestCase):
    def test_direction(self):
        more = [x * 1.2 for x in TEN]
        for name, up, down in (
                ("tps", "better", "worse"),
                ("latency_p99_ms", "worse", "better"),
                ("allocations_per_second", "higher", "lower"),
                ("hit_ratio", "better", "worse")):
            self.assertEqual(verdict(name, TEN, more), up, name)
            self.assertEqual(verdict(name, more, TEN), down, name)

    def test_none(self):
        self.assertEqual(verdict("tps", TEN, TEN), "no difference shown")
        self.assertIsNone(verdict("hit_ratio", TEN, [None] * 10))
        self.assertIsNone(verdict("latency_p99_ms", TEN, [50] * 9 + [None]))

    def test_few_slices_that_outweigh_the_others(self):
        self.assertEqual(verdict("tps", [100] * 14, [110] * 13 + [30]),
                         "better")
        self.assertEqual(verdict("tps", [100] * 13 + [10000],
                                 [110] * 13 + [3000]), "no difference shown")

    def test_slices_without_a_transaction(self):
        self.assertEqual(verdict("tps", TEN, [250, 0] * 5),
                         "no difference shown")
        self.assertEqual(verdict("tps", TEN, [0] * 10), "worse")
        self.assertEqual(verdict("tps", [v * 4 for v in TEN],
                                 [v * 4.4 for v in TEN[1:]] + [0]),
                         "no difference shown")

    def test_counts_of_zero(self):
        name = "sleeps_per_transaction"
        self.assertEqual(verdict(name, [0] * 10, [0] * 10),
                         "no difference shown")
        self.assertEqual(verdict(name, [9] * 10, [0] * 10), "better")


if __name__ == "__main__":
    unittest.main()
