"""The result as a picture: on top, ratios with their intervals; below, what each
slice had of the headline. PNG and SVG."""

import importlib.util
import os

from lib.paths import BenchError

from metrics import HEADLINE, METRICS

GREY = "#777777"
COLOURS = (GREY, "#1b6ca8", "#e08e0b", "#2a9d4b", "#c0392b", "#7d3c98")
WIDTH = 9.0                     # inches
ROW_HEIGHT = 0.3
TIMELINE_HEIGHT = 2.8
SPREAD = 0.5                    # of the bars of several settings in a row


def check():
    """Before anything is measured."""
    if importlib.util.find_spec("matplotlib") is None:
        raise BenchError("pictures need matplotlib (Debian package"
                         " python3-matplotlib); --no-picture does without")


def write(directory, scratch, rows, names, slices, title):
    # It writes a cache of fonts, by default into the user's home.
    os.environ.setdefault("MPLCONFIGDIR", str(scratch))
    import matplotlib
    matplotlib.use("Agg")
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
    axes.axvline(1, color=GREY, linewidth=1)
    others = names[1:]
    for i, name in enumerate(others):
        shift = (i - (len(others) - 1) / 2) * SPREAD / max(1, len(others) - 1)
        colour = COLOURS[(i + 1) % len(COLOURS)]
        for place, metric in enumerate(shown):
            row = next(row for row in rows if row["metric"] == metric.name
                       and row["side"] == name)
            if row["ratio_low"] is None:
                continue
            sure = row["verdict"] not in (None, "no difference shown")
            axes.plot([row["ratio_low"], row["ratio_high"]],
                      [place + shift] * 2, color=colour, linewidth=2)
            axes.plot([row["ratio"]], [place + shift], "o", color=colour,
                      markerfacecolor=colour if sure else "white",
                      label=name if place == 0 else None)
    arrows = {"higher": " \N{RIGHTWARDS ARROW}", "lower":
              " \N{LEFTWARDS ARROW}", None: ""}
    titles = [("latency, " if metric.title[0].isdigit() else "")
              + metric.title + arrows[metric.better] for metric in shown]
    axes.set_yticks(range(len(shown)), titles)
    axes.invert_yaxis()
    low, high = axes.get_xlim()
    if low > 0 and high / low > 3:
        axes.set_xscale("log")
    axes.grid(axis="x", color="#dddddd")
    axes.set_axisbelow(True)
    axes.set_xlabel(f"ratio to {names[0]}, 95 %; arrow: better;"
                    " filled: a difference is shown")
    if shown:
        axes.legend(loc="best", fontsize=8)


def draw_times(axes, names, slices):
    begin = min((s.begin for s in slices), default=0)
    for i, name in enumerate(names):
        colour = COLOURS[i % len(COLOURS)]
        first = True
        for s in slices:
            if s.setting != name or s.values.get(HEADLINE) is None:
                continue
            axes.plot([s.begin - begin, s.end - begin],
                      [s.values[HEADLINE]] * 2, color=colour, linewidth=3,
                      alpha=1 if s.used else 0.25, solid_capstyle="butt",
                      label=name if first else None)
            first = False
    axes.set_ylim(bottom=0)
    axes.set_xlabel("seconds; pale: thrown away")
    axes.set_ylabel(METRICS[HEADLINE].title)
    axes.grid(axis="y", color="#dddddd")
    axes.set_axisbelow(True)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower right", fontsize=8)
