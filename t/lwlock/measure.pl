# The load of bench/lwlock is right: sessions begin together, the holders' own count
# under the lock agrees with their results, and waits are counted.  So is that of
# bench/run release.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
require_modules($node, 'measure_lwlock');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'measure_lwlock'\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION measure_lwlock');

sub sql
{
	my ($sql) = @_;
	return $node->safe_psql('postgres', $sql);
}

# The lower end of a bucket, as in bench/lwlock
sub bucket_start
{
	my ($bucket) = @_;
	return $bucket if $bucket < 16;
	return (16 + $bucket % 16) << (int($bucket / 16) - 1);
}

is(sql('SELECT measure_lwlock_turns()'), 0, 'the lock was never held');
is(sql('SELECT acquisitions FROM measure_lwlock_hot(1000)'), 1000, 'that many acquisitions');
is(sql('SELECT measure_lwlock_turns()'), 1000, 'as many turns');
is(sql(q{SELECT acquisitions FROM measure_lwlock_hot(1000, mode => 'shared')}),
	1000, 'that many acquisitions in shared mode');
is(sql('SELECT measure_lwlock_turns()'), 1000, 'which are no turns');
is(sql('SELECT acquisitions > 0 AND elapsed_ns >= 20000000 FROM measure_lwlock_hot(duration_ms => 20)'),
	't', 'or for that long');

# Sessions begin together and contend.  Holders are so slow that some lose their CPU
# while they hold the lock.
my $sessions = 4;
my $turns = sql('SELECT measure_lwlock_turns()');
my @sessions = map { $node->background_psql('postgres') } 1 .. $sessions;
my $hot =
  "SELECT * FROM measure_lwlock_hot(NULL, 1000, hold => 2000, participants => $sessions)";

$_->query_until(qr/begun/, "\\echo begun\n$hot;\n") for @sessions[ 0 .. $sessions - 2 ];
$node->poll_query_until('postgres',
	q{SELECT count(*) = 3 FROM pg_stat_activity WHERE wait_event_type = 'Extension'})
  or die 'the first sessions do not wait for the last one';
my ($code, undef, $stderr) =
  $node->psql('postgres', 'SELECT * FROM measure_lwlock_hot(1, participants => 2)');
isnt($code, 0, 'a session with another number of participants is refused');
like($stderr, qr/waiting to be 4/, 'and told why');
$sessions[-1]->query_until(qr/begun/, "\\echo begun\n$hot;\n");

my ($acquisitions, $slept, $longest) = (0, 0, 0);
for my $session (@sessions)
{
	my ($row) = grep { /\|/ } split /\n/, $session->query_safe('SELECT 1');
	my ($got, $sleeps, $elapsed, $wait, $most, $cpu, undef, $waits) = split /\|/, $row;
	my @waits = $waits =~ /\d+/g;
	my ($sum, $low) = (0, 0);

	$acquisitions += $got;
	$slept += $sleeps;
	$longest = $most if $most > $longest;
	cmp_ok($elapsed, '>=', 1e9, 'worked for the whole duration');
	$sum += $_ for @waits;
	is($sum, $got, 'each acquisition is in the histogram');
	$low += $waits[$_] * bucket_start($_) for 0 .. $#waits;
	cmp_ok($low, '<=', $wait, 'in its bucket, or below');
	cmp_ok($low * 17 / 16 + $got, '>=', $wait, 'and not far below');
	cmp_ok($cpu, '>', 0, 'and has used it');
	$session->quit;
}
is(sql('SELECT measure_lwlock_turns()') - $turns,
	$acquisitions, 'no turn was lost: the lock was held by one at a time');
cmp_ok($slept, '>', 0, 'some slept');
cmp_ok($longest, '>', 1000, 'for longer than a microsecond');

# A session that gives up waiting is not expected any more.
($code) = $node->psql('postgres',
	'SET statement_timeout = 100; SELECT * FROM measure_lwlock_hot(1, participants => 2)');
isnt($code, 0, 'one of two participants waits until it is cancelled');
is(sql('SELECT acquisitions FROM measure_lwlock_hot(1, participants => 1)'),
	1, 'and then another session can begin alone');

# A release with waiters that are not there.  The function itself looks that all of
# them are queued, and that the release wakes the first alone.
for my $waiters (1, 2, 50)
{
	for my $flush ('false', 'true')
	{
		my ($status, $out, $err) =
		  $node->psql('postgres', "SELECT unnest(measure_lwlock_release($waiters, $flush, 5))");

	  SKIP:
		{
			skip 'no way to flush here', 1 if $err =~ /for x86-64 only/;
			is(scalar(grep { $_ > 0 } split /\n/, $out), 6, "release, $waiters waiters, flush $flush: times")
			  or diag($err);
		}
	}
}
($code, undef, $stderr) = $node->psql('postgres', "SELECT measure_lwlock_release(1000)");
isnt($code, 0, 'release: no more waiters than unused PGPROCs');
like($stderr, qr/only \d+ PGPROCs are unused/, 'release: says so');

$node->stop;
done_testing();
