"""--init: a database with pgbench's tables. An existing one is never touched,
and an incomplete one never left."""

import subprocess

from ab.errors import UserError
from ab.session import quote

from ab.session import Session

DATABASE = "pg_sweep_ab"
POLL_SECONDS = 0.2
LONG_SECONDS = 3600             # for what waits for the disk


def make(connection, session, scale, application, interrupts):
    """Returns a connection to it."""
    if session.rows("SELECT 1 FROM pg_database WHERE datname ="
                    f" {quote(DATABASE)}"):
        raise UserError(f"database {DATABASE} is there already: use it (-d"
                        f" {DATABASE}) or drop it")
    result = connection.with_database(DATABASE)
    try:
        session.execute(f"CREATE DATABASE {DATABASE}", LONG_SECONDS)
        fill(result, scale, application, interrupts)
    except BaseException:
        session.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)",
                        LONG_SECONDS)
        raise
    return result


def fill(connection, scale, application, interrupts):
    pgbench = subprocess.Popen(
        [connection.programs["pgbench"], "-i", "-q", "-I", "dtGvp", "-s",
         str(scale), *connection.options, connection.database],
        env=connection.environment(application), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True)
    try:
        while pgbench.poll() is None:
            interrupts.sleep(POLL_SECONDS)
    finally:
        if pgbench.poll() is None:
            pgbench.kill()
        output = pgbench.communicate()[0]
    if pgbench.returncode != 0:
        raise UserError("pgbench -i failed: "
                        + "; ".join(output.strip().splitlines()[-2:]))
    session = Session(connection, application)
    try:
        if session.rows("SELECT 1 FROM pg_available_extensions"
                        " WHERE name = 'pg_sweep'"):
            session.execute("CREATE EXTENSION pg_sweep SCHEMA public")
        session.execute("CHECKPOINT", LONG_SECONDS)
    finally:
        session.close()
