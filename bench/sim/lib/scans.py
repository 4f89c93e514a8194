"""The published table of concurrent scans: configurations of the simulator,
and what its answers mean in its units."""

from . import published

COLUMNS = {
    # 18's master of that day did as stock does
    "master": {"strategy": "stock"},
    "numa": {"strategy": "partitioned_seed", "partitions": 4},
    "numa_16": {"strategy": "partitioned_seed", "partitions": 16},
}
# A table of 1 GB has so many pages; a transaction is its scan.
PUBLISHED_PAGES = 131072

# Ours, per table: a pool per client of 307 buffers, 19 times what a client has
# pinned at once.  Four times as many change a cell by less than 2 %.
PAGES = 512
POOL_PERCENT = 60
# Allocated before and while it is measured, in whole tables of every client.
WARM_SCANS = 2
MEASURED_SCANS = 2


def cells():
    """((clients, column), published tps), of the whole table."""
    return [((row["clients"], column), row[column])
            for row in published.read("vondra") for column in COLUMNS]


def config(machine, cell, numbers, pages=PAGES, seed=1):
    """numbers: page_ps, latency_percent and bandwidth_bytes_per_s."""
    clients, column = cell
    values = machine.config()
    values["machine.bandwidth_bytes_per_s"] = numbers["bandwidth_bytes_per_s"]
    return {**values, "load": "scans", "load.pages": pages,
            "load.page_ps": numbers["page_ps"],
            "load.pool_percent": POOL_PERCENT,
            "latency_percent": numbers["latency_percent"],
            **COLUMNS[column], "seed": seed, "placement": "scatter",
            "backends": clients,
            "buffers": pages * clients * POOL_PERCENT // 100,
            "warmup": pages * clients * WARM_SCANS,
            "allocations": pages * clients * MEASURED_SCANS}


def tps(answer):
    return (answer.results["pages"] / PUBLISHED_PAGES
            / (answer["elapsed_ps"] * 1e-12))
