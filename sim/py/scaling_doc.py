"""docs/scaling.md, its data and its pictures: the text is a function of the
data that is beside it, which a test checks."""

import shutil
from statistics import median

from bench.lib import plot, report
from bench.lib.paths import BenchError

from . import own_report, predict
from .scaling_data import DOCS, own_samples, put, read
from .scaling_data import gather, put_data  # noqa: F401

DATA = ("predictions", "validation", "own")
DRAWN = ("stock", "batched seed, 64", "batched, 64", "batched, 256")
PICTURES = {"two_sockets": ("m6i-metal", "r8i-metal-96xl"),
            "one_socket_four_nodes": ("c8i-metal-48xl", "hb176"),
            "hypothetical": ("epyc512", "epyc1024")}

HEAD = """\
# Scaling: what the simulator predicts

Written by `sim/run predict` from `docs/scaling/*.json`; do not edit. The
simulator ([sim](../sim/README.md)) plays the source files of the
strategies on a model of a machine's caches. No server has been run on these
machines by us. What is known of the model's errors is [below](#what-the-model-is-worth).

Each backend takes a victim, works for {work} us (about what copying a page from
the kernel's cache takes), and takes the next one. For each victim, the hand passes two
buffers that have been used of late.

- *M/s*: million allocations a second of all backends. In brackets the band: latencies
  between cores 15 % smaller and larger, backends in turn on all nodes and anywhere, and
  half and twice the time for which a core keeps a line that it has fetched.
- *all free*: the same if no buffer has been used of late, so that the first look finds a
  victim.
- *ns*: time of one allocation, without the work between.
- *shared*: how much of that is spent waiting for cache lines that others use, too:
  hands, buffer headers, what is read by all.
- *stops at*: the fewest backends with {flat} % of the largest rate; more than that
  are no use. `-`: only one on every core reaches it.
- `batched seed` is the batched sweep as it was proposed in 2026 (batches of 64, but
  a counter that each allocation writes), `batched, N` ours with batches of N,
  `partitioned, N` ours with N partitions and automatic batches.
"""


def table(heads, rows):
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for row in rows:
        yield "| " + " | ".join(map(str, row)) + " |"
    yield ""


def mega(value):
    """So that what differs between strategies can be seen."""
    value /= 1e6
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def machine_rows(found):
    for one in found["strategies"]:
        row = [one["strategy"],
               f"{mega(one['allocations_per_s'])} ({mega(one['low'])} .."
               f" {mega(one['high'])})", mega(one["free_per_s"]),
               f"{one['ns_per_allocation']:,.0f}",
               f"{one['shared_percent']:.0f} %"]
        if found["whole"]:
            row.append(one["stops_at"] or "-")
        yield row


def ranking(found):
    """Said of what the bands tell apart."""
    groups = predict.ranks(found["strategies"])
    if len(groups) == 1:
        return "Bands overlap: no order can be told."
    text = "; then ".join(", ".join(f"`{name}`" for name in group)
                          for group in groups)
    return (f"Order, where bands do not overlap (within a group it is not"
            f" told): {text}.")


def machine_section(found):
    yield f"### {found['machine']}: {found['title']}"
    yield ""
    if found["notes"]:
        yield " ".join(found["notes"])
        yield ""
    heads = ["", "M/s (band)", "all free", "ns", "shared"]
    if found["whole"]:
        heads.append("stops at")
    yield (f"One backend on each of {found['cores']} cores"
           f" ({found['nodes']} node{'s' * (found['nodes'] > 1)}):")
    yield ""
    yield from table(heads, machine_rows(found))
    yield ranking(found)
    yield ""
    if found["planned"]:
        yield (f"When the background writer has planned who is served where,"
               f" the last of these is {found['planned']:.2f} times as fast.")
        yield ""


