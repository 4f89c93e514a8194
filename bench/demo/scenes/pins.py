"""Numbers of buffers that processes have pinned."""

TITLE = "Pins: which processes keep pages in the pool"

HOLDERS = ("SELECT p.pid, p.buffers_pinned, p.most_pinned, a.state, a.query\n"
           "  FROM pg_sweep_pins p JOIN pg_stat_activity a USING (pid)\n"
           " WHERE p.buffers_pinned > 0 ORDER BY 2 DESC LIMIT 5;")


def play(stage):
    stage.explain("""A pinned page cannot be replaced, and VACUUM may have to wait
        for it. A session that forgets a cursor:""")
    forgetful, other = stage.terminal(), stage.terminal()
    forgetful.type("BEGIN;")
    forgetful.type("DECLARE forgotten CURSOR FOR SELECT * FROM"
                   " pgbench_accounts;")
    forgetful.type("MOVE 100000 FROM forgotten;")
    stage.explain("""Another session sees how many buffers each process has pinned
        now, and the most so far. The view stops no process and costs a pin
        nothing.""")
    other.type(HOLDERS)
    forgetful.type("COMMIT;")
    other.type(HOLDERS)
