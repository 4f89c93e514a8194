
=pod

=head1 NAME

AbTest - what the tests of ab share

=head1 SYNOPSIS

  use AbTest;

  my $ab = AbTest->new;
  my $before = $ab->snapshot;
  my ($status, $out, $err) = $ab->run($ab->load, @two, @short);
  is($ab->snapshot, $before, 'everything is as before');

=head1 DESCRIPTION

An object is a server for ab to work on ($ab->{node}), and the folders of
its results ($ab->{folder}).

=cut

package AbTest;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use FindBin;
use IPC::Run;
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

our @EXPORT = qw(@two @short);

# Two settings, and a run too short to say much of them
our @two = ('--a', 'stock', '--b', 'batched');
our @short = ('--slice' => 0.3, '--blocks' => 6, '--no-picture');

sub new
{
	my ($class) = @_;
	my $folder = PostgreSQL::Test::Utils::tempdir;
	my $node = sweep_node('main', conf => q{
shared_buffers = 4MB
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

	# What a run leaves in folders for temporary files is seen here
	mkdir "$folder/tmp" or die;
	$ENV{TMPDIR} = "$folder/tmp";
	return bless { node => $node, folder => $folder }, $class;
}

# A load of transactions as long as ab.delay says
sub load
{
	return ('-f', write_script('delay.sql', "SELECT pg_sleep(current_setting('ab.delay')::float8) FROM one;\n"), '-c', 2);
}

# With the connection of psql's environment, which tests have
sub command
{
	my ($self, @arguments) = @_;

	return ("$FindBin::RealBin/../../ab/run", '--dbname' => $self->{node}->connstr('postgres'),
		'--state-dir' => "$self->{folder}/state", '--out' => "$self->{folder}/out", @arguments);
}

# Its exit code, and what it has said
sub run
{
	my ($self, @arguments) = @_;
	my ($out, $err);

	note("ab/run @arguments");
	IPC::Run::run([ $self->command(@arguments) ], '<', '/dev/null', '>', \$out, '2>', \$err);
	return ($? >> 8, $out, $err);
}

# The rows of ab.json
sub rows
{
	my ($self) = @_;

	return decode_json(slurp_file("$self->{folder}/out/ab.json"));
}

# Those of ab.csv
sub slices
{
	my ($self) = @_;
	my ($header, @lines) = map { [ split /,/, $_, -1 ] } split /\n/, slurp_file("$self->{folder}/out/ab.csv");

	# csv's line ends
	s/\r$// for map { @$_ } $header, @lines;
	return map { my %row; @row{@$header} = @$_; \%row } @lines;
}

# Everything that a setting can change, to the letter; but for the order of the
# lines in postgresql.auto.conf, which ALTER SYSTEM moves
sub snapshot
{
	my ($self) = @_;
	my $text = $self->{node}->safe_psql('postgres', q{
SELECT state, strategy, configured, reason, batch_size_configured, lwlock_policy, lwlock_policy_configured, ring_eager_flush
  FROM pg_sweep_status;
SELECT tranche, policy, own FROM pg_sweep_lwlock_policies ORDER BY 1;
SELECT name, setting, unit, source, sourcefile, boot_val, reset_val, pending_restart FROM pg_settings
 WHERE name NOT IN ('application_name', 'client_min_messages') ORDER BY name;
SELECT current_setting('ab.delay');
SELECT datname, count(*) FROM pg_stat_activity WHERE application_name LIKE 'pg_sweep ab%' GROUP BY 1;
});

	return $text . "\n" . join "\n", sort split /\n/, slurp_file($self->{node}->data_dir . '/postgresql.auto.conf');
}

# Files that only a run under way may have: temporary ones, and the note of what
# is to be put back
sub journals
{
	my ($self) = @_;

	return glob("$self->{folder}/state/*.json");
}

sub left_over
{
	my ($self) = @_;

	return (glob("$self->{folder}/tmp/*"), $self->journals);
}

# Nothing of it is connected any more
sub wait_until_quiet
{
	my ($self) = @_;

	return $self->{node}->poll_query_until('postgres',
		q{SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name LIKE 'pg_sweep ab%'});
}

1;
