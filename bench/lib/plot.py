"""Pictures of benches: those of ab/plot.py, and one more panel:

  Lines(title, series, x_title, y_title)
      series: {name: [(x, y), ...]}, or (x, y, low, high) with a band. The axis
      of x is logarithmic. reference: a value of y to draw a line at."""

from dataclasses import dataclass

from ab.plot import (LEAST_SPAN, LINES_HEIGHT, REFERENCE,  # noqa: F401
                     Ratios, from_zero, legend, need, number, plain_log, write)

from .paths import BenchError

BAND_OPACITY = 0.15
LABEL_SPAN = 0.055              # of the width of an axis, for a label


@dataclass
class Lines:
    title: str
    series: dict
    x_title: str
    y_title: str
    log_y: bool = False
    reference: float = None

    def names(self):
        return list(self.series)

    def height(self):
        return LINES_HEIGHT

    def draw(self, axes, styles):
        for name, points in self.series.items():
            style = styles[name]
            points = sorted(points)
            xs, ys, *band = zip(*points)
            if band:
                axes.fill_between(xs, *band, color=style.colour,
                                  alpha=BAND_OPACITY, linewidth=0)
            axes.plot(xs, ys, color=style.colour, marker=style.marker,
                      linestyle=style.line, label=name)
        self.scale_x(axes)
        self.scale_y(axes, [value for points in self.series.values()
                            for point in points for value in point[1:]])
        axes.set_xlabel(self.x_title)
        axes.set_ylabel(self.y_title)
        legend(axes)

    def scale_x(self, axes):
        xs = sorted({point[0] for points in self.series.values()
                     for point in points})
        if xs[0] <= 0:
            raise BenchError(f"plot \"{self.title}\": {xs[0]} has no place on a"
                             " logarithmic axis")
        axes.set_xscale("log")
        place = axes.transAxes.inverted().transform
        where = axes.transData.transform
        shown, last = [], None
        # from the right: the largest always has a label
        for x in reversed(xs):
            at = place(where((x, axes.get_ylim()[0])))[0]
            if last is None or last - at >= LABEL_SPAN:
                shown.append(x)
                last = at
        axes.set_xticks(shown, [number(x) for x in shown])
        axes.set_xticks([], minor=True)

    def scale_y(self, axes, values):
        if self.reference is not None:
            axes.axhline(self.reference, color=REFERENCE, linewidth=1)
        if self.log_y:
            axes.set_yscale("log")
            plain_log(axes.yaxis, min(values), max(values))
        elif self.reference is None:
            from_zero(axes, values)
        else:
            low = min(self.reference - LEAST_SPAN, *values)
            high = max(self.reference + LEAST_SPAN, *values)
            room = (high - low) * 0.04
            axes.set_ylim(low - room, high + room)
