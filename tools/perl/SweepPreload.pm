# SweepPreload.pm: loaded with perl -M before one of core's own TAP tests.
#
# TEMP_CONFIG puts pg_sweep into the configuration of each server that such a test
# makes.  A test that sets shared_preload_libraries itself removes it again, and would
# pass without testing pg_sweep.  So each start of a server puts a missing library
# back, and afterwards checks that it is mapped into the postmaster.  Each start is a
# line in the file $SWEEP_PRELOAD_NOTES, which tools/check-core counts.
#
# SWEEP_PRELOAD is the list of libraries; if it is empty, none may be mapped.
# SWEEP_RUN is the run as tools/check-core names it: STRATEGY-POLICY, none, or
# switching.  In the last case, the log must say that the server is switched.  A
# standby says so only when it is consistent, so its log is awaited briefly.
package SweepPreload;

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Time::HiRes qw(time usleep);

my $libraries = $ENV{SWEEP_PRELOAD};
my $run = $ENV{SWEEP_RUN};

# The value of a parameter in a server's configuration files, of which the last line
# counts; undef if no line has it.
sub configured
{
	my ($node, $parameter) = @_;
	my $value;

	foreach my $file ('postgresql.conf', 'postgresql.auto.conf')
	{
		my $path = $node->data_dir . "/$file";
		next unless -f $path;
		foreach my $line (split /\n/, slurp_file($path))
		{
			$value = $1 if $line =~ /^\s*\Q$parameter\E\s*=?\s*'?([^'#]*?)'?\s*(?:#.*)?$/;
		}
	}
	return $value;
}

sub put_back
{
	my ($node) = @_;
	my $value = configured($node, 'shared_preload_libraries') // '';

	return if $libraries eq '' || index($value, $libraries) >= 0;
	$node->append_conf('postgresql.conf',
		"shared_preload_libraries = '"
		  . join(', ', grep { $_ ne '' } ($value, $libraries)) . "'");
}

# Is it switched?  "good", "standby" if that is unknown, "BAD"
sub switching_verdict
{
	my ($node, $offset) = @_;
	my $standby = grep { -f $node->data_dir . "/$_.signal" } 'standby', 'recovery';
	my $deadline =
	  time + ($standby ? 1 : $PostgreSQL::Test::Utils::timeout_default);

	while (time < $deadline)
	{
		return 'good'
		  if slurp_file($node->logfile, $offset) =~ /test_lwlock: switched/;
		usleep(20_000);
	}
	return $standby ? 'standby' : 'BAD';
}

sub verdict
{
	my ($node, $offset) = @_;
	my $pid = $node->{_pid} // 'none';
	my $maps = eval { slurp_file("/proc/$pid/maps") } // '';

	return 'BAD' if $maps eq '';
	return $maps =~ m{/pg_sweep\.so$}m ? 'BAD' : 'good' if $run eq 'none';
	foreach my $library (split /, /, $libraries)
	{
		return 'BAD' unless $maps =~ /\Q$library\E$/m;
	}
	return switching_verdict($node, $offset) if $run eq 'switching';

	my $set = join '-', map { configured($node, "pg_sweep.$_") // '' }
	  'strategy', 'lwlock_policy';
	return $set eq $run ? 'good' : 'BAD';
}

sub note_start
{
	my ($node, $offset) = @_;

	open my $fh, '>>', $ENV{SWEEP_PRELOAD_NOTES}
	  or die "$ENV{SWEEP_PRELOAD_NOTES}: $!";
	syswrite $fh, sprintf("%s %s %s\n", verdict($node, $offset), $0, $node->name);
	close $fh;
}

foreach my $method ('start', 'restart')
{
	no strict 'refs';
	no warnings 'redefine';
	my $name = "PostgreSQL::Test::Cluster::$method";
	my $original = \&{$name};

	*{$name} = sub {
		my ($node, @arguments) = @_;
		my $offset = -s $node->logfile // 0;

		put_back($node);
		my $result = $original->($node, @arguments);
		# a start that a test expects to fail has no postmaster to look at
		note_start($node, $offset) if $result;
		return $result;
	};
}

1;
