"""The simulator against a real server: does one backend find the same victims?

A single-user server is brought into a state, which the test module
measure_sweep copies, and allocates. The simulator starts from the copy. The
victims must be the same to the last one.

With several backends, or with a background writer, the order would depend on
the clock of the machine. So one backend is compared."""

import struct
from array import array
from dataclasses import dataclass

from bench.lib import callgrind, cluster, module, paths, report, sides
from bench.lib.paths import BenchError

from . import binary, build, machine

NAME = "sim_victims"
MIXED = -1                      # usage: by a hash, see record.c

# One backend waits for no other, so any machine will do. Its nodes change.
MACHINE = "vondra-xeon"

# The pieces of shared memory that decide about victims
PIECES = ("Buffer Strategy Status", "Buffer Descriptors", "pg_sweep")

# What COPY ... WITH (FORMAT binary) begins with, and how it ends
COPY_MAGIC = b"PGCOPY\n\377\r\n\0"
COPY_END = b"\377\377"


@dataclass(frozen=True)
class Case:
    cluster: str
    strategy: str
    buffers: int
    usage: int                  # MIXED: from 0 to 5
    pin_every: int = 0
    batch: int = 0
    nodes: int = 1
    partitions: int = 1
    balance: str = "on"
    main: bool = False

    def title(self):
        parts = [{sides.STOCK: "stock server"}.get(
            self.cluster, f"pg_sweep {self.strategy}")]
        if self.strategy != "stock":
            parts.append(f"batch {self.batch or 'automatic'}")
        if self.strategy == "partitioned":
            parts.append(f"{self.partitions} on {self.nodes} nodes")
            if self.balance == "off":
                parts.append("no balance")
        parts.append(f"{self.buffers} buffers")
        parts.append("usage 0 to 5" if self.usage == MIXED
                     else f"usage {self.usage}")
        if self.pin_every:
            parts.append(f"1 of {self.pin_every} pinned")
        return ", ".join(parts)

    def settings(self):
        found = {"shared_buffers": self.buffers}
        if self.cluster == sides.SWEEP:
            found.update({"pg_sweep.strategy": self.strategy,
                          "pg_sweep.batch_size": self.batch,
                          "pg_sweep.numa_debug_nodes": self.nodes,
                          "pg_sweep.partitions": self.partitions,
                          "pg_sweep.balance": self.balance})
        return found

    def statements(self):
        """A mixture of usage counts comes from giving out the pool twice."""
        yield "SELECT measure_sweep_drain_freelist()"
        if self.usage != MIXED:
            yield f"SELECT measure_sweep_preset({self.usage})"
        else:
            yield ("SELECT length(victims) FROM measure_sweep_record("
                   f"{2 * self.buffers}, {MIXED}, '{{}}', '{{}}')")
        if self.cluster == sides.SWEEP:
            yield "SELECT * FROM pg_sweep_status"


# 1021 is prime: no multiple of any batch, or of a number of partitions.
CASES = (
    Case(sides.STOCK, "stock", 1024, 0, main=True),
    Case(sides.STOCK, "stock", 1021, 2, main=True),
    Case(sides.STOCK, "stock", 1021, MIXED, 7, main=True),
    Case(sides.SWEEP, "stock", 1021, MIXED, 7),
    Case(sides.SWEEP, "batched", 1024, 0, batch=64, main=True),
    Case(sides.SWEEP, "batched", 1021, 2, batch=64, main=True),
    Case(sides.SWEEP, "batched", 1021, MIXED, 7, main=True),
    Case(sides.SWEEP, "batched", 1021, MIXED, 7, batch=1),
    Case(sides.SWEEP, "batched", 1021, 0, batch=7),
    Case(sides.SWEEP, "batched", 16384, 2, batch=1000),
    Case(sides.SWEEP, "partitioned", 1021, 2),
    Case(sides.SWEEP, "partitioned", 1021, MIXED, 7, nodes=2, partitions=4,
         main=True),
    Case(sides.SWEEP, "partitioned", 4099, 0, batch=16, nodes=4,
         partitions=8),
    Case(sides.SWEEP, "partitioned", 1021, 2, nodes=2, partitions=4,
         balance="off"),
)


# ---- the server ----

def prepare(here, settings):
    """The first start after a change of the catalogs does more than others."""
    statements = ["CREATE EXTENSION measure_sweep"]
    if here.name == sides.SWEEP:
        statements.append("CREATE EXTENSION pg_sweep")
    callgrind.single_user(here, settings, statements)
    callgrind.single_user(here, settings, ["SELECT measure_sweep_preset(0)"])


