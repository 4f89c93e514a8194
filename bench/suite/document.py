"""The report of all scenarios, made from what their benches have written: from
the folder with suite.json and the JSON of each scenario, nothing else, so it can
be made again at any time (bench/suite/run --report)."""

import json
import re
import shutil

import pictures
from bench.lib import paths, results, rows, stats
from scenarios import SCENARIOS

STATE = "suite.json"
NAME = "report.md"
DONE = "done"
LOG_LINES = 8                   # of a failed bench


def read_state(folder):
    path = folder / STATE
    try:
        return json.loads(path.read_text())
    except OSError as error:
        raise paths.BenchError(f"cannot read {path}: {error.strerror}")
    except ValueError as error:
        raise paths.BenchError(f"{path} is not JSON: {error}")


def write(folder, state):
    """report.md and its pictures; returns the path of the first."""
    sections = []
    summary = []
    for run in state["scenarios"]:
        scenario = SCENARIOS.get(run["name"])
        if scenario is None:
            raise paths.BenchError(f"{folder / STATE} has a scenario"
                                   f" {run['name']!r}, which there is not")
        found = (rows.read(folder / f"{scenario.name}.json")
                 if run["status"] == DONE else None)
        sections += section(folder, scenario, run, found and Found(found))
        summary += summary_rows(scenario, run, found and Found(found))
    lines = [*head(state), "## Summary", "",
             *table(["scenario", "side, to what", "configurations", "ratio of",
                     "from .. to", "what is shown", "in the thread"], summary),
             "", *reading(summary), *sections, *simulator(folder)]
    path = folder / NAME
    fresh = folder / f"{NAME}.new"
    fresh.write_text("\n".join(lines).rstrip() + "\n")
    fresh.replace(path)
    return path


class Found:
    """Rows of a result, by what they are of."""

    def __init__(self, found):
        self.rows = {(row["metric"], row["configuration"], row["side"]): row
                     for row in found}

    def row(self, metric, where, side):
        return self.rows.get((metric, where, side))

    def configurations(self, metric, pattern=""):
        return list(dict.fromkeys(where for name, where, _ in self.rows
                                  if name == metric
                                  and re.search(pattern, where)))

    def sides(self):
        return list(dict.fromkeys(side for _, _, side in self.rows))


# ---- Markdown


def table(headings, body):
    def line(cells):
        return "| " + " | ".join(str(cell).replace("|", "\\|")
                                 for cell in cells) + " |"

    return [line(headings), line(["---"] * len(headings)), *map(line, body)]


def figure(value, digits=0):
    return "-" if value is None else f"{value:,.{digits}f}"


# ---- the top


def head(state):
    yield "# Benches of the threads' workloads"
    yield ""
    late = state["minutes"] and state["minutes_taken"] > 1.1 * state["minutes"]
    box = ("the quick form: it shows that everything works, not how fast"
           " anything is" if state["quick"] else
           f"time box {state['minutes']:g} minutes"
           + (", which the fewest rounds have no room in" if late else ""))
    yield f"{state['written']}; {state['minutes_taken']:.1f} minutes, {box}."
    yield ""
    yield (f"Factor {state['factor']:.4g}"
           f"{' (given)' if state['factor_given'] else ''}: 1 is a machine of"
           " 384 CPUs, 1 TB of memory and 512 GB of disk, on which scenarios"
           " have the threads' own sizes.")
    bad = [run["name"] for run in state["scenarios"]
           if run["status"] != DONE]
    if bad:
        yield ""
        yield f"**Not all scenarios have results: {', '.join(bad)}.**"
    yield ""
    yield "## Machine"
    yield ""
    yield from table(["", ""], state["machine"])
    yield ""


def summary_rows(scenario, run, found):
    if found is None:
        yield (link(scenario), "-", "-", "-", "-", run["status"],
               scenario.thread.found)
        return
    metric = scenario.metrics[0]
    for side in scenario.sides:
        cells = [(row, judged(scenario, found, metric, row))
                 for where in found.configurations(metric.name)
                 if (row := found.row(metric.name, where, side))
                 and row["ratio"] is not None]
        if not cells:
            continue
        ratios = [row["ratio"] for row, _ in cells]
        counts = {word: [verdict for _, verdict in cells].count(word)
                  for word in (results.BETTER, results.WORSE,
                               results.NO_DIFFERENCE, results.TOO_FEW)}
        shown = "; ".join(f"{word} ({count})" for word, count in counts.items()
                          if count)
        yield (link(scenario), f"{side}, to {scenario.baseline}", len(cells),
               f"{metric.title} ({metric.better} is better)",
               f"{min(ratios):.3f} .. {max(ratios):.3f}", shown,
               scenario.thread.found)


def link(scenario):
    return f"[{scenario.name}](#{scenario.name})"


def reading(summary):
    yield (f"Ratios are medians of the rounds' ratios, with their bootstrap"
           f" interval ({stats.SHARE:.0%}) in brackets. *{results.BETTER}* and"
           f" *{results.WORSE}*: the interval is wholly on one side of 1, and of"
           " the control's interval, where there is a control (the stock server"
           f" a second time). *{results.NO_DIFFERENCE}*: it is not, which does"
           f" not say that there is none. *{results.TOO_FEW}*: below"
           f" {results.LEAST_ROUNDS}, no interval can cover {stats.SHARE:.0%}.")
    counted = sum(cells for _, _, cells, *_ in summary
                  if isinstance(cells, int))
    if counted:
        yield ""
        yield (f"Of the {counted} intervals of the summary, one in"
               f" {1 / (1 - stats.SHARE):.0f} misses by chance: some"
               f" {counted * (1 - stats.SHARE):.1f}.")
    yield ""


