"""Partitions and nodes."""

TITLE = "Balance: allocations by partition and node"


def play(stage):
    stage.explain("""Requests and allocations of each partition, while
        "partitioned" was active. A process asks its home, the partition of its CPU;
        requests beyond a fair share are redirected. Life expectancy is the time in
        which as many pages are evicted as the partition has buffers.""")
    psql = stage.terminal()
    psql.type("SELECT partition, node, num_buffers, requests, redirected_out,"
              " allocations,\n       redirected_in, life_expectancy"
              " FROM pg_sweep_partitions;")
    psql.type("SELECT node, cpus, partitions, buffers, allocations,"
              " local_percent,\n       share_percent, imbalance_percent"
              " FROM pg_sweep_nodes;")
    stage.explain("""(pg_sweep.numa_debug_nodes emulates more nodes on a machine
        with one.)""")
