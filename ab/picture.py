"""The result as a picture: above, ratios with their intervals; below,
transactions a second of each slice."""

import os

from ab import plot
from ab.analysis import NONE_SHOWN
from ab.errors import UserError
from ab.metrics import HEADLINE, METRICS

ARROWS = {"higher": " \N{RIGHTWARDS ARROW}", "lower": " \N{LEFTWARDS ARROW}",
          None: ""}
UNUSED = "(thrown away)"        # slices
LOG_FROM = 2.0                  # ratios that far from 1 get a logarithmic axis
LIMIT = 4.0                     # of that axis


def check(scratch):
    """Before anything is measured."""
    # matplotlib writes a cache of fonts, by default into the user's home.
    os.environ.setdefault("MPLCONFIGDIR", str(scratch))
    try:
        plot.need()
    except UserError as error:
        raise UserError(f"{error}; --no-picture does without")


def write(directory, rows, names, slices, title):
    plot.write(directory / "ab",
               [ratios(rows, names), timeline(names, slices)], title,
               quiet=(UNUSED,), names=names)


def ratios(rows, names):
    lines = []
    edges = [1.0]
    for metric in METRICS.values():
        # a percentile's title is that of the row above in the table
        label = (("latency, ms: " if metric.title[0].isdigit() else "")
                 + metric.title + ARROWS[metric.better])
        for row in rows:
            if row["metric"] == metric.name and row["side"] != names[0] \
                    and row["ratio_low"] is not None:
                lines.append((label, row["ratio"], row["ratio_low"],
                              row["ratio_high"], row["side"],
                              row["verdict"] not in (None, NONE_SHOWN)))
                edges += lines[-1][1:4]
                label = ""
    log = max(edges) > LOG_FROM or min(edges) < 1 / LOG_FROM
    return plot.Ratios(
        f"ratio to {names[0]}, with intervals of 95 %", lines,
        "arrow: better; filled: a difference is shown", log, LIMIT)


def timeline(names, slices):
    begin = min((s.begin for s in slices), default=0)
    series = {name: [] for name in (*names, UNUSED)}
    for s in slices:
        if s.values.get(HEADLINE) is not None:
            series[s.setting if s.used else UNUSED].append(
                (s.begin - begin, s.end - begin, s.values[HEADLINE]))
    return plot.Timeline(METRICS[HEADLINE].title, series,
                         METRICS[HEADLINE].title)
