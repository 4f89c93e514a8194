# How many partitions suit a machine, which is the home of which CPU, and how many cores
# each is the home of: on machines as Linux' sysfs describes them (test/numa/sysfs), and
# on random ones.  Threads of a core have the same home, and no partition has CPUs of two
# L3 caches unless there are fewer partitions than caches.  Mutants show that the test
# fails when a property does not hold.
#
# HOMES_SEED=n chooses other machines, HOMES_CASES=n more or fewer.

use strict;
use warnings FATAL => 'all';

use File::Path qw(make_path);
use MachineTest;
use PostgreSQL::Test::Utils;
use PropertyTest;
use Test::More;

my $node = property_node('homes', 'test_sweep_homes');
sub sql { return $node->safe_psql('postgres', $_[0]); }

# ---- machines of test/numa/sysfs ----

my $trees = PostgreSQL::Test::Utils::tempdir();
my %arguments;
my @names = machine_names();
cmp_ok(scalar @names, '>=', 12, scalar(@names) . ' machines');

foreach my $name (@names)
{
	my $machine = read_machine($name);
	my $wanted = join ',', map { $machine->{wanted}{$_} } sort { $a <=> $b } keys %{ $machine->{wanted} };

	$arguments{$name} =
	  join(', ', "'$trees/$name'", map { "'{" . join(',', @$_) . "}'" } make_machine($machine, "$trees/$name"));
	my ($violation, $ms, $found) = split /\|/, sql("SELECT * FROM test_sweep_machine($arguments{$name})");
	is($violation, '', "$name: every property holds with 1 to 64 partitions");
	is($found, "{$wanted}", "$name: the partitions that suit each node");
	note sprintf('%s: read in %.2f ms', $name, $ms);
}

# Nothing there, and nonsense: everything is one cache, and nothing fails
my $alone = "'{0,0,0}', '{1,1,1}', '{0,1,2}', '{-1,-1,-1}'";
is(sql("SELECT violation FROM test_sweep_machine('$trees/nowhere', $alone)"), '', 'no files: no caches, each CPU a core');
foreach my $nonsense ('', "\n", 'x', '-', ',', '7-', "99999999999999999999\n", "3-1,2\n", "0-4294967296\n", '0,' x 20000)
{
	foreach my $cpu (0 .. 2)
	{
		make_path("$trees/nonsense/cpu$cpu/cache/index0", "$trees/nonsense/cpu$cpu/topology");
		write_file("$trees/nonsense/cpu$cpu/cache/index0", 'level', $cpu == 1 ? $nonsense : "3\n");
		write_file("$trees/nonsense/cpu$cpu/cache/index0", 'shared_cpu_list', $nonsense);
		write_file("$trees/nonsense/cpu$cpu/topology", 'core_cpus_list', $nonsense);
	}
	my ($ret, $found, $stderr) = $node->psql('postgres', "SELECT wanted FROM test_sweep_machine('$trees/nonsense', $alone)");
	is($ret, 0, 'nonsense is read: "' . substr($nonsense =~ s/\n/\\n/r, 0, 25) . '"');
}

# ---- random machines, mutants ----

check_cases($node, 'homes', 5000, 1);
check_mutants($node, 'homes', 500, 20, '^reads');

foreach my $mutant (grep { /^reads/ } split /\n/, sql('SELECT test_sweep_homes_codes()'))
{
	my @caught = grep { $_->[1] ne '' }
	  map { [ $_, sql("SELECT violation FROM test_sweep_machine($arguments{$_}, '$mutant')") ] } @names;

	isnt(scalar @caught, 0, "mutant \"$mutant\" is caught by: " . join(' ', map { $_->[0] } @caught));
}

$node->stop;
done_testing();
