
=pod

=head1 NAME

SweepTest - common parts of the TAP tests of pg_sweep

=head1 SYNOPSIS

  use SweepTest;		# tools/tap finds it

  my $node = sweep_node('main', conf => "shared_buffers = 4MB");
  $node->start;
  for my $strategy (strategies($node)) { ... }

=head1 DESCRIPTION

Servers with pg_sweep preloaded, the names of the strategies, background load
with bounded waits, and the checks after a load: balances, amcheck, the server's
log.

=cut

package SweepTest;

use strict;
use warnings FATAL => 'all';

use Cwd qw(abs_path);
use Exporter 'import';
use FindBin;
use POSIX qw(:sys_wait_h _exit);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

our @EXPORT = qw(
  sweep_node strategies switch_to counter churn_setup churn
  run_in_background wait_for_background stop_background background_stderr
  start_pgbench run_pgbench init_pgbench start_switching write_script bgwriter_cycle
  check_balances check_amcheck check_counts_agree unexpected_log_lines
  stock_prefix sweep_root require_modules installed_module wait_until_back
  servers_below @werror
);

# In continuous integration only, see tools/lib.sh
our @werror = $ENV{SWEEP_WERROR} ? ('-Werror') : ();

my @children;

# A test that dies ends its background programs, too
END
{
	my $status = $?;
	kill('KILL', grep { waitpid($_, WNOHANG) == 0 } @children);
	$? = $status;
}

