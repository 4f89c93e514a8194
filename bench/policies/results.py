"""Results of the bench: a data file, tables of it, and a picture.

The file is JSON: {"traces": {name: {"title", "references", "pages", "sample",
"warm"}}, "by": {name: {policy: program}}, "misses": {name: {policy: {pool: misses}}}}.
A pool is in percent of the trace's pages. The first "warm" references are not
counted. A program has a version, ours a part of the hash of its source files."""

import json

from bench.lib import plot
from bench.lib.paths import BenchError

from .play import BASELINE, OURS

CURVES = (BASELINE, "clock2q", "LRU", "S3-FIFO", "ARC", "W-TinyLFU", "Belady")
TITLES = {"clock2q": "**clock2q**", "clock2q-8": "clock2q, 8 backends",
          "batched-8": "batched, 8 backends", "Belady": "Belady's optimum"}
LIMIT = 1.02                    # of the clock's misses, that clock2q may have
GOOD = 0.90                     # what half of the small pools should reach
SMALL = 20                      # a pool of at most this, in percent


class Results:
    def __init__(self, data=None):
        data = data or {"traces": {}, "by": {}, "misses": {}}
        self.traces, self.by, self.misses = (data["traces"], data["by"],
                                             data["misses"])

    def add_trace(self, name, title, trace, warm):
        if name in self.traces:
            raise BenchError(f"two traces are called {name}")
        self.traces[name] = {"title": title, "references": len(trace),
                             "pages": trace.count, "sample": trace.sample,
                             "warm": warm}
        self.by[name], self.misses[name] = {}, {}

    def add(self, name, policy, program, misses):
        self.by[name][policy] = program
        self.misses[name][policy] = {str(pool): count
                                     for pool, count in misses.items()}

    def write(self, path):
        """One line for each trace, and each policy on it."""
        lines = [f" {json.dumps(name)}: {json.dumps(about)}"
                 for name, about in self.traces.items()]
        by = [f" {json.dumps(name)}: {json.dumps(programs)}"
              for name, programs in self.by.items()]
        parts = []
        for name, policies in self.misses.items():
            rows = [f"  {json.dumps(policy)}: {json.dumps(misses)}"
                    for policy, misses in policies.items()]
            parts.append(f" {json.dumps(name)}: {{\n" + ",\n".join(rows) + "}")
        path.write_text('{"traces": {\n' + ",\n".join(lines)
                        + '},\n"by": {\n' + ",\n".join(by)
                        + '},\n"misses": {\n' + ",\n".join(parts) + "}}\n")

    def ratio(self, name, policy, pool):
        """Misses to the clock's; None if that was not played, or has none."""
        clock = self.misses[name].get(BASELINE, {}).get(pool)
        misses = self.misses[name].get(policy, {}).get(pool)
        return misses / clock if clock and misses is not None else None

    def pools(self):
        found = {pool for policies in self.misses.values()
                 for misses in policies.values() for pool in misses}
        return sorted(found, key=int)

    def policies(self):
        return list(dict.fromkeys(policy for policies in self.misses.values()
                                  for policy in policies))

    # -- tables

    def markdown(self):
        yield from self.table_of("clock2q")
        yield from self.verdict("clock2q")
        for name in self.traces:
            if set(self.misses[name]) - set(OURS):
                yield from self.table_on(name)

    def row(self, title, name, policy):
        cells = [self.ratio(name, policy, pool) for pool in self.pools()]
        return f"| {title} | " + " | ".join(
            "" if cell is None else f"{cell:.3f}" for cell in cells) + " |"

    def heading(self, title):
        yield f"| {title} | " + " | ".join(f"{pool} %"
                                           for pool in self.pools()) + " |"
        yield "|---" * (len(self.pools()) + 1) + "|"

    def table_of(self, policy):
        """One policy on all traces."""
        yield from self.heading(policy)
        for name, about in self.traces.items():
            if policy in self.misses[name]:
                yield self.row(about["title"], name, policy)
        yield ""

    def table_on(self, name):
        """All policies on one trace."""
        yield from self.heading(self.traces[name]["title"])
        for policy in self.policies():
            if policy in self.misses[name] and policy != BASELINE:
                yield self.row(TITLES.get(policy, policy), name, policy)
        yield ""

    def verdict(self, policy):
        cells = [(self.ratio(name, policy, pool), int(pool))
                 for name in self.traces for pool in self.pools()]
        all_ = [ratio for ratio, _ in cells if ratio is not None]
        small = [ratio for ratio, pool in cells
                 if ratio is not None and pool <= SMALL]
        if all_ and small:
            yield (f"{policy}: {sum(ratio > LIMIT for ratio in all_)} of"
                   f" {len(all_)} cells are above {LIMIT}, the worst is"
                   f" {max(all_):.3f};"
                   f" {sum(ratio <= GOOD for ratio in small)} of {len(small)}"
                   f" up to {SMALL} % are at most {GOOD:.2f}.")
            programs = dict.fromkeys(program for played in self.by.values()
                                     for program in played.values())
            yield f"Played by: {'; '.join(programs)}."
            yield ""

    # -- picture

    def panels(self):
        """Miss-ratio curves, one panel for each trace."""
        for name, about in self.traces.items():
            counted = about["references"] - about["warm"]
            series = {policy: [(int(pool), 100 * count / counted) for pool, count
                               in self.misses[name][policy].items()]
                      for policy in CURVES if policy in self.misses[name]}
            yield plot.Lines(about["title"], series,
                             "buffers, % of the pages (logarithmic)",
                             "misses, %", log_y=all(
                                 y > 0 for line in series.values()
                                 for _, y in line))


def read(path):
    try:
        data = json.loads(path.read_text())
        return Results({part: data[part] for part in ("traces", "by", "misses")})
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}")
    except (ValueError, KeyError, TypeError):
        raise BenchError(f"{path} has no results of bench/run policies")


def merged(files):
    """The results of several files, each with traces of its own, or with other
    policies on the same ones."""
    whole = Results()
    for path in files:
        part = read(path)
        for name, about in part.traces.items():
            if whole.traces.setdefault(name, about) != about:
                raise BenchError(f"{path} has another trace called {name}")
            whole.by.setdefault(name, {}).update(part.by[name])
            whole.misses.setdefault(name, {}).update(part.misses[name])
    return whole
