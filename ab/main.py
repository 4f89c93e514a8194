"""A/B of two or more settings on one running server: see options.py and
docs/ab.md."""

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from ab import (analysis, clocks, console, init_database, metrics, notes,
                options, output, picture, settings, state)
from ab.errors import UserError
from ab.interrupts import Interrupted, Interrupts
from ab.journal import Journal
from ab.measure import Plan, Run
from ab.options import PROGRAM
from ab.pgbench_load import PgbenchLoad
from ab.server import APPLICATION, Server
from ab.session import Connection, Session
from ab.switch import Switcher

# A server that restarts may have to recover first.
RECONNECT_SECONDS = 60
RECONNECT_EACH = 0.5
# An application that does less is idle.
ACTIVE_TPS = 1.0
SCRATCH = "pg_sweep_ab."        # begins the name of the temporary folder


class Experiment:
    def __init__(self, args, connection, interrupts):
        self.args = args
        self.connection = connection
        self.interrupts = interrupts
        self.progress = output.Progress()
        self.session = self.server = self.journal = self.load = None
        self.wanted = self.found = self.configuration = None
        self.scratch = Path(tempfile.mkdtemp(prefix=SCRATCH))

    def connect(self):
        self.session = Session(self.connection, APPLICATION)
        self.server = Server(self.session)
        self.server.take_lock()
        self.journal = Journal(options.state_directory(self.args), self.server)

    def close(self):
        if self.load:
            self.load.close()
        if self.session:
            self.session.close()
        shutil.rmtree(self.scratch, ignore_errors=True)

    # -- the run

    def prepare(self):
        """Check all that may be refused, without changing the server."""
        args = self.args
        left = self.journal.read()
        if left:
            raise UserError(f"a run that began at {left['began']} (process"
                            f" {left['pid']}) was killed and has put nothing"
                            " back: --restore does that (--forget: leave it"
                            " as it is)")
        if args.init:
            console.progress(f"making database {init_database.DATABASE}, scale"
                             f" {args.init}")
            self.connection = init_database.make(
                self.connection, self.session, args.init,
                f"{APPLICATION} init", self.interrupts)
            self.session.close()
            self.connect()
        self.wanted = self.server.check(args.settings, args.attach)
        self.choose_protocol()
        self.configuration = options.configuration(
            args, self.server.facts["database"])
        console.say(self.server.describe())
        console.say(self.configuration)
        for setting in self.wanted:
            console.say(f"  {setting.name}: " + (", ".join(
                f"{key} = {value}" for key, value in setting.values.items())
                or "as it is now"))
        for key in settings.keys(self.wanted):
            if settings.is_parameter(key) and self.server.is_custom(key):
                console.say(f"  ({key} is no parameter of the server, but of"
                            " an application)")
        console.say(console.machine())

    def choose_protocol(self):
        """A prepared statement keeps its plan, whatever is switched."""
        args, planning = self.args, self.server.planning
        if planning and args.protocol == "prepared":
            raise UserError(f"{planning[0]} is for the planner, and the plans"
                            " of prepared statements would stay as they are:"
                            " -M extended or simple")
        args.protocol = args.protocol or ("extended" if planning
                                          else "prepared")
        if planning and args.attach:
            console.say(f"NOTE: {planning[0]} is for the planner; statements"
                        " that your application has prepared, and those in"
                        " functions, keep their plans and show no difference")

    def start_load(self):
        args = self.args
        if args.attach:
            return
        self.load = PgbenchLoad(
            self.connection, f"{APPLICATION} load {os.getpid()}",
            self.scratch, args.client, args.jobs,
            options.pgbench_options(args))
        self.load.wait_until_ready(self.session, self.interrupts)

    def measure(self):
        args = self.args
        plan = Plan(self.wanted, args.blocks, args.slice, args.settle,
                    args.seed)
        switcher = Switcher(
            self.session, self.server, self.wanted, self.found,
            lambda: self.journal.write(self.found, self.scratch))
        switcher.rehearse(self.wanted)
        run = Run(plan, self.session, switcher,
                  metrics.Counters(self.session, self.server, args.attach),
                  clocks.find(self.session), self.load, self.interrupts,
                  self.progress)
        run.measure()
        self.progress.clear()
        if min(args.settle, args.slice - args.settle) < options.REPORT_SECONDS:
            for slice_ in run.slices:
                slice_.values["hit_ratio"] = None
                slice_.values["reads_per_transaction"] = None
        return run

    def change(self):
        """Measure, and put everything back, whatever happens."""
        self.found = state.find(self.session, self.server, self.wanted)
        self.journal.write(self.found, self.scratch)
        try:
            # By now, a run that began at the same moment is seen.
            self.server.check_alone()
            return self.measure()
        finally:
            self.interrupts.close()
            if sys.exc_info()[0] is not None:
                quietly(self.progress.note, "putting everything back")
            self.restore(self.found)

    def restore(self, found):
        """put_back() until it succeeds, or time is over: a server may be
        restarting, or its disk be full for a moment."""
        deadline = time.monotonic() + RECONNECT_SECONDS
        while True:
            try:
                left, others = state.put_back(self.session, found)
                gone = False
            except UserError as error:
                left, others, gone = [str(error)], [], True
            if not left:
                break
            if time.monotonic() > deadline:
                raise UserError("NOT EVERYTHING IS AS BEFORE:"
                                f" {'; '.join(left)}. Next: {PROGRAM}"
                                " --restore, with the same connection"
                                f" ({self.journal.path})")
            time.sleep(RECONNECT_EACH)
            if gone:
                self.reconnect()
        self.journal.remove()
        for line in others:
            quietly(self.progress.note, line)

    def reconnect(self):
        self.session.close()
        try:
            self.session = Session(self.connection, APPLICATION)
        except UserError:
            pass                        # restore() tries again

    def restore_only(self):
        """--restore and --forget"""
        left = self.journal.read()
        if left is None:
            console.say("there is nothing to put back on this server")
            return
        self.interrupts.close()
        if self.args.restore:
            if not self.server.facts["superuser"] and left["found"]["entries"]:
                raise UserError("--restore: only a superuser can change"
                                " postgresql.auto.conf")
            self.restore(left["found"])
            console.say(f"everything is as before the run of {left['began']}")
        else:
            self.journal.remove()
            console.say(f"the run of {left['began']} is forgotten; what it has"
                        " changed stays")
        if Path(left["scratch"]).name.startswith(SCRATCH):
            shutil.rmtree(left["scratch"], ignore_errors=True)

    # -- the result

    def show(self, run):
        names = [setting.name for setting in self.wanted]
        blocks = run.blocks()
        if self.args.attach:
            check_activity(blocks)
        rows = analysis.analyse(blocks, names, self.configuration)
        notes.withdraw_crossing(rows, blocks, self.args.settle)
        output.write(self.args.out, rows, run.slices)
        output.table(rows, names,
                     f"medians of {len(blocks)} slices of each setting")
        console.say()
        output.explain()
        if self.load and self.load.failed:
            console.say(f"{self.load.failed} transactions failed or were"
                        " skipped; they are not counted")
        for line in notes.about(run, rows, self.server, self.args):
            console.say(f"NOTE: {line}")
        console.say()
        output.headline(rows, names, len(blocks))
        console.say()
        console.say(f"written: {self.args.out}/ab.json, ab.csv")
        if not self.args.no_picture:
            picture.write(self.args.out, rows, names, run.slices,
                          self.configuration)
            console.say(f"written: {self.args.out}/ab.png, ab.svg")


