"""Queries of the bench pins: their tables, how they run, and checks of their
plans and pages."""

import json
from dataclasses import dataclass

from bench.lib.paths import BenchError

PARTITIONS = 256
TABLES = 16                     # of the wide join

# Of the full size; quick takes a tenth
FACTS = 800_000                 # rows, 20 a page
PART_ROWS = 1000                # of each partition
ACCOUNTS = 500_000
CHAIN_ROWS = 2000
POINTS = 5000                   # executions of the point select


@dataclass(frozen=True)
class Query:
    """sql is prepared and executed. If there is a "call", that is executed
    instead; it executes sql "times" times inside a function. sql may have
    {accounts} in it."""
    name: str
    what: str
    sql: str
    nodes: tuple                # of its plan, all of them
    settings: tuple = ()
    call: str = None
    times: int = 1
    parameter: int = None       # of sql, when its plan is looked at
    evict: str = None           # the table that is to be read from files

    def prepare(self, session, scale):
        for setting in (*COMMON, *self.settings):
            session.rows(f"SET {setting}")
        sql = self.sql.format(accounts=int(ACCOUNTS * scale))
        session.rows(f"PREPARE {self.name} AS {sql}")

    def before(self, session):
        """What is not measured, before each time."""
        if self.evict:
            session.rows("SELECT pg_buffercache_evict_relation("
                         f"'{self.evict}')")

    def statement(self):
        return self.call or self.execute()

    def execute(self):
        return f"EXECUTE {self.name}" + (
            "" if self.parameter is None else f" ({self.parameter})")

    def check(self, session):
        """Aborts unless the plan is as intended and all is in the pool."""
        self.before(session)
        plan = explain(session, self.execute())
        found = set(node_types(plan))
        if found != set(self.nodes):
            raise BenchError(f"query {self.name} is not what it should"
                                   f" be: its plan has {sorted(found)} instead"
                                   f" of {sorted(self.nodes)}")
        if self.call:
            # its pages include those of the statements inside
            pages = plan["Shared Hit Blocks"]
            plan = explain(session, self.call)
            if plan["Shared Hit Blocks"] < self.times * (pages - 1):
                raise BenchError(
                    f"query {self.name} has touched"
                    f" {plan['Shared Hit Blocks']} pages, and {self.times}"
                    f" times {pages} was expected")
        self.check_pages(plan["Shared Read Blocks"],
                         plan["Shared Dirtied Blocks"]
                         + plan["Shared Written Blocks"])

    def check_moved(self, before, after, side):
        """The same for all executions in between."""
        read, written = (end - begin for begin, end in zip(before, after))
        # a query that reads needs buffers, and may find dirty pages in them
        self.check_pages(read, 0 if self.evict else written, f" ({side})")

    def check_pages(self, read, touched, where=""):
        if touched or bool(read) != bool(self.evict):
            raise BenchError(f"query {self.name}{where} has read {read}"
                                   f" pages and changed or written {touched}")


# For all sessions. Parallel workers would be other processes, and JIT is off.
COMMON = ("max_parallel_workers_per_gather = 0",
          "plan_cache_mode = force_generic_plan",
          "synchronize_seqscans = off", "work_mem = '256MB'",
          "enable_memoize = off", "enable_material = off",
          "enable_hashjoin = off", "enable_mergejoin = off")
BITMAP = ("enable_seqscan = off", "enable_indexscan = off")
INDEX = ("enable_seqscan = off", "enable_bitmapscan = off",
         "enable_indexonlyscan = off", "enable_sort = off")
# As high as they go; the server is started with io_max_combine_limit = 128.
READ_AHEAD = ("io_combine_limit = 128", "effective_io_concurrency = 1000")

POINT_SQL = ("SELECT abalance FROM accounts"
             " WHERE aid = 1 + ($1::int * 7919::int8 % {accounts})::int")
BITMAP_SQL = "SELECT sum(v) FROM facts WHERE k < 50"
WIDE_FROM = "chain0 " + " ".join(
    f"JOIN chain{i} ON chain{i}.id = chain{i - 1}.next"
    for i in range(1, TABLES))

QUERIES = (
    Query("bitmap", "bitmap heap scan, in the pool", BITMAP_SQL,
          ("Aggregate", "Bitmap Heap Scan", "Bitmap Index Scan"),
          (*BITMAP, *READ_AHEAD)),
    Query("seq", "sequential scan, in the pool",
          "SELECT sum(v) FROM facts", ("Aggregate", "Seq Scan"), READ_AHEAD),
    Query("partitions", f"nested loop over {PARTITIONS} partitions",
          "SELECT sum(v) FROM probes JOIN parts USING (a)",
          ("Aggregate", "Nested Loop", "Append", "Index Scan", "Seq Scan"),
          INDEX[1:]),
    Query("merge", f"merge of {PARTITIONS} partitions",
          "SELECT sum(v) FROM (SELECT v FROM parts WHERE a <= 100 ORDER BY a"
          " OFFSET 0) ordered",
          ("Aggregate", "Merge Append", "Index Scan"), INDEX),
    Query("nearest", f"nested loop over merges of {PARTITIONS} partitions",
          "SELECT sum(v) FROM probes, LATERAL (SELECT v FROM parts"
          " WHERE a >= probes.a ORDER BY parts.a LIMIT 1) nearest WHERE probes.a <= 30",
          ("Aggregate", "Nested Loop", "Limit", "Merge Append", "Index Scan",
           "Seq Scan"), INDEX[1:]),
    Query("wide", f"join of {TABLES} tables, by index",
          f"SELECT sum(chain{TABLES - 1}.v) FROM {WIDE_FROM}",
          ("Aggregate", "Nested Loop", "Index Scan", "Seq Scan"),
          (*INDEX[1:], "join_collapse_limit = 1")),
    Query("point", f"{POINTS} selects by primary key",
          POINT_SQL, ("Index Scan",), INDEX, call=f"SELECT points({POINTS})",
          times=POINTS, parameter=4711),
    # last: the pages that they read evict others in the end
    Query("bitmap_read", "bitmap heap scan, from files", BITMAP_SQL,
          ("Aggregate", "Bitmap Heap Scan", "Bitmap Index Scan"),
          (*BITMAP, *READ_AHEAD), evict="facts"),
    Query("seq_read", "sequential scan, from files",
          "SELECT sum(v) FROM facts", ("Aggregate", "Seq Scan"), READ_AHEAD,
          evict="facts"),
)


