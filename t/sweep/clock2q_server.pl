# Strategy "clock2q" in a server: it reads less than core's clock, free buffers are used
# before wanted pages leave, no buffer is passed over forever, rings stay out of
# probation, and pg_sweep_clock2q adds up.
#
# Tests of all strategies are elsewhere: tiny pools and pins, switching, crashes,
# standby, autoprewarm.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

# The strategy and its partitions: another file gives others
my ($strategy, $partitions) = @ARGV ? @ARGV : ('clock2q', 1);

my $buffers = 512;
my $node = sweep_node('main', conf => qq{
shared_buffers = $buffers
pg_sweep.strategy = $strategy
pg_sweep.partitions = $partitions
bgwriter_lru_maxpages = 0
bgwriter_delay = 10s
checkpoint_timeout = 1h
max_wal_size = 10GB
max_parallel_workers_per_gather = 0
jit = off
});
sub sql { return $node->safe_psql('postgres', $_[0]); }

$node->start;
require_modules($node, 'measure_sweep');

# A table of 5100 pages with an index; the procedure reads single rows, few of them
# often, and now and then a range of the index
sql(q{
CREATE EXTENSION pg_sweep; CREATE EXTENSION pg_buffercache; CREATE EXTENSION measure_sweep;
CREATE TABLE data (id int PRIMARY KEY, pad text);
INSERT INTO data SELECT i, repeat('x', 400) FROM generate_series(1, 91800) i;
VACUUM ANALYZE data;
CREATE PROCEDURE load(turns int, seed float8) LANGUAGE plpgsql AS $$
DECLARE
	first int;
BEGIN
	PERFORM setseed(seed);
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_bitmapscan = off;
	FOR turn IN 1 .. turns LOOP
		first := exp(11.4 * random());
		PERFORM pad FROM data WHERE id = first;
		IF turn % 400 = 0 THEN
			first := 91000 * random();
			PERFORM count(pad) FROM data WHERE id BETWEEN first AND first + 3000;
		END IF;
	END LOOP;
END $$});
churn_setup($node);

sub restart
{
	my ($next) = @_;
	$node->append_conf('postgresql.conf', "pg_sweep.strategy = $next\n");
	$node->restart;
	return;
}

# The row of pg_sweep_clock2q, and what pg_sweep_strategies has for this strategy
sub row
{
	my @names = qw(strategy length least most slots window ghosts first_lap entered windows judged stayed
	  victims_probation victims_main returned_probation returned_probation_soon returned_main
	  returned_main_soon allocations failed evictions looked_at);
	my %row;
	@row{@names} = split /\|/, sql(qq{
SELECT c.*, allocations, failed, evictions, looked_at FROM pg_sweep_clock2q c JOIN pg_sweep_strategies USING (strategy)
 WHERE strategy = '$strategy'});
	return %row;
}

sub free_buffers { return sql('SELECT count(*) FILTER (WHERE relfilenode IS NULL) FROM pg_buffercache'); }

#
# It reads less than stock, the same each time
#
my %read;
for my $next ('stock', 'batched', $strategy)
{
	restart($next);
	my $session = $node->background_psql('postgres');
	my $misses = sub {
		$session->query_safe('SELECT pg_stat_force_next_flush()');
		return $session->query_safe(q{SELECT pg_stat_get_blocks_fetched('data'::regclass) - pg_stat_get_blocks_hit('data'::regclass)});
	};
	$session->query_safe('CALL load(5000, 0.1)');
	$session->query_safe('SELECT pg_sweep_reset_stats()');
	my $before = $misses->();
	$session->query_safe('CALL load(15000, 0.2)');
	$read{$next} = $misses->() - $before;
	$session->quit;
	my %row = row();
	note "$next: $read{$next} blocks of the table read; ", join ' ', map { "$_=$row{$_}" } sort keys %row;
}
cmp_ok($read{stock}, '>', 3000, "stock reads $read{stock} blocks");
cmp_ok($read{$strategy}, '<', 0.95 * $read{stock}, "$strategy reads $read{$strategy}");
cmp_ok(abs($read{batched} / $read{stock} - 1), '<', 0.05, "a clock in leases reads as many as stock: $read{batched}");

#
# The view adds up.  Nothing else allocates, and no victim is given up.
#
my %row = row();
my $part = $buffers / $partitions;
is("$row{least} $row{most} $row{window}",
	join(' ', map { $partitions * int($part * $_) } 1 / 10, 9 / 10, 1 / 32), 'bounds and window');
