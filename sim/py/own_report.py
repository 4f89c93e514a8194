"""Predicted and measured allocations beside each other."""

from dataclasses import dataclass
from statistics import median

from bench.lib import report as lines
from bench.lib.paths import BenchError

from . import states

MEDIAN_ERROR, MOST_ERROR = 0.15, 0.30
LEAST = 3                       # samples of a cell in a state, to tell of it

# Instead of a state's turn
ALONE = "alone"                 # one process: the neighbour has nothing to do
CHANGED = "changed"             # the two looks differ
UNKNOWN = "unknown"             # calibration had not seen such a turn
LEFT_OUT = (CHANGED, UNKNOWN)
WITHOUT = "cells without any"   # that counts
TWO = "two processes"           # samples that can be left out
SPOILT = "spoilt"               # taken again, as a session began late


@dataclass(frozen=True)
class Cell:
    configuration: str
    side: str
    predicted: float            # median
    measured: tuple             # all samples, ascending
    errors: tuple               # of each sample, against its own prediction

    def title(self):
        return f"{self.configuration}: {self.side}"

    def error(self):
        """The median of the samples': medians of what was predicted and of what
        was measured may be of two states."""
        return median(self.errors)

    def processes(self):
        return processes_of(self.configuration)


def processes_of(configuration):
    """"usage 0, 2 processes, round 1": 2"""
    return int(configuration.split(", ")[1].split()[0])


def cells(found):
    """The samples of each cell that something was predicted of."""
    groups = {}
    for one in found:
        if one.predicted is not None:
            groups.setdefault((one.configuration, one.side), []).append(one)
    return [Cell(where, side, median(one.predicted for one in some),
                 tuple(sorted(one.ns for one in some)),
                 tuple(one.predicted / one.ns - 1 for one in some))
            for (where, side), some in sorted(groups.items())]


def without_any(found):
    """How many cells no sample counts of."""
    return (len({(one.configuration, one.side) for one in found})
            - len(cells(found)))


def by_state(found):
    """Cells of two processes, in each state: the same state has not quite the
    same turn in every round."""
    steady = [one for one in found if isinstance(one.state, (int, float))]
    every = sorted(states.middles([one.state for one in steady]))
    for turn in every:
        some = cells([one for one in steady
                      if states.which(one.state, every) == turn])
        yield turn, [cell for cell in some if len(cell.measured) >= LEAST]


def per_round(found):
    """(round, errors of its cells, samples left out by why) of each round."""
    for number in sorted({one.round for one in found}):
        some = [one for one in found if one.round == number]
        yield (number, [cell.error() for cell in cells(some)],
               {why: sum(one.state == why for one in some)
                for why in LEFT_OUT},
               [turn for one in some for turn, _ in looks_of(one)])


def looks_of(one):
    return [look for look in one.looks if look is not None]


# ---- in words ----

def percent(error):
    return f"{100 * error:+.1f}"


def show_cells(some, title):
    lines.table(["", "samples", "predicted, ns", "measured, ns", "min..max",
                 "error, %"],
                [(cell.title(), len(cell.measured), f"{cell.predicted:.1f}",
                  f"{median(cell.measured):.1f}",
                  f"{cell.measured[0]:.1f}..{cell.measured[-1]:.1f}",
                  percent(cell.error())) for cell in some], title)


def show_rounds(found, spoilt):
    rows = []
    for number, errors, left_out, turns in per_round(found):
        each = ", ".join(f"{len(group)} x {median(group) / 1000:.0f}"
                         for group in states.groups(turns)) or "-"
        size = [abs(error) for error in errors]
        rows.append((number, f"{100 * median(size):.1f}" if size else "-",
                     f"{100 * max(size):.1f}" if size else "-",
                     left_out[CHANGED], left_out[UNKNOWN], each))
    lines.table(["round", "median error, %", "largest", "changed", "unknown",
                 "looks x turn, ns"], rows, "Round by round")
    lines.say("changed: samples of two processes before and after which the"
              f" turn differed by a factor of {states.SAME_STATE} or more;"
              " unknown: with a turn that no calibration had seen; both are in"
              " no figure")
    show_left_out(found)
    lines.say(f"{spoilt} samples were taken again, as a session began late")


