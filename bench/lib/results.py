"""Samples as a bench's tables want them: ratios with their intervals, and what
may be said of them. What a bench prints and judges is a class of its own, made
from Results."""

from . import stats

# The range of N rounds' ratios holds the true median with a probability of
# 1 - 2^(1-N), and a bootstrap interval lies within that range: with fewer than 6
# rounds it cannot cover what stats.SHARE says.
LEAST_ROUNDS = 6

HIGHER, LOWER = "higher", "lower"       # what is better
BETTER, WORSE = "better", "worse"
NO_DIFFERENCE = "no difference shown"
TOO_FEW = "too few rounds"


class Results:
    """side: one of sides.Side, or its name."""

    def __init__(self, samples):
        self.samples = samples

    def row(self, metric, where, side):
        return self.samples.row(metric, where, name_of(side))

    def ratios(self, metric, where, side):
        return self.samples.ratios(metric, where, name_of(side))

    def interval(self, metric, where, side):
        """(low, high) of the ratio; None where there is none."""
        return stats.interval(self.ratios(metric, where, side))

    def rows(self):
        return self.samples.rows()

    def ratio(self, metric, where, side, digits=3):
        """A table's cell: the ratio [and its interval]."""
        row = self.row(metric, where, side)
        if row is None or row["ratio"] is None:
            return "-"
        low, high = self.interval(metric, where, side)
        return with_interval(row["ratio"], low, high, digits)


def name_of(side):
    return side if isinstance(side, str) else side.name


def with_interval(value, low, high, digits=3):
    return f"{value:.{digits}f} [{low:.{digits}f} {high:.{digits}f}]"


def verdict(row, better, control=None):
    """What a row of write_json() shows, better being HIGHER or LOWER: BETTER,
    WORSE, NO_DIFFERENCE (the interval contains 1), TOO_FEW; None if it has no
    ratio. control: the row of the baseline's second side, if there is one; what
    its interval reaches is no difference either."""
    if row["ratio"] is None:
        return None
    if row["rounds"] < LEAST_ROUNDS:
        return TOO_FEW
    low = high = 1
    if control is not None and control["ratio"] is not None:
        low = min(low, control["ratio_low"])
        high = max(high, control["ratio_high"])
    if row["ratio_low"] <= high and row["ratio_high"] >= low:
        return NO_DIFFERENCE
    return BETTER if (row["ratio"] > 1) == (better == HIGHER) else WORSE
