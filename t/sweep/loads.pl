# Core tells a replacement routine of each page that comes into the pool, once, and of
# no other; with the buffer pinned, the page in the mapping table, and no lock that a rule
# could meet.  The library test_loads, preloaded instead of pg_sweep, writes the calls down.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $node = sweep_node('main', conf => qq{
shared_preload_libraries = 'test_loads, pg_prewarm'
shared_buffers = 16MB
bgwriter_lru_maxpages = 0
checkpoint_timeout = 1h
jit = off
});
require_modules($node, 'test_loads');
$node->start;
sub sql { return $node->safe_psql('postgres', $_[0]); }

sql(q{
CREATE EXTENSION pg_buffercache;
CREATE EXTENSION pg_prewarm;
CREATE FUNCTION test_loads_begin(victims bool, loads bool) RETURNS void AS '$libdir/test_loads' LANGUAGE C;
CREATE FUNCTION test_loads_seen(OUT relfilenode oid, OUT fork int4, OUT block int8, OUT ring bool, OUT io bool, OUT process text, OUT fault text)
RETURNS SETOF record AS '$libdir/test_loads' LANGUAGE C;
CREATE FUNCTION test_loads_read(rel regclass, zero bool) RETURNS void AS '$libdir/test_loads' LANGUAGE C;
CREATE FUNCTION test_loads_freed() RETURNS int8 AS '$libdir/test_loads' LANGUAGE C;
CREATE FUNCTION test_loads_stop(pid int4) RETURNS void AS '$libdir/test_loads' LANGUAGE C;
CREATE FUNCTION test_loads_stopped() RETURNS bool AS '$libdir/test_loads' LANGUAGE C;
CREATE TABLE small (i int, filler text);
INSERT INTO small SELECT i, repeat('x', 900) FROM generate_series(1, 800) i;
CREATE TABLE large (i int, filler text);
INSERT INTO large SELECT i, repeat('x', 900) FROM generate_series(1, 16000) i;
VACUUM small, large;
CHECKPOINT});
my %blocks = map { $_ => sql("SELECT pg_relation_size('$_') / 8192") } 'small', 'large';

# The loads of a table's main fork since the last call with "begin": number, different
# blocks, least and greatest, with a ring
sub seen
{
	my ($table) = @_;
	return sql(qq{
SELECT count(*), count(DISTINCT block), min(block), max(block), count(*) FILTER (WHERE ring)
  FROM test_loads_seen() WHERE relfilenode = pg_relation_filenode('$table') AND fork = 0});
}

sub begin
{
	my ($victims, $loads) = @_;
	sql("SELECT test_loads_begin($victims, $loads)");
}

sub evict_all
{
	sql('CHECKPOINT; SELECT count(pg_buffercache_evict(bufferid)) FROM pg_buffercache');
}

# only: of which loads; the contents may be valid if processes load at the same time
sub no_fault
{
	my ($title, $only) = @_;
	my $where = defined $only ? "AND $only" : '';
	is(sql("SELECT DISTINCT fault FROM test_loads_seen() WHERE fault IS NOT NULL $where"),
		'', "$title: each call is as sweep_hooks.h says");
}

# Had the page's I/O been started?
sub io
{
	my ($table) = @_;
	return sql("SELECT DISTINCT io FROM test_loads_seen() WHERE relfilenode = pg_relation_filenode('$table')");
}

# ---- reads ----

my $all = sub { my ($n, $rings) = @_; return join '|', $n, $n, 0, $n - 1, $rings; };
evict_all();
begin('false', 'true');
sql('SELECT count(*) FROM small');
is(seen('small'), $all->($blocks{small}, 0), 'a scan that misses: each block once, without a ring');
is(io('small'), 'f', 'and before it is read');
no_fault('a scan that misses');

begin('false', 'true');
sql('SELECT count(*) FROM small');
is(seen('small'), '0|0|||0', 'a scan that hits: none');

evict_all();
begin('false', 'true');
sql('SELECT count(*) FROM large');
is(seen('large'), $all->($blocks{large}, $blocks{large}),
	'a scan by a ring, which reuses its buffers: each block once, with the ring');
no_fault('a scan by a ring');

evict_all();
begin('false', 'true');
sql(q{
SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0; SET parallel_leader_participation = off;
SELECT count(*) FROM small});
is(seen('small'), $all->($blocks{small}, 0), 'a parallel scan: each block once');
is( sql(q{SELECT DISTINCT process FROM test_loads_seen()
 WHERE relfilenode = pg_relation_filenode('small') AND fork = 0}),
	'background worker', 'told by the workers');

evict_all();
begin('true', 'false');
sql('SELECT count(*) FROM small');
is(sql('SELECT count(*) FROM test_loads_seen()'), 0, 'loads are not wanted: none is told');

# ---- new blocks ----

