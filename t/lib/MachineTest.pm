
=pod

=head1 NAME

MachineTest - machines as Linux' sysfs describes their CPUs

=head1 SYNOPSIS

  use MachineTest;

  my @names = machine_names();
  my $machine = read_machine('grace');
  my ($node, $usable, $core, $cache) = make_machine($machine, $folder);

=head1 DESCRIPTION

Makes the files below F</sys/devices/system/cpu> of machines that are described in
F<test/numa/sysfs>; F<README.md> there has the format.

=cut

package MachineTest;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use File::Path qw(make_path);
use PostgreSQL::Test::Utils;
use SweepTest;

our @EXPORT = qw(machine_names read_machine make_machine write_file cpus list);

sub machine_names
{
	return grep { !/\./ } map { s{.*/}{}r } glob(sweep_root() . '/test/numa/sysfs/*');
}

# "0-2,8-12:2" are 0, 1, 2, 8, 10, 12
sub cpus
{
	return map {
		my ($first, $last, $step) = /^(\d+)(?:-(\d+)(?::(\d+))?)?$/ or die "$_ is no list of CPUs";
		grep { ($_ - $first) % ($step // 1) == 0 } $first .. $last // $first
	} split /,/, $_[0];
}

# As the kernel writes a list
sub list
{
	my @cpus = sort { $a <=> $b } @_;
	my @ranges;

	foreach my $cpu (@cpus)
	{
		if (@ranges && $ranges[-1][1] == $cpu - 1) { $ranges[-1][1] = $cpu; }
		else { push @ranges, [ $cpu, $cpu ]; }
	}
	return join(',', map { $_->[0] == $_->[1] ? $_->[0] : "$_->[0]-$_->[1]" } @ranges) . "\n";
}

# What a file says
sub read_machine
{
	my ($name) = @_;
	my %machine = (node => {}, cores => [], caches => [], offline => {}, without => {}, wanted => {}, id => 'right');

	foreach (split /\n/, slurp_file(sweep_root() . "/test/numa/sysfs/$name"))
	{
		next if /^#/;
		my ($what, $value) = /^(.*?): (.*)$/ or die "$name: $_";

		if ($what =~ /^node (\d+)$/) { $machine{node}{$_} = $1 foreach cpus($value); }
		elsif ($what eq 'core')
		{
			my @threads = map { [ cpus($_) ] } split ' ', $value;
			foreach my $i (0 .. $#{ $threads[0] })
			{
				push @{ $machine{cores} }, [ map { $_->[$i] } @threads ];
			}
		}
		elsif ($what =~ /^cache (\d) (\w+)$/) { push @{ $machine{caches} }, { level => $1, type => $2, scope => $value }; }
		elsif ($what =~ /^partitions (\d+)$/) { $machine{wanted}{$1} = $value; }
		elsif ($what eq 'offline') { $machine{offline}{$_} = 1 foreach cpus($value); }
		elsif ($what eq 'usable') { $machine{usable}{$_} = 1 foreach cpus($value); }
		elsif ($what eq 'without') { $machine{without}{$value} = 1; }
		elsif ($what eq 'id') { $machine{id} = $value; }
		else { die "$name: $_"; }
	}
	return \%machine;
}

# The groups of CPUs that share a cache
sub groups
{
	my ($machine, $scope) = @_;
	my @cores = @{ $machine->{cores} };

	return map { [$_] } map { @$_ } @cores if $scope eq 'cpu';
	return @cores if $scope eq 'core';
	return [ map { @$_ } @cores ] if $scope eq 'all';
	if ($scope =~ /^(\d+) cores$/)
	{
		my $each = $1;
		return map { my $from = $_ * $each; [ map { @$_ } @cores[ $from .. $from + $each - 1 ] ] } 0 .. @cores / $each - 1;
	}
	return map { [ cpus($_) ] } split ' ', $scope;
}

sub write_file
{
	my ($folder, $name, $text) = @_;

	open my $file, '>', "$folder/$name" or die "$folder/$name: $!";
	print $file $text;
	close $file;
	return;
}

# Make the files; returns what they say of each CPU, in four arrays: its node, whether
# the process may use it, and the first CPU that shares its core, and its cache; -1 if
# that is not known
sub make_machine
{
	my ($machine, $root) = @_;
	my @online = grep { !$machine->{offline}{$_} } map { @$_ } @{ $machine->{cores} };
	my $last = (sort { $a <=> $b } map { @$_ } @{ $machine->{cores} })[-1];
	my %is_online = map { $_ => 1 } @online;
	my (@core, @cache, @level);

	make_path("$root/cpu$_") foreach 0 .. $last;
	foreach my $core (@{ $machine->{cores} })
	{
		my @threads = grep { $is_online{$_} } @$core;

		foreach my $cpu (@threads)
		{
			make_path("$root/cpu$cpu/topology");
			foreach my $name ('core_cpus_list', 'thread_siblings_list')
			{
				next if $machine->{without}{$name};
				write_file("$root/cpu$cpu/topology", $name, list(@threads));
				$core[$cpu] = (sort { $a <=> $b } @threads)[0];
			}
		}
	}

	my %index;
	foreach my $cache (@{ $machine->{caches} })
	{
		my $id = 0;

		foreach my $group (groups($machine, $cache->{scope}))
		{
			my @share = sort { $a <=> $b } grep { $is_online{$_} } @$group;

			foreach my $cpu (@share)
			{
				my $folder = "$root/cpu$cpu/cache/index" . ($index{$cpu}++ || 0);

				make_path($folder);
				write_file($folder, 'level', "$cache->{level}\n");
				write_file($folder, 'type', "$cache->{type}\n");
				write_file($folder, 'shared_cpu_list', list(@share));
				write_file($folder, 'id', ($machine->{id} eq '0' ? 0 : $id) . "\n") if $machine->{id} ne 'none';
				next if $cache->{level} > 3 || $cache->{level} < ($level[$cpu] // 0);
				($cache[$cpu], $level[$cpu]) = ($share[0], $cache->{level});
			}
			$id++;
		}
	}

	my $usable = $machine->{usable} // \%is_online;
	return
	  [ map { $is_online{$_} ? $machine->{node}{$_} // die "CPU $_ has no node" : -1 } 0 .. $last ],
	  [ map { $usable->{$_} && $is_online{$_} ? 1 : 0 } 0 .. $last ],
	  [ map { $core[$_] // $_ } 0 .. $last ],
	  [ map { $cache[ $core[$_] // $_ ] // -1 } 0 .. $last ];
}

1;
