"""Samples taken in rounds, and the rows made of them."""

from statistics import median

from ab.stats import SHARE, interval, quantile  # noqa: F401


class Samples:
    """Values by metric, configuration, side (its name, or a sides.Side) and
    round.

    Sides are compared within a round, where they ran one right after the
    other: the ratio of a side is the median of its rounds' ratios to the
    baseline, not the ratio of two medians."""

    def __init__(self, baseline):
        self.baseline = baseline
        self.values = {}                # (metric, configuration, side) -> {}

    def add(self, metric, configuration, side, round_, value):
        key = (metric, configuration, name_of(side))
        self.values.setdefault(key, {})[round_] = value

    def by_round(self, metric, configuration, side):
        return self.values.get((metric, configuration, name_of(side)), {})

    def ratios(self, metric, configuration, side):
        ours = self.by_round(metric, configuration, side)
        base = self.by_round(metric, configuration, self.baseline)
        return [ours[r] / base[r] for r in ours if base.get(r)]

    def row(self, metric, configuration, side):
        """One row of the result, or None if there are no samples. The interval
        is the bootstrap interval of the ratio."""
        values = list(self.by_round(metric, configuration, side).values())
        if not values:
            return None
        ratios = self.ratios(metric, configuration, side)
        low, high = interval(ratios) or (None, None)
        return {
            "metric": metric,
            "configuration": configuration,
            "side": name_of(side),
            "rounds": len(values),
            "median": median(values),
            "min": min(values),
            "max": max(values),
            "ratio": median(ratios) if ratios else None,
            "ratio_min": min(ratios) if ratios else None,
            "ratio_max": max(ratios) if ratios else None,
            "ratio_low": low,
            "ratio_high": high,
        }

    def rows(self):
        """All rows of the result, for report.write_json()."""
        return [self.row(*key) for key in self.values]

    def configurations(self, metric=None):
        """Those with samples (of this metric), in the order in which they
        came."""
        return list(dict.fromkeys(where for name, where, _ in self.values
                                  if metric in (None, name)))

    def sides(self):
        return list(dict.fromkeys(side for _, _, side in self.values))

    def rounds(self):
        """How many there were, in words. A time box may give configurations
        different numbers."""
        counts = {len(values) for values in self.values.values()} or {0}
        low, high = min(counts), max(counts)
        return (f"{low} to {high} rounds" if low != high
                else f"{low} round{'' if low == 1 else 's'}")


def name_of(side):
    return side if isinstance(side, str) else side.name


def with_interval(value, low, high, digits=3):
    return f"{value:.{digits}f} [{low:.{digits}f} {high:.{digits}f}]"


def rotated(items, round_):
    """The same items, with another one first in every round. No side always
    runs first, and none always runs after the same other one."""
    items = list(items)
    shift = round_ % len(items)
    turned = items[shift:] + items[:shift]
    # every second turn backwards, so that neighbours change as well
    return turned[::-1] if (round_ // len(items)) % 2 else turned