def summary(data):
    """Stock against the better of ours, where it can be told."""
    yield from table(
        ["machine", "cores", "nodes", "stock, M/s", "stops at",
         "`batched, 64`", "`partitioned`, most", "best to stock"],
        [summary_row(found) for found in data["machines"] if found["whole"]])
    yield ("(*) Of hb176, a guest has 176 cores; the model knows machines only"
           " whose nodes and groups are all alike.")
    yield ""


def summary_row(found):
    by_name = {one["strategy"]: one for one in found["strategies"]}
    stock, batched = by_name["stock"], by_name["batched, 64"]
    parts = found["strategies"][-1]
    best = max((batched, parts), key=lambda one: one["allocations_per_s"])
    low, high = best["low"] / stock["high"], best["high"] / stock["low"]
    told = (f"{low:,.0f} .. {high:,.0f} times" if low > 1
            else "bands overlap")
    mark = " (*)" if found["machine"] == "hb176" else ""
    return [found["machine"] + mark, found["cores"], found["nodes"],
            mega(stock["allocations_per_s"]), stock["stops_at"] or "-",
            mega(batched["allocations_per_s"]),
            mega(parts["allocations_per_s"]), told]


# ---- what the model is worth ----

def errors(rows, metric, side):
    """Of predictions to what was published or measured: |ratio - 1|"""
    return [abs(row["ratio"] - 1) for row in rows
            if row["metric"] == metric and row["side"] == side
            and row["ratio"] is not None]


def error_row(what, found, n):
    if not found:
        return None
    return [what, n, f"{100 * median(found):.1f} %",
            f"{100 * max(found):.1f} %"]


def validity(validation, own):
    yield "## What the model is worth"
    yield ""
    rows = [error_row("totals of atomics on a dual Xeon (Freund)",
                      errors(validation, "operations_m_per_s", "simulated"),
                      12)]
    for side in ("simulated", "constant", "roofline"):
        found = errors(validation, "scans_tps", side)
        rows.append(error_row(f"concurrent scans (Vondra), cells that were"
                              f" not fitted: {side}", found, len(found)))
    found = ratio_errors(validation)
    for side, values in found.items():
        rows.append(error_row("the same, ratios to stock:"
                              f" {side}", values, len(values)))
    for number, what in ((1, "one process"), (2, "two processes")):
        values = own_errors(own, number)
        rows.append(error_row("an allocation on this project's machine of 2"
                              " CPUs, predicted before it was measured:"
                              f" {what}", values, len(values)))
    yield from table(["compared with", "figures", "median error",
                      "largest error"], [row for row in rows if row])
    yield from scans_text(validation)
    yield from pgbench_text(validation)
    yield from own_table(own)


def ratio_errors(rows):
    """Of the columns to master, by who predicts."""
    value = {(row["configuration"], row["side"].split(",")[0]): row["median"]
             for row in rows if row["metric"] == "scans_tps"}
    found = {}
    for (where, side), tps in value.items():
        clients, column = where.split(", ")
        if side == "published" or column == "master":
            continue
        base = f"{clients}, master"
        ours = tps / value[base, side]
        theirs = value[where, "published"] / value[base, "published"]
        found.setdefault(side, []).append(abs(ours / theirs - 1))
    return found


SCANS_TEXT = """\
- **Scans**: three numbers are fitted to four cells of the published table
  (`sim/published/fit.json`, named before the first comparison). *constant* is the
  median of a column, *roofline* a line and three ceilings fitted to the same four cells. Half of
  the table is a plateau, where these are as right as a simulation; what they cannot tell is
  what few clients get. {bound} of the cells that were not fitted are the fitted bandwidth and
  nothing else. Both partitioned columns rise too soon: at 16 to 32 clients, something that
  is not modelled grows with the clients. Most likely that is the table that maps pages to buffers: with it
  simulated, too, the columns have the published form, but are too slow throughout
  ([sim](../sim/README.md#against-what-others-have-measured)). Where clients ran was not
  published, and matters: nodes by turns are simulated, at random would be nearer. What was wanted (10 % and
  25 % of tps, 8 % and 20 % of ratios, medians and largest) {met}.
"""


