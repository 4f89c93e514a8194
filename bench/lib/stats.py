"""Samples taken in rounds, and the rows made of them."""

from statistics import median

from ab.stats import interval, quantile  # noqa: F401


class Samples:
    """Values by metric, configuration, side and round.

    Sides are compared within a round, where they ran one right after the
    other: the ratio of a side is the median of its rounds' ratios to the
    baseline, not the ratio of two medians."""

    def __init__(self, baseline):
        self.baseline = baseline
        self.values = {}                # (metric, configuration, side) -> {}

    def add(self, metric, configuration, side, round_, value):
        key = (metric, configuration, side)
        self.values.setdefault(key, {})[round_] = value

    def ratios(self, metric, configuration, side):
        ours = self.values.get((metric, configuration, side), {})
        base = self.values.get((metric, configuration, self.baseline), {})
        return [ours[r] / base[r] for r in ours if base.get(r)]

    def row(self, metric, configuration, side):
        """One row of the result, or None if there are no samples."""
        values = list(self.values.get((metric, configuration, side),
                                      {}).values())
        if not values:
            return None
        ratios = self.ratios(metric, configuration, side)
        return {
            "metric": metric,
            "configuration": configuration,
            "side": side,
            "rounds": len(values),
            "median": median(values),
            "min": min(values),
            "max": max(values),
            "ratio": median(ratios) if ratios else None,
            "ratio_min": min(ratios) if ratios else None,
            "ratio_max": max(ratios) if ratios else None,
        }

    def configurations(self, metric):
        """Those that there are samples of this metric of, as they came."""
        return list(dict.fromkeys(where for name, where, _ in self.values
                                  if name == metric))

    def rounds(self):
        """How many there were, in words: where time decides, not the same
        number everywhere."""
        counts = {len(values) for values in self.values.values()} or {0}
        low, high = min(counts), max(counts)
        return (f"{low} to {high} rounds" if low != high
                else f"{low} round{'' if low == 1 else 's'}")

    def rows(self):
        """All rows of the result, with the bootstrap interval of the ratio:
        what report.write_json() wants."""
        rows = [self.row(*key) for key in self.values]
        for row in rows:
            row["ratio_low"], row["ratio_high"] = interval(self.ratios(
                row["metric"], row["configuration"],
                row["side"])) or (None, None)
        return rows
