"""Progress, tables and files."""

import csv
import json
import os
import shutil
import sys
import time

from ab import console
from ab.errors import UserError

from ab.analysis import BLOCKS_LEAST, CONFIDENCE
from ab.metrics import HEADLINE, METRICS

LINE_SECONDS = 10               # between two lines, without a terminal
BAR_WIDTH = 24
COLUMNS_LEAST = 40


class Progress:
    """A bar on a terminal, otherwise a line now and then; on stderr, as stdout
    has the result."""

    def __init__(self):
        self.bar = sys.stderr.isatty()
        self.plan = None
        self.began = None
        self.last = 0.0
        self.drawn = False

    def begin(self, plan):
        self.plan = plan
        self.began = time.monotonic()

    def show(self, block, place, name):
        count = len(self.plan.settings)
        done = (block + 1) * count + place
        total = (self.plan.blocks + 1) * count
        passed = time.monotonic() - self.began
        # a slice, and the switch before it
        each = max(self.plan.slice_seconds, passed / done if done else 0)
        left = clock(each * (total - done))
        what = ("warm-up" if block < 0
                else f"block {block + 1} of {self.plan.blocks}")
        if self.bar:
            filled = BAR_WIDTH * done // total
            text = (f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}]"
                    f" {100 * done // total:3} %, {left} left, {what}: {name}")
            width = max(COLUMNS_LEAST, shutil.get_terminal_size().columns - 1)
            sys.stderr.write(f"\r\033[K{text[:width]}")
            sys.stderr.flush()
            self.drawn = True
        elif passed - self.last >= LINE_SECONDS or done == 0:
            self.last = passed
            self.note(f"{what}, {left} left")

    def note(self, text):
        self.clear()
        console.progress(text)

    def clear(self):
        if self.drawn:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
            self.drawn = False


def clock(seconds):
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes}:{seconds:02}"


def number(value, digits):
    return "-" if value is None else f"{value:,.{digits}f}"


def ratio(row):
    if row["ratio"] is None:
        return "-"
    text = f"{row['ratio']:.3f}"
    if row["ratio_low"] is not None:
        text += f" [{row['ratio_low']:.3f} {row['ratio_high']:.3f}]"
    return text


def table(rows, names, title):
    by_key = {(row["metric"], row["side"]): row for row in rows}
    for name in names[1:]:
        cells = []
        for metric in METRICS.values():
            base, other = (by_key[metric.name, side]
                           for side in (names[0], name))
            cells.append((metric.title, number(base["median"], metric.digits),
                          number(other["median"], metric.digits),
                          ratio(other), other["verdict"] or "-"))
        console.table(["", names[0], name, "ratio [95 %]", "verdict"], cells,
                      title)
        title = None


def headline(rows, names, blocks):
    """The answer in a sentence for each setting."""
    for row in rows:
        if row["metric"] != HEADLINE or row["side"] == names[0]:
            continue
        if row["verdict"] is None:
            why = (f"{blocks} blocks are too few, {BLOCKS_LEAST} needed"
                   if blocks < BLOCKS_LEAST else
                   "see the note" if row["p"] is not None else
                   "transactions are not known")
            console.say(f"{row['side']} to {names[0]}: no verdict, {why}")
            continue
        console.say(f"{row['side']} to {names[0]}: {row['verdict']} in"
                    f" transactions/s: {100 * (row['ratio'] - 1):+.1f} %"
                    f" ({100 * (row['ratio_low'] - 1):+.1f} .."
                    f" {100 * (row['ratio_high'] - 1):+.1f} %, p ="
                    f" {row['p_corrected']:.4f})")
        totals = row["ratio_of_totals"]
        if totals is None:
            console.say("  all transactions together: there were none under"
                        f" {names[0]}")
            continue
        unlike = (", BUT a few slices differ from the others: see ab.png"
                  if not row["ratio_low"] <= totals <= row["ratio_high"]
                  else "")
        console.say(f"  all transactions together: {100 * (totals - 1):+.1f} %"
                    f"{unlike}")


def explain():
    console.say(f"""\
ratio: within a typical block (Hodges-Lehmann), with an interval of
{CONFIDENCE:.0%} for each metric by itself. Verdicts on all but transactions/s
are corrected for being many: an interval may leave out 1 with no difference
shown. -: not known.""")


def check_directory(directory):
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot create {directory}: {error.strerror};"
                        " --out names another folder")
    if not os.access(directory, os.W_OK):
        raise UserError(f"{directory} is not writable by this user; --out"
                        " names another folder")


def replace(path, write):
    """All of a file or nothing."""
    fresh = path.with_name(path.name + ".new")
    with open(fresh, "w", newline="") as file:
        write(file)
    fresh.replace(path)


def write(directory, rows, slices):
    def write_csv(file):
        values = [*METRICS, "transactions", "seconds"]
        writer = csv.writer(file)
        writer.writerow(["block", "place", "setting", "begin", "end", "used",
                         "note", *values])
        for s in slices:
            writer.writerow([s.block, s.place, s.setting, f"{s.begin:.6f}",
                             f"{s.end:.6f}", int(s.used), s.note,
                             *("" if s.values.get(name) is None
                               else s.values[name] for name in values)])

    replace(directory / "ab.json",
            lambda file: file.write(json.dumps(rows, indent=1) + "\n"))
    replace(directory / "ab.csv", write_csv)