FITTED = "simulated, fitted"
NEAR = 0.02                     # of the largest, which the bandwidth allows


def bound_by_bandwidth(rows):
    """Cells that are as fast as the one that the bandwidth is fitted to."""
    fitted = max(row["median"] for row in rows
                 if row["metric"] == "scans_tps" and row["side"] == FITTED)
    return sum(row["metric"] == "scans_tps" and row["side"] == "simulated"
               and row["median"] >= (1 - NEAR) * fitted for row in rows)


def scans_text(rows):
    tps = errors(rows, "scans_tps", "simulated")
    ratios = ratio_errors(rows)["simulated"]
    met = (median(tps) <= .10 and max(tps) <= .25 and median(ratios) <= .08
           and max(ratios) <= .20)
    yield SCANS_TEXT.format(met="is reached" if met else "is not reached",
                            bound=bound_by_bandwidth(rows))
    value = {(row["configuration"], row["side"]): row["median"]
             for row in rows if row["metric"] == "scans_tps"}
    placed = {(row["configuration"], row["side"]): row["median"]
              for row in rows if row["metric"] == "scans_tps_placed"}
    heads = sorted({side for _, side in placed})
    yield from table(
        ["scans, tps", "published", "simulated, nodes by turns", *heads],
        [[where, value[where, "published"],
          f"{value.get((where, 'simulated'), value.get((where, FITTED))):.1f}",
          *(f"{placed[where, side]:.1f}" for side in heads)]
         for where in dict.fromkeys(where for where, _ in placed)])


CONTROLS = ("read-write", "one socket, no limit")


BATCHES_ON_ONE = "one socket, no limit, batches of 64"


def one_socket(rows):
    return max(row["ratio"] for row in rows
               if row["metric"] == "pgbench_tps"
               and row["side"] == "simulated batched"
               and row["configuration"].rsplit(", ", 1)[0] == BATCHES_ON_ONE)


def pgbench_text(rows):
    def side(where, name, metric="pgbench_tps"):
        return next(row["median"] for row in rows
                    if row["metric"] == metric and row["side"] == name
                    and row["configuration"] == where)
    where = "read-only, 512 clients"
    ours = side(where, "simulated batched") / side(where, "simulated stock")
    theirs = side(where, "published batched") / side(where, "published stock")
    used = side(where, "simulated stock", "hand_line_use")
    controls = [abs(row["ratio"] - 1) for row in rows
                if row["metric"] == "pgbench_tps"
                and row["side"] == "simulated batched"
                and row["configuration"].rsplit(", ", 1)[0] in CONTROLS]
    yield (f"- **pgbench** (Burd, r8i.metal-96xl): read-write rows and the"
           f" machine of one socket, where he found no difference, are within"
           f" {100 * max(controls):.1f} % of none here. His read-only rows"
           f" gained 16 to 20 %: the simulation says {ours:.3f} (he:"
           f" {theirs:.2f}), as at 31 thousand transactions a second the line"
           f" of the hand is used {100 * used:.1f} % of the time. What bound"
           " his read-only runs was not the hand, and batches must have"
           " helped in a way that is not simulated. What batches of 64 would"
           " do on one socket, where his patch does not use them, if nothing"
           " but CPUs and lines bound it: up to"
           f" {one_socket(rows):.2f} times stock's rate.")


