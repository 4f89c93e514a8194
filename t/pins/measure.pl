# The loads of bench/pins are right: while one runs, as many pages are pinned as it
# claims to hold, and cancelling it releases them.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
require_modules($node, 'measure_pins');
$node->init;
$node->append_conf('postgresql.conf', <<'CONF');
shared_buffers = 512MB
max_connections = 20
autovacuum = off
CONF
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION measure_pins;
CREATE EXTENSION pg_buffercache;
CREATE TABLE data AS SELECT i, repeat('x', 1500) AS padding FROM generate_series(1, 12500) i;
CHECKPOINT;
CREATE VIEW pinned AS SELECT count(*) AS buffers FROM pg_buffercache
  WHERE pinning_backends > 0 AND relfilenode = pg_relation_filenode('data');
SQL

# Look at pins repeatedly while a load runs: the fewest and the most.
sub pinned_while
{
	my ($kind, $held) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query_until(qr/begun/,
		"\\echo begun\nSELECT * FROM measure_pins_run('data', '$kind', $held, duration_ms => 600000);\n"
	);
	$node->poll_query_until('postgres', "SELECT buffers >= $held FROM pinned")
	  or die "$kind: fewer than $held buffers are pinned";

	my @seen = sort { $a <=> $b } split /\n/, $node->safe_psql('postgres', <<'SQL' x 20);
SELECT buffers FROM pinned;
SQL
	is( $node->safe_psql('postgres',
			q{SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE query LIKE '%measure_pins_run(''data%'
			  AND pid <> pg_backend_pid() AND state = 'active'}),
		1, "$kind with $held held is cancelled");
	$session->quit;
	is($node->safe_psql('postgres', 'SELECT buffers FROM pinned'), 0, 'and releases all of them');
	return @seen[ 0, -1 ];
}

for my $held (1, 9, 500)
{
	for my $kind ('again', 'owner')
	{
		is_deeply([ pinned_while($kind, $held) ], [ $held, $held ], "$kind: $held are pinned");
	}
}
# Sometimes one more.  A look is no snapshot: a stream moves on meanwhile.
for my $held (0, 1, 9, 500)
{
	for my $kind ('other', 'read')
	{
		my ($fewest, $most) = pinned_while($kind, $held);
		cmp_ok($fewest, '>=', $held, "$kind: $held are pinned");
		cmp_ok($most, '<=', $held + 16, 'and no more than these and the pages pinned in turn');
	}
}
my ($fewest, $most) = pinned_while('join', 9);
cmp_ok($fewest, '>=', 9, 'join: 9 are pinned');
($fewest, $most) = pinned_while('stream', 200);
cmp_ok($fewest, '>=', 100, 'stream: a window is pinned');

# A load fails when its pages leave the pool.
for my $kind ('other', 'read')
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query_until(qr/begun/,
		"\\echo begun\nSELECT * FROM measure_pins_run('data', '$kind', 9, duration_ms => 600000);\n");
	$node->poll_query_until('postgres', 'SELECT buffers >= 9 FROM pinned')
	  or die "$kind: fewer than 9 buffers are pinned";
	# a page that is pinned at this moment stays
	$node->poll_query_until('postgres', q{
SELECT pg_buffercache_evict_relation('data') IS NOT NULL
  AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE '%measure_pins_run(''data%'
                  AND pid <> pg_backend_pid() AND state = 'active')}
	) or die "$kind goes on without its pages";
	$session->quit;
	like($session->{stderr}, qr/block \d+ was replaced in its buffer/, "$kind sees that its pages are gone");
	is($node->safe_psql('postgres', 'SELECT buffers FROM pinned'), 0, 'and releases all of them');
}

my (undef, $stdout, $stderr) =
  $node->psql('postgres', q{SELECT * FROM measure_pins_run('data', 'again', 2000, 'last', 1)});
like($stderr, qr/too few shared buffers for a process to have 2001 of them pinned/,
	'a process does not get more than its share');

$node->stop;
done_testing();
