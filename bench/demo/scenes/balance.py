"""Partitions and nodes."""

TITLE = "Balance: who allocated where"


def play(stage):
    stage.explain("""What the load above has asked of each partition, and got,
        while "partitioned" was active: a process asks at home, in the partition of
        the CPU it runs on, and what is more than a fair share is redirected. Life
        expectancy is how long a page has until the hand comes by again.""")
    psql = stage.terminal()
    psql.type("SELECT partition, node, num_buffers, requests, redirected_out,"
              " allocations,\n       redirected_in, life_expectancy"
              " FROM pg_sweep_partitions;")
    psql.type("SELECT node, cpus, partitions, buffers, allocations,"
              " local_percent,\n       share_percent, imbalance_percent"
              " FROM pg_sweep_nodes;")
    stage.explain("""(A machine of one node can pretend to have more:
        pg_sweep.numa_debug_nodes.)""")
