
=pod

=head1 NAME

AbTest - what the tests of pg_sweep_ab share

=head1 SYNOPSIS

  use AbTest;

  my $ab = AbTest->new;
  my $before = $ab->snapshot;
  my ($status, $out, $err) = $ab->run($ab->load, @two, @short);
  is($ab->snapshot, $before, 'everything is as before');

=head1 DESCRIPTION

An object is a server for pg_sweep_ab to work on ($ab->{node}), and the folder of its
results ($ab->{folder}).

=cut

package AbTest;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use IPC::Run;
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;
use Time::HiRes qw(time usleep);

our @EXPORT = qw(@two @short wait_until_it_says);

# Two settings, and a run too short to compare them
our @two = ('--a', 'stock', '--b', 'batched');
our @short = ('--slice' => 0.3, '--blocks' => 6, '--no-picture');

sub new
{
	my ($class, %params) = @_;
	my $folder = PostgreSQL::Test::Utils::tempdir;
	my $node = sweep_node('main', conf => ($params{conf} // 'shared_buffers = 4MB') . q{
max_connections = 40
bgwriter_delay = 10ms
ab.delay = '0.001'
});

	$node->start;
	$node->safe_psql('postgres', q{
CREATE EXTENSION pg_sweep;
CREATE TABLE one AS SELECT 1 AS i;
GRANT SELECT ON one TO PUBLIC;
CREATE ROLE switcher LOGIN IN ROLE pg_monitor;
GRANT EXECUTE ON FUNCTION pg_sweep_set_strategy(text) TO switcher;
});

	# for left_over()
	mkdir "$folder/tmp" or die;
	$ENV{TMPDIR} = "$folder/tmp";
	return bless { node => $node, folder => $folder }, $class;
}

# A load of transactions that take as long as ab.delay says
sub load
{
	my $script = write_script('delay.sql',
		"SELECT pg_sleep(current_setting('ab.delay')::float8) FROM one;\n");

	return ('-f' => $script, '-c' => 2);
}

# The installed program
sub command
{
	my ($self, @arguments) = @_;

	return ($self->{node}->config_data('--bindir') . '/pg_sweep_ab',
		'--dbname' => $self->{node}->connstr('postgres'),
		'--state-dir' => "$self->{folder}/state", '--out' => "$self->{folder}/out", @arguments);
}

# Returns exit code, stdout and stderr
sub run
{
	my ($self, @arguments) = @_;
	my ($out, $err);

	note("pg_sweep_ab @arguments");
	IPC::Run::run([ $self->command(@arguments) ], '<', '/dev/null', '>', \$out, '2>', \$err);
	return ($? >> 8, $out, $err);
}

# The rows of ab.json
sub rows
{
	my ($self) = @_;

	return decode_json(slurp_file("$self->{folder}/out/ab.json"));
}

# The slices of ab.csv
sub slices
{
	my ($self) = @_;
	my ($header, @lines) = map { [ split /,/, $_, -1 ] }
	  split /\n/, slurp_file("$self->{folder}/out/ab.csv");

	s/\r$// for map { @$_ } $header, @lines;
	return map { my %row; @row{@$header} = @$_; \%row } @lines;
}

# Everything that a setting can change, to the letter; but not the order of lines in
# postgresql.auto.conf, as ALTER SYSTEM moves them
sub snapshot
{
	my ($self) = @_;
	my $text = $self->{node}->safe_psql('postgres', q{
SELECT state, strategy, configured, reason, batch_size_configured, lwlock_policy,
       lwlock_policy_configured, ring_eager_flush
  FROM pg_sweep_status;
SELECT tranche, policy, own FROM pg_sweep_lwlock_policies ORDER BY 1;
SELECT name, setting, unit, source, sourcefile, boot_val, reset_val, pending_restart
  FROM pg_settings
 WHERE name NOT IN ('application_name', 'client_min_messages') ORDER BY name;
SELECT current_setting('ab.delay');
SELECT datname, count(*) FROM pg_stat_activity
 WHERE application_name LIKE 'pg_sweep ab%' GROUP BY 1;
});

	my $auto = slurp_file($self->{node}->data_dir . '/postgresql.auto.conf');

	return join "\n", $text, sort split /\n/, $auto;
}

# Notes of what is to be put back
sub journals
{
	my ($self) = @_;

	return glob("$self->{folder}/state/*.json");
}

# Files that only a running pg_sweep_ab may have
sub left_over
{
	my ($self) = @_;

	return (glob("$self->{folder}/tmp/*"), $self->journals);
}

# Until it is not connected any more
sub wait_until_quiet
{
	my ($self) = @_;

	return $self->{node}->poll_query_until('postgres',
		q{SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name LIKE 'pg_sweep ab%'});
}

# Until a run in the background writes this to stderr
sub wait_until_it_says
{
	my ($handle, $pattern) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;

	until (-s $handle->{err} && background_stderr($handle) =~ $pattern)
	{
		die "$handle->{name} does not say $pattern" if time > $deadline;
		usleep(10_000);
	}
	return;
}

1;
