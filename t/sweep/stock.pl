# Under "stock", core allocates without calling the library, and counts.  Views and
# the background writer both read that count, which core can only be asked for once.
# None of it is lost or counted twice: not under load, at a switch, or at a reset.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $node = sweep_node('main', conf => qq{
shared_buffers = 4MB
bgwriter_delay = 10ms
checkpoint_timeout = 1h
});
$node->start;
require_modules($node, 'measure_sweep');

sub sql { return $node->safe_psql('postgres', $_[0]); }

my $stock = q{(SELECT allocations FROM pg_sweep_strategies WHERE strategy = 'stock')};
my $others = q{(SELECT sum(allocations) FROM pg_sweep_strategies WHERE strategy <> 'stock')};
my $processes = q{SELECT backends, (SELECT count(*) FROM pg_sweep_backends) FROM pg_sweep_status};

sql('CREATE EXTENSION pg_sweep; CREATE EXTENSION measure_sweep');
churn_setup($node);
churn($node);
is(sql($processes), '0|0', 'no process calls the library');
check_counts_agree($node, 'beginning');

# Each read of the view takes core's count, and so does the background writer.
my $n = 50_000;
sql(qq{
	CREATE FUNCTION exactly(rounds int, OUT lowest int8, OUT highest int8) LANGUAGE plpgsql AS \$\$
	DECLARE
		before int8;
		counted int8;
	BEGIN
		FOR i IN 1..rounds LOOP
			before := $stock;
			PERFORM measure_sweep_exact($n, 0);
			counted := $stock - before;
			lowest := least(lowest, counted);
			highest := greatest(highest, counted);
		END LOOP;
	END \$\$});
my ($least, $most) = split /\|/, sql('SELECT * FROM exactly(100)');
cmp_ok($least, '>=', $n, 'every allocation is counted');
# the view's own reads of catalogs come on top
cmp_ok($most, '<', $n + 100, 'none is counted twice');
check_counts_agree($node, 'one backend');

# Several backends, the view read all the time; then with switches, too
sub check_under_load
{
	my ($title, $switching) = @_;
	my $load = start_pgbench($node, "load_$title",
		'--client' => 3, '--time' => 3600,
		'--file' => write_script("load_$title.sql", "SELECT measure_sweep_exact(1000, 0);\n"));
	my $switcher = $switching && start_switching($node, 'switcher', 5, 3600);

	is(sql(qq{
		DO \$\$
		DECLARE
			last int8 := 0;
			now int8;
		BEGIN
			FOR i IN 1..2000 LOOP
				now := $stock;
				IF now < last THEN
					RAISE 'went back from % to %', last, now;
				END IF;
				last := now;
			END LOOP;
		END \$\$;
		SELECT 'never back'}), 'never back', "$title: the count never goes back");
	stop_background($switcher) if $switching;
	stop_background($load);
	check_counts_agree($node, $title);
	return;
}

check_under_load('load', 0);
is(sql($processes), '0|0', 'load: no process has called the library');
check_under_load('switched', 1);
switch_to($node, 'stock');

# A reset begins both counts anew
sql('SELECT pg_sweep_reset_stats()');
($least) = split /\|/, sql("SELECT $stock, $others");
cmp_ok($least, '<', 1000, 'a reset sets the count to zero');
my $before = sql("SELECT $others");
sql("SELECT measure_sweep_exact($n, 0)");
my $after = sql("SELECT $others");
is($after, $before, 'and after it, allocations are stock\'s alone')
  or diag("before: $before, after: $after");

# Core counts its passes in 32 bits.  The way of its hand goes on when they wrap around.
require_modules($node, 'test_sweep');
my $way = q{SELECT passes, hand, looked_at, allocations FROM pg_sweep_strategies WHERE strategy = 'stock'};
$node->append_conf('postgresql.conf', 'bgwriter_lru_maxpages = 0');
$node->reload;
bgwriter_cycle($node);
sql(q{
	CREATE EXTENSION test_sweep;
	SELECT test_sweep_set_core_passes(size, 4294967295) FROM pg_shmem_allocations WHERE name = 'Buffer Strategy Status';
	SELECT pg_sweep_reset_stats()});
my ($passes, $hand) = split /\|/, sql($way);
is($passes, 4294967295, 'core\'s passes are the most that it can count');
sql("SELECT measure_sweep_exact($n, 0)");
my ($passes_after, $hand_after, $looked_at, $allocated) = split /\|/, sql($way);
cmp_ok($passes_after, '<', 1_000_000, "and now $passes_after");
cmp_ok(abs($looked_at - ($passes_after + 1) * 512 - $hand_after + $hand), '<', 512, "looked_at is the way of the hand ($looked_at)");
cmp_ok($looked_at, '>=', $n, 'and no less than the allocations');
$node->append_conf('postgresql.conf', 'bgwriter_lru_maxpages = 100');
$node->reload;

# A crash takes a strategy set by function away, here and in core
switch_to($node, 'batched');
sql("SELECT measure_sweep_exact($n, 0)");
cmp_ok(sql("SELECT $others"), '>=', $n, 'batched: the library allocates');
my $victim = sql('SELECT pid FROM pg_stat_activity WHERE backend_type = \'checkpointer\'');
kill('KILL', $victim) or die "could not kill $victim: $!";
ok(wait_until_back($node), 'the server comes back');
sql("SELECT measure_sweep_exact($n, 0)");
is(sql("SELECT strategy, $stock >= $n, $others FROM pg_sweep_status"),
	'stock|t|0', 'after a crash, core allocates again');
is(sql($processes), '0|0', 'and no process calls the library');

# From a start with another strategy, the library allocates: for the startup process, too
$node->append_conf('postgresql.conf', 'pg_sweep.strategy = batched');
$node->restart;
sql("SELECT measure_sweep_exact($n, 0)");
is(sql("SELECT strategy, $stock, $others >= $n FROM pg_sweep_status"), 'batched|0|t',
	'started with another strategy: core has allocated nothing');

$node->stop;
done_testing();