OWN_TEXT = """\
Predicted and measured in rounds, each calibrated some more, and predicted before it was measured.
No time of a server is fitted. Two numbers of the model are fitted to instructions that were counted
in servers, in four of these cells ([sim](../sim/README.md#instructions)). Automatic batches
are batches of 64 here, so 12 of the 16 cells are different ones. The error of a cell is the median over
its samples of predicted to measured, less 1, each sample with the prediction of its own round and state.

The virtual machine's CPUs change places, from one second to the next: a turn between them then takes
another time. There is a prediction for each such state, once calibration has seen it; which one holds for
a sample is decided by the turn right before and right after it. One process has no neighbour, and all
its samples count. Of the {two} samples of two processes {left_out} are left out: {changed} because the two
turns differed, {unknown} because calibration had not seen such a turn.{without}{again}{states}
`docs/scaling/own-measured.json` has every sample.

Wanted were a median error of {median:.0f} % and none above {most:.0f} %: {met}. The median of all cells is
{middle:.1f} %. That is the middle between one process, where nothing is contended, and two, which are what is
to be predicted: the table at the beginning of this chapter has them apart. What is left of the error, and what
is known of its reasons, is in [sim](../sim/README.md#out-of-sample).
"""
WIDE = 2                        # largest to smallest sample of a cell
WIDE_TEXT = """\
(*) The largest sample is {wide} times the smallest one or more. Where all are of the same turn, the turn does
not determine this time, and the median of such samples says little.
"""

PER = (", turn ", ", round ")   # rows of a part of the samples


def own_cells(own, part=None):
    """Rows of predictions: of all samples together, or of such parts."""
    return [row for row in own if row["side"].startswith("predicted")
            and (part in row["configuration"] if part else
                 not any(per in row["configuration"] for per in PER))]


def own_errors(own, processes=None):
    """Sizes of the errors of all cells, or of those of so many processes."""
    return [abs(row["ratio"] - 1) for row in own_cells(own)
            if processes in (None, own_report.processes_of(
                row["configuration"]))]


def own_states(own):
    """The turns of the states of which enough samples count."""
    return sorted({row["configuration"].split(PER[0])[1]
                   for row in own_cells(own, PER[0])})


def own_rows(own, cells):
    measured = {(row["configuration"], row["side"].removeprefix("measured ")):
                row for row in own if row["side"].startswith("measured")}
    for row in cells:
        name = row["side"].removeprefix("predicted ")
        real = measured[row["configuration"], name]
        mark = " (*)" if wide(real) else ""
        yield [f"{row['configuration']}: {name}{mark}", real["rounds"],
               f"{row['median']:.1f}",
               f"{real['median']:.1f} ({real['min']:.1f} .."
               f" {real['max']:.1f})", f"{round(100 * (row['ratio'] - 1)):+d} %"]


def own_table(own):
    if not own:
        yield ("- **Own machine**: not measured yet"
               " (`sim/run own rounds`).")
        yield ""
        return
    samples = own_samples(own)
    size = own_errors(own)
    met = (median(size) <= own_report.MEDIAN_ERROR
           and max(size) <= own_report.MOST_ERROR
           and not samples[own_report.WITHOUT])
    heads = ["", "samples", "predicted", "measured (range)", "error"]
    yield ""
    yield "An allocation on 2 CPUs of this project's machine, nanoseconds:"
    yield ""
    rows = list(own_rows(own, own_cells(own)))
    yield from table(heads, rows)
    if any("(*)" in row[0] for row in rows):
        yield WIDE_TEXT.format(wide=WIDE)
    again = samples.get(own_report.SPOILT)
    yield OWN_TEXT.format(
        two=samples[own_report.TWO], changed=samples[own_report.CHANGED],
        unknown=samples[own_report.UNKNOWN],
        left_out=sum(samples[why] for why in own_report.LEFT_OUT),
        without="" if not samples[own_report.WITHOUT] else
        f" Of {samples[own_report.WITHOUT]} cells no sample counts.",
        again="" if again is None else
        f" {again} were taken again, as a session began late.",
        states="" if not own_states(own) else
        f" Most of what counts is of these turns: {', '.join(own_states(own))}.",
        median=100 * own_report.MEDIAN_ERROR,
        most=100 * own_report.MOST_ERROR, middle=100 * median(size),
        met="reached" if met else "not reached")
    if len(own_states(own)) > 1:
        yield "Two processes, each state by itself:"
        yield ""
        yield from table(heads, own_rows(own, own_cells(own, PER[0])))
    yield from own_rounds(own)


def wide(row):
    return row["max"] >= WIDE * row["min"]


