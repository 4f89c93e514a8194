"""The command line."""

import argparse
import math
import os
import re
import shutil
import sys
from pathlib import Path

from ab import journal, pgbench_load, settings
from ab.errors import UserError
from ab.version import version

PROGRAM = "pg_sweep_ab"
MINUTES = 5.0
SLICE_SECONDS, SLICE_SECONDS_QUICK = 3.0, 2.3
# A backend reports to pg_stat_database once a second (PGSTAT_MIN_INTERVAL in
# core). What it reports later than that after a switch was done after the
# switch.
REPORT_SECONDS = 1.0
# One that falls idle within that second, as sessions of applications often do,
# reports after ten seconds (PGSTAT_IDLE_INTERVAL).
SETTLE_SECONDS_ATTACHED = 11.0
SLICE_SECONDS_ATTACHED = 30.0
MINUTES_ATTACHED = 30.0
SETTLE_SECONDS = REPORT_SECONDS + 0.1
BLOCKS_QUICK = 10
# The analysis looks at all pairs of blocks; for a longer time, take longer
# slices.
BLOCKS_MOST = 2000
SLICE_LEAST = 0.2
CLIENTS = 8

DESCRIPTION = """\
pg_sweep_ab compares two or more settings on one running PostgreSQL server.

It switches between the settings in short slices, in random order, under
pgbench or (--attach) under an application. Slices are compared within blocks
that have each setting once; the first setting is the baseline. At the end,
also after Ctrl-C, everything is put back as it was.

  pg_sweep_ab -h HOST -d DB -S --a stock --b batched
  pg_sweep_ab -d DB -f my.sql --setting 'now:' --setting 'big: work_mem=64MB'
  pg_sweep_ab -d DB --attach --a stock --b partitioned --minutes 30

A setting is "NAME: KEY=VALUE, KEY=VALUE". A plain word is a strategy; "NAME:"
leaves everything as it is now. Keys are strategy, lwlock_policy,
lwlock_policy.TRANCHE, batch_size, balance, ring_eager_flush, and each
parameter that a reload can change."""


def parser():
    result = argparse.ArgumentParser(
        prog=PROGRAM, description=DESCRIPTION, add_help=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="docs/ab.md of pg_sweep is the manual.")
    add = result.add_argument_group("Connection (passwords: PGPASSWORD or"
                                    " .pgpass)").add_argument
    add("-h", "--host")
    add("-p", "--port")
    add("-U", "--username")
    add("-d", "--dbname", help="database of the load, or a conninfo")
    add("--bindir", metavar="DIR", help="folder of psql and pgbench (default:"
                                        " that of this program, then PATH)")
    add = result.add_argument_group("Settings, at least two").add_argument
    add("--setting", action="append", default=[], metavar="SETTING")
    add("--a", metavar="SETTING", help="the first one")
    add("--b", metavar="SETTING", help="the second one")
    add = result.add_argument_group("Load").add_argument
    add("--attach", action="store_true",
        help="measure what runs already, instead of pgbench")
    add("-S", "--select-only", action="store_true")
    add("-N", "--skip-some-updates", action="store_true")
    add("-b", "--builtin", action="append", metavar="NAME[@W]")
    add("-f", "--file", action="append", metavar="FILE[@W]")
    add("-c", "--client", type=int, default=CLIENTS, metavar="N",
        help=f"number of clients (default: {CLIENTS})")
    add("-j", "--jobs", type=int, metavar="N",
        help="threads of pgbench (default: one per CPU)")
    add("-M", "--protocol", choices=("simple", "extended", "prepared"),
        help="(default: prepared; extended if a parameter is for the planner)")
    add("-D", "--define", action="append", metavar="NAME=VALUE")
    add("-R", "--rate", type=float, metavar="TPS")
    add("-s", "--scale", type=int, metavar="N")
    add("--pgbench-options", default="", metavar="'...'",
        help="other options of pgbench")
    add("--init", type=int, metavar="SCALE",
        help="create database pg_sweep_ab with pgbench's tables, and keep it")
    add = result.add_argument_group("Duration").add_argument
    add("--minutes", type=float, help="of the whole run (default:"
        f" {MINUTES:g}; attached: {MINUTES_ATTACHED:g})")
    add("--blocks", type=int, metavar="N", help="instead of --minutes")
    add("--slice", type=float, metavar="SECONDS",
        help=f"of each slice (default: {SLICE_SECONDS:g}; attached:"
             f" {SLICE_SECONDS_ATTACHED:g})")
    add("--settle", type=float, metavar="SECONDS",
        help="thrown away at the beginning of each slice (default:"
             f" {SETTLE_SECONDS:g}, or half of a short slice; attached:"
             f" {SETTLE_SECONDS_ATTACHED:g})")
    add("--quick", action="store_true", help="about a minute")
    add("--seed", type=int, help="of the random order (default: drawn, and"
                                 " printed)")
    add = result.add_argument_group("Output").add_argument
    add("--out", type=Path, metavar="DIR", default=Path(),
        help="folder of ab.json, ab.csv, ab.png, ab.svg (default: the current"
             " one)")
    add("--no-picture", action="store_true", help="needs no matplotlib")
    add = result.add_argument_group("After a run that was killed").add_argument
    add("--restore", action="store_true", help="put back what it has changed")
    add("--forget", action="store_true", help="keep what it has changed")
    add("--state-dir", type=Path, metavar="DIR",
        help="folder of the notes on what to put back (default:"
             " ~/.local/state/pg_sweep)")
    add("-?", "--help", action="help")
    add("-V", "--version", action="version",
        version=f"{PROGRAM} (pg_sweep) {version()}")
    return result


