"""Pictures of benches: those of ab/plot.py, and these panels:

  Lines(title, series, x_title, y_title)
      series: {name: [(x, y), ...]}, with bands (x, y, low, high), or several of
      them, from the outermost inwards: (x, y, low, high, low, high). log_x is on
      by default, log_y not. reference: a value of y to draw a line at.
      x_ticks: where the axis is labelled, instead of at all x that there are.
  Bars(title, series, y_title)
      series: {name: [(label, value), ...]}, or (label, value, low, high); the
      bars of one label stand side by side. reference as for Lines."""

from dataclasses import dataclass

from ab.plot import (LEAST_SPAN, LINES_HEIGHT, REFERENCE,  # noqa: F401
                     Ratios, Timeline, from_zero, legend, need, number,
                     plain_log, write)

from .paths import BenchError

BAND_OPACITY = 0.15             # of each band; they add up where they overlap
LABEL_SPAN = 0.055              # of the width of an axis, for a label
BAR_SHARE = 0.8                 # of the distance between labels


@dataclass
class Lines:
    title: str
    series: dict
    x_title: str
    y_title: str
    log_x: bool = True
    log_y: bool = False
    reference: float = None
    x_ticks: list = None

    def names(self):
        return list(self.series)

    def height(self):
        return LINES_HEIGHT

    def draw(self, axes, styles):
        for name, points in self.series.items():
            style = styles[name]
            points = sorted(points)
            xs = [point[0] for point in points]
            for i in range(2, min(map(len, points), default=0), 2):
                axes.fill_between(xs, [point[i] for point in points],
                                  [point[i + 1] for point in points],
                                  color=style.colour, alpha=BAND_OPACITY,
                                  linewidth=0)
            axes.plot(xs, [point[1] for point in points], color=style.colour,
                      marker=style.marker, linestyle=style.line, label=name)
        self.scale_x(axes)
        scale_y(axes, self.reference, self.log_y, [
            value for points in self.series.values() for point in points
            for value in point[1:]])
        axes.set_xlabel(self.x_title)
        axes.set_ylabel(self.y_title)
        legend(axes)

    def scale_x(self, axes):
        xs = sorted({point[0] for points in self.series.values()
                     for point in points})
        if self.log_x:
            if xs and xs[0] <= 0:
                raise BenchError(f"plot \"{self.title}\": {xs[0]} has no place"
                                 " on a logarithmic axis")
            axes.set_xscale("log")
        low, high = axes.get_xlim()
        place = axes.transAxes.inverted().transform
        where = axes.transData.transform
        shown, last = [], None
        # from the right: the largest is labelled whatever there is beside it
        for x in sorted(self.x_ticks or xs, reverse=True):
            at = place(where((x, axes.get_ylim()[0])))[0]
            if low <= x <= high and (last is None or last - at >= LABEL_SPAN):
                shown.append(x)
                last = at
        axes.set_xticks(shown, [number(x) for x in shown])
        axes.set_xticks([], minor=True)


@dataclass
class Bars:
    title: str
    series: dict
    y_title: str
    log_y: bool = False
    reference: float = None

    def names(self):
        return list(self.series)

    def height(self):
        return LINES_HEIGHT

    def draw(self, axes, styles):
        labels = list(dict.fromkeys(bar[0] for bars in self.series.values()
                                    for bar in bars))
        width = BAR_SHARE / max(1, len(self.series))
        found = [0]
        for i, (name, bars) in enumerate(self.series.items()):
            shift = (i - (len(self.series) - 1) / 2) * width
            xs = [labels.index(bar[0]) + shift for bar in bars]
            axes.bar(xs, [bar[1] for bar in bars], width * 0.92,
                     color=styles[name].colour, label=name)
            for x, bar in zip(xs, bars):
                found += bar[1:]
                if len(bar) > 2:
                    # seen on dark bars, too
                    axes.plot([x, x], bar[2:4], color="#ffffff", linewidth=3.5,
                              solid_capstyle="butt")
                    axes.plot([x, x], bar[2:4], color="#000000", linewidth=1.2)
        axes.set_xticks(range(len(labels)), labels)
        if len(labels) > 6 or max(map(len, labels), default=0) > 14:
            for text in axes.get_xticklabels():
                text.set(rotation=30, ha="right", rotation_mode="anchor")
        axes.grid(axis="x", visible=False)
        scale_y(axes, self.reference, self.log_y,
                [value for value in found if value or not self.log_y])
        axes.set_ylabel(self.y_title)
        legend(axes)


def scale_y(axes, reference, log, values):
    if reference is not None:
        axes.axhline(reference, color=REFERENCE, linewidth=1)
        if not log and values:
            low = min(reference - LEAST_SPAN, *values)
            high = max(reference + LEAST_SPAN, *values)
            room = (high - low) * 0.04
            # bars stand on 0
            axes.set_ylim(low - room if low else 0, high + room)
    if log:
        axes.set_yscale("log")
        plain_log(axes.yaxis, min(values, default=1), max(values, default=1))
    elif reference is None:
        from_zero(axes, values)
