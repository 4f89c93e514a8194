"""A/B of two strategies on the demo's server, and a check that ab restores all
settings."""

import importlib.util

from bench.lib import paths, report

TITLE = "A/B: is it better here, under this load?"
# A verdict on transactions/s needs at least 6 blocks. One on the other metrics,
# which are corrected for their number, needs at least 9.
BLOCKS, BLOCKS_QUICK = 10, 2
SLICE, SLICE_QUICK = "1.1", "1"
LOAD = ("-S",)

STATE = (
    "SELECT strategy, lwlock_policy FROM pg_sweep_status",
    "SELECT name, setting FROM pg_file_settings"
    " WHERE sourcefile LIKE '%postgresql.auto.conf' ORDER BY seqno",
    "SELECT name, setting FROM pg_settings"
    " WHERE source IN ('configuration file', 'database', 'user')"
    " ORDER BY name")


def state(stage):
    """The settings that ab may change, and must restore."""
    return [stage.admin.rows(sql) for sql in STATE]


def command(stage, strategy, load, *options):
    return [stage.server.bin("pg_sweep_ab"), *stage.connection(),
            "-d", stage.database, *load, "-c", stage.args.clients,
            "--a", "stock", "--b", strategy, *options]


def compare(stage, strategy, load, *options):
    """Runs it, and checks that all settings are as before."""
    if importlib.util.find_spec("matplotlib") is None:
        stage.explain("""(Without a picture, as matplotlib is missing: tools/deps
            installs it.)""")
        options = (*options, "--no-picture")
    before = state(stage)
    status, _ = stage.run(*command(stage, strategy, load, *options))
    if status != 0:
        raise paths.BenchError(f"pg_sweep_ab has failed (status {status})")
    if state(stage) != before:
        raise paths.BenchError("pg_sweep_ab has not restored all settings")
    report.say()
    return before[0][0]


def play(stage):
    stage.explain("""ab switches settings on a running server, in random order
        under one load. For each metric it says whether there is a difference. It
        restores all settings, however it ends. Here in a few short slices:""")
    quick = stage.args.quick
    strategy, policy = compare(
        stage, "batched", LOAD,
        "--blocks", BLOCKS_QUICK if quick else BLOCKS,
        "--slice", SLICE_QUICK if quick else SLICE,
        "--out", stage.cluster.dir / "ab")
    stage.explain(f"""Everything is as before: strategy "{strategy}", waiting
        "{policy}", and the configuration. This was too short for an answer
        about transactions. An answer takes more and longer slices (docs/ab.md).
        --attach compares under your application instead of pgbench:""")
    stage.show_command(*command(stage, "batched", LOAD, "--minutes", "5"))
