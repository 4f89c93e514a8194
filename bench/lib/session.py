"""A psql kept open: one server session, driven through a pipe."""

from ab.session import Psql, quote  # noqa: F401

from .paths import BenchError

SEPARATOR = "\x1f"
MARKER = "--pg_sweep-bench-answer-ends--"
TROUBLE = ("ERROR:", "FATAL:", "PANIC:", "psql:", "invalid command",
           "server closed the connection", "connection to server")


class Session(Psql):
    """send() and receive() are separate: one script can make several sessions
    work at the same time."""

    def __init__(self, server, host, database="postgres", user="postgres"):
        self.what = f"{host} {database}"
        super().__init__(
            [server.bin("psql"), "-X", "-q", "-A", "-t", "-F", SEPARATOR,
             "-P", "pager=off", "-h", str(host), "-U", user, "-d", database],
            text=True)

    def send(self, sql):
        try:
            self.psql.stdin.write(f"{sql.rstrip().rstrip(';')};\n"
                                  f"\\echo {MARKER}\n")
            self.psql.stdin.flush()
        except BrokenPipeError:
            raise BenchError(f"psql has gone ({self.what}):"
                             f" {self.psql.stdout.read().strip()}")

    def receive(self):
        """The rows of the statement sent last, each a list of strings."""
        lines = []
        while True:
            line = self.psql.stdout.readline()
            if line == "":
                raise BenchError(f"psql has gone ({self.what}): "
                                 + "\n".join(lines))
            line = line.rstrip("\n")
            if line == MARKER:
                break
            lines.append(line)
        for line in lines:
            if line.startswith(TROUBLE):
                raise BenchError("\n".join(lines))
        return [line.split(SEPARATOR) for line in lines]

    def rows(self, sql):
        self.send(sql)
        return self.receive()

    def value(self, sql):
        return self.row(sql)[0]
