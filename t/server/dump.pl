# pg_dumpall and pg_dump with the extension created, its parameters set for the server, roles,
# a database and a function, views of users on its views, and rights that users have changed.
# A restore makes the same in a server with the library, and a second dump is the first one
# again.  In a server that does not preload the library, is not patched, or does not have it,
# all is there that can be, and errors name what is missing.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $dir = $PostgreSQL::Test::Utils::tmp_check;

my $source = sweep_node('source');
$source->start;
$source->safe_psql('postgres', q{
CREATE ROLE loader LOGIN;
CREATE ROLE watcher LOGIN;
CREATE DATABASE app;
ALTER SYSTEM SET pg_sweep.strategy = 'batched';
ALTER ROLE loader SET pg_sweep.ring_eager_flush = on;
ALTER DATABASE app SET pg_sweep.lwlock_track_waits = off;
ALTER ROLE watcher IN DATABASE app SET pg_sweep.lwlock_track_waits = on;
GRANT SET ON PARAMETER pg_sweep.ring_eager_flush TO loader;
});
$source->safe_psql('app', q{
CREATE SCHEMA monitoring;
CREATE EXTENSION pg_sweep SCHEMA monitoring;
SET search_path = public, monitoring;
CREATE VIEW busiest AS
    SELECT tranche, mode, sum(slept) AS slept FROM pg_sweep_lwlock_waits GROUP BY 1, 2;
CREATE VIEW state AS SELECT state, note FROM pg_sweep_status;
CREATE MATERIALIZED VIEW at_noon AS SELECT strategy, allocations >= 0 AS counted FROM pg_sweep_strategies;
CREATE FUNCTION load() RETURNS text LANGUAGE sql SET pg_sweep.ring_eager_flush = on
    AS $$ SELECT current_setting('pg_sweep.ring_eager_flush') $$;
GRANT SELECT ON monitoring.pg_sweep_pins TO watcher;
GRANT EXECUTE ON FUNCTION monitoring.pg_sweep_reset_stats() TO watcher;
REVOKE SELECT ON monitoring.pg_sweep_ring FROM pg_monitor;
CREATE TABLE t AS SELECT generate_series(1, 1000) AS i;
});
$source->reload;

# A dump of all databases.  With a key given, it does not differ by the run.
sub dump_all
{
	my ($node, $title) = @_;
	my $file = "$dir/dumpall.sql";

	$node->command_ok([ 'pg_dumpall', '--no-sync', '--restrict-key' => 'test', '--file' => $file ], "$title: pg_dumpall");
	return slurp_file($file);
}

my $dump = dump_all($source, 'source');
like($dump, qr/^CREATE EXTENSION IF NOT EXISTS pg_sweep WITH SCHEMA monitoring;/m, 'the dump creates the extension');
unlike($dump, qr/CREATE (?:FUNCTION|VIEW) monitoring\./, 'and none of its members');
like($dump, qr/^ALTER DATABASE app SET "pg_sweep\.lwlock_track_waits" TO 'off';/m, 'it has the parameters of databases');
like($dump, qr/^ALTER ROLE loader SET "pg_sweep\.ring_eager_flush" TO 'on';/m, 'and of roles');
like($dump, qr/^GRANT SELECT ON TABLE monitoring\.pg_sweep_pins TO watcher;/m, 'it has the rights that were added');
like($dump, qr/^REVOKE SELECT ON TABLE monitoring\.pg_sweep_ring FROM pg_monitor;/m, 'and those that were taken away');

# What a user sees of all that
sub seen
{
	my ($node) = @_;
	my $restored = $node->safe_psql('app', q{
SELECT count(*), sum(i) FROM t;
SELECT * FROM state;
SELECT count(*) FROM busiest WHERE slept < 0;
SELECT string_agg(strategy, ' ' ORDER BY strategy) FROM at_noon WHERE counted;
SELECT load();
SELECT current_setting('pg_sweep.lwlock_track_waits');
SELECT has_table_privilege('watcher', 'monitoring.pg_sweep_pins', 'SELECT'),
       has_table_privilege('watcher', 'monitoring.pg_sweep_nodes', 'SELECT'),
       has_function_privilege('watcher', 'monitoring.pg_sweep_reset_stats()', 'EXECUTE'),
       has_table_privilege('pg_monitor', 'monitoring.pg_sweep_ring', 'SELECT'),
       has_table_privilege('pg_monitor', 'monitoring.pg_sweep_pins', 'SELECT');
});
	my $roles = join ' ', map {
		$node->safe_psql('app',
			"SELECT current_user, current_setting('pg_sweep.ring_eager_flush'), current_setting('pg_sweep.lwlock_track_waits')",
			extra_params => [ '--username' => $_ ])
	} qw(loader watcher);
	return "$restored\n$roles";
}

sub strategies_of
{
	my ($node) = @_;
	return $node->safe_psql('app', q{SELECT string_agg(strategy, ' ' ORDER BY strategy) FROM monitoring.pg_sweep_strategies});
}

my $strategies = strategies_of($source);

# What seen() is, with these rows of the views state and at_noon, and this default
sub expected
{
	my ($status, $noon, $eager) = @_;
	return "1000|500500\n$status\n0\n$noon\non\noff\nt|f|t|f|t\nloader|on|off watcher|$eager|on";
}

# Restore into a new server, in which only the superuser is there.  Returns errors, warnings
# and notices on the way.
sub restored
{
	my ($node) = @_;
	my $script = $dump =~ s/^CREATE ROLE \w+;\n(?=ALTER ROLE \w+ WITH SUPERUSER)//mr;
	my ($ret, $stdout, $stderr) = $node->psql('postgres', $script, on_error_stop => 0);

	return join '', map { /((?:ERROR|WARNING|NOTICE): .*\n)/ } split /^/, $stderr;
}

