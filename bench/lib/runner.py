"""What all programs of bench/ share: options, the order of work, results.

A bench is a class Bench in a file of its own:

    class Bench(runner.Bench):
        rounds = 15, 3          # by default, and with --quick
        metrics = (...)         # tables.Metric of each table

        @staticmethod
        def options(add):
            add("--ms", 250, 50, "length of one sample, in milliseconds")

        def prepare(self): ...  # makes clusters
        def measure(self): ...  # adds samples to self.samples
        def notes(self): ...    # lines to print after the tables
        def wanted(self): ...   # (is it met, what is wanted) of each invariant
"""

import argparse
import sys

from . import box, cluster, module, paths, report, sides, stats, tables


class Options:
    """Adds options to a parser. The defaults depend on --quick."""

    def __init__(self, parser):
        self.parser = parser
        self.defaults = {}          # name: (full, quick)
        self.least = {}             # name: smallest number that is allowed

    def add(self, flag, full, quick=None, help="", least=1, default=None,
            **settings):
        """An option with a value, or with several if full is a tuple. default:
        what to say in the help text instead of the value."""
        if isinstance(full, tuple):
            settings["nargs"] = "+"
        kind = type(full[0] if isinstance(full, tuple) and full else full)
        if kind in (type(None), tuple):
            kind = int
        settings.setdefault("type", kind)
        if kind in (int, float):
            settings.setdefault("metavar", "N")
        said = default or shown(full)
        if quick is not None:
            said += f"; quick: {shown(quick)}"
        option = self.parser.add_argument(
            flag, help=f"{help} (default: {said})".replace("%", "%%"),
            **settings)
        self.defaults[option.dest] = full, full if quick is None else quick
        self.least[option.dest] = least

    def switch(self, flag, help):
        self.parser.add_argument(flag, action="store_true",
                                 help=help.replace("%", "%%"))

    def parse(self, arguments):
        args = self.parser.parse_args(arguments)
        for name, (full, quick) in self.defaults.items():
            if getattr(args, name) is None:
                setattr(args, name,
                        quick if getattr(args, "quick", False) else full)
            self.check(name, getattr(args, name))
        return args

    def check(self, name, value):
        least = self.least[name]
        values = value if isinstance(value, (list, tuple)) else [value]
        numbers = [each for each in values if isinstance(each, (int, float))]
        if any(each < least for each in numbers if isinstance(each, int)):
            self.parser.error(f"--{name.replace('_', '-')} must be at least"
                              f" {least}")
        if any(not each > 0 for each in numbers if isinstance(each, float)):
            self.parser.error(f"--{name.replace('_', '-')} must be greater"
                              " than zero")


def shown(value):
    if value is None:
        return "chosen by the bench"
    if isinstance(value, (tuple, list)):
        return " ".join(map(str, value)) or "none"
    return str(value)


class Program:
    """Has options, runs as a plain user, and only once at a time."""

    quick = "small and short: shows that it works, not how fast"

    @classmethod
    def name(cls):
        return cls.__module__.rpartition(".")[2]

    @classmethod
    def documentation(cls):
        return sys.modules[cls.__module__].__doc__

    @classmethod
    def summary(cls):
        return cls.documentation().splitlines()[0]

    @classmethod
    def arguments(cls, arguments):
        parser = argparse.ArgumentParser(
            prog=f"bench/run {cls.name()}", description=cls.documentation(),
            formatter_class=argparse.RawDescriptionHelpFormatter)
        options = Options(parser)
        options.switch("--quick", cls.quick)
        cls.add_options(options)
        args = options.parse(arguments)
        cls.finish(args, parser.error)
        return args

    @classmethod
    def add_options(cls, options):
        paths.add_server_options(options.parser)

    @staticmethod
    def finish(args, error):
        """Completes the options, or calls error(text)."""

    @classmethod
    def main(cls, arguments):
        """Runs the program; returns its exit status."""
        args = cls.arguments(arguments)
        paths.be_plain_user()
        with paths.only_one(cls.name()):
            return cls(args).run()

    def __init__(self, args):
        self.args = args

    def run(self):
        raise NotImplementedError


class Bench(Program):
    rounds = 5, 2
    metrics = ()
    by_configuration = False    # one table for each configuration, not metric
    check = None                # help text of --check, if there is a wanted()
    boxed = False               # --minutes
    controlled = False          # --control
    needs_stock = True
    patched_variant = "release"     # in build/MAJOR
    baseline = sides.STOCK_SERVER.name

    @classmethod
    def add_options(cls, options):
        options.add("--rounds", *cls.rounds, "rounds; each measures all sides")
        cls.options(options.add)
        cls.switches(options.switch)
        if cls.check:
            options.switch("--check", cls.check)
        if cls.controlled:
            options.switch("--control", "adds a second stock server as a side:"
                           " its ratio to the first shows the noise")
        if cls.boxed:
            box.add_option(options.parser)
        super().add_options(options)

    @staticmethod
    def options(add):
        """The bench's own options."""

    @staticmethod
    def switches(add):
        """The bench's own options without a value."""

    def __init__(self, args):
        super().__init__(args)
        self.stock = paths.stock_server(args) if self.needs_stock else None
        self.patched = paths.patched_server(args, self.patched_variant)
        sides.check_servers(self.stock, self.patched)
        self.samples = stats.Samples(self.baseline)
        self.box = box.Box(getattr(args, "minutes", None))
        self.clusters = {}

    def run(self):
        cluster.stop_all_at_exit()
        for line in report.machine(filter(None, (self.stock, self.patched))):
            report.say(line)
        self.prepare()
        self.measure()
        tables.show(self.samples, self.metrics, self.by_configuration)
        for line in self.notes():
            report.say(line)
        met = report.verdict(list(self.wanted()))
        report.write_json(self.result_name(), self.samples.rows())
        for here in list(self.clusters.values()):
            here.remove()
        return 1 if self.check and self.args.check and not met else 0

    def result_name(self):
        return self.name()

    def notes(self):
        return ()

    def wanted(self):
        return ()

    # -- servers and clusters

    def server(self, key):
        """The server of a cluster of sides."""
        return (self.stock if key in (sides.STOCK, sides.CONTROL.cluster)
                else self.patched)

    def modules(self, *names):
        """{server: the settings by which it finds these test modules}."""
        return {server: module.build(server, *names)
                for server in (self.stock, self.patched)}

    def keys(self):
        return list(dict.fromkeys(side.cluster for side in self.sides))

    def copy_clusters(self, first, settings):
        """Copies a cluster, which is stopped, for each server that is
        compared, and removes it. settings: by key."""
        for key in self.keys():
            report.progress(f"copying the data for cluster {key}")
            here = cluster.Cluster(self.name(), key, self.server(key),
                                   {**sides.preload(key), **settings(key)})
            here.copy_of(first)
            self.clusters[key] = here
        first.remove()

    def with_control(self, compared):
        if self.args.control:
            compared.insert(1, sides.CONTROL)
        return compared

    # -- rounds

    def each_round(self, what="", most=None, parts=1):
        """Numbers of rounds; parts as in box.Box.rounds()."""
        most = most or self.args.rounds
        limit = " at most" if getattr(self.args, "minutes", None) else ""
        for round_ in self.box.rounds(most, parts):
            report.progress(f"{what}{what and ': '}round {round_ + 1} of"
                            f" {most}{limit}")
            yield round_

    def note(self, where, side, round_, values):
        """Adds samples: {metric: value}; None is no sample."""
        for metric, value in values.items():
            if value is not None:
                self.samples.add(metric, where, side, round_, value)
