"""Which pages should stay? Replacement policies on recorded page references.

Records loads on a server of its own (tools/server trace), or takes traces of any
origin (--trace), and plays PostgreSQL's clock, pg_sweep's strategies by their own
source files, and the policies of libcachesim on them. The result is the number of
misses, to those of the clock, for pools that hold a part of the trace's pages.

With 8 backends, each miss belongs to one of them by chance, and each has leases.
The same trace gives the same misses each time: one round is enough."""

import shutil
from pathlib import Path

from bench.lib import cluster, paths, plot, report, runner
from bench.lib.paths import BENCH, BenchError

from . import play, record, results
from . import trace as formats

NAMES = (*play.OURS, *play.OTHERS)


class Bench(runner.Program):
    @classmethod
    def add_options(cls, options):
        add, parser = options.add, options.parser
        parser.add_argument(
            "--trace", nargs="+", metavar="PATH", type=Path,
            help="play these instead of recording: .pages, .u32 or"
            " .oracleGeneral files, or folders of a recording server")
        parser.add_argument(
            "--made", nargs="*", metavar="NAME", help="play made traces instead"
            " of recording: those of made.c (default: all)")
        add("--references", 8_000_000, 100_000, "of a made trace", least=100)
        parser.add_argument("--loads", nargs="+", choices=list(record.LOADS),
                            default=list(record.LOADS),
                            help="loads to record (default: all)")
        parser.add_argument("--policies", nargs="+", choices=NAMES,
                            default=list(NAMES), metavar="NAME",
                            help=f"of {', '.join(NAMES)} (default: all)")
        add("--pools", (2, 5, 10, 20, 40, 60), (5, 20),
            "buffers, in % of the trace's pages")
        add("--warm", 30, None, "references that are not counted, in %",
            least=0)
        add("--scale", 20, 2, "of pgbench's tables")
        add("--warehouses", 2, 1, "of the TPC-C-like load, 90 MB each")
        add("--size", 1.0, 0.02, "transactions, as a multiple of the usual")
        add("--clients", 8, 4, "of each load")
        add("--sample", 1, None, "record 1 of so many pages")
        add("--seed", 1, None, "of pgbench's and the player's random numbers")
        add("--shared-buffers", "32MB", None, "of the recording server")
        parser.add_argument("--server", metavar="PREFIX", default=None,
                            help="the recording server; without recording,"
                            " one whose headers are there (default:"
                            f" build/{paths.MAJOR}/trace and release)")
        parser.add_argument("--convert", nargs=2, metavar=("FROM", "TO"),
                            type=Path, help="only convert a trace, to .pages"
                            " or .oracleGeneral")
        parser.add_argument("--markdown", nargs="+", metavar="JSON", type=Path,
                            help="only print the tables of these results")

    @staticmethod
    def finish(args, error):
        if args.convert and args.convert[1].suffix not in formats.WRITERS:
            error(f"--convert writes {' and '.join(formats.WRITERS)}")
        if args.warm >= 100:
            error("--warm must be less than 100")
        if play.BASELINE not in args.policies:
            args.policies.insert(0, play.BASELINE)

    def run(self):
        formats.need()
        if self.args.markdown:
            for line in results.merged(self.args.markdown).markdown():
                report.say(line)
            return 0
        if self.args.convert:
            return self.convert()
        plot.need()
        for line in report.machine(()):
            report.say(line)
        self.others = [name for name in self.args.policies
                       if name in play.OTHERS]
        self.python = play.have_others() if self.others else None
        variant = "trace" if self.recording() else "release"
        server = paths.Server(variant, self.args.server
                              or paths.SERVERS / variant)
        self.player = play.player(server.config("includedir-server"))
        self.results = results.Results()
        for name, title, trace in self.traces(server):
            self.play(name, title, trace)
        for line in self.results.markdown():
            report.say(line)
        for path in plot.write(BENCH / "policies",
                               list(self.results.panels())):
            report.say(f"written: {report.shown(path)}")
        return 0

    def convert(self):
        source, target = self.args.convert
        trace = formats.read(source)
        formats.WRITERS[target.suffix](trace, target)
        report.say(f"{target}: {len(trace)} references, {trace.count} pages;"
                   f" {trace.left_out} references through rings left out")
        return 0

    def recording(self):
        return self.args.trace is None and self.args.made is None

    def traces(self, server):
        """Yields (name, title, Trace)."""
        for path in self.args.trace or ():
            yield path.stem, path.stem, formats.read(path)
        if self.args.made is not None:
            yield from self.made_traces()
        if self.recording():
            yield from self.recorded_traces(server)

    def made_traces(self):
        program = play.compile_c("made.c", libraries=("-lm",))
        titles = dict(line.split(maxsplit=1) for line
                      in play.run([program]).splitlines())
        path = play.WORK / "made.u32"
        for name in self.args.made or titles:
            play.run([program, name, self.args.seed - 1, self.args.references,
                      path])
            trace = formats.read(path)
            path.unlink()
            yield f"made-{name}", titles[name], trace

    def recorded_traces(self, server):
        cluster.stop_all_at_exit()
        recorder = record.Recorder(server, self.args)
        recorder.prepare(self.args.loads)
        for name in self.args.loads:
            folder = recorder.record(name)
            trace = formats.read(folder)
            formats.write_pages(trace, folder.with_suffix(".pages"))
            shutil.rmtree(folder)
            yield name, record.LOADS[name].title, trace
        recorder.cluster.remove()

    def play(self, name, title, trace):
        warm = int(self.args.warm / 100 * len(trace))
        buffers = {pool: int(pool / 100 * trace.count)
                   for pool in self.args.pools}
        report.progress(f"{name}: {len(trace)} references, {trace.count} pages")
        if min(buffers.values()) < 1:
            raise BenchError(f"{name}: {trace.count} pages are too few")
        self.results.add_trace(name, title, trace, warm)
        with play.Files(trace, name) as files:
            for policy in self.args.policies:
                if policy in play.OURS:
                    kind, backends = play.OURS[policy]
                    found = play.play_ours(
                        self.player, files.path(".pages"), warm,
                        [(kind, n, backends, self.args.seed)
                         for n in buffers.values()])
                else:
                    found = play.play_others(
                        self.python, files.path(".oracleGeneral"), warm,
                        len(trace), [(play.OTHERS[policy], n, {})
                                     for n in buffers.values()])
                self.results.add(name, policy, play.version(policy), dict(zip(
                    buffers, (misses.counted for misses in found))))
                # a long run that is cut has what it has done
                self.results.write(BENCH / "policies.json")
                report.progress(f"{name}: {policy}")
