"""The simulator's pictures."""

from bench.lib import plot

NAMES = {"master": "stock", "numa": "4 partitions", "numa_16": "16 partitions"}


def scans_panels(found):
    """Published and simulated throughput of the concurrent scans."""
    tps, ratios = {}, {}
    for column, name in NAMES.items():
        cells = sorted(cell for cell in found.cells if cell[1] == column)
        for who, table in (("published", found.table),
                           ("simulated", found.predicted)):
            tps[f"{name}, {who}"] = [(cell[0], table[cell]) for cell in cells]
            if column != "master":
                ratios[f"{name}, {who}"] = [
                    (cell[0], table[cell] / table[cell[0], "master"])
                    for cell in cells]
    return [plot.Lines("Concurrent scans, 176 cores, 4 nodes", tps, "clients",
                       "scans of 1 GB a second"),
            plot.Lines("Ratio to stock", ratios, "clients", "ratio",
                       reference=1)]


def scans_picture(found, folder):
    folder.mkdir(parents=True, exist_ok=True)
    return plot.write(folder / "scans", scans_panels(found))
