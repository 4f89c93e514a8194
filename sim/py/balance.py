"""The balance of partitions: what each serves against one clock, how far hands
are apart, and how many allocations are local, where pages are not used alike
everywhere or not all nodes allocate."""

from bench.lib import report

from . import machine, tables

WORK_PS = 1_000_000
WARM_LAPS, MEASURED_LAPS = 2, 6
SIDES = {"one clock": "batched", "laps": "partitioned"}


def hot(count, partitions, usage):
    return (f"hot {count} of {partitions}, usage {usage}", "m6i-metal",
            {"partitions": partitions, "buffers": 65536, "backends": 64,
             "load.hot": count, "load.usage": usage})


def of_machine(name, nodes, cores):
    common = {"partitions": nodes, "buffers": 131072}
    yield "all busy", name, {**common, "backends": cores}
    yield (f"one busy node of {nodes}", name,
           {**common, "backends": cores // nodes, "placement": "compact"})
    yield "one busy backend", name, {**common, "backends": 1}
    yield ("the busy node changes every 2 ms", name,
           {**common, "backends": cores, "load.busy_nodes": 1,
            "load.shift_ps": 2_000_000_000})


def scenarios(quick):
    found = [hot(count, partitions, usage) for count, partitions
             in ((1, 2), (1, 4), (3, 16)) for usage in (1, 2, 3, 5)]
    found += of_machine("m6i-metal", 2, 64)
    if not quick:
        found += of_machine("hb176", 4, 192)
        found += of_machine("r8i-metal-96xl", 6, 192)
    return found


def play(simulator, name, strategy, settings):
    answer = simulator.run({
        **machine.named(name).config(), "load": "uneven",
        "load.work_ps": WORK_PS, "strategy": strategy,
        "placement": "scatter", "jitter_percent": 10, "bgwriter_ms": 1,
        "warmup": WARM_LAPS * settings["buffers"],
        "allocations": MEASURED_LAPS * settings["buffers"], **settings})
    found = {"allocations_per_s": answer["allocations_per_s"]}
    keys = ("share_error", "laps_apart", "local_percent", "hot_percent")
    found.update((key, answer.results[key]) for key in keys
                 if key in answer.results)
    return found


def balance(simulator, quick):
    rows = []
    for what, name, settings in scenarios(quick):
        sides = {side: play(simulator, name, strategy, settings)
                 for side, strategy in SIDES.items()}
        rows.append({"scenario": what, "machine": name, "sides": sides})
        report.progress(f"{name}, {what}")
    return {"rows": rows}


def table(data):
    """One clock has no partitions, so only its rate is compared."""
    rows = []
    for row in data["rows"]:
        clock, laps = row["sides"]["one clock"], row["sides"]["laps"]
        former = row["sides"].get("plan")
        rows.append([
            row["machine"], row["scenario"],
            f"{former['share_error']:.1f}" if former else "-",
            f"{laps['share_error']:.2f}", f"{laps['laps_apart']:.3f}",
            f"{laps['local_percent']:.1f} %",
            f"{laps['allocations_per_s'] / clock['allocations_per_s']:.2f}"])
    return tables.table(
        ["machine", "load", "share off, points: plan", "laps",
         "hands apart, laps", "local", "rate to one clock"], rows)