def own_rounds(own):
    """The errors of each round's 16 cells."""
    found = {}
    for row in own_cells(own, PER[1]):
        number = int(row["configuration"].rsplit(PER[1], 1)[1])
        found.setdefault(number, []).append(abs(row["ratio"] - 1))
    yield "Errors of each round:"
    yield ""
    yield from table(["round", "cells", "median error", "largest error"],
                     [[number, len(size), f"{100 * median(size):.0f} %",
                       f"{100 * max(size):.0f} %"]
                      for number, size in sorted(found.items())])


LIMITS = """\
## Limits

- Latencies between cores of Granite Rapids are assumed, and those of EPYC beyond a
  group of cores are of the generation before, from a machine whose second socket
  was measured to be oddly slow: `sim/machines/*.json` say where each
  number comes from. Bands have 15 % of them.
- There is at most one backend on a core: two threads of a core, on machines that have
  them, would each be as fast as one alone.
- A machine has five distances. One with 8 sockets has more.
- Only what allocating touches is simulated: not the mapping of pages, not locks on it (which load
  `scans` can simulate, see above), no device. What a real server gains is less than what is said of allocations here; it is
  what is left when allocations do not wait.
- Predict your own machine: `sim/run calibrate`, then
  `sim/run predict --machine build/sim/this.json`.
"""


def render(data, validation, own):
    lines = [HEAD.format(work=f"{data['work_ps'] / 1e6:g}",
                         flat=round(100 * predict.FLAT)), "## In short", ""]
    lines += summary(data)
    for name, machines in PICTURES.items():
        lines += [f"![{' and '.join(machines)}](scaling/{name}.png)", ""]
    lines += validity(validation, own)
    lines += [LIMITS, "## Machine by machine", ""]
    for found in data["machines"]:
        lines += machine_section(found)
    return "\n".join(lines).rstrip() + "\n"


def pictures(docs, data):
    by_name = {found["machine"]: found for found in data["machines"]}
    for name, machines in PICTURES.items():
        panels = [panel(by_name[machine]) for machine in machines
                  if machine in by_name]
        if panels:
            yield from plot.write(docs / "scaling" / name, panels,
                                  names=(*DRAWN, "partitioned, fewest",
                                         "partitioned, most"))


def panel(found):
    parts = [one["strategy"] for one in found["strategies"]
             if one["strategy"].startswith("partitioned")]
    called = {name: name for name in DRAWN}
    called[parts[0]] = "partitioned, fewest"
    called[parts[-1]] = "partitioned, most"
    series = {}
    for one in found["strategies"]:
        if one["strategy"] in called:
            line = [(at["backends"], at["allocations_per_s"] / 1e6)
                    for at in one["line"]]
            series[called[one["strategy"]]] = line
    return plot.Lines(f"{found['machine']}: {found['cores']} cores,"
                      f" {found['nodes']} node{'s' * (found['nodes'] > 1)}",
                      series, "backends", "M allocations/s", log_y=True)


def text(docs):
    """What scaling.md must be, given the data beside it."""
    return render(*(read(docs, name) for name in DATA))


def check(docs=DOCS):
    """Is the text that of the data?"""
    path = docs / "scaling.md"
    try:
        found = path.read_text()
    except OSError as error:
        raise BenchError(f"cannot read {path}: {error.strerror}")
    if found != text(docs):
        raise BenchError(f"{path} is not what docs/scaling/*.json say: run"
                         " sim/run predict")


def write(docs):
    """Text and pictures from the data that is there."""
    put(docs / "scaling.md", text(docs))
    return [docs / "scaling.md", *pictures(docs, read(docs, "predictions"))]


def copy(made, docs):
    """Text, data and pictures."""
    try:
        shutil.copy(made / "scaling.md", docs / "scaling.md")
        (docs / "scaling").mkdir(exist_ok=True)
        for path in sorted((made / "scaling").iterdir()):
            shutil.copy(path, docs / "scaling" / path.name)
    except OSError as error:
        raise BenchError(f"cannot copy {made} to {docs}: {error}")
    report.say(f"copied to {docs}")
