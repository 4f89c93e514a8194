"""The result as a picture: on top, ratios with their intervals; below, what each
slice had of the headline. PNG and SVG."""

import importlib.util
import os
import sys

from ab.errors import UserError

from ab.analysis import NONE_SHOWN
from ab.metrics import HEADLINE, METRICS

GREY = "#777777"
COLOURS = (GREY, "#1b6ca8", "#e08e0b", "#2a9d4b", "#c0392b", "#7d3c98")
WIDTH = 9.0                     # inches
ROW_HEIGHT = 0.3
TIMELINE_HEIGHT = 2.8
# Of the axis of ratios: from 1 / this to this
LEAST_SPREAD, MOST_SPREAD = 1.05, 4.0
TICKS_NEAR = (0.8, 0.85, 0.9, 0.95, 1, 1.05, 1.1, 1.15, 1.2)
TICKS_FAR = (0.25, 0.33, 0.5, 0.67, 0.8, 1, 1.25, 1.5, 2, 3, 4)
NEAR = 1.25
SPREAD = 0.5                    # of the bars of several settings in a row


def check():
    """Before anything is measured."""
    if importlib.util.find_spec("matplotlib") is None:
        raise UserError("pictures need matplotlib, which"
                         f" {sys.executable} has not (Debian's python3 has it"
                         " by package python3-matplotlib); --no-picture does"
                         " without")


def write(directory, scratch, rows, names, slices, title):
    # It writes a cache of fonts, by default into the user's home.
    os.environ.setdefault("MPLCONFIGDIR", str(scratch))
    import matplotlib
    matplotlib.use("Agg")
    # a $ in a name is a $
    matplotlib.rcParams["text.parse_math"] = False
    from matplotlib import pyplot

    shown = [metric for metric in METRICS.values()
             if any(row["metric"] == metric.name and row["side"] != names[0]
                    and row["ratio_low"] is not None for row in rows)]
    above = ROW_HEIGHT * (len(shown) * (1 + 0.4 * (len(names) - 2)) + 3)
    figure, (ratios, times) = pyplot.subplots(
        2, 1, figsize=(WIDTH, above + TIMELINE_HEIGHT),
        gridspec_kw={"height_ratios": [above, TIMELINE_HEIGHT]},
        layout="constrained")
    draw_ratios(ratios, rows, names, shown)
    draw_times(times, names, slices)
    figure.suptitle(title, fontsize=10)
    for kind in ("png", "svg"):
        # no date: the same result is the same file
        metadata = {"Date": None} if kind == "svg" else None
        fresh = directory / f"ab.{kind}.new"
        figure.savefig(fresh, format=kind, dpi=130, metadata=metadata)
        fresh.replace(directory / f"ab.{kind}")
    pyplot.close(figure)


def draw_ratios(axes, rows, names, shown):
    others = names[1:]
    axes.set_xscale("log")
    axes.axvline(1, color=GREY, linewidth=1)
    rows = {(row["metric"], row["side"]): row for row in rows
            if row["ratio_low"] is not None}
    spread = max([LEAST_SPREAD, *(edge for row in rows.values() for edge in
                                  (row["ratio_high"], 1 / row["ratio_low"]))])
    spread = min(MOST_SPREAD, spread * 1.03)
    for i, name in enumerate(others):
        shift = (i - (len(others) - 1) / 2) * SPREAD / max(1, len(others) - 1)
        colour = COLOURS[(i + 1) % len(COLOURS)]
        axes.plot([], [], "o", color=colour, label=legend(name))
        for place, metric in enumerate(shown):
            if (metric.name, name) in rows:
                draw_row(axes, rows[metric.name, name], place + shift, colour,
                         spread)
    arrows = {"higher": " \N{RIGHTWARDS ARROW}", "lower":
              " \N{LEFTWARDS ARROW}", None: ""}
    titles = [("latency, ms: " if metric.title[0].isdigit() else "")
              + metric.title + arrows[metric.better] for metric in shown]
    axes.set_yticks(range(len(shown)), titles)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlim(1 / spread, spread)
    ticks = [tick for tick in (TICKS_NEAR if spread < NEAR else TICKS_FAR)
             if 1 / spread <= tick <= spread]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.grid(axis="x", color="#dddddd")
    axes.set_axisbelow(True)
    axes.set_xlabel(f"ratio to {names[0]}, 95 %; arrow: better;"
                    " filled: a difference is shown")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=4,
                fontsize=8, frameon=False)


def legend(name):
    """Names that begin with _ would be left out."""
    return f"\N{ZERO WIDTH SPACE}{name}" if name.startswith("_") else name


def draw_row(axes, row, y, colour, spread):
    """What is beyond the edge is a triangle there; the number tells."""
    sure = row["verdict"] not in (None, NONE_SHOWN)

    def inside(x):
        return min(max(x, 1 / spread), spread)

    marker = ("<" if row["ratio"] < 1 / spread
              else ">" if row["ratio"] > spread else "o")
    axes.plot([inside(row["ratio_low"]), inside(row["ratio_high"])], [y, y],
              color=colour, linewidth=2)
    axes.plot([inside(row["ratio"])], [y], marker, color=colour,
              markerfacecolor=colour if sure else "white", clip_on=False)
    axes.annotate(f"{row['ratio']:.3f}", (1, y), (6, 0), color=colour,
                  xycoords=("axes fraction", "data"), fontsize=8,
                  textcoords="offset points", va="center")


def draw_times(axes, names, slices):
    begin = min((s.begin for s in slices), default=0)
    for i, name in enumerate(names):
        colour = COLOURS[i % len(COLOURS)]
        axes.plot([], [], color=colour, linewidth=3, label=legend(name))
        for s in slices:
            if s.setting != name or s.values.get(HEADLINE) is None:
                continue
            axes.plot([s.begin - begin, s.end - begin],
                      [s.values[HEADLINE]] * 2, color=colour, linewidth=3,
                      alpha=1 if s.used else 0.25, solid_capstyle="butt")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("seconds; pale: thrown away")
    axes.set_ylabel(METRICS[HEADLINE].title)
    axes.grid(axis="y", color="#dddddd")
    axes.set_axisbelow(True)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower right", fontsize=8)
