"""The contention simulator's commands."""

import argparse
import os
import sys
from pathlib import Path

from bench.lib import paths, report
from bench.lib.paths import BenchError

from .py import (balance, binary, build, calibrate, lwlock, machine, predict,
                 tables, validate, victims)

WORK = paths.BENCH / "sim"
PROGRAM = "sim/run"


def simulator(args):
    return binary.Simulator(args.program or build.build(), args.fresh,
                            args.jobs)


def run_balance(args):
    found = balance.balance(simulator(args), args.quick)
    report.say("\n".join(balance.table(found)))
    if not args.quick:
        report.write_file(WORK / "balance.json", tables.to_json(found, "},{"))


def run_build(args):
    report.say(str(build.build(args.level, args.patched, args.loads)))


def run_calibrate(args):
    document = calibrate.calibrate(args.output, args.rounds)
    report.table(["value", "", "source"],
                 [(key, f"{number:,}", why) for key, (number, why)
                  in document["values"].items()], document["title"])
    report.say()
    for note in document["notes"]:
        report.say(note)
    report.say(f"written: {args.output}")


def run_check(args):
    for name in args.machine or machine.names():
        found = machine.named(name)
        report.say(f"{found.name}: {found.title}: {found.cpus()} CPUs,"
                   f" {found.nodes()} nodes")


def run_lwlock(args):
    machines = [machine.named(name) for name in args.machine]
    here = simulator(args)
    for one in machines:
        lwlock.show(here, one, args)


def run_predict(args):
    names = args.machine or (*predict.CURVES, *predict.SMALL)
    machines = [(machine.named(name), not args.quick
                 and (name in predict.CURVES
                      or bool(args.machine) and not args.strategy))
                for name in names]
    found = predict.predict(simulator(args), machines, args.strategy)
    for one in found["machines"]:
        report.say("\n".join(tables.machine_table(one)))
    if args.strategy:
        found = predict.merged(tables.read("predictions"), found)
    if args.strategy or not args.machine:
        report.write_file(WORK / "predictions.json", tables.to_json(found, "},{"))


def run_run(args):
    config = machine.named(args.machine).config()
    for setting in args.setting:
        key, equals, value = setting.partition("=")
        if not equals or not key or not value:
            raise BenchError(f"{setting!r} is not KEY=VALUE")
        config[key] = value
    report.say(simulator(args).ask(binary.text_of(config)).rstrip())


def run_tables(args):
    if args.pictures:
        args.pictures.mkdir(parents=True, exist_ok=True)
        for path in tables.draw(args.pictures):
            report.say(f"written: {path}")
    else:
        report.say(tables.every_table())


def run_validate(args):
    lock = paths.only_one("sim")
    data, met = validate.validate(simulator(args), args.quick,
                                  args.part or list(validate.PARTS))
    whole = not args.quick and not args.part
    report.write_file(WORK / f"validation{'' if whole else '_part'}.json",
                      tables.to_json(data, "],["))
    lock.close()
    return 0 if met or not args.check else 1


def run_victims(args):
    return 0 if victims.compare(args) else 1


def add_run_options(parser):
    parser.add_argument("--fresh", action="store_true",
                        help="run everything again, not only what is new")
    parser.add_argument("--program", type=Path, metavar="FILE",
                        help="a simulator that is built already")
    parser.add_argument("--jobs", type=positive, default=1,
                        help="runs at a time (default 1)")


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not greater than zero")
    return number


def options():
    parser = argparse.ArgumentParser(prog=PROGRAM, description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True,
                                     metavar="COMMAND")
    it = commands.add_parser("build", help="compile the simulator")
    it.add_argument("--level", choices=("O0", "O2"), default="O2",
                    help="optimization of the engine (default O2)")
    it.add_argument("--patched", metavar="PREFIX",
                    help="patched server (default"
                    f" build/{paths.MAJOR}/release)")
    it.add_argument("--loads", metavar="FILE", default=build.LOADS,
                    type=lambda name: Path(name).resolve(),
                    help="in place of loads/loads.c, for tests")
    it = commands.add_parser("calibrate", help="measure this machine, write"
                                               " its machine file")
    it.add_argument("--output", type=Path, default=WORK / "this.json",
                    metavar="FILE", help="default build/bench/sim/this.json")
    it.add_argument("--rounds", type=positive, default=11)
    it = commands.add_parser("check", help="check machine files")
    it.add_argument("machine", nargs="*", help="names or files (default all)")
    it = commands.add_parser("run", help="one run of a configuration")
    it.add_argument("machine", help="name or file")
    it.add_argument("setting", nargs="*", metavar="KEY=VALUE",
                    help="load=alloc strategy=stock backends=64 ...")
    add_run_options(it)
    it = commands.add_parser("validate", help="compare with published"
                                              " measurements")
    it.add_argument("--quick", action="store_true",
                    help="a part of the cells")
    it.add_argument("--part", action="append", choices=validate.PARTS,
                    help="this part alone; may be given several times")
    it.add_argument("--check", action="store_true",
                    help="exit 1 if an error is larger than wanted")
    add_run_options(it)
    it = commands.add_parser("predict", help="throughput of the strategies")
    it.add_argument("--machine", action="append", metavar="NAME",
                    help="name or file; may be given several times. Without"
                         " it, all machines of docs/scaling.md, and"
                         " build/bench/sim/predictions.json is written")
    it.add_argument("--quick", action="store_true",
                    help="two numbers of backends per machine")
    it.add_argument("--strategy", metavar="NAME",
                    help="only strategies whose names begin so; writes them"
                         " and the others of sim/results")
    add_run_options(it)
    it = commands.add_parser("balance", help="what each partition serves,"
                                             " against one clock")
    it.add_argument("--quick", action="store_true",
                    help="one machine only, and build/bench/sim/balance.json"
                         " is not written")
    add_run_options(it)
    it = commands.add_parser("lwlock", help=lwlock.__doc__.split("\n\n")[0])
    lwlock.add_options(it)
    add_run_options(it)
    it = commands.add_parser("tables", help="sim/results as Markdown")
    it.add_argument("--pictures", type=Path, metavar="DIR",
                    help="draw pictures there instead")
    add_victims(commands)
    return parser


def add_victims(commands):
    it = commands.add_parser("victims", help="compare with a real server:"
                             " the same victims?")
    it.add_argument("--quick", action="store_true",
                    help="the main cases only")
    it.add_argument("--victims", type=int, default=1_000_000,
                    help="default 1000000, at most 1048576")
    it.add_argument("--installed", action="store_true",
                    help="use the servers' own test module measure_sweep")
    it.add_argument("--into", metavar="DIR", type=Path,
                    help="where clusters go (default build/bench)")
    paths.add_server_options(it)


def main():
    args = options().parse_args()
    try:
        status = globals()[f"run_{args.command}"](args) or 0
        sys.stdout.flush()
    except BenchError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        status = 1
    except BrokenPipeError:     # the reader, such as head, wants no more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
