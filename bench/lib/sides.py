"""What is compared: a server, what is loaded into it, and a strategy.

Nothing is measured before verify() has asked the server itself whether the
side is in force."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from .paths import BenchError
from .session import quote

# The clusters that sides run on.
STOCK = "stock"                 # the unpatched server
BARE = "bare"                   # the patched server, nothing loaded
SWEEP = "sweep"                 # the patched server with pg_sweep preloaded

# How long a reload may take to reach every process.
RELOAD_SECONDS = 10

# Only a patched server has installed this header.
HOOK_HEADER = "storage/sweep_hooks.h"


@dataclass(frozen=True)
class Side:
    name: str
    cluster: str
    strategy: str = None
    batch_size: int = None      # 0: automatic; None: of no interest
    nodes: int = None           # as the strategy sees it; None: of no interest
    loads: bool = False         # core tells the strategy of loads
    lwlock_policy: str = None     # policy for LWLocks; None: of no interest
    ring_eager_flush: bool = None    # of rings; None: of no interest


STOCK_SERVER = Side("stock server", STOCK)
NOTHING_LOADED = Side("patched, nothing loaded", BARE)
# The stock server once more: its ratio to the first one is the noise.
CONTROL = Side("stock server (again)", "control")
SWEEP_STOCK = Side("pg_sweep stock", SWEEP, "stock")


def batched(size):
    return Side(f"pg_sweep batched {size or 'auto'}", SWEEP, "batched", size)


def partitioned(nodes=None):
    """With automatic leases. nodes: as many as emulate_nodes() sets."""
    return Side("pg_sweep partitioned", SWEEP, "partitioned", 0, nodes)


def clock2q():
    """With automatic leases."""
    return Side("pg_sweep clock2q", SWEEP, "clock2q", 0, loads=True)


def lwlock_policy(policy):
    """Core's own buffer replacement, and this policy of waiting for LWLocks."""
    return Side(f"pg_sweep {policy}", SWEEP, "stock", lwlock_policy=policy)


def ring_eager_flush(on):
    """Core's own buffer replacement and waiting, and eager flush of rings."""
    return Side(f"pg_sweep ring_eager_flush {on_off(on)}", SWEEP, "stock",
                lwlock_policy="stock", ring_eager_flush=on)


LWLOCK_WAITS = ("stock", "lockless", "lockless_spin")


def on_off(on):
    return "on" if on else "off"


def emulate_nodes(nodes):
    """The settings of a cluster with emulated nodes. None: the machine's own
    nodes are used."""
    return {} if nodes is None else {"pg_sweep.numa_debug_nodes": nodes}


def emulated(nodes):
    """This number, for emulate_nodes() and partitioned(), if the machine has
    only one node; else None."""
    real = list(Path("/sys/devices/system/node").glob("node[0-9]*"))
    return None if len(real) > 1 else nodes


def preload(cluster, *others):
    """The setting that preloads what the key of a cluster says. others:
    libraries that the bench itself needs."""
    return {"shared_preload_libraries":
            ", ".join([*others, *(["pg_sweep"] if cluster == SWEEP else [])])}


def check_servers(stock, patched):
    """The two servers must be of one version, and only one of them patched."""
    if stock is not None and stock.version != patched.version:
        raise BenchError(f"the stock server is {stock.version} and the patched"
                         f" one {patched.version}: they cannot be compared")
    for server, expected in ((stock, False), (patched, True)):
        if server is None:
            continue
        header = f"{server.config('includedir-server')}/{HOOK_HEADER}"
        found = os.path.exists(header)
        if found != expected:
            raise BenchError(f"{server.prefix} should be the {server.label}"
                             f" server, but {header} is"
                             f" {'there' if found else 'missing'}")


def activate(side, admin):
    """Put a side in force; admin is a session on its cluster."""
    if side.strategy is None:
        return
    if side.batch_size is not None:
        configured = admin.value("SELECT batch_size_configured"
                                 " FROM pg_sweep_status")
        if configured != str(side.batch_size):
            admin.rows("ALTER SYSTEM SET pg_sweep.batch_size"
                       f" = {side.batch_size}")
            admin.rows("SELECT pg_reload_conf()")
            wait_until(admin, "SELECT batch_size_configured"
                       " FROM pg_sweep_status", str(side.batch_size))
    admin.rows(f"SELECT pg_sweep_set_strategy({quote(side.strategy)})")
    if side.lwlock_policy is not None:
        admin.rows("SELECT pg_sweep_set_lwlock_policy("
                   f"{quote(side.lwlock_policy)})")
    if side.ring_eager_flush is not None:
        wanted = on_off(side.ring_eager_flush)
        if admin.value("SHOW pg_sweep.ring_eager_flush") != wanted:
            admin.rows(f"ALTER SYSTEM SET pg_sweep.ring_eager_flush = {wanted}")
            admin.rows("SELECT pg_reload_conf()")
            wait_until(admin, "SHOW pg_sweep.ring_eager_flush", wanted)


