"""The published table of concurrent scans: configurations of the simulator,
and its answers in the units of the table."""

from statistics import mean

from bench.lib.paths import BenchError

from . import published

COLUMNS = {
    # master of that day was as stock
    "master": {"strategy": "stock"},
    "numa": {"strategy": "upstream_partitioned", "partitions": 4},
    "numa_16": {"strategy": "upstream_partitioned", "partitions": 16},
}
# Pages of a table of 1 GB; a transaction is its scan.
PUBLISHED_PAGES = 131072
PAGE_BYTES = 8192

# Simulated, per table: 307 buffers per client, 19 times what it has pinned
PAGES = 512
POOL_PERCENT = 60
# The background writer, which plans what each partition serves, has a cycle of
# 200 ms. In a pool that is smaller by 256, the hand goes round 256 times as
# often, and the cycle is 1 ms.
BGWRITER_MS = 1
# Its weights are half the old ones each time, so they have settled after six
# cycles. The warm-up is for ten, if clients ask for as many pages per millisecond
# as the fastest published ones.
CYCLES, LEAST_CYCLES = 10, 6
PAGES_PER_MS = 430
MOST_PAGES_PER_MS = 13000       # all clients together
# Allocated before and while it is measured, in whole tables of every client.
WARM_SCANS = 2
MEASURED_SCANS = 2
# Runs that differ by chance only give tps that differ by some per cent.
SEEDS = (1, 2, 3)
# On which nodes the clients ran was not published. All nodes in turn is assumed;
# what other placements would give is shown.
PLACEMENT = "scatter"
OTHER_PLACEMENTS = ("compact", "random")


def cells():
    """((clients, column), published tps), of the whole table."""
    return [((row["clients"], column), row[column])
            for row in published.read("vondra") for column in COLUMNS]


def warmup(clients, pages):
    rate = min(PAGES_PER_MS * clients, MOST_PAGES_PER_MS)
    return max(WARM_SCANS * pages * clients, CYCLES * BGWRITER_MS * rate)


def config(machine, cell, numbers, pages=PAGES, seed=1, placement=PLACEMENT):
    """numbers: page_ps, latency_percent and bandwidth_bytes_per_s"""
    clients, column = cell
    values = machine.config()
    values["machine.bandwidth_bytes_per_s"] = numbers["bandwidth_bytes_per_s"]
    return {**values, "load": "scans", "load.pages": pages,
            "load.page_ps": numbers["page_ps"],
            "load.pool_percent": POOL_PERCENT,
            "latency_percent": numbers["latency_percent"],
            **COLUMNS[column], "seed": seed, "placement": placement,
            "bgwriter_ms": BGWRITER_MS,
            "backends": clients,
            "buffers": pages * clients * POOL_PERCENT // 100,
            "warmup": warmup(clients, pages),
            "allocations": pages * clients * MEASURED_SCANS}


def tps(answer, cell=None):
    """Of a run in which the background writer has made its plan."""
    cycles = answer.results.get("bgwriter_cycles", 0)
    if cell and COLUMNS[cell[1]]["strategy"] != "stock" and (
            cycles < LEAST_CYCLES):
        raise BenchError(f"{cell}: the background writer had {cycles:.0f} cycles,"
                         f" at least {LEAST_CYCLES} are needed")
    return (answer.results["pages"] / PUBLISHED_PAGES
            / (answer["elapsed_ps"] * 1e-12))


def simulate(simulator, machine, cells, numbers,
             progress=lambda done, of: None, checked=True, **how):
    """Mean tps of each cell over the seeds; how: more of config()."""
    answers = simulator.run_all([config(machine, cell, numbers, seed=seed,
                                        **how)
                                 for cell in cells for seed in SEEDS],
                                progress)
    n = len(SEEDS)
    return {cell: mean(tps(answer, cell if checked else None)
                       for answer in answers[i * n:(i + 1) * n])
            for i, cell in enumerate(cells)}
