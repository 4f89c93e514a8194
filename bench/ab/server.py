"""The server as it is found, and what of the settings it cannot do, or we could not
undo. All of it is asked before anything is changed."""

from lib.paths import BenchError

import settings
from session import SqlError, quote

OLDEST = 180000
# application_name of the control session: how runs find each other
APPLICATION = "pg_sweep bench/ab"
ADVISORY_LOCK = 0x70675f6162
AUTO_FILE = "current_setting('data_directory') || '/postgresql.auto.conf'"

# ALTER SYSTEM would put the list into quotes, as one name
LISTS_OF_NAMES = ("local_preload_libraries", "search_path",
                  "session_preload_libraries", "temp_tablespaces")
# While these are not what the user has chosen, something can be lost for good.
DANGEROUS = {
    "fsync": "a crash meanwhile would leave a corrupt cluster",
    "full_page_writes": "a crash meanwhile would leave a corrupt cluster",
    "ignore_checksum_failure": "corruption would be passed on",
    "zero_damaged_pages": "pages would be lost",
    "archive_command": "WAL may go without having been archived",
    "archive_library": "WAL may go without having been archived",
    "restore_command": "recovery would depend on it",
    "max_slot_wal_keep_size": "replication slots would be lost",
    "idle_replication_slot_timeout": "replication slots would be lost",
    "wal_keep_size": "standbys could lose WAL that they need",
    "primary_conninfo": "replication would be interrupted",
    "primary_slot_name": "replication would be interrupted",
    "allow_alter_system": "it could not be put back",
}
CONTEXTS = {
    "internal": "cannot be changed",
    "postmaster": "can be changed by a restart only",
    "backend": "is read when a session begins: those that run would not see"
               " it",
    "superuser-backend": "is read when a session begins: those that run would"
                         " not see it",
}
# pg_settings.source of a value that ALTER SYSTEM cannot change
OVERRIDDEN = {
    "command line": "on the server's command line",
    "override": "by the server itself",
    "client": "by the options of this connection (PGOPTIONS?)",
    "session": "in this session",
    "global": "by ALTER ROLE ALL",
    "database": "by ALTER DATABASE",
    "user": "by ALTER ROLE",
    "database user": "by ALTER ROLE IN DATABASE",
}


