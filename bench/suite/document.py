"""The report of the suite, made from the results of its scenarios."""

import re

from bench.lib import plot, rows, stats
from bench.suite.scenarios import HIGHER, VERDICT_ROUNDS

DONE = "done"
LOG_LINES = 8                   # of a failed bench
LEAST_POINTS = 3                # of a line; fewer are drawn one by one
BETTER, WORSE = "better", "worse"
NO_DIFFERENCE = "no difference shown"
TOO_FEW = "too few rounds"


def verdict(row, better, control=None):
    """Of a row: BETTER, WORSE, NO_DIFFERENCE (the interval contains 1),
    TOO_FEW; None if it has no ratio. control: the row of the baseline's second
    side; its interval is no difference, either."""
    if row["ratio"] is None:
        return None
    if row["rounds"] < VERDICT_ROUNDS:
        return TOO_FEW
    low = high = 1
    if control is not None and control["ratio"] is not None:
        low = min(low, control["ratio_low"])
        high = max(high, control["ratio_high"])
    if row["ratio_low"] <= high and row["ratio_high"] >= low:
        return NO_DIFFERENCE
    return BETTER if (row["ratio"] > 1) == (better == HIGHER) else WORSE


class Section:
    """One scenario in the report. status: DONE, or why there is no result."""

    def __init__(self, folder, scenario, plan, status, seconds):
        self.folder = folder
        self.scenario = scenario
        self.plan = plan
        self.status = status
        self.seconds = seconds
        self.rows = {}
        if status == DONE:
            self.rows = {(row["metric"], row["configuration"], row["side"]):
                         row for row in
                         rows.read(folder / f"{scenario.name}.json")}

    def wheres(self, metric, pattern=""):
        return list(dict.fromkeys(where for name, where, _ in self.rows
                                  if name == metric
                                  and re.search(pattern, where)))

    def compared(self):
        """The sides with ratios: the control first, the judged ones next."""
        found = dict.fromkeys(side for _, _, side in self.rows)
        first = [self.scenario.control, *self.scenario.sides]
        return [*(side for side in first if side in found),
                *(side for side in found
                  if side not in (*first, self.scenario.baseline))]

    def judged(self, row, better):
        return verdict(row, better, self.rows.get(
            (row["metric"], row["configuration"], self.scenario.control)))

    def summary(self):
        """Rows of the summary's table."""
        scenario = self.scenario
        link = f"[{scenario.name}](#{scenario.name})"
        if self.status != DONE:
            yield link, "-", "-", "-", self.status, scenario.thread.found
            return
        metric, title, better, _ = scenario.metrics[0]
        for side in scenario.sides:
            found = [row for where in self.wheres(metric)
                     if (row := self.rows.get((metric, where, side)))
                     and row["ratio"] is not None]
            if found:
                words = [self.judged(row, better) for row in found]
                ratios = [row["ratio"] for row in found]
                yield (link, f"{side}, to {scenario.baseline}",
                       f"{title} ({better} is better)",
                       f"{min(ratios):.3f} .. {max(ratios):.3f}",
                       "; ".join(f"{word} ({words.count(word)})"
                                 for word in dict.fromkeys(words)),
                       scenario.thread.found)

    def lines(self):
        scenario = self.scenario
        name = scenario.name
        arguments = " ".join(map(str, self.plan.arguments))
        yield f"## {name}\n"
        yield f"{scenario.what[0].upper()}{scenario.what[1:]}.\n"
        yield (f"Alone: `bench/run {scenario.bench} {arguments}`;"
               f" {self.seconds / 60:.1f} minutes.\n")
        if self.status != DONE:
            yield f"**{self.status}**\n"
            log = self.folder / f"{name}.log"
            if log.exists():
                last = log.read_text(errors="replace").splitlines()
                yield "\n".join(["```", *last[-LOG_LINES:], "```", ""])
        else:
            for metric in scenario.metrics:
                yield from self.metric_table(*metric)
            self.draw()
            yield f"![{scenario.what}]({name}.png)\n"
            yield (f"[SVG]({name}.svg), [JSON]({name}.json),"
                   f" [CSV]({name}.csv), [output]({name}.txt)\n")
        thread = scenario.thread
        yield (f"From {thread.source}; on: {thread.machine}. Ratio there:"
               f" {thread.found}.\n")

    def metric_table(self, metric, title, better, digits):
        wheres = self.wheres(metric, self.scenario.shown)
        if not wheres:
            return
        others = [side for side in self.compared()
                  if any((metric, where, side) in self.rows
                         for where in wheres)]
        body = []
        for where in wheres:
            base = self.rows.get((metric, where, self.scenario.baseline))
            body.append((where, f"{base['median']:,.{digits}f}" if base
                         else "-", *(self.cell(self.rows.get(
                             (metric, where, side)), better, digits)
                             for side in others)))
        yield f"{title[0].upper()}{title[1:]} ({better} is better):\n"
        yield table(["", self.scenario.baseline, *(
            f"{side} (control)" if side == self.scenario.control else side
            for side in others)], body)

    def cell(self, row, better, digits):
        """A ratio, or the figure itself if there is nothing to compare with."""
        if row is None:
            return "-"
        if row["ratio"] is None:
            return f"{row['median']:,.{digits}f}"
        text = stats.with_interval(row["ratio"], row["ratio_low"],
                                   row["ratio_high"])
        if row["side"] == self.scenario.control:
            return text
        word = self.judged(row, better)
        return text + (f" **{word}**" if word in (BETTER, WORSE)
                       else f" {word}")

    # -- the picture: ratios over the number of clients or whatever x is

    def draw(self):
        metric, title, better, _ = self.scenario.metrics[0]
        groups = {}
        for where in self.wheres(metric, self.scenario.shown):
            match = re.search(self.scenario.x, where)
            rest = re.sub(self.scenario.x, "", where).strip(", ")
            for side in self.compared():
                row = self.rows.get((metric, where, side))
                if row and row["ratio"] is not None:
                    groups.setdefault(rest.replace(", , ", ", "), []).append(
                        (int(match.group(1)), side, row))
        title = f"{title}, ratio to {self.scenario.baseline}"
        panels = []
        for rest, points in groups.items():
            # a logarithmic axis has no place for 0
            points = [point for point in points if point[0]]
            if len({x for x, *_ in points}) < LEAST_POINTS:
                panels.append(plot.Ratios(f"{rest}: {title}", [
                    (f"{row['configuration']}, {side}", row["ratio"],
                     row["ratio_low"], row["ratio_high"], side)
                    for _, side, row in points]))
                continue
            series = {}
            for x, side, row in points:
                series.setdefault(side, []).append(
                    (x, row["ratio"], row["ratio_low"], row["ratio_high"]))
            panels.append(plot.Lines(
                f"{rest}: {title}" if rest else title, series,
                re.search(r"[a-z]+", self.scenario.x[6:]).group(),
                f"ratio ({better} is better)", reference=1))
        plot.write(self.folder / self.scenario.name, panels,
                   quiet=(self.scenario.control,))


