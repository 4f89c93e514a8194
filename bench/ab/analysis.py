"""From slices to verdicts.

What is compared is the logarithm of the ratio to the baseline, block by block. As the
order within each block is drawn at random, under settings that do the same the sign
of each of these is as likely plus as minus, whatever the noise is like: drift,
checkpoints, outliers. Hartigan's resampling uses that and nothing else (J. A. Hartigan,
"Using subsample values as typical values", 1969): draw random subsets of the
blocks, as a bootstrap draws samples, but each block at most once; the means
of the subsets are such that any interval between two of them, in order, covers the true
value with exactly the probability that their places say. The usual bootstrap
does so only with many blocks: docs/ab.md has how often either errs."""

import math
import random
from itertools import compress
from statistics import fmean, median

from metrics import HEADLINE, HIGHER, METRICS

CONFIDENCE = 0.95
# Up to so many blocks all subsets are taken, from then on so many at random.
ALL_UP_TO = 12
DRAWS = 10000
# Fewer blocks have too few subsets for an interval of 95 %.
BLOCKS_LEAST = 6

BETTER, WORSE = "better", "worse"
MORE, LESS = "higher", "lower"      # of what is neither good nor bad
NONE_SHOWN = "no difference shown"


def subset_means(values, seed=0):
    """Sorted means of subsets, none of them empty."""
    n = len(values)
    if n <= ALL_UP_TO:
        chosen = range(1, 1 << n)
    else:
        draw = random.Random(seed)
        chosen = (draw.randrange(1, 1 << n) for _ in range(DRAWS))
    means = []
    for bits in chosen:
        flags = bin(bits)[:1:-1]
        means.append(fmean(compress(values, map(int, flags))))
    means.sort()
    return means


class Comparison:
    """One metric of one setting, to the baseline."""

    def __init__(self, logs, seed=0):
        self.blocks = len(logs)
        self.ratio = math.exp(fmean(logs)) if logs else None
        self.low = self.high = self.p = None
        if self.blocks < BLOCKS_LEAST:
            return
        means = subset_means(logs, seed)
        outside = math.floor((1 - CONFIDENCE) / 2 * (len(means) + 1))
        self.low = math.exp(means[outside - 1])
        self.high = math.exp(means[-outside])
        below = sum(mean <= 0 for mean in means)
        above = sum(mean >= 0 for mean in means)
        self.p = min(1.0, 2 * (min(below, above) + 1) / (len(means) + 1))


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
    """By block; one where it is not known on both sides is left out."""
    result = []
    for block in blocks:
        pair = [block[side].get(metric.name) for side in (setting, baseline)]
        if None in pair:
            continue
        if metric.counted:
            pair = [value + block[side]["half"][metric.name]
                    for value, side in zip(pair, (setting, baseline))]
        if min(pair) > 0:
            result.append(math.log(pair[0] / pair[1]))
    return result


def verdict(metric, comparison, p):
    if comparison.p is None:
        return None
    if p > 1 - CONFIDENCE:
        return NONE_SHOWN
    more = comparison.ratio > 1
    if metric.better is None:
        return MORE if more else LESS
    return BETTER if more == (metric.better == HIGHER) else WORSE


def analyse(blocks, names, configuration, seed=0):
    """Rows of the result. blocks: each {setting: metrics}; names: of the
    settings, the first of which is the baseline.

    The verdicts on the headline are a family of tests of their own, one a setting;
    so are, for each setting, those on all other metrics."""
    baseline = names[0]
    comparisons = {}
    for metric in METRICS.values():
        for name in names[1:]:
            comparisons[metric.name, name] = Comparison(
                log_ratios(blocks, metric, name, baseline), seed)
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
    return result | {
        "ratio": comparison.ratio if comparison else (ratios or [None])[0],
        "ratio_min": min(ratios, default=None),
        "ratio_max": max(ratios, default=None),
        "ratio_low": comparison.low if known else None,
        "ratio_high": comparison.high if known else None,
        "p": comparison.p if known else None,
        "p_corrected": adjusted,
        "verdict": verdict(metric, comparison, adjusted) if known else None,
        "better": metric.better,
        "headline": metric.name == HEADLINE,
    }
