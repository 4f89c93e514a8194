# SweepPreload.pm: loaded with perl -M before one of core's own TAP tests.
#
# TEMP_CONFIG puts pg_sweep into the configuration of every server that such a
# test makes, but a test that sets shared_preload_libraries itself throws it out
# again, and the test would pass without having tested anything of ours.  So, at
# each start of a server: put the library back if it is missing, and afterwards
# look whether it really is mapped into the postmaster.  Each start is noted as a
# line in the file $SWEEP_PRELOAD_NOTES, for tools/check-core to count.
#
# SWEEP_PRELOAD is the library, SWEEP_STRATEGY the strategy; both are empty when
# nothing is to be loaded, which is looked at, too.
package SweepPreload;

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;

my $library = $ENV{SWEEP_PRELOAD};
my $strategy = $ENV{SWEEP_STRATEGY};

# The value of a parameter in a server's configuration files, the last line of
# them wins; undef if no line has it.
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

	return if $library eq '' || index($value, $library) >= 0;
	$node->append_conf('postgresql.conf',
		"shared_preload_libraries = '"
		  . join(', ', grep { $_ ne '' } ($value, $library)) . "'");
}

sub note_start
{
	my ($node) = @_;
	my $pid = $node->{_pid} // 'none';
	my $maps = eval { slurp_file("/proc/$pid/maps") } // '';
	my $mapped = $maps =~ m{/pg_sweep\.so$}m ? 1 : 0;
	my $wanted = $library ne '' ? 1 : 0;
	my $as_wanted = $maps ne '' && $mapped == $wanted;

	$as_wanted = 0
	  if $wanted && (configured($node, 'pg_sweep.strategy') // '') ne $strategy;
	open my $fh, '>>', $ENV{SWEEP_PRELOAD_NOTES}
	  or die "$ENV{SWEEP_PRELOAD_NOTES}: $!";
	syswrite $fh, sprintf("%s %s %s\n", $as_wanted ? 'good' : 'BAD', $0, $node->name);
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
		put_back($node);
		my $result = $original->($node, @arguments);
		# a start that a test expects to fail has no postmaster to look at
		note_start($node) if $result;
		return $result;
	};
}

1;