def table(headings, body):
    def line(cells):
        return "| " + " | ".join(str(cell).replace("|", "\\|")
                                 for cell in cells) + " |\n"

    return "".join([line(headings), line(["---"] * len(headings)),
                    *map(line, body)])


def write(path, head, machine, sections):
    """head: lines for the top."""
    bad = [section.scenario.name for section in sections
           if section.status != DONE]
    summary = [row for section in sections for row in section.summary()]
    lines = ["# Benches of the threads' workloads\n", *head]
    if bad:
        lines.append(f"**Not all scenarios have results: {', '.join(bad)}.**\n")
    lines += [
        "## Machine\n", table(["", ""], machine), "## Summary\n",
        table(["scenario", "side, to what", "ratio of", "from .. to",
               "verdicts", "in the thread"], summary),
        "Ratios are medians of the rounds' ratios, with their bootstrap"
        f" interval ({stats.SHARE:.0%}) in brackets. *{BETTER}* and *{WORSE}*:"
        " the interval is wholly on one side of 1 and of the control's interval"
        " (the stock server a second time, if there is one)."
        f" *{NO_DIFFERENCE}*: it is not; there may be one. *{TOO_FEW}*: below"
        f" {VERDICT_ROUNDS}, no interval can cover {stats.SHARE:.0%}. One in"
        f" {1 / (1 - stats.SHARE):.0f} intervals misses by chance.\n"]
    for section in sections:
        lines += section.lines()
    path.write_text("\n".join(lines).rstrip() + "\n")