class Server:
    def __init__(self, session):
        self.session = session
        self.facts = session.row(f"""
            SELECT current_setting('server_version_num')::int AS version,
                   split_part(current_setting('server_version'), ' ', 1)
                       AS version_text,
                   (SELECT rolsuper FROM pg_roles
                     WHERE rolname = current_user) AS superuser,
                   pg_has_role('pg_monitor', 'USAGE') AS monitor,
                   current_database() AS database, session_user AS "user",
                   pg_is_in_recovery() AS standby,
                   current_setting('port') AS port,
                   host(inet_server_addr()) AS address,
                   pg_backend_pid() AS pid,
                   (SELECT extnamespace::regnamespace FROM pg_extension
                     WHERE extname = 'pg_sweep') AS schema""")
        if self.facts["version"] < OLDEST:
            raise BenchError("the server is PostgreSQL"
                             f" {self.facts['version_text']}; 18 is needed")
        if not self.facts["monitor"]:
            raise BenchError(f"role {self.facts['user']} may not read the"
                             " statistics: it must be a superuser or have"
                             " pg_monitor")
        if self.facts["schema"]:
            session.execute("SET search_path = "
                            f"pg_catalog, {self.facts['schema']}")
        self.identity = session.row(
            "SELECT system_identifier::text AS system,"
            " current_setting('data_directory') AS directory"
            " FROM pg_control_system()")
        self.sweep = self.ask_sweep()

    def ask_sweep(self):
        """pg_sweep_status, where there is any and it is well."""
        if not self.facts["schema"]:
            return None
        return self.session.row("SELECT * FROM pg_sweep_status")

    @property
    def has_sweep(self):
        return self.sweep is not None and self.sweep["state"] == "ok"

    @property
    def tracks_waits(self):
        return self.has_sweep and self.sweep["lwlock_wait"] is not None

    @property
    def has_nodes(self):
        return self.has_sweep and self.sweep["nodes"] > 1

    def describe(self):
        where = self.facts["address"] or "local socket"
        kind = ", a standby" if self.facts["standby"] else ""
        return (f"PostgreSQL {self.facts['version_text']}{kind}, {where}, port"
                f" {self.facts['port']}, database {self.facts['database']}")

    # -- one run at a time

    def take_lock(self):
        """An advisory lock is one database's; who else is there in others is
        seen by name, and the one that came first goes on."""
        if not self.session.value(
                f"SELECT pg_try_advisory_lock({ADVISORY_LOCK})"):
            raise BenchError("another bench/ab is at work on this server")
        others = self.session.rows(f"""
            SELECT o.pid FROM pg_stat_activity o, pg_stat_activity me
             WHERE me.pid = pg_backend_pid() AND o.pid <> me.pid
               AND o.application_name = {quote(APPLICATION)}
               AND (o.backend_start, o.pid) < (me.backend_start, me.pid)""")
        if others:
            raise BenchError("another bench/ab is at work on this server"
                             f" (process {others[0]['pid']})")

    # -- can the settings be applied, and undone?

    def check(self, wanted, attach):
        """Returns the settings with the names of parameters as the server
        writes them."""
        keys = settings.keys(wanted)
        names = {}
        self._check_sweep(keys)
        parameters = [key for key in keys if settings.is_parameter(key)]
        if parameters:
            self._check_files()
            for key in parameters:
                names[key] = self._check_parameter(key, attach)
            self._check_entries([*names.values()])
        for setting in wanted:
            for key, value in setting.values.items():
                if not settings.is_parameter(key):
                    self._check_runtime(key, value)
        result = []
        for setting in wanted:
            values = {names.get(key, key): value
                      for key, value in setting.values.items()}
            if len(values) < len(setting.values):
                raise BenchError(f"setting {setting.name!r}: a parameter"
                                 " twice")
            result.append(settings.Setting(setting.name, values))
        return result

    def _check_sweep(self, keys):
        runtime = [key for key in keys if not settings.is_parameter(key)]
        ours = runtime + [key for key in keys if key.startswith("pg_sweep.")]
        if not ours:
            return
        if self.sweep is None:
            raise BenchError(f"{ours[0]} needs pg_sweep: CREATE EXTENSION"
                             " pg_sweep in database"
                             f" {self.facts['database']}")
        if not self.has_sweep:
            raise BenchError(f"{ours[0]} needs pg_sweep, which says:"
                             f" {self.sweep['state']}; {self.sweep['note']}")
        for key, function in ((settings.STRATEGY,
                               "pg_sweep_set_strategy(text)"),
                              (settings.LWLOCK_WAIT,
                               "pg_sweep_set_lwlock_wait(text, text)")):
            used = [k for k in runtime if k.startswith(key)]
            if used and not self.session.value(
                    f"SELECT has_function_privilege({quote(function)},"
                    " 'EXECUTE')"):
                raise BenchError(f"{used[0]}: role {self.facts['user']} may not"
                                 f" call {function}")

    def _check_runtime(self, key, value):
        if key == settings.STRATEGY:
            parameter, extra = "pg_sweep.strategy", []
        else:
            parameter = "pg_sweep.lwlock_wait"
            extra = [] if key == settings.LWLOCK_WAIT else ["default"]
            if not self.tracks_waits:
                raise BenchError(f"{key}: the server lacks the core patch"
                                 " lwlock-wait-hooks")
        if key.startswith(settings.TRANCHE):
            tranche = key[len(settings.TRANCHE):]
            if not self.session.rows(
                    "SELECT 1 FROM pg_sweep_lwlock_policies"
                    f" WHERE tranche = {quote(tranche)}"):
                raise BenchError(f"{key}: no such tranche; their names are in"
                                 " pg_sweep_lwlock_policies")
        allowed = self.session.value(
            "SELECT enumvals FROM pg_settings"
            f" WHERE name = {quote(parameter)}") + extra
        if value.lower() not in allowed:
            raise BenchError(f"{key}: {value!r} is none of"
                             f" {', '.join(allowed)}")

    def _check_files(self):
        if not self.facts["superuser"]:
            raise BenchError("parameters are changed by ALTER SYSTEM, for which"
                             f" role {self.facts['user']} must be a superuser")
        if self.session.value("SELECT current_setting('allow_alter_system')"
                              ) != "on":
            raise BenchError("ALTER SYSTEM is off on this server"
                             " (allow_alter_system)")
        for row in self.session.rows(
                "SELECT f.name, f.sourcefile, f.sourceline, f.error"
                " FROM pg_file_settings f LEFT JOIN pg_settings s"
                " ON lower(s.name) = lower(f.name) WHERE f.error IS NOT NULL"
                " AND s.context IS DISTINCT FROM 'postmaster'"):
            raise BenchError(f"{row['sourcefile']}, line {row['sourceline']}:"
                             f" {row['name'] or ''} {row['error']}; a reload"
                             " would fail")
        pending = "a reload would bring more than the setting;" \
                  " SELECT pg_reload_conf() first, if that is what you want"
        for row in self.session.rows(f"""
                SELECT file, (pg_stat_file(file, true)).modification AS changed
                  FROM (SELECT sourcefile AS file FROM pg_file_settings
                        UNION SELECT {AUTO_FILE}
                        UNION SELECT current_setting('config_file')) f
                 WHERE (pg_stat_file(file, true)).modification
                       > pg_conf_load_time()"""):
            raise BenchError(f"{row['file']} was changed at {row['changed']},"
                             f" after the server has read it: {pending}")
        # What was changed within the second of the load: an entry that the
        # server has from elsewhere
        for row in self.session.rows(f"""
                SELECT f.name FROM pg_file_settings f JOIN pg_settings s
                    ON lower(s.name) = lower(f.name)
                 WHERE f.applied AND f.sourcefile = {AUTO_FILE}
                   AND s.source IN ('default', 'configuration file')
                   AND (f.sourcefile, f.sourceline)
                       IS DISTINCT FROM (s.sourcefile, s.sourceline)"""):
            raise BenchError(f"postgresql.auto.conf sets {row['name']}, which"
                             f" the server has not read yet: {pending}")

    def _check_entries(self, parameters):
        for parameter in parameters:
            count = self.session.value(
                "SELECT count(*) FROM pg_file_settings WHERE sourcefile ="
                f" {AUTO_FILE} AND lower(name) = lower({quote(parameter)})")
            if count > 1:
                raise BenchError("postgresql.auto.conf has been edited by hand"
                                 f" and sets {parameter} {count} times, which"
                                 " ALTER SYSTEM could not put back")

    def _check_parameter(self, key, attach):
        rows = self.session.rows(
            "SELECT name, context, source FROM pg_settings"
            f" WHERE lower(name) = lower({quote(key)})")
        if not rows:
            return self._check_custom(key)
        name, context, source = (rows[0][column] for column
                                 in ("name", "context", "source"))
        if name in DANGEROUS:
            raise BenchError(f"{name} is not for an experiment:"
                             f" {DANGEROUS[name]}")
        if context in CONTEXTS:
            raise BenchError(f"{name} {CONTEXTS[context]}")
        if name in LISTS_OF_NAMES:
            raise BenchError(f"{name} is a list of names, which ALTER SYSTEM"
                             " cannot put back exactly")
        if source in OVERRIDDEN:
            raise BenchError(f"{name} is set {OVERRIDDEN[source]}: ALTER SYSTEM"
                             " would have no effect on the load")
        self._check_roles(name, attach)
        if name == "pg_sweep.eager_flush" and \
                self.sweep["eager_flush"] is None:
            raise BenchError(f"{name}: the server lacks the core patch"
                             " ring-flush-hooks")
        return name

    def _check_roles(self, name, attach):
        """In the sessions of an application that runs already, of whatever
        role and database, ALTER ROLE and ALTER DATABASE win."""
        if not attach:
            return
        found = self.session.rows(f"""
            SELECT coalesce(r.rolname, 'all roles') AS role,
                   coalesce(d.datname, 'all databases') AS database
              FROM pg_db_role_setting s
                   LEFT JOIN pg_roles r ON r.oid = s.setrole
                   LEFT JOIN pg_database d ON d.oid = s.setdatabase,
                   unnest(s.setconfig) AS config
             WHERE lower(split_part(config, '=', 1)) = lower({quote(name)})""")
        if found:
            raise BenchError(f"{name} is set by ALTER ROLE or ALTER DATABASE"
                             f" ({found[0]['role']},"
                             f" {found[0]['database']}): ALTER SYSTEM would"
                             " have no effect there")

    def _check_custom(self, key):
        """A name with a dot may be an application's own; the server knows it
        only after it was set."""
        if "." not in key:
            raise BenchError(f"the server has no parameter {key}")
        try:
            # The server's own rules: a prefix may belong to a library.
            self.session.execute(f"SELECT set_config({quote(key)}, '', true)")
        except SqlError as error:
            raise BenchError(f"{key}: "
                             + str(error).splitlines()[0]
                             .removeprefix("ERROR:").strip())
        return key

    def is_custom(self, name):
        return not self.session.rows("SELECT 1 FROM pg_settings WHERE name ="
                                     f" {quote(name)}")