def explain(session, statement):
    """Executes a statement; returns its plan with the pages it touched."""
    answer = session.rows("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF,"
                          f" FORMAT JSON) {statement}")
    return json.loads("\n".join(row[0] for row in answer))[0]["Plan"]


def pages_moved(session):
    """Numbers of pages that this session has read from files and written."""
    session.rows("SELECT pg_stat_force_next_flush()")
    return tuple(int(value) for value in session.row(
        "SELECT sum(coalesce(read_bytes, 0))::int8 / size,"
        " sum(coalesce(write_bytes, 0) + coalesce(extend_bytes, 0))::int8 / size"
        " FROM pg_stat_get_backend_io(pg_backend_pid()),"
        " (SELECT current_setting('block_size')::int AS size)"
        " WHERE object = 'relation' GROUP BY size"))


def node_types(plan):
    yield plan["Node Type"]
    for below in plan.get("Plans", ()):
        yield from node_types(below)


def make_tables(session, scale):
    """The order of rows has nothing to do with the indexes. Otherwise, every
    probe would find the page that the one before has left pinned."""
    rows = int(FACTS * scale)
    accounts = int(ACCOUNTS * scale)
    part_rows = max(200, int(PART_ROWS * scale))
    for statement in (
            "SELECT setseed(0.5)",
            "CREATE TABLE facts AS SELECT i AS v,"
            " (i * 7919::int8 % 1000)::int AS k, repeat('x', 340) AS filler"
            f" FROM generate_series(1, {rows}) i",
            "CREATE INDEX ON facts (k)",
            "CREATE TABLE accounts AS SELECT i AS aid, i AS abalance,"
            " repeat('x', 84) AS filler"
            f" FROM generate_series(1, {accounts}) i",
            "ALTER TABLE accounts ADD PRIMARY KEY (aid)",
            "CREATE TABLE parts (p int, a int, v int, filler text)"
            " PARTITION BY LIST (p)",
            "SELECT format('CREATE TABLE part%s PARTITION OF parts FOR VALUES"
            " IN (%s)', p, p)"
            f" FROM generate_series(1, {PARTITIONS}) p \\gexec",
            f"INSERT INTO parts SELECT p, a, a, repeat('x', 200)"
            f" FROM generate_series(1, {PARTITIONS}) p,"
            f" generate_series(1, {part_rows}) a ORDER BY p, random()",
            "CREATE INDEX ON parts (a)",
            f"CREATE TABLE probes AS SELECT a FROM generate_series(1,"
            f" {int(max(20, 100 * scale))}) a ORDER BY random()"):
        run(session, statement)
    chain_rows = max(500, int(CHAIN_ROWS * scale))
    for i in range(TABLES):
        run(session, f"CREATE TABLE chain{i} AS SELECT id,"
            " row_number() OVER (ORDER BY random())::int AS next, id AS v,"
            f" repeat('x', 200) AS filler FROM generate_series(1, {chain_rows})"
            " id ORDER BY random()")
        run(session, f"ALTER TABLE chain{i} ADD PRIMARY KEY (id)")
    point = POINT_SQL.format(accounts=accounts).replace("$1::int", "i")
    run(session, f"""
        CREATE FUNCTION points(times int) RETURNS int8 LANGUAGE plpgsql AS $$
        DECLARE
            total int8 := 0;
            found int;
        BEGIN
            FOR i IN 1 .. times LOOP
                {point} INTO found;
                total := total + found;
            END LOOP;
            RETURN total;
        END $$""")
    # hint bits and the visibility map, so that no query writes
    run(session, "VACUUM (FREEZE, ANALYZE)")
    run(session, "CHECKPOINT")


def run(session, statement):
    if statement.endswith("\\gexec"):
        made = session.rows(statement.removesuffix("\\gexec"))
        for (each,) in made:
            session.rows(each)
    else:
        session.rows(statement)


def fill_pool(session):
    """Reads all tables and indexes into the pool; returns their pages."""
    return int(session.value(
        "SELECT sum(pg_prewarm(oid)) FROM pg_class WHERE relkind IN ('r', 'i')"
        " AND relnamespace = 'public'::regnamespace"))