# ---- a scenario


def judged(scenario, found, metric, row):
    control = (found.row(metric.name, row["configuration"], scenario.control)
               if scenario.control else None)
    return results.verdict(row, metric.better, control)


def section(folder, scenario, run, found):
    yield f"## {scenario.name}"
    yield ""
    yield f"{scenario.what[0].upper()}{scenario.what[1:]}."
    yield ""
    yield from table(["", ""], [
        *run["sizes"].items(),
        ("alone", f"`bench/{scenario.bench}/run"
         f" {' '.join(run['arguments'])}`"),
        ("took", f"{run['seconds'] / 60:.1f} minutes" if run["seconds"]
         else "-")])
    yield ""
    if found is None:
        yield f"**{run['status']}**"
        yield ""
        yield from log_lines(folder / f"{scenario.name}.log")
    else:
        for metric in scenario.metrics:
            yield from metric_table(scenario, found, metric)
        written = pictures.draw(folder / scenario.name, scenario, found)
        if written:
            yield f"![{scenario.what}]({scenario.name}.png)"
            yield ""
        yield ", ".join(f"[{name}]({scenario.name}{suffix})" for name, suffix
                        in (*((("SVG", ".svg"),) if written else ()),
                            ("JSON", ".json"), ("CSV", ".csv"),
                            ("what the bench printed", ".txt")))
        yield ""
    yield from thread_part(scenario, run, found)


def log_lines(path):
    if not path.exists():
        return
    yield "```"
    yield from path.read_text(errors="replace").splitlines()[-LOG_LINES:]
    yield "```"
    yield ""


def metric_table(scenario, found, metric):
    wheres = found.configurations(metric.name, scenario.shown)
    others = [side for side in found.sides() if side != scenario.baseline
              and any(found.row(metric.name, where, side) for where in wheres)]
    # the control first, the judged ones next
    others.sort(key=lambda side: (side != scenario.control,
                                  side not in scenario.sides,
                                  scenario.sides.index(side)
                                  if side in scenario.sides else 0))
    if not wheres:
        return
    body = []
    for where in wheres:
        base = found.row(metric.name, where, scenario.baseline)
        cells = [found.row(metric.name, where, side) for side in others]
        body.append((where, figure(base and base["median"], metric.digits),
                     max(row["rounds"] for row in (base, *cells) if row),
                     *(cell(scenario, found, metric, row) for row in cells)))
    yield f"{metric.title[0].upper()}{metric.title[1:]} ({metric.better} is better):"
    yield ""
    yield from table(["", scenario.baseline, "rounds", *(
        f"{side} (control)" if side == scenario.control else side
        for side in others)], body)
    yield ""
    if scenario.shown:
        yield ("There are more in the picture, and all in the JSON and the"
               " CSV.")
        yield ""


def cell(scenario, found, metric, row):
    """A ratio, or the figure itself where there is nothing to compare with."""
    if row is None:
        return "-"
    if row["ratio"] is None:
        return figure(row["median"], metric.digits)
    text = results.with_interval(row["ratio"], row["ratio_low"],
                                 row["ratio_high"])
    if row["side"] == scenario.control:
        return text
    word = judged(scenario, found, metric, row)
    return f"{text} " + (f"**{word}**" if word in (
        results.BETTER, results.WORSE) else word)


def thread_part(scenario, run, found):
    thread = scenario.thread
    yield f"From {thread.source()}; on: {thread.machine}."
    yield ""
    yield thread.said
    yield ""
    if not thread.figures:
        return
    metric = scenario.metrics[0]
    body = []
    for step, *figures in thread.figures:
        where = run["steps"].get(str(step))
        here = [found.row(metric.name, where, side) if found and where else None
                for side in scenario.sides]
        body.append((step, *map(thread_figure, figures), where or "-",
                     *(results.with_interval(
                         row["ratio"], row["ratio_low"], row["ratio_high"])
                       if row and row["ratio"] is not None else "-"
                       for row in here)))
    yield from table([*(f"there: {heading}" for heading in thread.headings),
                      "here", *scenario.sides], body)
    yield ""


def thread_figure(value):
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


# ---- what sim has left


def simulator(folder):
    """What it has written last, if it has run: it is no scenario, but belongs
    beside them."""
    source = paths.BENCH / "sim.json"
    drawn = sorted((paths.BENCH / "sim").glob("*.png"))
    if not source.exists() or not drawn:
        return
    for path in (source, source.with_suffix(".csv")):
        if path.exists():
            shutil.copyfile(path, folder / path.name)
    yield "## Simulator"
    yield ""
    yield ("Written last by `sim`: simulated figures beside the threads'."
           " Nothing of it was measured on this machine.")
    yield ""
    for path in drawn:
        for each in (path, path.with_suffix(".svg")):
            if each.exists():
                shutil.copyfile(each, folder / f"sim_{each.name}")
        yield f"![simulated and published: {path.stem}](sim_{path.name})"
        yield ""
    yield "[JSON](sim.json)"
    yield ""
