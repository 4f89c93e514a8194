"""The metrics of a slice, and their sources."""

from dataclasses import dataclass
from statistics import fmean

HIGHER, LOWER = "higher", "lower"
HEADLINE = "tps"


@dataclass(frozen=True)
class Metric:
    name: str
    title: str
    digits: int
    better: str = None              # None: neither
    counted: bool = False           # a number of events, which may be 0


METRICS = {metric.name: metric for metric in (
    Metric(HEADLINE, "transactions/s", 0, HIGHER, True),
    Metric("latency_p50_ms", "latency, ms: 50 %", 3, LOWER),
    Metric("latency_p95_ms", "95 %", 3, LOWER),
    Metric("latency_p99_ms", "99 %", 3, LOWER),
    Metric("latency_p99.9_ms", "99.9 %", 3, LOWER),
    Metric("cpu_us_per_transaction", "CPU time/transaction, us", 1, LOWER),
    Metric("allocations_per_second", "allocations/s", 0),
    Metric("hit_ratio", "hit ratio", 4, HIGHER),
    Metric("reads_per_transaction", "blocks read/transaction", 4, LOWER, True),
    Metric("shared_atomics_per_allocation", "shared atomics/allocation", 4,
           LOWER, True),
    Metric("local_share", "local share of allocations", 4, HIGHER),
    Metric("contended_per_transaction", "LWLocks: contended/transaction", 4,
           LOWER, True),
    Metric("sleeps_per_transaction", "LWLocks: sleeps/transaction", 4, LOWER,
           True),
)}


class Counters:
    """Reads all counters of the server by one statement."""

    def __init__(self, session, server, attach):
        self.session = session
        # pgbench is in one database, an application may be in all
        where = "" if attach else " WHERE datname = current_database()"
        columns = {
            "at": "extract(epoch FROM clock_timestamp())::float8",
            "hit": "d.hit", "read": "d.read",
            "resets": "concat_ws(' ', d.reset, (SELECT stats_reset FROM"
                      " pg_stat_bgwriter))",
            # look() subtracts what this session has done, which must be
            # reported by then.
            "nothing": "pg_stat_force_next_flush()::text",
            "written": "(SELECT buffers_alloc FROM pg_stat_bgwriter)",
        }
        source = ("(SELECT sum(blks_hit)::int8 AS hit,"
                  " sum(blks_read)::int8 AS read,"
                  " string_agg(stats_reset::text, ' ' ORDER BY datid) AS reset"
                  f" FROM pg_stat_database{where}) d")
        if server.has_sweep:
            source += (", (SELECT sum(allocations)::int8 AS allocations,"
                       " sum(coalesce(leases, looked_at + allocations))::int8"
                       " AS atomics"
                       f" FROM {session.sweep}pg_sweep_strategies) s")
            source += (", (SELECT stats_reset::text AS reset"
                       f" FROM {session.sweep}pg_sweep_status) r")
            columns |= {"sweep_reset": "r.reset",
                        "allocations": "s.allocations",
                        "atomics": "s.atomics"}
        if server.has_nodes:
            source += (", (SELECT sum(allocations)::int8 AS allocations,"
                       " sum(local_allocations)::int8 AS local"
                       f" FROM {session.sweep}pg_sweep_nodes) n")
            columns |= {"node_allocations": "n.allocations",
                        "local": "n.local"}
        if server.tracks_waits:
            source += (", (SELECT coalesce(sum(contended), 0)::int8"
                       " AS contended, coalesce(sum(slept), 0)::int8 AS slept"
                       f" FROM {session.sweep}pg_sweep_lwlock_waits) w")
            columns |= {"contended": "w.contended", "slept": "w.slept",
                        "tracked": "current_setting("
                                   "'pg_sweep.lwlock_track_waits')"}
        self.query = ("SELECT " + ", ".join(f"{value} AS {name}" for name,
                                            value in columns.items())
                      + f" FROM {source}")

    def look(self):
        """(moment, transactions of all other sessions by then)"""
        before = self.session.statements
        row = self.session.row(
            "SELECT extract(epoch FROM clock_timestamp())::float8 AS at,"
            " sum(xact_commit + xact_rollback)::int8 AS transactions,"
            " max(pg_stat_force_next_flush()::text) AS nothing"
            " FROM pg_stat_database")
        return row["at"], row["transactions"] - before

    def read(self):
        return self.session.row(self.query)


def rate(looks):
    """Transactions a second, by readings of their number: the slope of a line
    through all of them (least squares). Sessions report once a second, so the
    number rises in steps, which change a slope far less than a difference of
    two readings."""
    middle = fmean(at for at, _ in looks)
    level = fmean(count for _, count in looks)
    return max(0.0, sum((at - middle) * (count - level) for at, count in looks)
               / sum((at - middle) ** 2 for at, _ in looks))


def were_reset(before, after):
    """Statistics were reset meanwhile; dropping a database does so, too."""
    return any(before.get(name) != after.get(name)
               for name in ("resets", "sweep_reset"))


def of_counters(before, after):
    """Metrics of a slice, by two results of Counters.read(). None: not known;
    0 is a measurement."""
    def delta(name):
        if before.get(name) is None or after.get(name) is None:
            return None
        return (after[name] - before[name]
                if after[name] >= before[name] else None)

    def share(part, whole):
        known = None not in (part, whole) and whole > 0
        return part / whole if known else None

    seconds = after["at"] - before["at"]
    allocations = delta("allocations")
    hit, read = delta("hit"), delta("read")
    tracked = before.get("tracked") == after.get("tracked") == "on"
    per_second = (allocations if allocations is not None
                  else delta("written"))
    return {
        "seconds": seconds,
        "allocations_per_second": share(per_second, seconds),
        "hit_ratio": (share(hit, hit + read)
                      if None not in (hit, read) else None),
        "read": read,
        "allocations": allocations,
        "atomics": delta("atomics"),
        "shared_atomics_per_allocation": share(delta("atomics"), allocations),
        "local_share": share(delta("local"), delta("node_allocations")),
        "contended": delta("contended") if tracked else None,
        "slept": delta("slept") if tracked else None,
    }


def complete(values):
    """Add what is per transaction. values: of_counters(), with tps, and
    cpu_ns_per_second if it is known."""
    tps = values[HEADLINE]
    transactions = tps * values["seconds"] if tps else None

    def per_transaction(name):
        return (values[name] / transactions
                if transactions and values.get(name) is not None else None)

    cpu = values.get("cpu_ns_per_second")
    values["cpu_us_per_transaction"] = (cpu / tps / 1000
                                        if tps and cpu is not None else None)
    values["reads_per_transaction"] = per_transaction("read")
    values["contended_per_transaction"] = per_transaction("contended")
    values["sleeps_per_transaction"] = per_transaction("slept")
    # Half an event, added to counts: 0 has no logarithm.
    values["half"] = {
        HEADLINE: 0.5 / values["seconds"],
        "shared_atomics_per_allocation":
            0.5 / values["allocations"] if values["allocations"] else None,
    }
    for name in ("reads_per_transaction", "contended_per_transaction",
                 "sleeps_per_transaction"):
        values["half"][name] = 0.5 / transactions if transactions else None
    return values
