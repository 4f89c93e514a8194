
=pod

=head1 NAME

NumaTest - common parts of the tests in virtual machines with several nodes

=head1 SYNOPSIS

  use NumaTest;
  use SweepTest;

  my $node = numa_server('main', conf => "pg_sweep.strategy = batched");
  $node->start;

=head1 DESCRIPTION

Servers for the machine that "make check-numa" has booted, and its nodes as the
kernel describes them.  The machines are emulated without KVM.  A test makes do with
seconds of load and a few clients, and never measures time.

=cut

package NumaTest;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

our @EXPORT = qw(vm_nodes vm_huge expected_distance node_file numa_server check_all_parts);

BAIL_OUT('tests in t/numa/vm are run by "make check-numa"')
  unless ($ENV{SWEEP_VM_NODES} // '') =~ /^[3-6]$/
  && ($ENV{SWEEP_VM_HUGE} // '') =~ /^(?:on|off)$/;

# The number of nodes: 4, or 6 on two sockets; 3 and 5 are irregular (tools/vm)
sub vm_nodes { return $ENV{SWEEP_VM_NODES}; }

# Is shared memory in pages of 2 MB?
sub vm_huge { return $ENV{SWEEP_VM_HUGE} eq 'on'; }

# The distance that the machine was booted with
sub expected_distance
{
	my ($from, $to) = @_;

	return 10 if $from == $to;
	return 20 if vm_nodes() == 4;
	return int($from / 3) == int($to / 3) ? 12 : 21;
}

# A file of the kernel about a node, without the newline at its end
sub node_file
{
	my ($node, $file) = @_;
	my $text = slurp_file("/sys/devices/system/node/node$node/$file");

	chomp $text;
	return $text;
}

# A server with pg_sweep preloaded, not started yet, its memory in the pages asked
# for.  Each node has 320 MB of huge pages: enough for a shared_buffers of 512 MB on
# two nodes.
sub numa_server
{
	my ($name, %params) = @_;
	my $huge = vm_huge() ? 'on' : 'off';

	return sweep_node(
		$name, %params,
		conf => "shared_buffers = 256MB\nhuge_pages = $huge\n" . ($params{conf} // ''));
}

# All of shared memory, part by part: in percent, the pages that are where they should
# be.  Of a part that is interleaved, each node should have as many of those that have
# been used.  Of a few pages, or of a small sample, that says nothing; huge pages are
# added up over all parts.  The nodes that are used are given.
sub check_all_parts
{
	my ($server, $title, @nodes) = @_;
	my $page_size = vm_huge() ? 2048 * 1024 : 4096;
	my (%parts, $seen);

	foreach (split /\n/, $server->safe_psql('postgres', q{
SELECT what, coalesce(wanted_node, -1), coalesce(node, -1), sum(pages), sum(bytes), sum(asked)
  FROM pg_sweep_numa_residence GROUP BY 1, 2, 3}))
	{
		my ($what, $wanted, $on, $pages, $bytes, $asked) = split /\|/;
		$seen += $bytes;
		next if $on < 0;
		$what = 'the rest' if vm_huge() && $wanted < 0;
		my $part = $parts{$what} //= { interleaved => $wanted < 0, right => 0, pages => 0, on => {} };
		$part->{pages} += $pages;
		$part->{asked} += $asked;
		$part->{on}{$on} += $pages;
		$part->{right} += $pages if $wanted == $on;
	}
	foreach my $what (sort keys %parts)
	{
		my $part = $parts{$what};
		my $on = $part->{on};
		my $spread = join ' ', map { $on->{$_} // 0 } @nodes;
		if ($part->{interleaved} && $part->{asked} < ($part->{asked} < $part->{pages} ? 900 : 16 * @nodes))
		{
			note("$title: $what: $spread pages");
			is(join(' ', sort keys %$on), "@nodes", "$title: there are huge pages of the rest on each node") if vm_huge();
			next;
		}
		if ($part->{interleaved})
		{
			my $share = $part->{pages} / @nodes;
			$part->{right} += $_ < $share ? $_ : $share foreach map { $on->{$_} // 0 } @nodes;
		}
		my $percent = 100 * $part->{right} / $part->{pages};
		cmp_ok($percent, '>=', 95, sprintf('%s: %s (%s): %.1f %% of %d pages are where they should be (%s)',
			$title, $what, $part->{interleaved} ? 'interleaved' : 'placed', $percent, $part->{pages}, $spread));
	}
	my $all = $server->safe_psql('postgres', 'SELECT sum(allocated_size) FROM pg_shmem_allocations');
	cmp_ok(abs($seen - $all), '<', $page_size, "$title: and these are all $all bytes of shared memory");
	return;
}

1;