def parse(argv=None):
    args = parser().parse_args(argv)
    args.jobs = args.jobs or min(args.client,
                                 len(os.sched_getaffinity(0)))
    return args


def check(args):
    """Check what can be checked without a server, and fill in defaults."""
    if args.restore and args.forget:
        raise UserError("--restore and --forget exclude each other")
    if args.restore or args.forget:
        return
    check_load(args)
    texts = [text for text in (args.a, args.b) if text] + args.setting
    args.settings = settings.parse_all(texts)
    check_plan(args)


def scripts(args):
    return ((["-S"] if args.select_only else [])
            + (["-N"] if args.skip_some_updates else [])
            + [part for name in args.builtin or () for part in ("-b", name)]
            + [part for name in args.file or () for part in ("-f", name)])


def check_load(args):
    if args.attach and (scripts(args) or args.init):
        raise UserError("--attach excludes -S, -N, -b, -f and --init")
    if not args.attach and not scripts(args):
        raise UserError("no load: one of -S, -N, -b, -f, --attach is needed")
    if args.dbname and "application_name" in args.dbname:
        raise UserError("application_name must not be in the conninfo:"
                        f" {PROGRAM} sets it")
    if re.search(r"password\s*=|://[^/@]*:[^/@]*@", args.dbname or ""):
        raise UserError("a password in the conninfo would show in the list of"
                        " processes: use PGPASSWORD or .pgpass")
    for name in args.file or ():
        path = name.rpartition("@")[0] if "@" in name else name
        if not (os.access(path, os.R_OK) or os.access(name, os.R_OK)):
            raise UserError(f"cannot read {path}")
    if args.client < 1 or args.jobs < 1:
        raise UserError("-c and -j must be at least 1")
    args.jobs = min(args.jobs, args.client)
    if args.init is not None and args.init < 1:
        raise UserError("--init needs a scale of at least 1")
    args.more = pgbench_load.split_options(args.pgbench_options)


def check_plan(args):
    for name in ("minutes", "slice", "settle", "rate"):
        value = getattr(args, name)
        if value is not None and (not math.isfinite(value) or value < 0):
            raise UserError(f"--{name} must be a number, and not negative")
    if args.slice is None:
        args.slice = (SLICE_SECONDS_ATTACHED if args.attach else
                      SLICE_SECONDS_QUICK if args.quick else SLICE_SECONDS)
    if args.slice < SLICE_LEAST:
        raise UserError(f"--slice must be at least {SLICE_LEAST} s")
    if args.settle is None:
        args.settle = (SETTLE_SECONDS_ATTACHED if args.attach
                       else SETTLE_SECONDS)
        if args.slice < 1.5 * SETTLE_SECONDS and not args.attach:
            args.settle = args.slice / 2
    if not 0 <= args.settle < args.slice:
        raise UserError("--settle must be shorter than --slice, and not"
                        " negative")
    if args.attach and args.settle < SETTLE_SECONDS:
        raise UserError("with --attach, --settle must be"
                        f" at least {SETTLE_SECONDS:g} s: sessions report once"
                        " a second (idle ones after ten)")
    if args.blocks is None and args.minutes is None and args.quick:
        args.blocks = BLOCKS_QUICK
    if args.blocks is None:
        minutes = (args.minutes if args.minutes is not None else
                   MINUTES_ATTACHED if args.attach else MINUTES)
        each = len(args.settings) * args.slice
        # without the warm-up
        args.blocks = int(min(minutes * 60 / each, BLOCKS_MOST)) - 1
        if args.blocks < 1:
            raise UserError(f"{minutes:g} minutes are too short for two blocks"
                            f" of {len(args.settings)} slices of"
                            f" {args.slice:g} s, the first being the warm-up")
    if not 1 <= args.blocks <= BLOCKS_MOST:
        raise UserError(f"--blocks must be 1 to {BLOCKS_MOST}")
    if args.seed is None:
        args.seed = int.from_bytes(os.urandom(3), "big")


def pgbench_options(args):
    result = [*scripts(args), "-M", args.protocol or "prepared"]
    for name in args.define or ():
        result += ["-D", name]
    if args.rate is not None:
        result += ["-R", f"{args.rate:g}"]
    if args.scale is not None:
        result += ["-s", str(args.scale)]
    return result + args.more


def configuration(args, database):
    if args.attach:
        load = "attached, all databases"
    else:
        load = (f"pgbench {' '.join(scripts(args) + args.more)},"
                f" {args.client} clients")
        load += f", -R {args.rate:g}" if args.rate else ""
        load += f", -M {args.protocol}, database {database}"
    return (f"{load}; {args.blocks} blocks of"
            f" {args.slice:g} s slices, the first {args.settle:g} s of each"
            f" thrown away; seed {args.seed}")


def programs(args):
    result = {}
    for name in ("psql", "pgbench"):
        here = Path(sys.argv[0]).resolve().parent
        found = shutil.which(name, path=args.bindir or os.pathsep.join(
            [str(here), os.environ.get("PATH", os.defpath)]))
        if found is None:
            raise UserError(f"{name} is not in "
                            f"{args.bindir or 'PATH'}: --bindir names its"
                            " folder")
        result[name] = found
    return result


def state_directory(args):
    return args.state_dir or journal.default_directory()
