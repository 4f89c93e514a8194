"""A plot of ratios over a logarithmic axis, as SVG: small enough to be written
here, so that no library is needed for it."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 760, 400        # of one panel
LEFT, RIGHT, TOP, BOTTOM = 60, 190, 40, 50
COLOURS = ("#777777", "#1b6ca8", "#2a9d4b", "#e08e0b", "#c0392b", "#7d3c98")
LEAST_SPAN = 0.1                # of the vertical axis, around 1
OPACITY = 0.12                  # of a band
LABEL_WIDTH = 22                # of a number on the horizontal axis


def write(path, panels, x_title, y_title):
    """panels: (title, {side: [(x, y, low, high), ..]}), below each other."""
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}"'
             f' height="{HEIGHT * len(panels)}" font-family="sans-serif"'
             ' font-size="12">',
             '<rect width="100%" height="100%" fill="white"/>']
    for i, (title, lines) in enumerate(panels):
        parts.append(f'<g transform="translate(0 {i * HEIGHT})">')
        parts += panel(title, lines, x_title, y_title)
        parts.append("</g>")
    parts.append("</svg>")
    path.write_text("\n".join(parts) + "\n")


def panel(title, lines, x_title, y_title):
    points = [point for line in lines.values() for point in line]
    xs = sorted({x for x, _, _, _ in points})
    low = min([1 - LEAST_SPAN, *(low for _, _, low, _ in points)])
    high = max([1 + LEAST_SPAN, *(high for _, _, _, high in points)])
    x_span = math.log(xs[-1] / xs[0]) or 1
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def at_x(x):
        return LEFT + math.log(x / xs[0]) / x_span * (right - LEFT)

    def at_y(y):
        return bottom - (y - low) / (high - low) * (bottom - TOP)

    def path(coordinates):
        return " ".join(f"{at_x(x):.1f},{at_y(y):.1f}" for x, y in coordinates)

    yield text(LEFT, 20, title, weight="bold")
    for y in ticks(low, high):
        colour = "#555555" if y == 1 else "#dddddd"
        yield (f'<line x1="{LEFT}" x2="{right}" y1="{at_y(y):.1f}"'
               f' y2="{at_y(y):.1f}" stroke="{colour}"/>')
        yield text(LEFT - 8, at_y(y) + 4, f"{y:.2f}", anchor="end")
    free_from = 0
    for x in xs:
        yield (f'<line x1="{at_x(x):.1f}" x2="{at_x(x):.1f}" y1="{bottom}"'
               f' y2="{bottom + 5}" stroke="#555555"/>')
        if at_x(x) >= free_from:
            yield text(at_x(x), bottom + 18, f"{x:g}", anchor="middle")
            free_from = at_x(x) + LABEL_WIDTH
    yield text((LEFT + right) / 2, bottom + 38, x_title, anchor="middle")
    yield (f'<text transform="translate(14 {(TOP + bottom) / 2}) rotate(-90)"'
           f' text-anchor="middle">{escape(y_title)}</text>')

    for i, (side, line) in enumerate(lines.items()):
        colour = COLOURS[i % len(COLOURS)]
        band = ([(x, low_) for x, _, low_, _ in line]
                + [(x, high_) for x, _, _, high_ in reversed(line)])
        yield (f'<polygon points="{path(band)}" fill="{colour}"'
               f' fill-opacity="{OPACITY}"/>')
        yield (f'<polyline points="{path((x, y) for x, y, _, _ in line)}"'
               f' fill="none" stroke="{colour}" stroke-width="2"/>')
        for x, y, _, _ in line:
            yield (f'<circle cx="{at_x(x):.1f}" cy="{at_y(y):.1f}" r="2.5"'
                   f' fill="{colour}"/>')
        row = TOP + 10 + 18 * i
        yield (f'<line x1="{right + 12}" x2="{right + 32}" y1="{row}"'
               f' y2="{row}" stroke="{colour}" stroke-width="2"/>')
        yield text(right + 38, row + 4, side)


def text(x, y, words, anchor="start", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
            f' font-weight="{weight}">{escape(words)}</text>')


def ticks(low, high):
    """Some five round numbers, 1 among them if it is in the range."""
    step = 10 ** math.floor(math.log10(high - low))
    for part in (0.1, 0.2, 0.5, 1):
        if (high - low) / (step * part) <= 8:
            step *= part
            break
    return [round(i * step, 6) for i in range(math.ceil(low / step),
                                              math.floor(high / step) + 1)]
