"""The tables of a bench: one for each metric, with one row per configuration."""

import re
from dataclasses import dataclass

from . import report, stats

HIGHER, LOWER = "higher is better", "lower is better"


@dataclass(frozen=True)
class Metric:
    name: str                   # in the rows of the result
    title: str                  # with its unit
    digits: int                 # of a median
    better: str = ""            # HIGHER, LOWER, or no judgement
    ratio_digits: int = 3

    def heading(self):
        return f"{self.title} ({self.better})" if self.better else self.title


def show(samples, metrics, by_configuration=False):
    """Prints the samples. by_configuration: one table for each configuration,
    with one row per metric."""
    for heading, rows in (per_configuration if by_configuration
                          else per_metric)(samples, metrics):
        show_one(samples, heading, rows)
    report.say()
    report.say(f"{samples.baseline}: median of {samples.rounds()}. Others: ratio"
               " to it in the same round, median of the rounds [bootstrap"
               f" interval, {stats.SHARE:.0%}].")
    report.say(f"After \"=\", and in tables without {samples.baseline}: medians.")


def per_metric(samples, metrics):
    """(heading, [(name of the row, metric, configuration)]) of each table."""
    for metric in metrics:
        yield metric.heading(), [
            (where, metric, where)
            for where in ordered(samples.configurations(metric.name))]


def per_configuration(samples, metrics):
    for where in ordered(samples.configurations()):
        yield where, [(metric.heading(), metric, where) for metric in metrics
                      if where in samples.configurations(metric.name)]


def ordered(wheres):
    """By their numbers, too: benches may measure in any order."""
    return sorted(wheres, key=lambda where: [
        int(part) if part.isdigit() else part
        for part in re.split(r"(\d+)", where)])


def show_one(samples, heading, rows):
    columns = [side for side in samples.sides()
               if any(samples.by_round(metric.name, where, side)
                      for _, metric, where in rows)]
    columns.sort(key=lambda side: side != samples.baseline)
    if rows:
        report.table(["", *columns],
                     [(name, *(cell(samples, metric, where, side, columns)
                               for side in columns))
                      for name, metric, where in rows], heading)


def cell(samples, metric, where, side, columns):
    row = samples.row(metric.name, where, side)
    if row is None:
        return "-"
    shown = f"{row['median']:.{metric.digits}f}"
    if side == samples.baseline or samples.baseline not in columns:
        return shown
    if row["ratio"] is None:
        return f"= {shown}"
    return stats.with_interval(row["ratio"], row["ratio_low"],
                               row["ratio_high"], metric.ratio_digits)
