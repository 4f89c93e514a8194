"""From slices to verdicts.

What is compared is the logarithm of the ratio to the baseline, block by block. As the
order within each block is drawn at random, under settings that do the same the sign
of each of these is as likely plus as minus, whatever the noise is like: drift,
checkpoints, outliers. The signed-rank test (Wilcoxon, 1945) uses that and nothing
else: its rate of false alarms is exact for every number of blocks. Its interval and
its estimate (Hodges and Lehmann, 1963) are in one sorted list: the means of all
pairs of blocks, each block with itself included.

A bootstrap, which draws blocks with replacement, is right only with many blocks,
and a mean tells little once a checkpoint has hit a few of them: docs/ab.md has how
often each errs."""

import math
from functools import lru_cache
from statistics import NormalDist, median

from ab import stats

from ab.metrics import HEADLINE, HIGHER, METRICS

CONFIDENCE = 0.95
# Up to so many blocks the distribution is counted out, from then on it is as good
# as a normal one.
COUNTED_UP_TO = 50
# With fewer, even all of them on one side are no more than chance (2 / 2^5).
BLOCKS_LEAST = 6

BETTER, WORSE = "better", "worse"
MORE, LESS = "higher", "lower"      # of what is neither good nor bad
NONE_SHOWN = "no difference shown"


@lru_cache(maxsize=None)
def chances(n):
    """By w: how likely a sum of ranks of at most w is, of n signs by chance."""
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
    """How many of the sorted means of pairs the interval leaves out at each
    end."""
    w = 0
    while 2 * chance(n, w) <= 1 - CONFIDENCE:
        w += 1
    return w - 1


class Comparison:
    """One metric of one setting, to the baseline."""

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
    """p of several tests so that the chance of any false alarm among them is
    what the smallest says (Holm, 1979)."""
    order = sorted(range(len(values)), key=values.__getitem__)
    adjusted = [1.0] * len(values)
    largest = 0.0
    for place, i in enumerate(order):
        largest = max(largest, min(1.0, values[i] * (len(values) - place)))
        adjusted[i] = largest
    return adjusted


def log_ratios(blocks, metric, setting, baseline):
    """By block; none at all if it is not known of one of the slices: those where
    a setting has stood still would be missing."""
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
    """All that was done under each setting."""
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
    settings, the first of which is the baseline.

    The verdicts on the headline are a family of tests of their own, one a setting;
    so are, for each setting, those on all other metrics."""
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
    said = verdict(metric, comparison, adjusted) if known else None
    # As the other benches have it; not what the verdict is by
    bootstrap = (stats.interval(ratios) if known else None) or (None, None)
    totals = None
    if known and metric.name == HEADLINE:
        totals = ratio_of_totals(blocks, name, baseline)
        # Typical slices say one thing, a few of them turn it round.
        if totals is None or (totals - 1) * (comparison.ratio - 1) < 0:
            said = NONE_SHOWN
    return result | {
        "ratio": comparison.ratio if comparison else (ratios or [None])[0],
        "ratio_min": min(ratios, default=None),
        "ratio_max": max(ratios, default=None),
        "ratio_low": comparison.low if known else None,
        "ratio_high": comparison.high if known else None,
        "bootstrap_low": bootstrap[0], "bootstrap_high": bootstrap[1],
        "p": comparison.p if known else None,
        "p_corrected": adjusted,
        "verdict": said,
        "ratio_of_totals": totals,
        "better": metric.better,
        "headline": metric.name == HEADLINE,
    }