def show_left_out(found):
    """What has been left out is not hidden."""
    rows = [(one.round, f"{one.configuration}: {one.side}", one.state,
             f"{one.ns:.1f}",
             " -> ".join(f"{turn / 1000:.1f}" for turn, _ in looks_of(one)))
            for one in found if one.predicted is None]
    if rows:
        lines.table(["round", "", "why", "measured, ns", "turn, ns"], rows,
                    "Left out")


def spread(errors):
    size = [abs(error) for error in errors]
    return median(size), max(size)


def show_halves(some):
    """Contention is what is to be predicted, and one process knows none."""
    for number in sorted({cell.processes() for cell in some}):
        middle, worst = spread([cell.error() for cell in some
                                if cell.processes() == number])
        lines.say(f"{number} process{'es' if number > 1 else ''}: median error"
                  f" {100 * middle:.1f} %, largest {100 * worst:.1f} %")


def report(found, spoilt):
    """All tables and the JSON; is it as wanted?"""
    headline = cells(found)
    if not headline:
        raise BenchError("of no sample anything was predicted: the machine is"
                         " too busy, or its CPUs change places too often")
    show_rounds(found, spoilt)
    for turn, some in by_state(found):
        if some:
            show_cells(some, f"Two processes, {states.name(turn)}")
            show_halves(some)
    show_cells(headline, "Predicted and measured, medians of all rounds")
    show_halves(headline)
    middle, worst = spread([cell.error() for cell in headline])
    without = without_any(found)
    met = lines.verdict([
        (without == 0, f"cells of which no sample counts: {without}, none"
                       " wanted"),
        (middle <= MEDIAN_ERROR, f"median error {100 * middle:.1f} %, at most"
                                 f" {100 * MEDIAN_ERROR:.0f} % wanted"),
        (worst <= MOST_ERROR, f"largest error {100 * worst:.1f} %, at most"
                              f" {100 * MOST_ERROR:.0f} % wanted")])
    lines.write_json("sim_own", rows(found, spoilt))
    return met


# ---- as the other benches write it ----

def rows(found, spoilt=None):
    """spoilt: None where nobody has counted."""
    result = list(rows_of(cells(found), ""))
    for turn, some in by_state(found):
        result += rows_of(some, f", {states.name(turn)}")
    for number in sorted({one.round for one in found}):
        result += rows_of(cells([one for one in found if one.round == number]),
                          f", round {number}")
    for why in LEFT_OUT:
        number = sum(one.state == why for one in found)
        result.append(row("samples", "left out", why, [number]))
    if spoilt is not None:
        result.append(row("samples", "taken again", SPOILT, [spoilt]))
    result.append(row("samples", "left out", WITHOUT, [without_any(found)]))
    result.append(row("samples", "all", "all", [len(found)]))
    result.append(row("samples", "all", TWO, [
        sum(processes_of(one.configuration) > 1 for one in found)]))
    return result


def rows_of(some, suffix):
    for cell in some:
        where = cell.configuration + suffix
        ratio = 1 + cell.error()
        yield row("ns_per_allocation", where, f"predicted {cell.side}",
                  [cell.predicted], ratio)
        yield row("ns_per_allocation", where, f"measured {cell.side}",
                  cell.measured)


def row(metric, where, side, values, ratio=None):
    return {"metric": metric, "configuration": where, "side": side,
            "rounds": len(values), "median": median(values),
            "min": min(values), "max": max(values),
            **dict.fromkeys(("ratio", "ratio_min", "ratio_max", "ratio_low",
                             "ratio_high"), ratio)}