cmp_ok($row{length}, '>=', $row{least}, 'length is within its bounds');
cmp_ok($row{length}, '<=', $row{most}, 'length is within its bounds');
# fewer while the length grows
cmp_ok($row{slots}, '<=', $row{length} + 40, "$row{slots} slots between the hands, the length is $row{length}");
cmp_ok($row{ghosts}, '<=', $buffers / 2, 'ghosts for half of the pool');
is($row{first_lap}, 'f', 'the first lap is over');
my $bytes = sql(q{SELECT allocated_size FROM pg_shmem_allocations WHERE name = 'pg_sweep clock2q'}) / $buffers;
cmp_ok($bytes, '<', 10.3, "$bytes bytes for each buffer");
is($row{stayed} + $row{victims_probation}, $row{judged}, 'judged buffers stay, or are victims');
is($row{victims_probation} + $row{victims_main}, $row{allocations} - $row{failed}, 'each victim is of one of two sides');
cmp_ok($row{$_}, '>', 100, "$_: $row{$_}")
  for qw(entered windows victims_probation victims_main returned_probation returned_main);
cmp_ok($row{$_}, '>', 30, "$_: $row{$_}") for qw(stayed returned_probation_soon);
cmp_ok($row{"returned_${_}_soon"}, '<=', $row{"returned_$_"}, "those that return soon to $_ are some of them")
  for qw(probation main);
cmp_ok($row{windows}, '<=', $row{entered} + $row{window}, 'at most one window for each page on probation');
my $loaded = $row{entered} + $row{returned_probation} + $row{returned_main};
cmp_ok($row{allocations} - $loaded, '<=', $row{allocations} / 100, "$loaded loads of $row{allocations} victims");
cmp_ok($loaded, '<=', $row{allocations}, 'and no more');

sql('SELECT pg_sweep_reset_stats()');
%row = row();
is(join(' ', map { $row{$_} < 100 ? 0 : $row{$_} } grep { /^(?:entered|windows|judged|stayed|victims|returned)/ } sort keys %row),
	join(' ', (0) x 10), 'a reset is for all of its counters');

#
# The first lap: free buffers are used before any page leaves.  All pages of churn()
# are read once, so probation would otherwise give all victims.
#
restart($strategy);
sql('SELECT 1');
%row = row();
is($row{first_lap}, 't', 'a server begins with a first lap');
cmp_ok(free_buffers(), '>', $buffers / 4, 'and free buffers');
my $scanned = 0;
# one session: one that ends passes over the rest of its lease
my $filler = $node->background_psql('postgres');
while ($filler->query_safe('SELECT count(*) FILTER (WHERE relfilenode IS NULL) FROM pg_buffercache') > 120)
{
	$filler->query_safe('SELECT sum(i) FROM churn_' . ++$scanned);
}
%row = row();
cmp_ok($scanned, '>', 0, "$scanned tables fit in");
cmp_ok($row{evictions}, '<', 20, "as long as there are any, no page leaves, or few: $row{evictions}");
$filler->quit;
# A session for each table: what they pass over is found by the next laps
while ($row{first_lap} eq 't' && $scanned < 25)
{
	sql('SELECT sum(i) FROM churn_' . ++$scanned);
	%row = row();
}
# a small partition may be in another one, for what sessions have passed over
is($row{first_lap}, 'f', "the first lap ends, after $scanned tables") if $partitions == 1;
cmp_ok(free_buffers(), '<', $buffers / 64 + 8, 'when hardly a buffer is free');
churn($node);
cmp_ok(free_buffers(), '<', 10, 'all are used, or nearly all');
%row = row();
is($row{first_lap}, 'f', 'and the first lap is over');

# A DROP frees many
sql('CREATE TABLE dropped AS SELECT i, repeat($$x$$, 900) AS pad FROM generate_series(1, 800) i');
sql('SELECT sum(i) FROM dropped') for 1 .. 3;
cmp_ok(sql(q{SELECT count(*) FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('dropped')}), '>', 80,
	'a table is in the pool');
sql('DROP TABLE dropped');
cmp_ok(free_buffers(), '>', 50, 'it is dropped');
%row = row();
is($row{first_lap}, 't', 'a first lap begins');
churn($node);
cmp_ok(free_buffers(), '<', 10, 'after one, its buffers are used');
%row = row();
is($row{first_lap}, 'f', 'and it is over');

# Under another strategy, too, and there are none left at the switch
switch_to($node, 'stock');
sql('CREATE TABLE dropped AS SELECT i, repeat($$x$$, 900) AS pad FROM generate_series(1, 800) i');
sql('DROP TABLE dropped');
cmp_ok(free_buffers(), '>', 50, 'a table is dropped under stock');
churn($node);
is(free_buffers(), 0, 'and its buffers are used');
switch_to($node, $strategy);
%row = row();
is($row{first_lap}, 'f', 'then a switch begins no first lap');
switch_to($node, 'stock');
sql('CREATE TABLE dropped AS SELECT i, repeat($$x$$, 900) AS pad FROM generate_series(1, 800) i');
sql('DROP TABLE dropped');
switch_to($node, $strategy);
%row = row();
is($row{first_lap}, 't', 'if they are free, it does');
churn($node);