begin('false', 'true');
sql('CREATE TABLE new (LIKE small)');
sql('INSERT INTO new SELECT * FROM small');
my $new = sql(q{SELECT pg_relation_size('new') / 8192});
cmp_ok($new, '>', 50, "an extension by $new blocks");
is(seen('new'), $all->($new, 0), 'an extension: each block once');
is(io('new'), 't', 'an extension: after its I/O has been started, so that no reader can come first');
no_fault('an extension');

begin('false', 'true');
sql('CREATE TABLE copied AS SELECT * FROM small');
$new = sql(q{SELECT pg_relation_size('copied') / 8192});
is(seen('copied'), $all->($new, $new), 'an extension by a ring: each block once, with the ring');

begin('false', 'true');
is( sql(q{CREATE TEMP TABLE temporary AS SELECT * FROM small;
SELECT count(*) FROM test_loads_seen() WHERE relfilenode = pg_relation_filenode('temporary')}),
	0, 'a temporary table: none');

# ---- pages that fail, and that are there already ----

sql('CREATE TABLE beyond (LIKE small); INSERT INTO beyond SELECT * FROM small LIMIT 1');
begin('false', 'true');
foreach my $times (1, 2)
{
	my (undef, undef, $stderr) = $node->psql('postgres', q{SELECT test_loads_read('beyond', false)});
	like($stderr, qr/could not read blocks 1\.\.1 in file/, "a read that fails, $times");
}
is(seen('beyond'), '1|1|1|1|0', 'the page is told once, since it stays in the pool');
sql(q{SELECT test_loads_read('beyond', true)});
begin('false', 'true');
sql('INSERT INTO beyond SELECT * FROM small LIMIT 20');
my $last = sql(q{SELECT pg_relation_size('beyond') / 8192 - 1});
cmp_ok($last, '>=', 2, "an extension that finds a page of its own in the pool, and adds up to $last");
is(seen('beyond'), join('|', $last - 1, $last - 1, 2, $last, 0), 'that page is not told');
is(sql('SELECT test_loads_freed()'), 1, 'its victim has become free');

# ---- two processes load the same page ----

evict_all();
my $late = $node->background_psql('postgres');
my $early = $node->background_psql('postgres');
# catalogs that a scan needs
$_->query_safe('SELECT count(*) FROM small WHERE false; SELECT pg_backend_pid(); SELECT ctid FROM small LIMIT 0')
  foreach $late, $early;
my $pid = $late->query_safe('SELECT pg_backend_pid()');
$_->query_safe(q{SELECT count(*) FROM small WHERE ctid = '(1,1)'}) foreach $late, $early;
begin('true', 'true');
sql("SELECT test_loads_stop($pid)");
$late->query_until(qr/begun/, qq{\\echo begun\nSELECT count(*) FROM small WHERE ctid = '(7,1)';\n});
ok($node->poll_query_until('postgres', 'SELECT test_loads_stopped()'), 'a process is stopped while it looks for a victim');
is($early->query_safe(q{SELECT count(*) FROM small WHERE ctid = '(7,1)'}), 1, 'another one loads the page');
is(seen('small'), '1|1|7|7|0', 'and is told');
is(sql('SELECT test_loads_freed()'), 0, 'no buffer has become free');
sql('SELECT test_loads_stop(0)');
$late->query_safe('SELECT 1');
is(sql('SELECT test_loads_freed()'), 1, 'the first one gives its victim up');
is(seen('small'), '1|1|7|7|0', 'which is no load');
no_fault('two processes');
$_->quit foreach $late, $early;

# ---- recovery and autoprewarm ----

sql(q{SELECT count(*) FROM new; SELECT autoprewarm_dump_now(); CHECKPOINT; UPDATE small SET i = i + 1});
my $warm = sql(q{SELECT pg_relation_size('new') / 8192});
$node->stop('immediate');
$node->start;
cmp_ok(sql(q{SELECT count(*) FROM test_loads_seen()
 WHERE process = 'startup' AND relfilenode = pg_relation_filenode('small')}),
	'>=', $blocks{small}, 'recovery: its loads are told');
no_fault('recovery', q{process = 'startup'});
ok( $node->poll_query_until(
		'postgres', qq{
SELECT count(*) = $warm FROM test_loads_seen()
 WHERE process = 'background worker' AND relfilenode = pg_relation_filenode('new') AND fork = 0}),
	'autoprewarm: each block is told');

# ---- no routine ----

$node->append_conf('postgresql.conf', q{shared_preload_libraries = ''});
$node->restart;
begin('true', 'true');
evict_all();
is(sql('SELECT count(*) FROM small'), 800, 'victims and loads are wanted, but no routine is installed: nothing is called');
$node->stop;

# ---- too early ----

$node->append_conf('postgresql.conf', q{
shared_preload_libraries = 'test_loads'
test_loads.early = on
});
my $offset = -s $node->logfile;
is($node->start(fail_ok => 1), 0, 'a routine that is installed in _PG_init(): the server does not start');
like(
	slurp_file($node->logfile, $offset),
	qr/FATAL:  buffer replacement cannot be set before shared memory exists\n/,
	'and says why');

done_testing();
