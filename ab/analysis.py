"""From slices to verdicts.

Compared are logarithms of ratios to the baseline, block by block. The order
within each block is drawn at random. So if two settings do the same, each
logarithm is as likely positive as negative, whatever the noise: drift,
checkpoints, outliers. The signed-rank test (Wilcoxon, 1945) assumes that and
nothing else: its rate of false alarms is exact for each number of blocks. Its
interval and its estimate (Hodges and Lehmann, 1963) are taken from one sorted
list: the means of all pairs of blocks, including each block with itself.
docs/ab.md compares it with bootstraps."""

import math
from functools import lru_cache
from statistics import NormalDist, median

from ab import stats

from ab.metrics import HEADLINE, HIGHER, METRICS

CONFIDENCE = 0.95
# Up to so many blocks the distribution is counted, then nearly normal.
COUNTED_UP_TO = 50
# With 5, all of them on one side have a chance of 2 / 2^5, more than 5 %.
BLOCKS_LEAST = 6

BETTER, WORSE = "better", "worse"
MORE, LESS = "higher", "lower"      # if neither is better
NONE_SHOWN = "no difference shown"


@lru_cache(maxsize=None)
def chances(n):
    """By w: the chance that ranks of random sign sum up to at most w."""
    ways = [1]
    for rank in range(1, n + 1):
        more = ways + [0] * rank
        for w, count in enumerate(ways):
            more[w + rank] += count
        ways = more
    total, result = 0, []
    for count in ways:
        total += count
        result.append(total / 2 ** n)
    return result


def chance(n, w):
    if n <= COUNTED_UP_TO:
        return chances(n)[w]
    mean = n * (n + 1) / 4
    deviation = math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    return NormalDist(mean, deviation).cdf(w + 0.5)


@lru_cache(maxsize=None)
def outside(n):
    """The number of sorted means that the interval leaves out at each end."""
    w = 0
    while 2 * chance(n, w) <= 1 - CONFIDENCE:
        w += 1
    return w - 1


class Comparison:
    """Of one metric of one setting with the baseline."""

    def __init__(self, logs):
        n = self.blocks = len(logs)
        self.ratio = self.low = self.high = self.p = None
        if not logs:
            return
        means = sorted((logs[i] + logs[j]) / 2
                       for i in range(n) for j in range(i + 1))
        self.ratio = math.exp(median(means))
        if n < BLOCKS_LEAST:
            return
        edge = outside(n)
        self.low = math.exp(means[edge])
        self.high = math.exp(means[-1 - edge])
        w = min(sum(mean <= 0 for mean in means),
                sum(mean >= 0 for mean in means))
        self.p = min(1.0, 2 * chance(n, w))


def holm(values):
    """p of several tests, corrected for being several: the chance of any false
    alarm among them is at most the smallest (Holm, 1979)."""
    order = sorted(range(len(values)), key=values.__getitem__)
    adjusted = [1.0] * len(values)
    largest = 0.0
    for place, i in enumerate(order):
        largest = max(largest, min(1.0, values[i] * (len(values) - place)))
        adjusted[i] = largest
    return adjusted


def log_ratios(blocks, metric, setting, baseline):
    """By block. None at all if one slice lacks the metric: slices in which a
    setting stood still would be missing."""
    result = []
    for block in blocks:
        pair = [block[side].get(metric.name) for side in (setting, baseline)]
        if None in pair:
            return []
        if metric.counted:
            pair = [value + block[side]["half"][metric.name]
                    for value, side in zip(pair, (setting, baseline))]
        if min(pair) <= 0:
            return []
        result.append(math.log(pair[0] / pair[1]))
    return result


def ratio_of_totals(blocks, setting, baseline):
    """Of all transactions under each setting."""
    ours, base = (sum(block[side][HEADLINE] for block in blocks)
                  for side in (setting, baseline))
    return ours / base if base > 0 else None


def verdict(metric, comparison, p):
    if comparison.p is None:
        return None
    if p > 1 - CONFIDENCE:
        return NONE_SHOWN
    more = comparison.ratio > 1
    if metric.better is None:
        return MORE if more else LESS
    return BETTER if more == (metric.better == HIGHER) else WORSE


def analyse(blocks, names, configuration):
    """Rows of the result. blocks: each {setting: metrics}; names: of the
    settings, the first one being the baseline.

    Verdicts are corrected within families: the headline of all settings, and
    all other metrics of each setting."""
    baseline = names[0]
    comparisons = {}
    for metric in METRICS.values():
        for name in names[1:]:
            comparisons[metric.name, name] = Comparison(
                log_ratios(blocks, metric, name, baseline))
    adjusted = {}
    for family in ([(HEADLINE, name) for name in names[1:]],
                   *([(metric, name) for metric in METRICS
                      if metric != HEADLINE] for name in names[1:])):
        family = [key for key in family if comparisons[key].p is not None]
        adjusted |= zip(family, holm([comparisons[key].p for key in family]))
    return [row(blocks, metric, name, baseline, configuration,
                comparisons.get((metric.name, name)),
                adjusted.get((metric.name, name)))
            for metric in METRICS.values() for name in names]


def row(blocks, metric, name, baseline, configuration, comparison, adjusted):
    values = [block[name][metric.name] for block in blocks
              if block[name].get(metric.name) is not None]
    result = {"metric": metric.name, "configuration": configuration,
              "side": name, "rounds": len(values),
              "median": median(values) if values else None,
              "min": min(values, default=None),
              "max": max(values, default=None)}
    ratios = []
    if comparison is not None:
        ratios = [math.exp(log) for log
                  in log_ratios(blocks, metric, name, baseline)]
    elif values:
        ratios = [1.0]
    known = comparison is not None and comparison.p is not None
    shown = verdict(metric, comparison, adjusted) if known else None
    # For comparison; the verdict does not depend on it.
    bootstrap = (stats.interval(ratios) if known else None) or (None, None)
    totals = None
    if known and metric.name == HEADLINE:
        totals = ratio_of_totals(blocks, name, baseline)
        # A few slices outweigh the typical ones.
        if totals is None or (totals - 1) * (comparison.ratio - 1) < 0:
            shown = NONE_SHOWN
    return result | {
        "ratio": comparison.ratio if comparison else (ratios or [None])[0],
        "ratio_min": min(ratios, default=None),
        "ratio_max": max(ratios, default=None),
        "ratio_low": comparison.low if known else None,
        "ratio_high": comparison.high if known else None,
        "bootstrap_low": bootstrap[0], "bootstrap_high": bootstrap[1],
        "p": comparison.p if known else None,
        "p_corrected": adjusted,
        "verdict": shown,
        "ratio_of_totals": totals,
        "better": metric.better,
        "headline": metric.name == HEADLINE,
    }
