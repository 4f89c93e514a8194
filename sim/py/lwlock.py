"""One LWLock that all connections of a machine want: each way of waiting, with
few and with many connections.

Each connection thinks, acquires the lock, holds it and releases it, again and
again."""

from bench.lib import report

POLICIES = ("unpatched", "none", "stock", "lockless", "lockless_spin",
            "v2")
DEFAULT_POLICIES = ("stock", "lockless", "lockless_spin")
CONNECTIONS = (1, 4, 20, 100, 500, 2000)

# Acquisitions per connection, or of all connections, whichever is more
EACH, ALL = 20, 20_000


def add_options(parser):
    parser.add_argument("machine", nargs="*", default=["borisov32"],
                        help="names in machines/, or files"
                             " (default borisov32)")
    parser.add_argument("--connections", type=int, nargs="+",
                        default=CONNECTIONS, metavar="N")
    parser.add_argument("--policy", nargs="+", choices=POLICIES,
                        default=DEFAULT_POLICIES, metavar="POLICY",
                        help=f"of {', '.join(POLICIES)} (default those of"
                             " pg_sweep); unpatched is PostgreSQL's own"
                             " lwlock.c, none the patched one without a"
                             " library")
    parser.add_argument("--hold-ns", type=int, default=100,
                        help="time for which the lock is held (default 100)")
    parser.add_argument("--think-ns", type=int, default=5000,
                        help="time between two acquisitions (default 5000)")
    parser.add_argument("--shared-percent", type=int, default=0,
                        help="acquisitions in shared mode (default 0)")


def config(here, policy, connections, hold_ns=100, think_ns=5000,
           shared_percent=0):
    acquisitions = max(ALL, EACH * connections)
    return {**here.config(), "seed": 1, "load": "lwlock",
            "placement": "scatter", "backends": connections,
            "load.kind": "hot", "load.policy": policy,
            "load.hold_ps": 1000 * hold_ns, "load.think_ps": 1000 * think_ns,
            "load.shared_percent": shared_percent,
            "load.acquisitions": acquisitions,
            "load.warmup": acquisitions // 4}


def longest_ms(results):
    """Of waits that have ended, and of those that have not."""
    return max(results.get(key, 0) for key in (
        "exclusive.longest_wait_ns", "shared.longest_wait_ns",
        "waiting_at_the_end_ns")) / 1e6


def sleeps(results):
    """(per acquisition, per contended one or None)"""
    modes = ("exclusive", "shared")
    total = sum(results.get(f"{mode}.acquisitions", 0) for mode in modes)
    return (sum(results.get(f"{mode}.sleeps", 0) for mode in modes) / total,
            results.get("library.sleeps_per_contended"))


def show(simulator, here, args):
    rows = []
    for connections in args.connections:
        for policy in args.policy:
            found = simulator.run(config(
                here, policy, connections, args.hold_ns, args.think_ns,
                args.shared_percent)).results
            each, contended = sleeps(found)
            rows.append((f"{connections}, {policy}",
                         f"{found['acquisitions_per_s']:,.0f}",
                         f"{each:.3f}", report.fixed(contended, 3),
                         f"{longest_ms(found):.3f}"))
    report.table(["connections, policy", "acquisitions/s",
                  "sleeps per acquisition", "per contended one",
                  "longest wait, ms"], rows,
                 f"{here.name}, {here.cpus()} CPUs: held {args.hold_ns} ns,"
                 f" {args.think_ns} ns between, {args.shared_percent} % shared")