#
# A ring: what is read or written by one does not enter probation
#
my $reader = $node->background_psql('postgres');
my $scan = sub {
	my ($expression, $table) = @_;
	my $in = sub { my %row = row(); return $row{entered} + $row{returned_probation} + $row{returned_main}; };
	$reader->query_safe("SET enable_indexscan = off; SET enable_indexonlyscan = off; SELECT sum($expression) FROM $table WHERE ctid = '(0,1)'");
	$in->();
	my $before = $in->();
	$reader->query_safe("SELECT sum($expression) FROM $table");
	return $in->() - $before;
};
my $large = $scan->('length(pad)', 'data');
cmp_ok($large, '<', 40, "a scan of a large table: $large pages are told");
sql(q{SELECT pg_buffercache_evict_relation('churn_1')});
my $small = $scan->('i', 'churn_1');
cmp_ok($small, '>', 60, "that of a small one: $small");
$reader->quit;

#
# No buffer is passed over forever: processes come and go, are ended, and the strategy
# changes.  Afterwards no page of before is left in the pool.
#
my $script = write_script('short.sql',
	"\\set id random(1, 91000)\nSELECT pad FROM data WHERE id = :id;\nSELECT pad FROM data WHERE id = :id + 500;\n");
sql('SELECT pg_sweep_reset_stats()');
run_pgbench($node, 'processes come and go', 'connecting', '--connect', '--client' => 8, '--transactions' => 40, '--file' => $script);
%row = row();
cmp_ok($row{judged}, '>', 0.8 * $row{entered}, "of $row{entered} pages on probation, $row{judged} are judged");

my $short = start_pgbench($node, 'short', '--client' => 8, '--time' => 5, '--file' => $script);
my $switching = start_switching($node, 'switching', 20, 5);
for (1 .. 8)
{
	sql(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'short' LIMIT 1});
}
wait_for_background($short, 60);
is(wait_for_background($switching, 60), 0, 'it is switched under load');
cmp_ok(counter($node, $strategy, 'switches'), '>', 10, 'and often');
switch_to($node, $strategy);
cmp_ok(sql(q{SELECT count(*) FROM pg_buffercache WHERE relfilenode IN (pg_relation_filenode('data'), pg_relation_filenode('data_pkey'))}),
	'>', 100, 'pages of a table are in the pool');
my $churns = 0;
while ($churns++ < 3)
{
	# twice, so that some stay, and the main part has to give victims
	sql("SELECT sum(i) FROM churn_$_; SELECT sum(i) FROM churn_$_") for 1 .. 25;
}
is(sql(q{SELECT count(*) FROM pg_buffercache WHERE relfilenode IN (pg_relation_filenode('data'), pg_relation_filenode('data_pkey'))}),
	0, 'when others have been read, none is left');
%row = row();
cmp_ok($row{slots}, '<=', $row{length} + 40, "$row{slots} slots between the hands, the length is $row{length}");

#
# A crash: all begins anew.  Recovery needs few buffers after a checkpoint.
#
sql('CHECKPOINT');
my $session = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $session->query_safe('SELECT pg_backend_pid()');
$session->query_safe('SELECT sum(i) FROM churn_1');
kill('KILL', $pid) or die "could not kill $pid: $!";
eval { $session->quit };
ok(wait_until_back($node), 'the server is back after a crash');
%row = row();
is($row{first_lap}, 't', 'with a first lap');
churn($node);
cmp_ok(free_buffers(), '<', 10, 'and uses all buffers');

#
# The background writer cleans what both hands come to: processes that need victims
# write few pages
#
sub written { return sql(q{SELECT coalesce(sum(writes), 0) FROM pg_stat_io WHERE backend_type = 'client backend' AND context = 'normal'}); }

my %writes;
$node->append_conf('postgresql.conf', "shared_buffers = 2048\nbgwriter_lru_multiplier = 4\n");
for my $pages (0, 1000)
{
	$node->append_conf('postgresql.conf', "bgwriter_lru_maxpages = $pages\n");
	$node->restart;
	sql(join '', map { "UPDATE churn_$_ SET i = i;\n" } 1 .. 10);
	my $from = 0;
	for my $i (1 .. 14)
	{
		# fewer pages than are on probation: those that a statement has just
		# written must be cleaned before they are judged
		my $first = 1000 + 800 * $i + ($pages > 0 ? 40000 : 0);
		sql("UPDATE data SET pad = pad WHERE id BETWEEN $first AND $first + 700");
		bgwriter_cycle($node);
		$from = written() if $i == 6;
	}
	$writes{$pages} = written() - $from;
}
cmp_ok($writes{0}, '>', 200, "without the background writer, processes write $writes{0} pages");
cmp_ok($writes{1000}, '<', $writes{0} / 2, "with it, $writes{1000}");

$node->stop;
done_testing();
