"""Quantiles, and bootstrap intervals of a median."""

import functools
import math
import random
from statistics import median

DRAWS = 2000                    # of a bootstrap
SHARE = 0.95                    # that its interval covers


def interval(values):
    """Bootstrap interval of the median. The same values give the same
    interval."""
    return bootstrap(tuple(values)) if values else None


@functools.lru_cache(maxsize=None)
def bootstrap(values):
    # nothing to draw: also the baseline's own ratios, all of them 1
    if min(values) == max(values):
        return values[0], values[0]
    draw = random.Random(len(values))
    medians = sorted(median(draw.choices(values, k=len(values)))
                     for _ in range(DRAWS))
    outside = round(DRAWS * (1 - SHARE) / 2)
    return medians[outside], medians[-1 - outside]


def quantile(values, share):
    """The smallest of sorted values that so large a share does not exceed."""
    return values[max(0, math.ceil(share * len(values)) - 1)]
