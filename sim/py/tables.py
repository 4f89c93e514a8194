"""Predictions as tables of Markdown and as pictures.

docs/scaling.md has the tables that follow from sim/results. Its text is written
by hand."""

import json

from bench.lib import plot
from bench.lib.paths import ROOT, BenchError

RESULTS = ROOT / "sim" / "results"
DRAWN = ("stock", "upstream batched, 64", "batched, 64", "batched, 256")
COLOURS = 64                    # of a PNG
PICTURES = {"two_sockets": ("m6i-metal", "r8i-metal-96xl"),
            "one_socket_four_nodes": ("c8i-metal-48xl", "hb176"),
            "hypothetical": ("epyc512", "epyc1024")}


def read(name):
    path = RESULTS / f"{name}.json"
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BenchError(f"cannot read {path}: {error}")


def to_json(data, between):
    """A new line between the parts that are separated so."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace(between, between.replace(",", ",\n")) + "\n"


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


def every_table():
    data = read("predictions")
    parts = [summary(data), *map(machine_table, data["machines"])]
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
    """Returns the files that were written: PNG, with few colours."""
    from PIL import Image       # matplotlib needs it, too
    by_name = {found["machine"]: found
               for found in read("predictions")["machines"]}
    for name, machines in PICTURES.items():
        panels = [panel(by_name[machine]) for machine in machines]
        for path in plot.write(folder / name, panels,
                               names=(*DRAWN, "partitioned, fewest",
                                      "partitioned, most")):
            if path.suffix == ".png":
                Image.open(path).convert("RGB").quantize(COLOURS).save(
                    path, optimize=True)
                yield path
            else:
                path.unlink()
