"""A picture for each scenario: ratios over the number of clients (or whatever
its x is), and where the bench has them, throughput in each second."""

import re

from bench.lib import plot
from scenarios import CONTROL, NOTHING_LOADED, STOCK, SWEEP_STOCK

# of the same colour in all pictures
FIRST = (STOCK, NOTHING_LOADED, SWEEP_STOCK)
LEAST_POINTS = 3                # of a line; fewer are drawn one by one
PERCENTILE = re.compile(r"^(.*)_percentile_(\d+)$")
BANDS = ((5, 95), (25, 75))     # percentiles, from the outermost inwards
MIDDLE = 50
POOL = re.compile(r"^(\d+) %, ")


def draw(path, scenario, found):
    """Returns the paths written, none if there is nothing to draw."""
    panels = [*ratios(scenario, found), *seconds(scenario, found)]
    if not panels:
        return []
    return plot.write(path, panels, quiet=(CONTROL,),
                      names=(*FIRST, *sorted(set(scenario.sides) - set(FIRST))))


def split(scenario, where):
    """(x, what else the configuration says); x None if it has none."""
    match = re.search(scenario.x, where)
    if match is None:
        return None, where
    rest = where[:match.start()] + where[match.end():]
    return int(match.group(1)), re.sub(r"^[, ]+|[, ]+$", "",
                                       rest.replace(", , ", ", "))


def ratios(scenario, found):
    metric = scenario.metrics[0]
    groups = {}
    wanted = {split(scenario, where)[1] for where
              in found.configurations(metric.name, scenario.shown)}
    for where in found.configurations(metric.name):
        x, rest = split(scenario, where)
        for side in found.sides() if rest in wanted else ():
            row = found.row(metric.name, where, side)
            if side != scenario.baseline and row and row["ratio"] is not None:
                groups.setdefault(rest, []).append((x, where, side, row))
    title = (f"{metric.title}, ratio to {scenario.baseline}"
             f" ({metric.better} is better)")
    alone = []
    for rest, points in groups.items():
        # a logarithmic axis has no place for 0, which is in the tables alone
        xs = {x for x, *_ in points if x}
        if len(xs) < LEAST_POINTS:
            alone += points
            continue
        series = {}
        for x, _, side, row in points:
            if x:
                series.setdefault(side, []).append(
                    (x, row["ratio"], row["ratio_low"], row["ratio_high"]))
        yield plot.Lines(f"{rest}: {title}" if rest else title, series,
                         scenario.x_title, "ratio", reference=1)
    if alone:
        yield one_by_one(title, alone)


def one_by_one(title, points):
    body = []
    for i, (_, where, side, row) in enumerate(points):
        first = i == 0 or points[i - 1][1] != where
        body.append((where if first else "", row["ratio"], row["ratio_low"],
                     row["ratio_high"], side))
    return plot.Ratios(title, body, "ratio")


def seconds(scenario, found):
    """Percentiles of the throughput in each second: bands, as in the thread on
    partitions, of the baseline and the side that is judged first."""
    metric = scenario.metrics[0].name
    if not any(name == f"{metric}_percentile_{MIDDLE}"
               for name, _, _ in found.rows):
        return
    cells = {}
    for where in found.configurations(f"{metric}_percentile_{MIDDLE}"):
        pool = POOL.match(where)
        x, rest = split(scenario, where)
        if pool and x:
            cells[x, int(pool.group(1))] = where
    clients = sorted({x for x, _ in cells})
    pools = sorted({pool for _, pool in cells})
    by_clients = len(clients) >= LEAST_POINTS
    for fixed in pools if by_clients else clients:
        series = {}
        for side in (scenario.baseline, scenario.sides[0]):
            points = []
            for (x, pool), where in sorted(cells.items()):
                if fixed == (pool if by_clients else x):
                    points.append(band(found, metric, where, side,
                                       x if by_clients else pool))
            series[side] = [point for point in points if point]
        yield plot.Lines(
            (f"shared_buffers {fixed} % of the tables" if by_clients
             else f"{fixed} clients") + ": scans in each second"
            " (bands: 5 to 95 and 25 to 75 %)", series,
            scenario.x_title if by_clients
            else "shared_buffers, % of the tables", "scans a second",
            log_x=by_clients)


def band(found, metric, where, side, x):
    def at(percent):
        row = found.row(f"{metric}_percentile_{percent}", where, side)
        return row and row["median"]

    values = [at(MIDDLE), *(at(percent) for pair in BANDS for percent in pair)]
    return None if None in values else (x, *values)
