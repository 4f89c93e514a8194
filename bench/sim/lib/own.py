"""Out of sample: what an allocation takes on this machine, predicted first and
measured then, by bench/alloc on real servers.

Nothing is fitted to a server: the machine's file is what calibrate has measured
without one. The prediction is a file with a date; what was measured before
that date is refused."""

import json
import os
import subprocess
import sys
from datetime import datetime, timezone
from statistics import median

from lib import report
from lib.paths import BENCH, ROOT, BenchError

from . import published

# bench/alloc's sides, and what they are here
SIDES = {
    "stock server": {"strategy": "stock"},
    "pg_sweep batched 64": {"strategy": "batched", "batch": 64},
    "pg_sweep batched auto": {"strategy": "batched", "batch": 0},
    "pg_sweep partitioned": {"strategy": "partitioned", "partitions": 0},
}
PRETENDED_NODES = 2             # of bench/alloc, for the last of them
USAGES = (0, 2)
PROCESSES = (1, 2)
BUFFERS = 16384                 # 128 MB, bench/alloc's default
# In simulated time long enough for the background writer's plan of who serves
# whom, six cycles of 200 ms, would take minutes. It is made every 2 ms instead,
# and the warm-up is longer than six of those: what it settles at is the same.
BGWRITER_MS = 2
WARMUP = 2_000_000
ALLOCATIONS = 400_000
SEEDS = (1, 2, 3)

# What a CPU does by itself
OWN_WORK = ("load_hit", "store_hit", "rmw_hit", "cas_hit", "pause",
            "instruction_ps")

MEDIAN_ERROR, MOST_ERROR = 0.15, 0.30
PREDICTED = BENCH / "sim" / "own-predicted.json"
ALLOC = BENCH / "alloc.json"


def where(usage, processes):
    """As bench/alloc calls it."""
    return (f"usage {usage}, {processes}"
            f" process{'es' if processes > 1 else ''}")


def on_nodes(here, nodes):
    """The same machine with pretended nodes: homes and flows, and no distance
    between them that is not there without."""
    cores = here.value["cores"]
    if here.nodes() > 1 or cores % nodes:
        return here
    near = here.value["latency_group"]
    return here.changed(cores_per_group=cores // nodes, groups_per_node=1,
                        nodes_per_socket=nodes, sockets=1, latency_node=near,
                        latency_socket=near,
                        latency_other_socket=max(
                            near, here.value["latency_other_socket"]))


def disturbed(here):
    """The same machine while all its CPUs work."""
    if here.together == 100:
        return here
    return here.changed(**{key: round(here.value[key] * here.together / 100)
                           for key in OWN_WORK})


def config(here, side, usage, processes, seed):
    if processes > 1:
        here = disturbed(here)
    if side == "pg_sweep partitioned":
        here = on_nodes(here, PRETENDED_NODES)
    return {**here.config(), "load": "alloc", "load.usage": usage,
            **SIDES[side], "backends": processes, "buffers": BUFFERS,
            # a process on each core; of pretended nodes, one on each
            "placement": "scatter", "warmup": WARMUP,
            "allocations": ALLOCATIONS, "bgwriter_ms": BGWRITER_MS,
            "seed": seed}


def cells(here):
    return [(side, usage, processes) for usage in USAGES
            for processes in PROCESSES if processes <= here.cpus()
            for side in SIDES]


def predict(simulator, here, output):
    """Write the prediction down."""
    found = []
    for side, usage, processes in cells(here):
        answers = simulator.run_all([config(here, side, usage, processes, seed)
                                     for seed in SEEDS])
        found.append({"configuration": where(usage, processes), "side": side,
                      "ns": median(answer["ps_per_allocation"] / 1000
                                   for answer in answers)})
        report.progress(f"{side}, {where(usage, processes)}:"
                        f" {found[-1]['ns']:.1f} ns")
    document = {"date": datetime.now(timezone.utc).isoformat(
                    timespec="seconds"),
                "machine": here.title, "notes": here.notes,
                "values": here.value, "together_percent": here.together,
                "predicted": found}
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(document, indent=1) + "\n")
    except OSError as error:
        raise BenchError(f"cannot write {output}: {error.strerror}")
    report.table(["side", *(where(usage, processes) for usage in USAGES
                            for processes in PROCESSES)],
                 [(side, *(f"{row['ns']:.1f}" for row in found
                           if row["side"] == side)) for side in SIDES],
                 "Predicted, ns an allocation")
    report.say(f"written: {output}")


def read_json(path, what):
    try:
        return json.loads(path.read_text())
    except OSError as error:
        raise BenchError(f"there is no {what} in {path}: {error.strerror}")
    except ValueError as error:
        raise BenchError(f"{path} is not JSON: {error}")


def measure(predicted_file, measured_file, rounds):
    """Measure unless there is a file, compare; is it as wanted?"""
    document = read_json(predicted_file, "prediction (run own predict first)")
    if measured_file is None:
        measured_file = ALLOC
        command = [ROOT / "bench" / "alloc" / "run"]
        if rounds:
            command += ["--rounds", str(rounds)]
        report.progress("bench/alloc measures")
        # It ends with 1 if figures of its own are not met; that is no matter
        # here. Without a new file the check below fails.
        subprocess.run(command, stdout=sys.stderr)
    rows = {(row["configuration"], row["side"]): row for row
            in read_json(measured_file, "measurement")
            if row["metric"] == "ns_per_allocation"}
    measured_at = datetime.fromtimestamp(os.stat(measured_file).st_mtime,
                                         timezone.utc)
    if measured_at <= datetime.fromisoformat(document["date"]):
        raise BenchError(f"{measured_file} is older than the prediction of"
                         f" {document['date']}: nothing has been measured"
                         " since")
    return compare(document, rows, measured_at)


def compare(document, rows, measured_at):
    result, table, errors = [], [], []
    for cell in document["predicted"]:
        key = cell["configuration"], cell["side"]
        if key not in rows:
            raise BenchError(f"{key[1]!r}, {key[0]} has not been measured")
        row = rows[key]
        error = cell["ns"] / row["median"] - 1
        errors.append(abs(error))
        table.append((f"{key[0]}: {key[1]}", f"{cell['ns']:.1f}",
                      f"{row['median']:.1f}",
                      f"{row['min']:.1f}..{row['max']:.1f}",
                      f"{100 * error:+.1f}"))
        result.append(published.result_row("ns_per_allocation", key[0],
                                           f"predicted {key[1]}", cell["ns"],
                                           row["median"]))
        result.append({**row, "side": f"measured {key[1]}",
                       **dict.fromkeys(("ratio", "ratio_min", "ratio_max",
                                        "ratio_low", "ratio_high"))})
    report.table(["", "predicted, ns", "measured, ns", "min..max",
                  "error, %"], table,
                 f"Predicted {document['date']}, measured"
                 f" {measured_at.isoformat(timespec='seconds')}")
    middle, worst = median(errors), max(errors)
    met = report.verdict([
        (middle <= MEDIAN_ERROR, f"median error {100 * middle:.1f} %, at most"
                                 f" {100 * MEDIAN_ERROR:.0f} % wanted"),
        (worst <= MOST_ERROR, f"largest error {100 * worst:.1f} %, at most"
                              f" {100 * MOST_ERROR:.0f} % wanted")])
    report.write_json("sim_own", result)
    return met
