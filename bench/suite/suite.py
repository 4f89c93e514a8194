"""The workloads of the threads that pg_sweep comes from, in one report.

Each scenario is one of the other benches with arguments made from one factor
(--list prints them). The output folder gets report.md with tables and pictures,
and for each scenario the rows as JSON and CSV, the bench's output, and its
messages.

Scenarios after a failed one run nevertheless. Ctrl-C ends the running bench with
its servers; then the report has the results so far."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from bench.lib import paths, plot, report, runner, sides
from bench.lib.paths import BenchError
from bench.suite import document, machine, scenarios
from bench.suite.scenarios import SCENARIOS

MINUTES = 120.0                 # for at least 6 rounds of each on two CPUs
END_SECONDS = 120               # for a bench to end its servers
SUFFIXES = (".json", ".csv", ".txt", ".log", ".png", ".svg")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
NOT_RUN, INTERRUPTED = "not run", "interrupted"


class Interrupted(Exception):
    """args: the signal."""


def interrupt(signum, frame):
    # a second signal must not interrupt the end of the bench
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise Interrupted(signum)


class Bench(runner.Program):
    quick = "the smallest sizes, two rounds: shows that it works"

    @classmethod
    def add_options(cls, options):
        options.add("--minutes", None, help="time box; each scenario has a"
                    " share of it, by its weight", type=float,
                    default=f"{MINUTES:g}")
        options.parser.add_argument(
            "--factor", type=float, metavar="N",
            help="of all sizes (default: as large as the machine allows)")
        options.add("--only", tuple(SCENARIOS), choices=SCENARIOS)
        options.parser.add_argument(
            "--out", metavar="DIR", type=Path,
            help="folder of the report (default: build/bench/suite)")
        options.switch("--list", "only prints what would run")
        super().add_options(options)

    @staticmethod
    def finish(args, error):
        if args.factor is not None and not (scenarios.LEAST_FACTOR
                                            <= args.factor
                                            <= scenarios.MOST_FACTOR):
            error(f"--factor must be {scenarios.LEAST_FACTOR:g} to"
                  f" {scenarios.MOST_FACTOR}")
        if args.quick and args.minutes is not None:
            error("--quick has no time box")
        args.out = (args.out or paths.BENCH / "suite").absolute()

    def __init__(self, args):
        super().__init__(args)
        self.here = machine.this(paths.BENCH)
        self.factor = args.factor or (scenarios.LEAST_FACTOR if args.quick
                                      else scenarios.factor_of(self.here))
        self.minutes = None if args.quick else args.minutes or MINUTES
        self.chosen = [SCENARIOS[name] for name in SCENARIOS
                       if name in args.only]
        self.plans = {scenario.name: scenario.plan(
            self.factor, self.here, self.minutes and self.box(scenario))
            for scenario in self.chosen}

    def box(self, scenario):
        """Its share of the minutes."""
        return self.minutes * scenario.weight / sum(
            each.weight for each in self.chosen)

    def run(self):
        if self.args.list:
            self.list()
            return 0
        plot.need()
        servers = [paths.stock_server(self.args),
                   paths.patched_server(self.args)]
        sides.check_servers(*servers)
        self.clear()
        self.list()
        described = list(machine.describe(servers, paths.BENCH))
        began = time.monotonic()
        self.done = {}              # scenario: (status, seconds)
        status = self.run_all()
        sections = [document.Section(self.args.out, scenario,
                                     self.plans[scenario.name],
                                     *self.done.get(scenario, (NOT_RUN, 0)))
                    for scenario in self.chosen]
        path = self.args.out / "report.md"
        document.write(path, self.head((time.monotonic() - began) / 60),
                       described, sections)
        report.say(f"\nreport: {report.shown(path)}")
        bad = [f"{section.scenario.name} ({section.status})"
               for section in sections if section.status != document.DONE]
        if bad:
            report.say(f"without results: {'; '.join(bad)}")
        return status or (1 if bad else 0)

    def list(self):
        report.say(f"factor {self.factor:.4g}: {self.here.cpus} CPUs,"
                   f" {self.here.memory_mb} MB of memory available,"
                   f" {self.here.disk_mb} MB of disk free")
        for scenario in self.chosen:
            plan = self.plans[scenario.name]
            report.say(f"\n{scenario.name}: {scenario.what}")
            report.say(f"  bench/run {scenario.bench}"
                       f" {' '.join(map(str, plan.arguments))}")
            report.say(f"  needs {plan.memory_mb:.0f} MB of memory,"
                       f" {plan.disk_mb:.0f} MB of disk")
            if wrong := plan.problem(self.here):
                report.say(f"  LEFT OUT: {wrong}")

    def head(self, minutes):
        box = ("quick: this shows that everything works, not how fast it is"
               if self.minutes is None else
               f"time box {self.minutes:g} minutes")
        yield f"{time.strftime('%Y-%m-%d %H:%M %Z')}; {minutes:.1f} minutes," \
              f" {box}.\n"
        yield (f"Factor {self.factor:.4g}: 1 is a machine of 384 CPUs, 1 TB of"
               " memory and 512 GB of disk, with the threads' own sizes.\n")

    def clear(self):
        """Removes the files of an earlier run, and no others."""
        out = self.args.out
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BenchError(f"cannot create {out}: {error.strerror}")
        if not os.access(out, os.W_OK):
            raise BenchError(f"{out} is not writable by the user that servers"
                             " run as")
        for name in SCENARIOS:
            for suffix in SUFFIXES:
                (out / f"{name}{suffix}").unlink(missing_ok=True)

    # -- running

    def run_all(self):
        """Returns the exit status of an interruption, or 0."""
        for signum in SIGNALS:
            signal.signal(signum, interrupt)
        try:
            for i, scenario in enumerate(self.chosen):
                report.say(f"== {scenario.name} ({i + 1} of"
                           f" {len(self.chosen)})")
                started = time.monotonic()
                self.done[scenario] = INTERRUPTED, 0
                status = (self.plans[scenario.name].problem(self.here)
                          or self.run_one(scenario))
                seconds = time.monotonic() - started
                self.done[scenario] = status, seconds
                report.say(f"== {scenario.name}: {status}, {seconds:.0f} s")
        except Interrupted as error:
            shutil.rmtree(self.args.out / "work", ignore_errors=True)
            return 128 + error.args[0]
        try:
            (self.args.out / "work").rmdir()
        except OSError:
            pass                # a failed bench has left its servers' logs
        return 0

    def command(self, scenario):
        command = [paths.ROOT / "bench" / "run", scenario.bench,
                   *self.plans[scenario.name].arguments]
        for option in ("stock", "patched"):
            if prefix := getattr(self.args, option):
                command += [f"--{option}", Path(prefix).absolute()]
        if self.minutes is not None:
            command += ["--minutes", f"{self.box(scenario):.2f}"]
        return list(map(str, command))

    def run_one(self, scenario):
        """Returns the status: DONE, or the error."""
        work = self.args.out / "work" / scenario.name
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        out = self.args.out / scenario.name
        with open(f"{out}.txt", "w") as printed, open(f"{out}.log",
                                                      "w") as log:
            # In a session of its own: Ctrl-C reaches only this process, which
            # tells the bench.
            child = subprocess.Popen(
                self.command(scenario), stdin=subprocess.DEVNULL,
                stdout=printed, stderr=subprocess.PIPE, text=True,
                errors="replace", start_new_session=True,
                env={**os.environ, "SWEEP_BENCH_DIR": str(work)})
            echo = threading.Thread(target=self.echo, args=(child.stderr, log))
            echo.start()
            try:
                status = child.wait()
            finally:
                end(child)
                echo.join()
        if status != 0:
            return f"failed: {last_line(Path(f'{out}.log'), status)}"
        for suffix in (".json", ".csv"):
            shutil.move(work / f"{scenario.bench}{suffix}", f"{out}{suffix}")
        shutil.rmtree(work, ignore_errors=True)
        return document.DONE

    def echo(self, messages, log):
        for line in messages:
            log.write(line)
            print(f"  {line}", end="", file=sys.stderr, flush=True)


def end(child):
    """Benches end their servers when they are terminated."""
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def last_line(log, status):
    """The error of a bench: its last line that is no progress."""
    lines = [line for line in log.read_text(errors="replace").splitlines()
             if line.strip() and not re.match(r"\[ *\d+\.\d s\]", line)]
    return lines[-1] if lines else f"exit status {status}"
