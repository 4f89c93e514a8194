"""Who has how many buffers pinned."""

TITLE = "Pins: who keeps pages in the pool"

HOLDERS = ("SELECT p.pid, p.buffers_pinned, p.most_pinned, a.state, a.query\n"
           "  FROM pg_sweep_pins p JOIN pg_stat_activity a USING (pid)\n"
           " WHERE p.buffers_pinned > 0 ORDER BY 2 DESC LIMIT 5;")


def play(stage):
    stage.explain("""A page that is pinned cannot be replaced, and VACUUM may have to
        wait for it. A session that forgets a cursor:""")
    forgetful, other = stage.terminal(), stage.terminal()
    forgetful.type("BEGIN;")
    forgetful.type("DECLARE forgotten CURSOR FOR SELECT * FROM"
                   " pgbench_accounts;")
    forgetful.type("MOVE 100000 FROM forgotten;")
    stage.explain("""Another one sees what all processes have pinned at this moment,
        and at most so far. Nobody is stopped for it, and who pins pays nothing.""")
    other.type(HOLDERS)
    forgetful.type("COMMIT;")
    other.type(HOLDERS)
