"""A server of our own, to show what ab does where none is named: pgbench's
tables, some ten times as large as shared_buffers."""

from bench.lib import cluster, paths, pgbench, report

DATABASE = "bench"
SCALE, SCALE_QUICK = 40, 10
MB_PER_SCALE = 16               # of pgbench's tables, with indexes
POOL_PART = 10
SETTINGS = ("stock", "batched", "partitioned")


def start(args):
    """Returns the cluster; --patched says whose programs."""
    here = cluster.Cluster("ab", "own", paths.patched_server(args), {
        "shared_preload_libraries": "pg_sweep",
        "max_connections": args.client + 20})
    scale = SCALE_QUICK if args.quick else SCALE
    buffers = max(16, scale * MB_PER_SCALE // POOL_PART)
    report.progress("no server is named: making one, with pgbench's tables of"
                    f" scale {scale} and shared_buffers = {buffers} MB")
    here.init()
    here.start(shared_buffers=f"{buffers}MB")
    pgbench.initialize(here, DATABASE, scale)
    session = here.session(DATABASE)
    session.rows("CREATE EXTENSION pg_sweep")
    session.rows("VACUUM (FREEZE, ANALYZE)")
    session.rows("CHECKPOINT")
    return here
