"""Eager flush of the ring of a bulk write."""

TITLE = "Eager flush: bulk loads that write neighbouring blocks together"
ROWS = 1_000_000

WRITES = ("SELECT writes, round(write_bytes / 8192) AS blocks,\n"
          "       round(write_bytes / 8192 / nullif(writes, 0), 1)"
          " AS blocks_a_write\n"
          "  FROM pg_stat_get_backend_io(pg_backend_pid())\n"
          " WHERE object = 'relation' AND context = 'bulkwrite';")
RING = ("SELECT ring, laps, victims, eager, writes, wal_flushes, skipped_wal,\n"
        "       round(total_time) AS total_ms\n"
        "  FROM pg_sweep_ring WHERE ring = 'bulkwrite';")


def play(stage):
    stage.explain("""COPY, CREATE TABLE AS and VACUUM reuse a small ring of buffers.
        They write each dirty buffer separately before its reuse. With
        pg_sweep.ring_eager_flush, a process that finds a dirty buffer writes all others
        of the ring that can be written, too, and neighbours by one call. It pays where
        several processes load at once, or where writes are expensive. Here is one
        process, to show what happens.""")
    file = stage.cluster.dir / "accounts.copy"
    psql = stage.terminal()
    psql.type("CREATE TABLE IF NOT EXISTS copied (LIKE pgbench_accounts);")
    psql.type(f"COPY (SELECT * FROM pgbench_accounts LIMIT {ROWS})\n"
              f"  TO '{file}';")
    for value in ("off", "on"):
        # The counters of a session begin with it.
        psql = stage.terminal()
        psql.type("TRUNCATE copied;")
        psql.type(f"SET pg_sweep.ring_eager_flush = {value};")
        psql.type("\\timing on")
        psql.type(f"COPY copied FROM '{file}';")
        psql.type("\\timing off")
        psql.answer("SELECT pg_stat_force_next_flush();")
        psql.type(WRITES)
    psql.type(RING)
    stage.explain("""(For roles that load: ALTER ROLE loader SET
        pg_sweep.ring_eager_flush = on. docs/ring.md says when it pays;
        "make bench BENCH=copy" measures it.)""")
