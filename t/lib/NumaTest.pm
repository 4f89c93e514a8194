
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

our @EXPORT = qw(vm_nodes vm_huge expected_distance node_file numa_server);

BAIL_OUT('tests in t/numa/vm are run by "make check-numa"')
  unless ($ENV{SWEEP_VM_NODES} // '') =~ /^[46]$/
  && ($ENV{SWEEP_VM_HUGE} // '') =~ /^(?:on|off)$/;

# The number of nodes: 4, or 6 on two sockets
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

1;
