"""Predictions and errors as tables of Markdown, and predictions as pictures.

docs/scaling.md has the tables that follow from sim/results. Its text is written
by hand."""

import json
from statistics import median

from bench.lib import plot
from bench.lib.paths import ROOT, BenchError

from . import baselines

RESULTS = ROOT / "sim" / "results"
DRAWN = ("stock", "upstream batched, 64", "batched, 64", "batched, 256")
PICTURES = {"two_sockets": ("m6i-metal", "r8i-metal-96xl"),
            "one_socket_four_nodes": ("c8i-metal-48xl", "hb176"),
            "hypothetical": ("epyc512", "epyc1024")}


def read(name):
    path = RESULTS / f"{name}.json"
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BenchError(f"cannot read {path}: {error}")


def to_json(data):
    """One line per innermost list or object of a list."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("},{", "},\n{") + "\n"


def table(heads, rows):
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for row in rows:
        yield "| " + " | ".join(map(str, row)) + " |"
    yield ""


def mega(value):
    value /= 1e6
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


# ---- predictions ----

def machine_table(found):
    heads = ["", "M/s (band)", "all free", "ns", "shared"]
    if found["whole"]:
        heads.append("stops at")
    rows = []
    for one in found["strategies"]:
        row = [one["strategy"],
               f"{mega(one['allocations_per_s'])} ({mega(one['low'])} .."
               f" {mega(one['high'])})", mega(one["free_per_s"]),
               f"{one['ns_per_allocation']:,.0f}",
               f"{one['shared_percent']:.0f} %"]
        if found["whole"]:
            row.append(one["stops_at"] or "-")
        rows.append(row)
    yield f"{found['machine']}, {found['cores']} backends:"
    yield ""
    yield from table(heads, rows)


def summary(data):
    """Stock against the better of ours, where bands tell them apart."""
    yield from table(
        ["machine", "cores", "nodes", "stock, M/s", "stops at",
         "`batched, 64`", "`partitioned`, most", "best to stock"],
        [summary_row(found) for found in data["machines"] if found["whole"]])


def summary_row(found):
    by_name = {one["strategy"]: one for one in found["strategies"]}
    stock, batched = by_name["stock"], by_name["batched, 64"]
    parts = found["strategies"][-1]
    best = max((batched, parts), key=lambda one: one["allocations_per_s"])
    low, high = best["low"] / stock["high"], best["high"] / stock["low"]
    return [found["machine"], found["cores"], found["nodes"],
            mega(stock["allocations_per_s"]), stock["stops_at"] or "-",
            mega(batched["allocations_per_s"]),
            mega(parts["allocations_per_s"]),
            f"{low:,.0f} .. {high:,.0f} times" if low > 1
            else "bands overlap"]


# ---- what the model is worth ----

def errors(rows, metric, side):
    """Of predictions to what was published: |ratio - 1|"""
    return [abs(row["ratio"] - 1) for row in rows
            if row["metric"] == metric and row["side"] == side
            and row["ratio"] is not None]


def scans_by(rows, side):
    """{(clients, column): tps} of one side, fitted or not."""
    found = {}
    for row in rows:
        if (row["metric"] == "scans_tps"
                and row["side"].split(",")[0] == side):
            clients, column = row["configuration"].split(" clients, ")
            found[int(clients), column] = row["value"]
    return found


def ratio_errors(rows, side):
    """Of the columns to master."""
    theirs = baselines.ratios(scans_by(rows, "published"))
    ours = baselines.ratios(scans_by(rows, side))
    return [abs(ours[cell] / theirs[cell] - 1) for cell in theirs]


def worth(rows):
    some = [("totals of atomics (Freund)",
             errors(rows, "operations_m_per_s", "simulated"))]
    for side in ("simulated", "constant", "roofline"):
        some.append((f"concurrent scans (Vondra): {side}",
                     errors(rows, "scans_tps", side)))
    for side in ("simulated", "constant", "roofline"):
        some.append((f"the same, ratios to stock: {side}",
                     ratio_errors(rows, side)))
    yield from table(
        ["compared with", "figures", "median error", "largest error"],
        [(what, len(found), f"{100 * median(found):.1f} %",
          f"{100 * max(found):.1f} %") for what, found in some])


def placements(rows):
    simulated = scans_by(rows, "simulated")
    published = scans_by(rows, "published")
    placed = {(row["configuration"], row["side"]): row["value"]
              for row in rows if row["metric"] == "scans_tps_placed"}
    heads = sorted({side for _, side in placed})
    lines = []
    for where in dict.fromkeys(where for where, _ in placed):
        clients, column = where.split(" clients, ")
        cell = int(clients), column
        lines.append([where, published[cell], f"{simulated[cell]:.1f}",
                      *(f"{placed[where, side]:.1f}" for side in heads)])
    yield from table(["scans, tps", "published", "simulated, nodes by turns",
                      *heads], lines)


def lwlock(rows):
    """Published and simulated shares of acquisitions that slept."""
    share = {(row["configuration"], row["side"]): row["value"] for row in rows
             if row["metric"] == "lwlock_share_percent"}
    yield from table(["acquisitions that slept, %", "published", "simulated"],
                     [(where, f"{share[where, 'published']:.2f}",
                       f"{share[where, 'simulated']:.2f}")
                      for where in dict.fromkeys(where for where, _ in share)])


def every_table():
    data, rows = read("predictions"), read("validation")
    parts = [summary(data), worth(rows), placements(rows), lwlock(rows)]
    parts += map(machine_table, data["machines"])
    return "\n".join(line for part in parts for line in part)


# ---- pictures ----

def panel(found):
    parts = [one["strategy"] for one in found["strategies"]
             if one["strategy"].startswith("partitioned")]
    called = {name: name for name in DRAWN}
    called[parts[0]] = "partitioned, fewest"
    called[parts[-1]] = "partitioned, most"
    series = {called[one["strategy"]]:
              [(backends, rate / 1e6) for backends, rate in one["line"]]
              for one in found["strategies"] if one["strategy"] in called}
    return plot.Lines(f"{found['machine']}: {found['cores']} cores,"
                      f" {found['nodes']} node{'s' * (found['nodes'] > 1)}",
                      series, "backends", "M allocations/s", log_y=True)


def draw(folder):
    """Returns the files that were written."""
    by_name = {found["machine"]: found
               for found in read("predictions")["machines"]}
    for name, machines in PICTURES.items():
        yield from plot.write(
            folder / name, [panel(by_name[machine]) for machine in machines],
            names=(*DRAWN, "partitioned, fewest", "partitioned, most"))