# A server with pg_sweep preloaded, not started yet.  conf is appended to
# postgresql.conf; init goes to PostgreSQL::Test::Cluster->init.
# Most tests count allocations or pins.  Autovacuum and the launcher of logical
# replication look into catalogs at any time, so they are off.
sub sweep_node
{
	my ($name, %params) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(%{ $params{init} // {} });
	$node->append_conf('postgresql.conf', qq{
shared_preload_libraries = 'pg_sweep'
restart_after_crash = on
autovacuum = off
max_logical_replication_workers = 0
log_statement = none
});
	$node->append_conf('postgresql.conf', $params{conf})
	  if defined $params{conf};
	return $node;
}

# The values of pg_sweep.strategy, except "auto", which stands for one of the others
sub strategies
{
	my ($node) = @_;
	my @names = split /\n/,
	  $node->safe_psql('postgres',
		q{SELECT v FROM (SELECT unnest(enumvals) AS v FROM pg_settings WHERE name = 'pg_sweep.strategy') s WHERE v <> 'auto'}
	  );

	BAIL_OUT("the server names no strategies besides stock") if @names < 2;
	return @names;
}

# Make a strategy the active one
sub switch_to
{
	my ($node, $strategy) = @_;

	$node->safe_psql('postgres', "SELECT pg_sweep_set_strategy('$strategy')");
	return;
}

# A column of a strategy's row
sub counter
{
	my ($node, $strategy, $column) = @_;

	return $node->safe_psql('postgres',
		"SELECT $column FROM pg_sweep_strategies WHERE strategy = '$strategy'"
	);
}

# Tables for churn(), 20 MB together.  Each is smaller than a quarter of a pool of
# 4 MB, so a scan uses no ring.
my $churn_tables = 25;

sub churn_setup
{
	my ($node) = @_;

	$node->safe_psql('postgres',
		join '',
		map { "CREATE TABLE churn_$_ AS SELECT i, repeat('x', 900) AS pad FROM generate_series(1, 800) i;\n" }
		  1 .. $churn_tables);
	return;
}

# Read all of them: a burst of allocations.  Returns the sum of what was read.
sub churn
{
	my ($node) = @_;

	return $node->safe_psql('postgres',
		'SELECT sum(n) FROM ('
		  . join(' UNION ALL ',
			map { "SELECT sum(i + length(pad)) AS n FROM churn_$_" }
			  1 .. $churn_tables)
		  . ') s');
}

# Start a program with its output in files of the log folder.  Returns a handle for
# wait_for_background().
sub run_in_background
{
	my ($name, @command) = @_;
	my $base = "$PostgreSQL::Test::Utils::log_path/$name";
	my $pid;

	note("starting in the background: @command");
	# a reader finds empty files from now on
	for my $file ("$base.out", "$base.err")
	{
		open(my $new, '>', $file) or die "could not write $file: $!";
		close $new;
	}
	$pid = fork;
	die "could not fork: $!" unless defined $pid;
	if ($pid == 0)
	{
		# undo what nohup or a shell's "&" has made the tests ignore
		$SIG{$_} = 'DEFAULT' for qw(INT QUIT HUP TERM PIPE);
		open(STDIN, '<', '/dev/null') or _exit(126);
		open(STDOUT, '>', "$base.out") or _exit(126);
		open(STDERR, '>', "$base.err") or _exit(126);
		exec { $command[0] } @command or _exit(127);
	}
	push @children, $pid;
	return {
		name => $name,
		pid => $pid,
		out => "$base.out",
		err => "$base.err"
	};
}

# Wait until it ends, for the given seconds beyond the usual timeout.  Returns its
# exit code (128 + signal if it was killed).  A program that hangs is killed; the
# result is undef.
sub wait_for_background
{
	my ($handle, $seconds) = @_;
	my $deadline = time + $seconds + $PostgreSQL::Test::Utils::timeout_default;

	while (waitpid($handle->{pid}, WNOHANG) == 0)
	{
		if (time > $deadline)
		{
			diag("$handle->{name} hangs");
			kill('KILL', $handle->{pid});
			waitpid($handle->{pid}, 0);
			@children = grep { $_ != $handle->{pid} } @children;
			return undef;
		}
		usleep(20_000);
	}
	@children = grep { $_ != $handle->{pid} } @children;
	return $? & 127 ? 128 + ($? & 127) : $? >> 8;
}

sub stop_background
{
	my ($handle) = @_;

	kill('TERM', $handle->{pid});
	return wait_for_background($handle, 0);
}

sub background_stderr
{
	my ($handle) = @_;

	return slurp_file($handle->{err});
}

# pgbench without the initial vacuum, on database postgres; its application_name is
# the name
sub start_pgbench
{
	my ($node, $name, @options) = @_;

	local $ENV{PGAPPNAME} = $name;
	return run_in_background($name, 'pgbench', '--no-vacuum',
		'--host' => $node->host,
		'--port' => $node->port,
		@options, 'postgres');
}

# Run pgbench to its end, which must be a good one.  Returns the handle.
sub run_pgbench
{
	my ($node, $title, $name, @options) = @_;
	my $load = start_pgbench($node, $name, @options);

	is(wait_for_background($load, 60), 0, $title)
	  or diag(background_stderr($load));
	return $load;
}

# pgbench's tables
sub init_pgbench
{
	my ($node, $scale) = @_;
	my $load = start_pgbench($node, 'init', '--initialize', '--scale' => $scale);

	is(wait_for_background($load, 60), 0, 'pgbench is initialized')
	  or die background_stderr($load);
	return;
}

# A file for pgbench; returns its path
sub write_script
{
	my ($name, $text) = @_;
	my $path = "$PostgreSQL::Test::Utils::log_path/$name";

	open(my $file, '>', $path) or die "could not write $path: $!";
	print $file $text;
	close $file;
	return $path;
}

# Switch through all strategies, one every $milliseconds, for $seconds
sub start_switching
{
	my ($node, $name, $milliseconds, $seconds) = @_;
	my $script = write_script("$name.sql",
		join '',
		map { "SELECT pg_sweep_set_strategy('$_');\n\\sleep $milliseconds ms\n" }
		  strategies($node));

	return start_pgbench(
		$node, $name,
		'--file' => $script,
		'--client' => 1,
		'--time' => $seconds);
}

# Wait for a cycle of the background writer that began after now, however long its
# delay is.  A cycle reports allocations, so one is made.
sub bgwriter_cycle
{
	my ($node) = @_;
	my $seen = $node->safe_psql('postgres', 'SELECT buffers_alloc FROM pg_stat_bgwriter');

	$node->safe_psql('postgres', 'SELECT measure_sweep_exact(1, 0); SELECT pg_reload_conf()');
	$node->poll_query_until('postgres', "SELECT buffers_alloc > $seen FROM pg_stat_bgwriter")
	  or die 'the background writer makes no cycle';
	return;
}

# The invariant of pgbench's transactions: all sums are the same
sub check_balances
{
	my ($node, $title) = @_;
	my @sums = split /\|/,
	  $node->safe_psql('postgres', q{
SELECT (SELECT sum(abalance) FROM pgbench_accounts),
       (SELECT sum(tbalance) FROM pgbench_tellers),
       (SELECT sum(bbalance) FROM pgbench_branches),
       (SELECT sum(delta) FROM pgbench_history),
       (SELECT count(*) FROM pgbench_history)});

	cmp_ok($sums[4], '>', 0, "$title: there is a history");
	is_deeply([ @sums[ 1 .. 3 ] ], [ ($sums[0]) x 3 ], "$title: balances add up");
	return;
}

# Every table and B-tree of the database, catalogs and TOAST included
sub check_amcheck
{
	my ($node, $title) = @_;

	$node->safe_psql('postgres', 'CREATE EXTENSION IF NOT EXISTS amcheck');

	my $indexes = $node->safe_psql('postgres', q{
SELECT count(*) FROM (
    SELECT bt_index_check(c.oid, heapallindexed => true)
      FROM pg_class c JOIN pg_am am ON am.oid = c.relam JOIN pg_index i ON i.indexrelid = c.oid
     WHERE am.amname = 'btree' AND c.relkind = 'i' AND i.indisvalid AND c.relpersistence <> 't'
    OFFSET 0) s});
	cmp_ok($indexes, '>', 50, "$title: amcheck passes $indexes indexes");

	my $tables = $node->safe_psql('postgres', q{
SELECT count(*) FROM pg_class
 WHERE relkind IN ('r', 'm', 't') AND relpersistence <> 't'});
	cmp_ok($tables, '>', 50, "$title: there are $tables tables to check");
	is( $node->safe_psql('postgres', q{
SELECT c.oid::regclass, v.*
  FROM pg_class c, LATERAL verify_heapam(c.oid) v
 WHERE c.relkind IN ('r', 'm', 't') AND c.relpersistence <> 't'}),
		'',
		"$title: verify_heapam finds nothing");
	return;
}

# pg_stat_bgwriter and pg_sweep count the same allocations if both have counted since
# the same moment.  The background writer reports them in its next cycle, and the
# query itself may allocate: hence the poll.
sub check_counts_agree
{
	my ($node, $title) = @_;

	ok( $node->poll_query_until('postgres', q{
SELECT buffers_alloc = (SELECT sum(allocations) FROM pg_sweep_strategies)
  FROM pg_stat_bgwriter}),
		"$title: pg_stat_bgwriter and pg_sweep_strategies agree on allocations"
	) or diag(
		$node->safe_psql('postgres', q{
SELECT buffers_alloc, (SELECT string_agg(strategy || '=' || allocations, ' ') FROM pg_sweep_strategies)
  FROM pg_stat_bgwriter}));
	return;
}

# Lines of the server's log from an offset on that report an error, except those
# that match one of the patterns.  A session whose client has just left may still be
# there when the server is stopped, and then says so.
sub unexpected_log_lines
{
	my ($node, $offset, @expected) = @_;
	my $stopping = 0;
	my @lines;

	for (split /\n/, slurp_file($node->logfile, $offset))
	{
		$stopping = 1 if /received fast shutdown request/;
		$stopping = 0 if /database system is ready/;
		next if $stopping && /FATAL:  terminating connection due to administrator command/;
		push @lines, $_ if /(?:ERROR|FATAL|PANIC|TRAP):/;
	}

	for my $pattern (@expected)
	{
		@lines = grep { $_ !~ $pattern } @lines;
	}
	return @lines;
}

# The top folder of this clone
sub sweep_root
{
	return abs_path($ENV{SWEEP_ROOT} // "$FindBin::RealBin/../..");
}

# Prefix of an unpatched server of the same major version, undef if there is none.
# PG_SWEEP_STOCK names another one than that of "make server".
sub stock_prefix
{
	my $prefix = $ENV{PG_SWEEP_STOCK} // sweep_root() . "/build/$ENV{SWEEP_MAJOR}/stock";

	return -x "$prefix/bin/postgres" ? $prefix : undef;
}

# Wait until a server that has crashed once more takes connections again.  Until the
# postmaster has noticed the crash, it still does, so the log is looked at first.  A
# query would not do: when the connection is refused, psql ends before it reads its
# input, and the write to it fails.
my %crashes;

sub wait_until_back
{
	my ($node) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;

	while (time < $deadline)
	{
		my $crashes = () = slurp_file($node->logfile) =~ /all server processes terminated; reinitializing/g;

		if ($crashes > ($crashes{ $node->logfile } // 0)
			&& system('pg_isready', '--quiet', '--host' => $node->host, '--port' => $node->port) == 0)
		{
			$crashes{ $node->logfile } = $crashes;
			return 1;
		}
		usleep(100_000);
	}
	return 0;
}

# Is this library of a test module installed?
sub installed_module
{
	my ($node, $name) = @_;

	return -f $node->config_data('--pkglibdir') . "/$name.so";
}

# Skip the whole test if a library of a test module is missing.  Servers that this
# clone builds have them all, so there it is an error.
sub require_modules
{
	my ($node, @names) = @_;
	my @missing = grep { !installed_module($node, $_) } @names;

	return unless @missing;
	die "@missing is not installed"
	  if index(abs_path($node->config_data('--bindir')), sweep_root() . '/build/') == 0;
	plan skip_all => "@missing is not installed in this server";
}

# How many servers have their data below a folder
sub servers_below
{
	my ($folder) = @_;
	my $count = 0;

	foreach my $path (glob('/proc/[0-9]*/cmdline'))
	{
		# it may end meanwhile
		open(my $file, '<', $path) or next;
		$count++ if (<$file> // '') =~ m{bin/postgres\0.*\Q$folder\E};
	}
	return $count;
}

1;
