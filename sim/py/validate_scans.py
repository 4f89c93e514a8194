"""Against Vondra's table of concurrent scans (row by row; fitted cells apart)."""

from statistics import median

from bench.lib import report

from . import baselines, fit, machine, published, scans

# What the errors may be at most: of tps in cells that were not fitted, and of
# the ratios to master.
TPS_MEDIAN, TPS_MOST = 0.10, 0.25
RATIO_MEDIAN, RATIO_MOST = 0.08, 0.20
NEAR_LIMIT = 0.98               # of the bandwidth: bound by it
PLACED_CLIENTS = (8, 24, 64, 128)
QUICK_CLIENTS = (8, 24, 64, 96, 128)


def percent(value):
    return f"{100 * value:+.1f} %"


def show_progress(done, of):
    if done % 24 == 0 or done == of:
        report.progress(f"scans: {done} of {of}")


class Comparison:
    def __init__(self, simulator, quick):
        self.here = machine.named(published.fit_plan()["machine"])
        self.numbers, self.fitted = fit.fit(simulator, self.here)
        self.table = dict(scans.cells())
        cells = list(self.table)
        if quick:
            cells = [cell for cell in cells if cell[0] in QUICK_CLIENTS]
        self.cells = cells
        self.predicted = scans.simulate(simulator, self.here, cells,
                                        self.numbers, show_progress)
        self.held_out = [cell for cell in cells if cell not in self.fitted]
        self.rivals = {
            "simulated": self.predicted,
            "constant": {cell: value for cell, value
                         in baselines.constant(self.table).items()
                         if cell in cells},
            "roofline": {cell: value for cell, value
                         in baselines.roofline(self.table,
                                               self.fitted).items()
                         if cell in cells}}
        self.placed = self.placements(simulator)

    def shown(self):
        return {cell: self.table[cell] for cell in self.cells}

    def tps_errors(self, who):
        return baselines.errors(self.table, self.rivals[who], self.held_out)

    def ratio_errors(self, who):
        theirs = baselines.ratios(self.shown())
        ours = baselines.ratios(self.rivals[who])
        return [abs(ours[cell] / theirs[cell] - 1) for cell in theirs]

    def knees(self, who, knee=baselines.knee):
        """Clients at the knee, published and predicted, by column."""
        return {column: (knee(self.shown(), column),
                         knee(self.rivals[who], column))
                for column in scans.COLUMNS}

    def bound_by_bandwidth(self):
        """Cells that are as fast as the fitted bandwidth lets them be."""
        limit = (self.here.nodes() * self.numbers["bandwidth_bytes_per_s"]
                 / scans.PAGE_BYTES / scans.PUBLISHED_PAGES)
        return [cell for cell in self.held_out
                if self.predicted[cell] >= NEAR_LIMIT * limit]

    def placements(self, simulator):
        """The same with other placements, of some clients."""
        cells = [cell for cell in self.cells if cell[0] in PLACED_CLIENTS]
        found = {}
        for placement in scans.OTHER_PLACEMENTS:
            placed = scans.simulate(simulator, self.here, cells, self.numbers,
                                    placement=placement)
            for cell, tps in placed.items():
                found[cell, placement] = tps
        return found

    def knee_steps(self, who):
        """How many steps of the table the worst knee is off."""
        steps = sorted({clients for clients, _ in self.cells})
        return max(abs(steps.index(a) - steps.index(b))
                   for a, b in self.knees(who).values())

    # ---- what is shown ----

    def show(self):
        rows = []
        for clients in sorted({clients for clients, _ in self.cells}):
            row = [str(clients)]
            for column in scans.COLUMNS:
                cell = clients, column
                mark = "*" if cell in self.fitted else ""
                errors = [self.rivals[who][cell] / self.table[cell] - 1
                          for who in self.rivals]
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

    def show_summary(self):
        rows = []
        for who in self.rivals:
            tps, ratio = self.tps_errors(who), self.ratio_errors(who)
            knees = "; ".join(
                ", ".join(f"{theirs}/{ours}" for theirs, ours
                          in self.knees(who, knee).values())
                for knee in (baselines.knee, baselines.knee_of_plateau))
            rows.append((who, f"{100 * median(tps):.1f} / {100 * max(tps):.1f}",
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
        bound = self.bound_by_bandwidth()
        if bound:
            others = [cell for cell in self.held_out if cell not in bound]
            rest = baselines.errors(self.table, self.predicted, others)
            report.say(f"{len(bound)} of {len(self.held_out)} cells that were"
                       " not fitted are what the fitted bandwidth allows, and"
                       " predict nothing else; of the others, the median error"
                       f" is {100 * median(rest):.1f} %, the largest"
                       f" {100 * max(rest):.1f} %")
        self.show_placements()

    def show_placements(self):
        cells = sorted({cell for cell, _ in self.placed})
        report.table(["clients", "", "published", scans.PLACEMENT,
                      *scans.OTHER_PLACEMENTS],
                     [(*map(str, cell), self.table[cell],
                       f"{self.predicted[cell]:.1f}",
                       *(f"{self.placed[cell, placement]:.1f}"
                         for placement in scans.OTHER_PLACEMENTS))
                      for cell in cells],
                     "Where the clients run was not published; simulated:")

    def rows(self):
        for (cell, placement), tps in self.placed.items():
            yield published.result_row(
                "scans_tps_placed", f"{cell[0]} clients, {cell[1]}",
                placement, tps, self.table[cell])
        for cell, value in self.table.items():
            if cell not in self.predicted:
                continue
            where = f"{cell[0]} clients, {cell[1]}"
            yield published.result_row("scans_tps", where, "published", value)
            for who, predicted in self.rivals.items():
                side = who + (", fitted" if cell in self.fitted else "")
                yield published.result_row("scans_tps", where, side,
                                           predicted[cell], value)

    def wanted(self):
        tps, ratio = self.tps_errors("simulated"), self.ratio_errors("simulated")
        off = self.knee_steps("simulated")
        yield (median(tps) <= TPS_MEDIAN and max(tps) <= TPS_MOST,
               f"scans, tps: median error {100 * median(tps):.1f} %, largest"
               f" {100 * max(tps):.1f} %; at most {100 * TPS_MEDIAN:.0f} and"
               f" {100 * TPS_MOST:.0f} wanted")
        yield (median(ratio) <= RATIO_MEDIAN and max(ratio) <= RATIO_MOST,
               f"scans, ratios to master: median error"
               f" {100 * median(ratio):.1f} %, largest"
               f" {100 * max(ratio):.1f} %; at most {100 * RATIO_MEDIAN:.0f}"
               f" and {100 * RATIO_MOST:.0f} wanted")
        yield (off <= 1, f"scans, knees: {off} steps off at worst, at most 1"
                         " wanted")
