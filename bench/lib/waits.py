"""Wait events of a server's processes, sampled every few milliseconds, as
pg_stat_activity shows them. This works on any server. It gives times, and no
counts."""

from .paths import BenchError
from .sides import wait_until

# The release of this advisory lock ends the loop.
LOCK = 20251


class Sampler:
    """A session that looks in a loop inside the server. A look costs some
    100 us of CPU time, a tenth of a client's."""

    def __init__(self, cluster, ms):
        self.ms = ms
        self.admin = cluster.session()
        self.session = cluster.session()
        self.pid = int(self.session.value("SELECT pg_backend_pid()"))
        self.session.rows("CREATE TEMP TABLE looks (type text, event text)")

    def start(self, pids):
        """From now on; returns when it has begun."""
        self.pids = pids
        self.session.rows("TRUNCATE looks")
        self.admin.rows(f"SELECT pg_advisory_lock({LOCK})")
        # The list of processes is read once per transaction, their wait events
        # each time.
        self.session.send(f"""DO $$ BEGIN
            WHILE NOT pg_try_advisory_lock_shared({LOCK}) LOOP
                INSERT INTO looks SELECT wait_event_type, wait_event
                    FROM pg_stat_get_activity(NULL)
                    WHERE pid = ANY ('{{{",".join(map(str, pids))}}}');
                PERFORM pg_sleep({self.ms / 1000});
            END LOOP;
            PERFORM pg_advisory_unlock_shared({LOCK});
        END $$""")
        wait_until(self.admin, "SELECT count(*) FROM pg_stat_activity WHERE"
                   f" pid = {self.pid} AND wait_event = 'PgSleep'", "1")

    def stop(self):
        """Returns (number of looks, {(type, event): in how many of them, all
        processes together}). A look at a process that does not wait is under
        (\"\", \"\")."""
        self.admin.rows(f"SELECT pg_advisory_unlock({LOCK})")
        self.session.receive()
        seen = {(kind, event): int(count) for kind, event, count
                in self.session.rows("SELECT type, event, count(*) FROM looks"
                                     " GROUP BY type, event")}
        looks, rest = divmod(sum(seen.values()), len(self.pids))
        if rest:
            raise BenchError("a process whose wait events were looked at has"
                             " gone")
        return looks, seen
