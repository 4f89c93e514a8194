
=pod

=head1 NAME

LwlockTest - processes that wait for LWLocks, moved step by step

=head1 SYNOPSIS

  use LwlockTest;

  my $node = lwlock_node('main', conf => '...');
  $node->start;
  my $t = LwlockTest->new($node, 4);
  $t->policy('lockless');
  $t->do(0, 'acquire');
  $t->begin(1, 'acquire');
  $t->await(1, 'asleep');
  $t->do(0, 'release');
  $t->await(1, 'idle');

=head1 DESCRIPTION

What the test module test_lwlock does, as Perl: actors are sessions that do
one command after the other and keep their locks in between.  Nothing sleeps to
let something happen: await() looks until it has happened.

=cut

package LwlockTest;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;
use Time::HiRes qw(time usleep);

our @EXPORT = qw(lwlock_node);

# A server with the test module behind pg_sweep, or alone with nothing => 1
sub lwlock_node
{
	my ($name, %params) = @_;
	my $nothing = delete $params{nothing};
	my $node = sweep_node($name, %params);

	$node->append_conf('postgresql.conf',
		$nothing
		? "shared_preload_libraries = 'test_lwlock'"
		: "shared_preload_libraries = 'pg_sweep, test_lwlock'");
	return $node;
}

# Actors 0 .. $n - 1 on a server that runs
sub new
{
	my ($class, $node, $n) = @_;
	my $self = bless {
		node => $node,
		lock => 0,
		actors => [],
		control => $node->background_psql('postgres', on_error_stop => 1),
	}, $class;

	# the usual timeout for each query, not for all together
	$self->{control}->set_query_timer_restart();

	# no notice if it is there, which would be an error to query_safe()
	$self->sql('SET client_min_messages = warning');
	$self->sql('CREATE EXTENSION IF NOT EXISTS test_lwlock');
	for my $i (0 .. $n - 1)
	{
		my $psql = $node->background_psql('postgres');

		$psql->query_until(qr/serving/,
			"\\echo serving\nSELECT test_lwlock_serve($i);\n");
		push @{ $self->{actors} }, $psql;
		$self->await($i, 'idle');
	}
	return $self;
}

sub sql
{
	my ($self, $query) = @_;

	return $self->{control}->query_safe($query);
}

# The lock that all is about from now on
sub use_lock
{
	my ($self, $lock) = @_;

	$self->{lock} = $lock;
	return;
}

# How who waits from now on is to wait
sub policy
{
	my ($self, $policy) = @_;

	$self->sql(
		"SELECT pg_sweep_set_lwlock_policy('$policy', 'test_lwlock')");
	return;
}

sub actor
{
	my ($self, $actor, $column) = @_;

	return $self->sql(
		"SELECT coalesce((SELECT $column FROM test_lwlock_actors() WHERE actor = $actor)::text, 'gone')"
	);
}

# Wait until an actor's state is so; fails and gives up after the usual timeout
sub await
{
	my ($self, $actor, $state) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;
	my $is;

	while (($is = $self->actor($actor, 'state')) ne $state)
	{
		if (time > $deadline)
		{
			diag($self->sql('SELECT * FROM test_lwlock_actors()'));
			diag($self->sql(
					"SELECT * FROM test_lwlock_state($self->{lock})"));
			die "actor $actor is $is, should be $state; from "
			  . join(' line ', (caller)[ 1, 2 ]);
		}
		usleep(2000);
	}
	return;
}

# Wait until one of them is idle; returns which
sub await_any
{
	my ($self, @actors) = @_;
	my $list = join ',', @actors;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;

	while (time < $deadline)
	{
		my $idle = $self->sql(
			"SELECT min(actor) FROM test_lwlock_actors() WHERE actor IN ($list) AND state = 'idle'"
		);
		return $idle if $idle ne '';
		usleep(2000);
	}
	die "none of the actors $list becomes idle";
}

# Have an actor begin something.  $with: mode => , value =>
sub begin
{
	my ($self, $actor, $command, %with) = @_;
	my $mode = $with{mode} // 'exclusive';
	my $value = $with{value} // 0;

	$self->sql(
		"SELECT test_lwlock_send($actor, '$command', $self->{lock}, '$mode', $value)"
	);
	return;
}

# ... and finish it; returns its result
sub do
{
	my ($self, $actor, $command, %with) = @_;

	$self->begin($actor, $command, %with);
	return $self->finish($actor);
}

sub finish
{
	my ($self, $actor) = @_;

	$self->await($actor, 'idle');
	return $self->actor($actor, 'result');
}

