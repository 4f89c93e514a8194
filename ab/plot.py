"""Pictures, all of the same look: PNG to look at and to embed, SVG to scale.

    plot.write(folder / "name", [panel, ...], title=None)

writes name.png and name.svg and returns both paths. The same panels give the
same files, to the byte. Panels are put below each other:

  Ratios(title, rows, x_title)
      one line per row: a point and its interval, around 1. rows are (label,
      value, low, high, group, is_shown), the last two being optional: rows of
      the same group have one colour, and a legend names it; a difference that
      is not shown is a hollow point. Without an interval: low = high = None. A
      row with an empty label belongs to the one above. log=True for ratios far
      from 1. limit=4 draws ratios beyond 1/4 and 4 at the edge, and writes
      each ratio beside its row.
  Timeline(title, series, y_title)
      series: {name: [(begin, end, value), ...]}, in seconds: a step for each
      slice of time, in the colour of its name. marks: [(second, text), ...].

    plot.need()

fails with one line if matplotlib is missing: call it before the work whose
result is to be drawn. Names in `quiet` (an argument of write()) are grey and
dashed: controls. A name has the same colour in all panels of a picture;
`names` (another argument) sets which come first, for the same colours in
several pictures."""

import io
import re
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from ab.errors import UserError

# Of Okabe and Ito's palette, which colour-blind people can tell apart, without
# its yellow, which is too light for a line on white.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9",
           "#E69F00")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
QUIET_COLOUR = "#888888"
QUIET_MARKER = "x"
GRID = "#dddddd"
REFERENCE = "#555555"

WIDTH = 8.6                     # inches, of a picture
DPI = 110
TITLE_COLUMNS = 84              # characters that WIDTH has room for
TITLE_HEIGHT = 0.3              # of each line
LINES_HEIGHT = 3.1              # inches, of a panel
ROW_HEIGHT = 0.27               # of a row of Ratios
ROWS_HEIGHT = 1.15              # of Ratios without its rows
LEAST_SPAN = 0.1                # of a ratio's axis, at each side of 1

STYLE = {
    "font.family": "DejaVu Sans",       # comes with matplotlib
    "font.size": 9, "axes.titlesize": 10, "axes.titleweight": "bold",
    "axes.titlelocation": "left", "axes.grid": True, "grid.color": GRID,
    "axes.axisbelow": True, "axes.spines.top": False,
    "axes.spines.right": False, "legend.frameon": False,
    "legend.fontsize": 8.5, "lines.linewidth": 1.6, "lines.markersize": 4.5,
    # a $ in a name is a $
    "text.parse_math": False,
    # without it, names in an SVG would be random
    "svg.hashsalt": "pg_sweep",
}


@dataclass
class Ratios:
    title: str
    rows: list
    x_title: str = "ratio"
    log: bool = False
    limit: float = None

    def names(self):
        return [row[4] for row in self.rows if len(row) > 4]

    def height(self):
        return ROWS_HEIGHT + ROW_HEIGHT * len(self.rows)

    def inside(self, value):
        return (value if value is None or self.limit is None
                else min(max(value, 1 / self.limit), self.limit))

    def draw(self, axes, styles):
        axes.axvline(1, color=REFERENCE, linewidth=1)
        named = {None}
        for y, (label, value, low, high, *more) in enumerate(self.rows):
            group = more[0] if more else None
            self.draw_row(axes, y, (value, low, high), styles[group],
                          more[1] if len(more) > 1 else True,
                          None if group in named else legend_name(group))
            named.add(group)
            if label and y > 0:
                axes.axhline(y - 0.5, color=GRID, linewidth=0.8)
        axes.set_yticks(range(len(self.rows)), [row[0] for row in self.rows])
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(self.rows) - 0.4, -0.6)
        axes.grid(axis="y", visible=False)
        found = [self.inside(value) for row in self.rows for value in row[1:4]
                 if value is not None]
        low = min([1 - LEAST_SPAN, *found])
        high = max([1 + LEAST_SPAN, *found])
        if self.log:
            axes.set_xscale("log")
            plain_log(axes.xaxis, low, high)
            axes.set_xlim(low / 1.08, high * 1.08)
        else:
            room = (high - low) * 0.04
            axes.set_xlim(low - room, high + room)
        axes.set_xlabel(self.x_title)
        if self.names():
            legend(axes, 1.09 if self.limit else 1.01)

    def draw_row(self, axes, y, figures, style, is_shown, name):
        value, low, high = map(self.inside, figures)
        if low is not None:
            axes.plot([low, high], [y, y], color=style.colour, linewidth=2,
                      solid_capstyle="butt")
        beyond = "<" if value > figures[0] else ">"
        axes.plot([value], [y], color=style.colour,
                  marker=style.marker if value == figures[0] else beyond,
                  markerfacecolor=style.colour if is_shown else "white",
                  linestyle="none", label=name)
        if self.limit:
            axes.annotate(f"{figures[0]:.3f}", (1, y), (4, 0), fontsize=8,
                          xycoords=("axes fraction", "data"), va="center",
                          textcoords="offset points", color=style.colour)