#
# With the library
#
my $target = sweep_node('target');
$target->start;
is(seen($source), expected('ok|', $strategies, 'off'), 'what was made is there');
is(restored($target), '', 'with the library: restored without a word');
is(seen($target), expected('ok|', $strategies, 'off'), 'with the library: all is there');
is(dump_all($target, 'with the library'), $dump, 'with the library: and dumps the same');
is($target->safe_psql('app', 'SHOW pg_sweep.strategy'), 'stock', 'what ALTER SYSTEM has set is not in a dump');
$target->stop;

#
# Installed, but not preloaded: parameters are placeholders, which have no defaults
#
my $not_preloaded = PostgreSQL::Test::Cluster->new('not_preloaded');
$not_preloaded->init;
$not_preloaded->append_conf('postgresql.conf', 'pg_sweep.ring_eager_flush = unset');
$not_preloaded->start;
is(restored($not_preloaded), '', 'not preloaded: restored without a word');
is( seen($not_preloaded),
	expected('not preloaded|Add pg_sweep to "shared_preload_libraries" and restart the server.', '', 'unset'),
	'not preloaded: all is there but what the views have to say');
is(dump_all($not_preloaded, 'not preloaded'), $dump, 'not preloaded: and dumps the same');
$not_preloaded->append_conf('postgresql.conf', "pg_sweep.ring_eager_flush = off\nshared_preload_libraries = 'pg_sweep'");
$not_preloaded->restart;
$not_preloaded->safe_psql('app', 'REFRESH MATERIALIZED VIEW at_noon');
is(seen($not_preloaded), expected('ok|', $strategies, 'off'), 'preloaded later: all is there');
$not_preloaded->stop;

#
# A server of the distribution, with the library and without
#
SKIP:
{
	my $stock = stock_prefix();
	skip 'there is no unpatched server (make server VARIANT=stock, or set PG_SWEEP_STOCK)', 1
	  unless defined $stock;

	my $unpatched = PostgreSQL::Test::Cluster->new('unpatched', install_path => $stock);
	$unpatched->init;
	$unpatched->start;
	my $said = restored($unpatched);
	like($said, qr/^ERROR:  extension "pg_sweep" is not available\n/,
		'without the library: CREATE EXTENSION says so');
	is($unpatched->safe_psql('app', 'SELECT count(*), sum(i) FROM t; SELECT load()'),
		"1000|500500\non", 'without the library: all is there that does not use its views');
	is(join('', grep { !/ "?(?:pg_sweep|monitoring\.|public\.)/ } split /^/, $said), '',
		'without the library: all errors name it, its views, or views that use them') or diag $said;
	$unpatched->stop;

	skip 'this server takes extensions from one folder only', 1 if $unpatched->pg_version < 18;
	my $with = PostgreSQL::Test::Cluster->new('unpatched_with', install_path => $stock);
	$with->init;
	$with->append_conf('postgresql.conf', qq{
shared_preload_libraries = 'pg_sweep'
dynamic_library_path = '\$libdir:@{[ $source->config_data('--pkglibdir') ]}'
extension_control_path = '\$system:@{[ $source->config_data('--sharedir') ]}'
});
	$with->start;
	is( restored($with),
		qq{NOTICE:  "pg_sweep.ring_eager_flush" cannot be used on this server\n},
		'not patched: restored, with a notice for a role that sets what cannot work');
	is($with->safe_psql('app', 'SELECT count(*), sum(i) FROM t; SELECT * FROM state; SELECT count(*) FROM busiest'),
		'1000|500500
server not patched|The server lacks the core patch "sweep-replacement-hooks"; apply core-hooks to its source and build it again.
0', 'not patched: all is there but what the views have to say');
	like(($with->psql('app', 'SELECT load()'))[2],
		qr/ERROR:  invalid value for parameter "pg_sweep\.ring_eager_flush": 1\nDETAIL:  The server lacks the core patch "ring-flush-hooks"\./,
		'not patched: the function is refused when it is called');
	my ($ret, $stdout, $stderr) = $with->psql('app', 'SHOW pg_sweep.ring_eager_flush', extra_params => [ '--username' => 'loader' ]);
	is($stdout, 'off', 'not patched: the role can log in, without it');
	like($stderr, qr/WARNING:  invalid value for parameter "pg_sweep\.ring_eager_flush": 1\nDETAIL:  The server lacks/,
		'not patched: and is told why');
	is(dump_all($with, 'not patched'), $dump, 'not patched: and dumps the same');
	$with->stop;
}

#
# Custom format, a database by itself
#
my $other = sweep_node('other');
$other->start;
$other->safe_psql('postgres', 'CREATE ROLE watcher LOGIN; CREATE ROLE loader LOGIN');
$source->command_ok([ 'pg_dump', '--no-sync', '--format' => 'custom', '--create', '--file' => "$dir/app.dump", 'app' ], 'pg_dump');
$other->command_ok(
	[ 'pg_restore', '--exit-on-error', '--create', '--dbname' => 'postgres', "$dir/app.dump" ],
	'pg_restore of the database');
is( $other->safe_psql('app', q{SELECT load(), current_setting('pg_sweep.lwlock_track_waits'), (SELECT count(*) FROM at_noon WHERE counted), (SELECT state FROM state)}),
	'on|off|' . split(/ /, $strategies) . '|ok', 'and all is there');
$other->stop;

done_testing();
