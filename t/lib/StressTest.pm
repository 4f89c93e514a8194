
=pod

=head1 NAME

StressTest - common parts of the tests that kill backends under load

=head1 SYNOPSIS

  use StressTest;

  my $seconds = stress_number('PG_SWEEP_STRESS_SECONDS', 20, 4);
  my $victim = kill_backend($node, "application_name = 'load'");
  check_interrupted('crash', $load);
  check_recovered($node, $offset, $victim, 'crash');
  check_checksums($node);

=head1 DESCRIPTION

A backend that is killed takes all others with it, and the server restarts by
crash recovery.  Only certain messages are permitted then, of clients and in the log.

=cut

package StressTest;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

our @EXPORT = qw(
  stress_number kill_backend check_interrupted check_recovered check_checksums
);

# A number from the environment, by which the long tests ask for more
sub stress_number
{
	my ($variable, $default, $least) = @_;
	my $value = $ENV{$variable} // $default;

	die "$variable must be a number of $least or more, not \"$value\"\n"
	  unless $value =~ /^\d+$/ && $value >= $least;
	return $value;
}

# Kill one of the backends that the condition chooses, one that waits for an
# LWLock if there is one; returns its pid
sub kill_backend
{
	my ($node, $condition) = @_;
	my $victim = $node->safe_psql('postgres', qq{
SELECT pid FROM pg_stat_activity WHERE $condition
 ORDER BY (wait_event_type = 'LWLock') DESC NULLS LAST, random() LIMIT 1});

	kill('KILL', $victim) or die "could not kill \"$victim\": $!";
	return $victim;
}

# The permitted errors of clients: the server is gone
my $disconnected =
  qr/server closed the connection unexpectedly|terminated abnormally|before or while processing the request|terminating connection because of crash|DETAIL: .*commanded this server process|HINT: .*reconnect to the database|aborted in command|Run was aborted|could not send data|could not receive data|no connection to the server|perhaps the backend died|connection to server .* failed/;

# Background programs end, with an error
sub check_interrupted
{
	my ($title, @handles) = @_;
	my %code = map { $_->{name} => wait_for_background($_, 0) } @handles;

	for my $handle (@handles)
	{
		my $name = $handle->{name};

		ok(defined $code{$name}, "$title: $name does not hang");
		isnt($code{$name}, 0, "$title: $name was interrupted");
		is_deeply(
			[
				# a report may come between the two halves of an error's line
				grep { !/^(?:pgbench: error: )?progress:|^pgbench \(|^\s*$/ && $_ !~ $disconnected }
				  split /\n/,
				background_stderr($handle)
			],
			[],
			"$title: $name says nothing but that the server is gone");
	}
	return;
}

# The server restarts by crash recovery, with no other error in its log
sub check_recovered
{
	my ($node, $offset, $victim, $title) = @_;

	$node->wait_for_log(qr/terminated by signal 9/, $offset);
	ok(wait_until_back($node), "$title: the server is back");
	like(slurp_file($node->logfile, $offset),
		qr/\(PID $victim\) was terminated by signal 9.*redo starts at/s,
		"$title: by crash recovery");
	is_deeply(
		[
			unexpected_log_lines(
				$node,
				$offset,
				qr/FATAL:  the database system is (?:in recovery mode|not yet accepting connections)/,
				qr/FATAL:  connection to client lost/)
		],
		[],
		"$title: no other error in the log");
	return;
}

# The checksums of a stopped server's files
sub check_checksums
{
	my ($node) = @_;

	$node->command_checks_all([ 'pg_checksums', '--check', '--pgdata' => $node->data_dir ], 0,
		[qr/Bad checksums:\s+0\n/], [qr/^$/], 'all checksums are right');
	return;
}

1;