def recorded(case, here, settings, allocations):
    """(copy of the state, victims) of the server."""
    path = here.dir / "record"
    path.unlink(missing_ok=True)
    names = ", ".join(f"'{name}'" for name in PIECES)
    statement = (
        "COPY (SELECT r.start, r.victims FROM (SELECT array_agg(name) AS"
        " names, array_agg(size) AS sizes FROM pg_shmem_allocations"
        f" WHERE name IN ({names})) AS p, measure_sweep_record({allocations},"
        f" {case.usage}, names, sizes, {case.pin_every}) AS r)"
        f" TO '{path}' WITH (FORMAT binary)")
    output = callgrind.single_user(here, {**settings, **case.settings()},
                                   [*case.statements(), statement])
    if case.cluster == sides.SWEEP:
        check_in_force(case, output)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BenchError(f"the server wrote no record: {error.strerror}")
    path.unlink()
    start, victims = parse(content)
    ids = array("i", victims)
    if len(ids) != allocations:
        raise BenchError(f"{case.title()}: the server recorded {len(ids)}"
                         f" allocations instead of {allocations}")
    return start, ids


def check_in_force(case, output):
    for column, value in (("strategy", case.strategy), ("state", "ok"),
                          ("batch_size_configured", str(case.batch)),
                          ("nodes", str(case.nodes))):
        found = callgrind.answer(output, column)
        if found != value:
            raise BenchError(f"{case.title()} is not in force: {column} is"
                             f" {found!r} instead of {value!r}")


def parse(content):
    """The columns of the one row of a COPY in binary format."""
    if content[:len(COPY_MAGIC)] != COPY_MAGIC or content[-2:] != COPY_END:
        raise BenchError("the server's record is not in COPY's format")
    at = len(COPY_MAGIC) + 8            # flags, length of an extension
    columns, = struct.unpack_from(">h", content, at)
    at += 2
    values = []
    for _ in range(columns):
        length, = struct.unpack_from(">i", content, at)
        values.append(content[at + 4:at + 4 + length])
        at += 4 + length
    return values


# ---- the simulator ----

def simulated(simulator, case, here, start, allocations):
    """Its victims, from the server's state."""
    state, victims = here.dir / "state", here.dir / "victims"
    state.write_bytes(start)
    victims.unlink(missing_ok=True)
    nodes = machine.named(MACHINE).changed(
        cores=case.nodes, cores_per_group=1, groups_per_node=1,
        nodes_per_socket=1, sockets=case.nodes)
    config = {**nodes.config(), "seed": 1, "load": "replay",
              "strategy": case.strategy, "buffers": case.buffers,
              "backends": 1, "load.state": state, "load.victims": victims,
              "load.allocations": allocations, "load.usage": case.usage}
    if case.strategy != "stock":
        config.update({"batch": case.batch, "partitions": case.partitions,
                       "balance": int(case.balance == "on")})
    simulator.ask(binary.text_of(config))
    return array("i", victims.read_bytes())


# ---- both ----

def start(key, server, args):
    """(cluster, its settings)"""
    found = {} if args.installed else module.build(server, "measure_sweep")
    here = cluster.Cluster(NAME, key, server, {},
                           args.into and args.into / f"{NAME}-{key}")
    report.progress(f"making cluster {key}")
    here.init()
    settings = {**sides.preload(key), **found, "jit": "off", "fsync": "off"}
    prepare(here, settings)
    return here, settings


def compare_case(simulator, case, here, settings, number):
    report.progress(case.title())
    state, theirs = recorded(case, here, settings, number)
    ours = simulated(simulator, case, here, state, number)
    differ = [i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b]
    return (case.title(), number, number - len(differ),
            differ[0] if differ else "-")


def compare(args):
    """Are all victims the same?"""
    servers = {sides.STOCK: paths.stock_server(args),
               sides.SWEEP: paths.patched_server(args)}
    sides.check_servers(*servers.values())
    simulator = binary.Simulator(
        build.build(prefix=servers[sides.SWEEP].prefix))
    cluster.stop_all_at_exit()
    clusters = {key: start(key, server, args)
                for key, server in servers.items()}
    rows = [compare_case(simulator, case, *clusters[case.cluster],
                         args.victims)
            for case in CASES if case.main or not args.quick]
    report.table(["one backend", "victims", "the same", "first other"], rows)
    for here, _ in clusters.values():
        here.remove()
    return all(same == number for _, number, same, _ in rows)
