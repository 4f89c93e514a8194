
=pod

=head1 NAME

WaitTest - what the tests of waiting for LWLocks share

=head1 SYNOPSIS

  use WaitTest;

  my $server = WaitTest->new;
  $server->set_policy('spin', 'WALWrite');
  is($server->value('SELECT ...'), ...);

=head1 DESCRIPTION

An object is a server ($server->{node}) whose sessions wait for LWLocks as the
test says.

=cut

package WaitTest;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use SweepTest;

our @EXPORT = qw(@policies);

our @policies = qw(stock spin lockless lockless_spin);

sub new
{
	my ($class) = @_;
	my $node = sweep_node('main', conf => q{
shared_buffers = 4MB
max_connections = 40
bgwriter_delay = 10ms
pg_sweep.lwlock_policy = spin
});

	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION pg_sweep');
	return bless { node => $node, serial => 10 }, $class;
}

# A session whose queries have each the whole timeout
sub session
{
	my ($self) = @_;
	my $session = $self->{node}->background_psql('postgres');

	$session->set_query_timer_restart;
	return $session;
}

sub value
{
	my ($self, $query) = @_;

	return $self->{node}->safe_psql('postgres', $query);
}

sub set_policy
{
	my ($self, $policy, $tranche) = @_;

	return $self->value("SELECT pg_sweep_set_lwlock_policy('$policy'"
		  . (defined $tranche ? ", '$tranche'" : '')
		  . ')');
}

sub reload_with
{
	my ($self, $setting, $condition) = @_;

	$self->value("ALTER SYSTEM SET $setting");
	$self->{node}->reload;
	return $self->{node}->poll_query_until('postgres', "SELECT $condition FROM pg_sweep_status");
}

# A reload of another parameter, which the background writer applies in the
# same go
sub unrelated_reload
{
	my ($self) = @_;
	my $serial = ++$self->{serial};

	$self->reload_with("pg_sweep.batch_size = $serial", "batch_size_configured = $serial")
	  or die 'the reload was not applied';
	return;
}

1;
