# The background writer under "partitioned": it writes ahead of each partition's
# hand.  All partitions share one budget per cycle, and none is starved.  It rests
# when there is nothing to do.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

# The strategy: another file gives another
my $strategy = shift(@ARGV) // 'partitioned';

my $budget = 20;
my $node = sweep_node('main', conf => qq{
shared_buffers = 16MB
pg_sweep.strategy = $strategy
pg_sweep.numa_debug_nodes = 4
pg_sweep.partitions = 8
checkpoint_timeout = 1h
max_wal_size = 10GB
# cycles come when the test reloads
bgwriter_delay = 10s
bgwriter_lru_maxpages = 0
bgwriter_lru_multiplier = 10
});
$node->start;
require_modules($node, 'measure_sweep');
$node->safe_psql('postgres',
	'CREATE EXTENSION pg_sweep; CREATE EXTENSION measure_sweep; CREATE EXTENSION pg_buffercache');

sub sql { return $node->safe_psql('postgres', $_[0]); }

sub configure
{
	my ($line) = @_;
	$node->append_conf('postgresql.conf', $line);
	return;
}

# Dirty buffers of each partition
sub dirty
{
	return split /\n/, sql(q{
		SELECT count(bufferid) FROM pg_sweep_partitions
		LEFT JOIN pg_buffercache ON isdirty AND usagecount = 0
			 AND bufferid - 1 BETWEEN first_buffer AND first_buffer + num_buffers - 1
		GROUP BY partition ORDER BY partition});
}

# Fill the pool with dirty pages that no process has used since
sub make_dirty
{
	sql(q{
		DROP TABLE IF EXISTS dirty;
		CREATE TABLE dirty (id int, pad text) WITH (fillfactor = 10);
		ALTER TABLE dirty ALTER pad SET STORAGE PLAIN;
		INSERT INTO dirty SELECT i, repeat('x', 4500) FROM generate_series(1, 1900) i;
		SELECT measure_sweep_preset(0)});
	return;
}

sub cleaned
{
	return split /\|/, sql('SELECT buffers_clean, maxwritten_clean FROM pg_stat_bgwriter');
}

#
# Off
#
make_dirty();
my @dirty = dirty();
is(scalar(grep { $_ > 150 } @dirty), 8, "all partitions are full of dirty pages: @dirty");
bgwriter_cycle($node);
is(join(' ', cleaned()), '0 0', 'nothing is written with bgwriter_lru_maxpages = 0');

#
# One budget for all
#
configure("bgwriter_lru_maxpages = $budget");
my @before = dirty();
my $cycles = 40;
for (1 .. $cycles)
{
	# all partitions are asked for much
	sql('SELECT measure_sweep_exact(256, 0)');
	bgwriter_cycle($node);
}
my ($clean, $full) = cleaned();
cmp_ok($clean, '<=', $budget * ($full + 1),
	"never more than $budget a cycle: $clean in $full cycles that wrote so many");
cmp_ok($clean, '>=', $budget * $cycles / 4, "pages were written: $clean");
cmp_ok($full, '>=', $cycles / 4, "and the budget used up in many cycles: $full");
my @after = dirty();
is(scalar(grep { $before[$_] - $after[$_] > $clean / 40 } 0 .. 7),
	8, "in every partition: @before became @after");

#
# Ahead of the hand: the next victims are clean already
#
configure("bgwriter_lru_maxpages = 1000");
sql('SELECT measure_sweep_exact(1000, 0)');
bgwriter_cycle($node) for 1 .. 2;
is(sql(q{
	SELECT count(*) FROM pg_sweep_partitions JOIN pg_buffercache
	ON (bufferid - 1 - first_buffer - (hand - first_buffer) + num_buffers) % num_buffers < 64
	   AND bufferid - 1 BETWEEN first_buffer AND first_buffer + num_buffers - 1
	WHERE isdirty AND usagecount = 0 AND pinning_backends = 0}),
	0, 'no dirty page is among the next 64 of any hand');

#
# Idle: the writer rests
#
configure("bgwriter_delay = 10ms");
bgwriter_cycle($node);
my $pid = sql(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'});
my $event =
  q{SELECT wait_event = 'BgwriterHibernate' FROM pg_stat_activity WHERE backend_type = 'background writer'};
ok($node->poll_query_until('postgres', $event),
	'the background writer hibernates when no process allocates');

# One allocation wakes it
my $alloc = sql('SELECT buffers_alloc FROM pg_stat_bgwriter');
sql('SELECT measure_sweep_exact(500, 0)');
ok($node->poll_query_until('postgres', "SELECT buffers_alloc >= $alloc + 500 FROM pg_stat_bgwriter"),
	'and an allocation wakes it');
is(sql(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'}),
	$pid, 'it has been the same one all the time');

$node->stop;
done_testing();