def wait_until(session, query, expected):
    deadline = time.monotonic() + RELOAD_SECONDS
    while True:
        answer = session.value(query)
        if answer == expected:
            return
        if time.monotonic() > deadline:
            raise BenchError(f"{query}: {answer!r} instead of {expected!r}"
                             f" after {RELOAD_SECONDS} s")
        time.sleep(0.005)


def verify(side, session, version, *others, capped=False):
    """Abort unless this session sees the side in force.

    others: as for preload().

    capped: the pool may be small. Then the limit of all leases together may
    make a batch smaller than the one configured, and there may be fewer
    partitions than nodes."""
    def must(what, found, expected):
        if found != expected:
            raise BenchError(f"side {side.name!r} is not in force: {what} is"
                             f" {found!r} instead of {expected!r}")

    must("server_version",
         session.value("SHOW server_version").split()[0], version)
    loaded = session.value(
        "SELECT current_setting('pg_sweep.strategy', true) IS NOT NULL")
    libraries = session.value("SHOW shared_preload_libraries")
    must("shared_preload_libraries", libraries,
         preload(side.cluster, *others)["shared_preload_libraries"])
    if side.strategy is None:
        must("pg_sweep loaded", loaded, "f")
        return
    must("pg_sweep loaded", loaded, "t")
    state, note, strategy, size = session.row(
        "SELECT state, note, strategy, batch_size FROM pg_sweep_status")
    must(f"pg_sweep_status.state (note: {note})", state, "ok")
    must("pg_sweep_status.strategy", strategy, side.strategy)
    if side.lwlock_policy is not None:
        must("pg_sweep_status.lwlock_policy", session.value(
            "SELECT lwlock_policy FROM pg_sweep_status"), side.lwlock_policy)
        must("tranches with a policy of their own", session.value(
            "SELECT count(*) FROM pg_sweep_lwlock_policies WHERE own"), "0")
    if side.ring_eager_flush is not None:
        wait_until(session, "SHOW pg_sweep.ring_eager_flush",
                   on_off(side.ring_eager_flush))
        must("pg_sweep_status.ring_eager_flush", session.value(
            "SELECT ring_eager_flush FROM pg_sweep_status"),
            "t" if side.ring_eager_flush else "f")
    if side.nodes is not None:
        nodes, partitions = map(int, session.row(
            "SELECT nodes, partitions FROM pg_sweep_status"))
        must("pg_sweep_status.nodes", nodes, side.nodes)
        if not capped and (partitions < nodes or partitions % nodes != 0):
            must("pg_sweep_status.partitions", partitions,
                 f"a multiple of {nodes}")
    if side.batch_size is not None:
        wait_until(session, "SHOW pg_sweep.batch_size", str(side.batch_size))
        if side.batch_size != 0 and not (capped
                                         and int(size) < side.batch_size):
            must("pg_sweep_status.batch_size", size, str(side.batch_size))


# Read-modify-writes of lines that all backends share: one per lease, or of
# core one per allocation and one per buffer that its hand passes.
ATOMICS = "coalesce(leases, looked_at + allocations)"


def counters(side, session):
    """(allocations, shared atomics) of the side's strategy since the reset;
    None where the server cannot say."""
    if side.strategy is None:
        return None
    allocations, atomics = session.row(
        f"SELECT allocations, {ATOMICS} FROM pg_sweep_strategies"
        f" WHERE strategy = {quote(side.strategy)}")
    if allocations == "" or atomics == "":
        return None
    return int(allocations), int(atomics)


def atomics_per_allocation(before, after):
    """From two answers of counters()."""
    if before is None or after is None or after[0] == before[0]:
        return None
    return (after[1] - before[1]) / (after[0] - before[0])


def local_allocations(side, session):
    """(allocations from partitions on the process's own node, all) since the
    reset; None where there are no nodes."""
    if side.nodes is None:
        return None
    return tuple(map(int, session.row("SELECT sum(local_allocations),"
                                      " sum(allocations)"
                                      " FROM pg_sweep_nodes")))


def check_homes(side, workers):
    """Abort unless these sessions are on the nodes 0, 1, .. in turn, and
    sessions on different nodes are in different partitions."""
    homes = [worker.row("SELECT node, home FROM pg_sweep_backends"
                        " WHERE pid = pg_backend_pid()")
             for worker in workers]
    on_node = [{home for node, home in homes if node == str(i)}
               for i in range(side.nodes)]
    if (any(node != str(i % side.nodes) for i, (node, _) in enumerate(homes))
            or len(set().union(*on_node)) < sum(map(len, on_node))):
        raise BenchError("nodes and homes of the sessions are not what they"
                         f" should be: {homes}")