# ... and come to sleep over it
sub sleep_over
{
	my ($self, $actor, $command, %with) = @_;

	$self->begin($actor, $command, %with);
	$self->await($actor, 'asleep');
	return;
}

# ... and come to a point, where it stays until go()
sub do_until
{
	my ($self, $actor, $point, $command, %with) = @_;

	$self->stop($actor, $point);
	$self->begin($actor, $command, %with);
	$self->await($actor, "stopped at $point");
	return;
}

sub stop
{
	my ($self, $actor, $point) = @_;

	$self->sql("SELECT test_lwlock_stop($actor, '$point')");
	return;
}

sub go
{
	my ($self, $actor) = @_;

	$self->sql("SELECT test_lwlock_go($actor)");
	return;
}

# holders|flags|waiters
sub state
{
	my ($self) = @_;

	return $self->sql("SELECT * FROM test_lwlock_state($self->{lock})");
}

# Past all rules
sub force
{
	my ($self, $bit, $value) = @_;

	$self->sql("SELECT test_lwlock_force($self->{lock}, '$bit', $value)");
	return;
}

# These actors, by the order of their last acquisitions
sub order_of
{
	my ($self, @actors) = @_;
	my %number = map { $_ => $self->actor($_, 'acquired') } @actors;

	return join ' ', sort { $number{$a} <=> $number{$b} } @actors;
}

# Nobody holds the lock, nobody waits, nobody is busy
sub is_at_rest
{
	my ($self, $title) = @_;

	is($self->state, 'free|release_ok|', "$title: the lock is as at first");
	is( $self->sql(
			"SELECT count(*) FROM test_lwlock_actors() WHERE state <> 'idle'"
		),
		0,
		"$title: nobody is left behind");
	return;
}

# All kinds of waiters: first come first served, those in shared mode together.
# $switch is called when half of them are in the queue.
sub check_order
{
	my ($self, $title, $switch) = @_;

	$self->do(0, 'acquire');
	$self->sleep_over(1, 'acquire');
	$self->sleep_over(2, 'acquire', mode => 'shared');
	$switch->() if $switch;
	$self->sleep_over(3, 'acquire');
	$self->sleep_over(4, 'acquire', mode => 'shared');
	$self->sleep_over(5, 'acquire', mode => 'shared');
	$self->sleep_over(6, 'acquire');
	is($self->state, 'exclusive|release_ok|6e 5s 4s 3e 2s 1e',
		"$title: the queue");
	$self->do(0, 'release');
	$self->finish(1);
	is($self->state, 'exclusive|release_ok|6e 5s 4s 3e 2s',
		"$title: the first has it, alone");
	$self->do(1, 'release');
	$self->finish($_) for 2, 4, 5;
	is($self->state, 'shared 3|release_ok|6e 3e',
		"$title: then all that share it");
	$self->do($_, 'release') for 2, 4;
	is($self->state, 'shared 1|release_ok|6e 3e',
		"$title: nobody is woken while it is shared");
	$self->do(5, 'release');
	$self->finish(3);
	is($self->state, 'exclusive|release_ok|6e', "$title: then one by one");
	$self->do(3, 'release');
	$self->finish(6);
	$self->do(6, 'release');
	$self->is_at_rest($title);
	return;
}

# LWLockAcquireOrWait(): all are woken together, and with them the first that
# wants the lock.  $switch is called when they are in the queue.
sub check_acquire_or_wait
{
	my ($self, $title, $switch) = @_;

	$self->do(0, 'acquire');
	$self->sleep_over(1, 'acquire');
	$self->sleep_over(2, 'acquire');
	$self->sleep_over($_, 'acquire_or_wait') for 3 .. 6;
	$switch->() if $switch;
	$self->do(0, 'release');
	is($self->finish($_), 'waited', "$title: $_ has waited") for 3 .. 6;
	$self->finish(1);
	is($self->state, 'exclusive|release_ok|2e', "$title: and the first has it");
	$self->do(1, 'release');
	$self->finish(2);
	$self->do(2, 'release');
	$self->is_at_rest($title);
	return;
}

# End all; after a crash of the server the sessions are gone already
sub finish_all
{
	my ($self, %params) = @_;

	if (!$params{crashed})
	{
		$self->begin($_, 'quit') for 0 .. $#{ $self->{actors} };
	}
	for my $psql (@{ $self->{actors} }, $self->{control})
	{
		if ($params{crashed})
		{
			$psql->{run}->kill_kill(grace => 0.1);
		}
		else
		{
			# which has been running all the time
			$psql->{timeout}->start;
			$psql->quit;
		}
	}
	return;
}

1;
