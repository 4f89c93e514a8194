"""Policies of waiting for LWLocks, and the cost of waiting."""

import time

from bench.lib import report
from bench.lib.load import Load
from bench.lib.session import quote

TITLE = "Waiting for lightweight locks"
CLIENTS = 32
JOBS = 2
BASELINE = "stock"
LAST = "lockless_spin"
# After a switch, processes that wait already end their wait under the old policy.
SETTLE = 0.25
MEASURE, MEASURE_QUICK = 2.0, 0.75
# One that this load contends for.
TRANCHE = "LockManager"

# Each transaction of the load takes one number, which is known at once.
# pg_stat_database is updated once a second.
TRANSACTIONS = "pg_snapshot_xmax(pg_current_snapshot())::text::int8"
TOTALS = (f"SELECT extract(epoch FROM clock_timestamp()), {TRANSACTIONS}, w.*"
          " FROM (SELECT coalesce(sum(contended), 0),"
          " coalesce(sum(spun), 0), coalesce(sum(slept), 0),"
          " coalesce(sum(spurious_wakeups), 0), coalesce(sum(wait_time), 0),"
          " coalesce(max(longest_wait), 0) FROM pg_sweep_lwlock_waits) w")
WAITS = ("SELECT tranche, mode, contended, spun, slept,"
         " spurious_wakeups AS spurious,\n"
         "       round(wait_time) AS wait_ms,"
         " round(longest_wait::numeric, 1) AS longest_ms\n"
         "  FROM pg_sweep_lwlock_waits ORDER BY wait_time DESC LIMIT 5;")
BACK = (f"SELECT pg_sweep_set_lwlock_policy('default', {quote(TRANCHE)}),\n"
        f"       pg_sweep_set_lwlock_policy({quote(BASELINE)})")
POLICIES = ("SELECT * FROM pg_sweep_lwlock_policies"
            " WHERE own OR tranche IS NULL;")


def measure(stage, policy):
    """One row of the table: this policy for a moment."""
    rows = stage.admin.rows
    rows(f"SELECT pg_sweep_set_lwlock_policy({quote(policy)})")
    time.sleep(SETTLE)
    rows("SELECT pg_sweep_reset_stats()")
    begin = list(map(float, stage.admin.row(TOTALS)))
    time.sleep(MEASURE_QUICK if stage.args.quick else MEASURE)
    end = list(map(float, stage.admin.row(TOTALS)))
    tps = (end[1] - begin[1]) / (end[0] - begin[0])
    return [policy, f"{tps:,.0f}", *(f"{value:,.0f}" for value in end[2:7]),
            f"{end[7]:.1f}"]


def policies(stage):
    """stock first, and the one that is shown in detail last"""
    names = [name for (name,) in stage.admin.rows(
        "SELECT unnest(enumvals) FROM pg_settings"
        " WHERE name = 'pg_sweep.lwlock_policy'")]
    return sorted(names, key=lambda name: (name != BASELINE, name == LAST))


def play(stage):
    try:
        show(stage)
    finally:
        # after errors, too
        stage.admin.rows(BACK)


def show(stage):
    stage.explain(f"""A policy decides how processes wait for a lightweight lock
        (LWLock). Like a strategy, it is switched for all processes at once, under load:
        here TPC-B by {CLIENTS} clients.""")
    stage.show_command(stage.server.bin("pgbench"), *stage.connection(),
                       "-n", "-M", "prepared", "-c", CLIENTS, "-j", JOBS,
                       "-T", "60", stage.database, after=" &")
    psql = stage.terminal()
    with Load(stage.server, stage.cluster, stage.database, CLIENTS,
              JOBS) as load:
        load.wait_until_ready(stage.admin)
        *names, last = policies(stage)
        cells = [measure(stage, name) for name in names]
        psql.type(f"SELECT pg_sweep_set_lwlock_policy({quote(last)});")
        cells.append(measure(stage, last))
        psql.type(WAITS)
        load.stop()
    stage.explain("The same for each policy, all locks together, from the same"
                  " view:")
    report.table(["", "transactions/s", "contended", "got by spinning",
                  "slept", "spurious wakeups", "wait, ms", "longest, ms"],
                 cells)
    report.say()
    stage.explain("""(A second or two each is no comparison. For one, use
        pg_sweep_ab ... --setting lwlock_policy=stock --setting lwlock_policy=lockless.) One
        tranche may have a policy of its own:""")
    psql.type(f"SELECT pg_sweep_set_lwlock_policy('lockless', {quote(TRANCHE)});")
    psql.type(POLICIES)
    stage.explain("And back:")
    psql.type(f"{BACK};")
