"""The server as it is found. It refuses settings that cannot be applied, or
could not be undone, before anything is changed."""

from ab.errors import UserError
from ab.session import quote

from ab import files
from ab import parameters
from ab import settings
from ab.session import SqlError

OLDEST = 180000
# application_name of the control session, by which runs find each other
APPLICATION = "pg_sweep ab"
ADVISORY_LOCK = 0x70675f6162


class Server:
    def __init__(self, session):
        self.session = session
        self.facts = session.row("""
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
                   pg_backend_pid() AS pid""")
        if self.facts["version"] < OLDEST:
            raise UserError("the server is PostgreSQL"
                            f" {self.facts['version_text']}; 18 is needed")
        if not self.facts["monitor"]:
            raise UserError(f"role {self.facts['user']} may not read the"
                            " statistics: it must be a superuser or have"
                            " pg_monitor")
        self.identity = session.row(
            "SELECT system_identifier::text AS system,"
            " current_setting('data_directory') AS directory"
            " FROM pg_control_system()")
        self.sweep = self.ask_sweep()
        self.planning = []              # parameters that the planner reads

    def ask_sweep(self):
        """The row of pg_sweep_status, if the extension is there."""
        if not self.session.sweep:
            return None
        return self.session.row(
            f"SELECT * FROM {self.session.sweep}pg_sweep_status")

    @property
    def has_sweep(self):
        return self.sweep is not None and self.sweep["state"] == "ok"

    @property
    def tracks_waits(self):
        return self.has_sweep and self.sweep["lwlock_policy"] is not None

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
        """An advisory lock works within one database; a run in another one is
        found by its application_name, and the one that came first goes on."""
        if not self.session.value(
                f"SELECT pg_try_advisory_lock({ADVISORY_LOCK})"):
            raise UserError("another pg_sweep_ab is at work on this server")
        self._check_others("AND (o.backend_start, o.pid)"
                           " < (me.backend_start, me.pid)")

    def check_alone(self):
        self._check_others("")

    def _check_others(self, condition):
        others = self.session.rows(f"""
            SELECT o.pid FROM pg_stat_activity o, pg_stat_activity me
             WHERE me.pid = pg_backend_pid() AND o.pid <> me.pid
               AND o.application_name = {quote(APPLICATION)} {condition}""")
        if others:
            raise UserError("another pg_sweep_ab is at work on this server"
                            f" (process {others[0]['pid']})")

    # -- whether the settings can be applied, and undone

    def check(self, wanted, attach):
        """Returns the settings, parameters in the server's spelling."""
        keys = settings.keys(wanted)
        names = {}
        self._check_sweep(keys)
        switched = [key for key in keys if settings.is_parameter(key)]
        if switched:
            self._check_system()
            for key in switched:
                names[key] = self._check_parameter(key, attach)
            files.check(self.session, [*names.values()])
        for setting in wanted:
            for key, value in setting.values.items():
                if not settings.is_parameter(key):
                    self._check_runtime(key, value)
        result = []
        for setting in wanted:
            values = {names.get(key, key): value
                      for key, value in setting.values.items()}
            if len(values) < len(setting.values):
                raise UserError(f"setting {setting.name!r}: a parameter"
                                " twice")
            result.append(settings.Setting(setting.name, values))
        return result

    def _check_sweep(self, keys):
        runtime = [key for key in keys if not settings.is_parameter(key)]
        ours = runtime + [key for key in keys if key.startswith("pg_sweep.")]
        if not ours:
            return
        if self.sweep is None:
            raise UserError(f"{ours[0]} needs pg_sweep: CREATE EXTENSION"
                            " pg_sweep in database"
                            f" {self.facts['database']}")
        if not self.has_sweep:
            raise UserError(f"{ours[0]} needs pg_sweep, which says:"
                            f" {self.sweep['state']}; {self.sweep['note']}")
        for key, function in ((settings.STRATEGY,
                               "pg_sweep_set_strategy(text)"),
                              (settings.LWLOCK_POLICY,
                               "pg_sweep_set_lwlock_policy(text, text)")):
            used = [k for k in runtime if k.startswith(key)]
            if used and not self.session.value(
                    "SELECT has_function_privilege("
                    f"{quote(self.session.sweep + function)}, 'EXECUTE')"):
                raise UserError(f"{used[0]}: role {self.facts['user']} may not"
                                f" call {function}")

    def _check_runtime(self, key, value):
        if key == settings.STRATEGY:
            parameter, extra = "pg_sweep.strategy", []
        else:
            parameter = "pg_sweep.lwlock_policy"
            extra = [] if key == settings.LWLOCK_POLICY else ["default"]
            if not self.tracks_waits:
                raise UserError(f"{key}: the server lacks the core patch"
                                " lwlock-wait-hooks")
        if tranche := settings.tranche(key):
            if not self.session.rows(
                    "SELECT 1 FROM"
                    f" {self.session.sweep}pg_sweep_lwlock_policies"
                    f" WHERE tranche = {quote(tranche)}"):
                raise UserError(f"{key}: no such tranche; their names are in"
                                " pg_sweep_lwlock_policies")
        allowed = self.session.value(
            "SELECT enumvals FROM pg_settings"
            f" WHERE name = {quote(parameter)}") + extra
        if value.lower() not in allowed:
            raise UserError(f"{key}: {value!r} is none of"
                            f" {', '.join(allowed)}")

    def _check_system(self):
        if not self.facts["superuser"]:
            raise UserError("parameters are changed by ALTER SYSTEM, for which"
                            f" role {self.facts['user']} must be a superuser")
        if self.session.value("SELECT current_setting('allow_alter_system')"
                              ) != "on":
            raise UserError("ALTER SYSTEM is off on this server"
                            " (allow_alter_system)")

    def _check_parameter(self, key, attach):
        rows = self.session.rows(
            "SELECT name, category, context, source FROM pg_settings"
            f" WHERE lower(name) = lower({quote(key)})")
        if not rows:
            return self._check_custom(key)
        name = rows[0]["name"]
        parameters.check(**rows[0])
        self._check_roles(name, attach)
        if name == "pg_sweep.ring_eager_flush" and \
                self.sweep["ring_eager_flush"] is None:
            raise UserError(f"{name}: the server lacks the core patch"
                            " ring-flush-hooks")
        if parameters.is_planning(name, rows[0]["category"]):
            self.planning.append(name)
        return name

    def _check_roles(self, name, attach):
        """ALTER ROLE and ALTER DATABASE win in the sessions of an application,
        which may be of each role and database."""
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
            raise UserError(f"{name} is set by ALTER ROLE or ALTER DATABASE"
                            f" ({found[0]['role']},"
                            f" {found[0]['database']}): ALTER SYSTEM would"
                            " have no effect there")

    def _check_custom(self, key):
        """A name with a dot may be an application's own parameter, which the
        server knows only after it was set."""
        if "." not in key:
            raise UserError(f"the server has no parameter {key}")
        try:
            # The server refuses a prefix that belongs to a library.
            self.session.execute(f"SELECT set_config({quote(key)}, '', true)")
        except SqlError as error:
            raise UserError(f"{key}: "
                            + str(error).splitlines()[0]
                            .removeprefix("ERROR:").strip())
        return key

    def is_custom(self, name):
        return not self.session.rows("SELECT 1 FROM pg_settings WHERE name ="
                                     f" {quote(name)}")