def check_activity(blocks):
    rates = sorted(values[metrics.HEADLINE] or 0 for block in blocks
                   for values in block.values())
    if rates[len(rates) // 2] < ACTIVE_TPS:
        raise UserError("the server is idle: fewer than"
                        f" {ACTIVE_TPS:g} transaction a second, so there is"
                        " no verdict (everything is as before)")


def quietly(function, *arguments, **keywords):
    """Call it even if the terminal it writes to is gone."""
    try:
        function(*arguments, **keywords)
    except OSError:
        pass


def work(args):
    options.check(args)
    interrupts = Interrupts()
    interrupts.install()
    connection = Connection(options.programs(args), args.host, args.port,
                            args.username, args.dbname)
    experiment = Experiment(args, connection, interrupts)
    try:
        if args.restore or args.forget:
            experiment.connect()
            experiment.restore_only()
            return
        output.check_directory(args.out)
        if not args.no_picture:
            picture.check(experiment.scratch)
        experiment.connect()
        experiment.prepare()
        experiment.start_load()
        run = experiment.change()
        experiment.show(run)
    finally:
        experiment.close()


def main():
    # A closed one (2>&-) is None.
    sys.stdout = sys.stdout or open(os.devnull, "w")
    sys.stderr = sys.stderr or open(os.devnull, "w")
    args = options.parse()
    try:
        work(args)
        return 0
    except Interrupted as interrupted:
        quietly(print, f"{PROGRAM}: interrupted; everything is as before",
                file=sys.stderr)
        return 128 + interrupted.signum
    except BrokenPipeError:
        return 1
    except OSError as error:
        raise UserError(str(error))
    finally:
        # What cannot be flushed any more must not raise at the very end.
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def run():
    console.run(main, PROGRAM)
