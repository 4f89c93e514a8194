"""Against Vondra's table of concurrent scans."""

from statistics import median

from bench.lib import report

from . import baselines, fit, machine, published, scans

# What the errors may be at most: of tps in cells that were not fitted, and of
# the ratios to master
TPS_MEDIAN, TPS_MOST = 0.10, 0.25
RATIO_MEDIAN, RATIO_MOST = 0.08, 0.20
NEAR_LIMIT = 0.98               # of the bandwidth: bound by it
PLACED_CLIENTS = (8, 24, 64, 128)
QUICK_CLIENTS = (8, 24, 64, 96, 128)


def show_progress(done, of):
    if done % 24 == 0 or done == of:
        report.progress(f"scans: {done} of {of}")


class Comparison:
    def __init__(self, simulator, quick):
        self.here = machine.named(published.plan("fit")["machine"])
        self.numbers, self.fitted = fit.fit(simulator, self.here)
        self.table = dict(scans.cells())
        self.cells = [cell for cell in self.table
                      if not quick or cell[0] in QUICK_CLIENTS]
        self.held_out = [cell for cell in self.cells
                         if cell not in self.fitted]
        self.predicted = scans.simulate(simulator, self.here, self.cells,
                                        self.numbers, show_progress)
        self.rivals = {
            "simulated": self.predicted,
            "constant": baselines.constant(self.table),
            "roofline": baselines.roofline(self.table, self.fitted)}
        self.placed = {
            placement: scans.simulate(
                simulator, self.here,
                [cell for cell in self.cells if cell[0] in PLACED_CLIENTS],
                self.numbers, placement=placement)
            for placement in scans.OTHER_PLACEMENTS}

    def some(self, table):
        return {cell: table[cell] for cell in self.cells}

    def tps_errors(self, rival):
        return baselines.errors(self.table, self.rivals[rival], self.held_out)

    def ratio_errors(self, rival):
        theirs = baselines.ratios(self.some(self.table))
        ours = baselines.ratios(self.some(self.rivals[rival]))
        return baselines.errors(theirs, ours, theirs)

    def knees(self, rival, knee=baselines.knee):
        """Clients at the knee, published and predicted, by column."""
        return {column: (knee(self.some(self.table), column),
                         knee(self.some(self.rivals[rival]), column))
                for column in scans.COLUMNS}

    def knee_steps(self, rival):
        """How many steps of the table the worst knee is off."""
        steps = sorted({clients for clients, _ in self.cells})
        return max(abs(steps.index(a) - steps.index(b))
                   for a, b in self.knees(rival).values())

    def bound_by_bandwidth(self):
        """Cells that are as fast as the fitted bandwidth lets them be."""
        limit = (self.here.nodes() * self.numbers["bandwidth_bytes_per_s"]
                 / scans.PAGE_BYTES / scans.PUBLISHED_PAGES)
        return [cell for cell in self.held_out
                if self.predicted[cell] >= NEAR_LIMIT * limit]

    # ---- what is shown ----

    def show(self):
        rows = []
        for clients in sorted({clients for clients, _ in self.cells}):
            row = [str(clients)]
            for column in scans.COLUMNS:
                cell = clients, column
                mark = "*" if cell in self.fitted else ""
                errors = [found[cell] / self.table[cell] - 1
                          for found in self.rivals.values()]
                row += [f"{self.table[cell]}{mark}",
                        f"{self.predicted[cell]:.1f}",
                        " / ".join(f"{100 * error:+.0f}" for error in errors)]
            rows.append(row)
        heads = ["clients"]
        for column in scans.COLUMNS:
            heads += [column, "simulated", "error, %"]
        report.table(heads, rows, "Concurrent scans, tps (* fitted); errors of:"
                                  " simulation / constant / roofline")
        self.show_summary()
        report.table(["clients", "", "published", scans.PLACEMENT,
                      *self.placed],
                     [(*cell, self.table[cell], f"{self.predicted[cell]:.1f}",
                       *(f"{placed[cell]:.1f}"
                         for placed in self.placed.values()))
                      for cell in self.placed["random"]],
                     "Where the clients ran was not published; simulated:")

    def show_summary(self):
        rows = []
        for rival in self.rivals:
            tps, ratio = self.tps_errors(rival), self.ratio_errors(rival)
            knees = "; ".join(
                ", ".join(f"{theirs}/{ours}" for theirs, ours
                          in self.knees(rival, knee).values())
                for knee in (baselines.knee, baselines.knee_of_plateau))
            rows.append((rival, f"{100 * median(tps):.1f} / {100 * max(tps):.1f}",
                         f"{100 * median(ratio):.1f} / {100 * max(ratio):.1f}",
                         knees))
        report.table(["", "tps, median / max %", "ratio, median / max %",
                      "knees, published/predicted: of largest; of plateau"],
                     rows,
                     f"Errors of {len(self.held_out)} cells that were not"
                     f" fitted, and of {len(self.ratio_errors('simulated'))}"
                     " ratios")
        report.say()
        report.say("fitted: " + ", ".join(f"{key} = {value:,}" for key, value
                                          in self.numbers.items()))
        report.say(f"{len(self.bound_by_bandwidth())} of {len(self.held_out)}"
                   " cells that were not fitted are at the fitted bandwidth")

    def data(self):
        return {"numbers": self.numbers,
                "cells": [[*cell, self.table[cell], value,
                           "fitted" if cell in self.fitted else "predicted"]
                          for cell, value in self.predicted.items()],
                "placed": [[*cell, placement, value]
                           for placement, placed in self.placed.items()
                           for cell, value in placed.items()]}

    def wanted(self):
        tps, ratio = self.tps_errors("simulated"), self.ratio_errors("simulated")
        off = self.knee_steps("simulated")
        for what, found, middle, most in (
                ("tps", tps, TPS_MEDIAN, TPS_MOST),
                ("ratios to master", ratio, RATIO_MEDIAN, RATIO_MOST)):
            yield (median(found) <= middle and max(found) <= most,
                   f"scans, {what}: median error {100 * median(found):.1f} %,"
                   f" largest {100 * max(found):.1f} %; at most"
                   f" {100 * middle:.0f} and {100 * most:.0f} wanted")
        yield (off <= 1, f"scans, knees: {off} steps off at worst, at most 1"
                         " wanted")
