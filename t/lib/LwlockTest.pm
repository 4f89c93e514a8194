
=pod

=head1 NAME

LwlockTest - servers and processes for the tests of waiting for LWLocks

=head1 SYNOPSIS

  use LwlockTest;

  my $node = lwlock_node('main', conf => '...');
  $node->start;
  my $t = LwlockTest->new($node, 4);
  $t->policy('lockless');
  $t->do(0, 'acquire');
  $t->sleep_over(1, 'acquire');
  $t->do(0, 'release');
  $t->finish(1);

  my $server = LwlockServer->new;
  $server->set_policy('lockless', 'WALWrite');
  is($server->value('SELECT ...'), ...);

=head1 DESCRIPTION

A LwlockTest moves processes step by step, by the test module test_lwlock.  Its
actors are sessions that execute one command after the other and keep their locks in
between.  No step relies on time: await() polls until a state is reached.

A LwlockServer is a server ($server->{node}) whose sessions wait under a policy that
the test chooses.

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

our @EXPORT = qw(lwlock_node @policies);

our @policies = qw(stock lockless lockless_spin);

# A server with the test module after pg_sweep, or alone with nothing => 1
sub lwlock_node
{
	my ($name, %params) = @_;
	my $libraries = delete $params{nothing} ? 'test_lwlock' : 'pg_sweep, test_lwlock';
	my $node = sweep_node($name, %params);

	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$libraries'");
	return $node;
}

# Actors 0 .. $n - 1 on a running server
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

	# a notice would be an error to query_safe()
	$self->sql('SET client_min_messages = warning');
	$self->sql('CREATE EXTENSION IF NOT EXISTS test_lwlock');
	for my $i (0 .. $n - 1)
	{
		my $psql = $node->background_psql('postgres');

		$psql->query_until(qr/serving/, "\\echo serving\nSELECT test_lwlock_serve($i);\n");
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

# Choose the lock of all later calls.
sub use_lock
{
	my ($self, $lock) = @_;

	$self->{lock} = $lock;
	return;
}

# Choose how processes wait from now on.
sub policy
{
	my ($self, $policy) = @_;

	$self->sql("SELECT pg_sweep_set_lwlock_policy('$policy', 'test_lwlock')");
	return;
}

sub actor
{
	my ($self, $actor, $column) = @_;

	return $self->sql(
		"SELECT coalesce((SELECT $column FROM test_lwlock_actors() WHERE actor = $actor)::text, 'gone')");
}

# Wait until an actor is in a state; dies after the usual timeout.
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
			diag($self->state);
			die "actor $actor is $is, should be $state; from " . join(' line ', (caller)[ 1, 2 ]);
		}
		usleep(2000);
	}
	return;
}

# Wait until one of them is idle; returns which.
sub await_any
{
	my ($self, @actors) = @_;
	my $list = join ',', @actors;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;

	while (time < $deadline)
	{
		my $idle = $self->sql(
			"SELECT min(actor) FROM test_lwlock_actors() WHERE actor IN ($list) AND state = 'idle'");
		return $idle if $idle ne '';
		usleep(2000);
	}
	die "none of the actors $list becomes idle";
}

# Send a command to an actor.  %with: mode, value
sub begin
{
	my ($self, $actor, $command, %with) = @_;
	my $mode = $with{mode} // 'exclusive';
	my $value = $with{value} // 0;

	$self->sql("SELECT test_lwlock_send($actor, '$command', $self->{lock}, '$mode', $value)");
	return;
}

# ... and wait for its end; returns the result.
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

# ... and wait until it sleeps.
sub sleep_over
{
	my ($self, $actor, $command, %with) = @_;

	$self->begin($actor, $command, %with);
	$self->await($actor, 'asleep');
	return;
}

# ... and wait until it is stopped at a point, where it stays until go().
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

# Hand the lock from actor to actor: each releases it, and the next one gets it.
sub pass_on
{
	my ($self, @actors) = @_;

	while (@actors)
	{
		$self->do(shift @actors, 'release');
		$self->finish($actors[0]) if @actors;
	}
	return;
}

# holders|flags|waiters
sub state
{
	my ($self) = @_;

	return $self->sql("SELECT * FROM test_lwlock_state($self->{lock})");
}

# Set or clear bits against all rules.
sub force
{
	my ($self, $bit, $value) = @_;

	$self->sql("SELECT test_lwlock_force($self->{lock}, '$bit', $value)");
	return;
}

# No process holds the lock, waits for it, or is busy.
sub is_at_rest
{
	my ($self, $title) = @_;

	is($self->state, 'free|release_ok|', "$title: the lock is as at first");
	is($self->sql("SELECT count(*) FROM test_lwlock_actors() WHERE state <> 'idle'"),
		0, "$title: no process is left behind");
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
	is($self->state, 'exclusive|release_ok|6e 5s 4s 3e 2s 1e', "$title: the queue");
	$self->do(0, 'release');
	$self->finish(1);
	is($self->state, 'exclusive|release_ok|6e 5s 4s 3e 2s', "$title: the first has it, alone");
	$self->do(1, 'release');
	$self->finish($_) for 2, 4, 5;
	is($self->state, 'shared 3|release_ok|6e 3e', "$title: then all that share it");
	$self->do($_, 'release') for 2, 4;
	is($self->state, 'shared 1|release_ok|6e 3e', "$title: no process is woken while it is shared");
	$self->do(5, 'release');
	$self->finish(3);
	is($self->state, 'exclusive|release_ok|6e', "$title: then one by one");
	$self->pass_on(3, 6);
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
	$self->pass_on(1, 2);
	$self->is_at_rest($title);
	return;
}

# End all sessions; after a crash of the server they have ended already.
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
			# it has been running all the time
			$psql->{timeout}->start;
			$psql->quit;
		}
	}
	return;
}

package LwlockServer;

use SweepTest;

sub new
{
	my ($class) = @_;
	my $node = sweep_node('main', conf => q{
shared_buffers = 4MB
max_connections = 40
bgwriter_delay = 10ms
pg_sweep.lwlock_policy = lockless
});

	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION pg_sweep');
	return bless { node => $node, serial => 10 }, $class;
}

# A session with the whole timeout for each query
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
	my $arguments = join ', ', map { "'$_'" } $policy, $tranche // ();

	return $self->value("SELECT pg_sweep_set_lwlock_policy($arguments)");
}

sub reload_with
{
	my ($self, $setting, $condition) = @_;

	$self->value("ALTER SYSTEM SET $setting");
	$self->{node}->reload;
	return $self->{node}->poll_query_until('postgres', "SELECT $condition FROM pg_sweep_status");
}

# Reload with a change of another parameter, which the background writer applies
# at the same time.
sub unrelated_reload
{
	my ($self) = @_;
	my $serial = ++$self->{serial};

	$self->reload_with("pg_sweep.batch_size = $serial", "batch_size_configured = $serial")
	  or die 'the reload was not applied';
	return;
}

1;