@dataclass
class Timeline:
    title: str
    series: dict
    y_title: str
    x_title: str = "seconds"
    marks: list = field(default_factory=list)

    def names(self):
        return list(self.series)

    def height(self):
        return LINES_HEIGHT

    def draw(self, axes, styles):
        for name, slices in self.series.items():
            colour = styles[name].colour
            axes.hlines([value for _, _, value in slices],
                        [begin for begin, _, _ in slices],
                        [end for _, end, _ in slices], color=colour,
                        linewidth=3, label=legend_name(name))
        for second, text in self.marks:
            axes.axvline(second, color=REFERENCE, linewidth=1, linestyle=":")
            axes.annotate(f" {text}", (second, 1),
                          xycoords=("data", "axes fraction"), va="top",
                          fontsize=8)
        from_zero(axes, [value for slices in self.series.values()
                         for _, _, value in slices])
        axes.set_xlabel(self.x_title)
        axes.set_ylabel(self.y_title)
        legend(axes)


@dataclass(frozen=True)
class Style:
    colour: str
    marker: str
    line: str = "-"


def need():
    """matplotlib, or one line that says what to install."""
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError as error:
        raise UserError(f"pictures need matplotlib, for {sys.executable}"
                        " (Debian's python3 has it by package"
                        f" python3-matplotlib): {error}")
    return matplotlib


def write(path, panels, title=None, quiet=(), names=()):
    """See above. path is without a suffix."""
    matplotlib = need()
    if not panels:
        raise UserError(f"nothing to draw in {path}")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()         # whatever the user's matplotlibrc says
        matplotlib.rcParams.update(STYLE)
        figure = draw(matplotlib, panels, title, choose(panels, quiet, names))
        written = []
        for suffix, metadata in ((".png", {"Software": None}),
                                 (".svg", {"Date": None, "Creator": None})):
            out = Path(f"{path}{suffix}")
            image = io.BytesIO()
            figure.savefig(image, format=suffix[1:], dpi=DPI,
                           metadata=metadata)
            fresh = out.with_name(f"{out.name}.new")
            try:
                fresh.write_bytes(name_clips(image.getvalue())
                                  if suffix == ".svg" else image.getvalue())
                fresh.replace(out)
            except OSError as error:
                raise UserError(f"cannot write {out}: {error.strerror}")
            written.append(out)
    return written


def name_clips(svg):
    """Names clipping paths by their order, as matplotlib names them by
    addresses in memory, whatever svg.hashsalt is."""
    for i, name in enumerate(re.findall(rb'<clipPath id="(\w+)"', svg)):
        svg = svg.replace(name, b"clip%d" % i)
    return svg


def choose(panels, quiet, names):
    """A style for each name, None being what has no name."""
    every = list(dict.fromkeys(
        [*names, *(name for panel in panels for name in panel.names())]))
    styles = {None: Style(COLOURS[0], MARKERS[0])}
    loud = [name for name in every if name not in quiet]
    for i, name in enumerate(loud):
        styles[name] = Style(COLOURS[i % len(COLOURS)],
                             MARKERS[i % len(MARKERS)],
                             ("-", "--", ":")[i // len(COLOURS) % 3])
    for name in quiet:
        styles[name] = Style(QUIET_COLOUR, QUIET_MARKER, "--")
    return styles


def draw(matplotlib, panels, title, styles):
    heights = [panel.height() for panel in panels]
    title = textwrap.fill(title or "", TITLE_COLUMNS)
    figure = matplotlib.figure.Figure(
        figsize=(WIDTH, sum(heights) + TITLE_HEIGHT * len(title.splitlines())),
        layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.06)
    grid = figure.subplots(len(panels), 1, squeeze=False,
                           gridspec_kw={"height_ratios": heights})
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=11,
                        fontweight="bold")
    for panel, (axes,) in zip(panels, grid):
        axes.set_title(panel.title)
        panel.draw(axes, styles)
    return figure


def from_zero(axes, values):
    """With room above the largest, which would be drawn half outside."""
    axes.set_ylim(0, max(values, default=0) * 1.06 or 1)


def plain_log(axis, low, high):
    """10, 20, 50 instead of powers of ten, if there is room."""
    from matplotlib import ticker
    decades = high / low if low > 0 else 1
    subs = (1, 2, 3, 5) if decades < 30 else (1, 3) if decades < 1000 else (1,)
    axis.set_major_locator(ticker.LogLocator(subs=subs, numticks=12))
    axis.set_major_formatter(ticker.FuncFormatter(lambda x, _: number(x)))
    axis.set_minor_locator(ticker.NullLocator())


def legend(axes, x=1.01):
    if axes.get_legend_handles_labels()[1]:
        axes.legend(loc="upper left", bbox_to_anchor=(x, 1.0),
                    borderaxespad=0)


def legend_name(name):
    """matplotlib would leave out names that begin with _."""
    return name and re.sub("^_", "\N{ZERO WIDTH SPACE}_", name)


def number(value):
    """The shortest form that is exact enough for an axis."""
    if value >= 1e6:
        return f"{value / 1e6:g}M"
    if value >= 1e4:
        return f"{value / 1e3:g}k"
    return f"{value:.4g}"
