# The patches do not change the server's ABI: an extension built for the
# distribution's server runs in the patched one unchanged.

use strict;
use warnings FATAL => 'all';

use File::Basename;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $top = sweep_root();
my $stock = "$top/build/$ENV{SWEEP_MAJOR}/stock";
my $patched = "$top/build/$ENV{SWEEP_MAJOR}/release";

foreach my $prefix ($stock, $patched)
{
	my $variant = basename($prefix);
	plan skip_all => "the $variant server is not built (make server VARIANT=$variant)"
	  unless -x "$prefix/bin/postgres";
}

# The symbols that the series may add, each with its patch
my %additions = (
	sweep_hooks_api => '0001-hooks-api',
	ActivateBufferReplacement => '0002-sweep-replacement-hooks',
	SetBufferReplacement => '0002-sweep-replacement-hooks',
	GetBufferReplacement => '0002-sweep-replacement-hooks',
	SetBufferLoadsWanted => '0002-sweep-replacement-hooks',
	StrategyEmptyFreelist => '0002-sweep-replacement-hooks',
	SyncOneBuffer => '0002-sweep-replacement-hooks',
	ProcPlacement => '0003-numa-placement-hooks',
	LWLockWait => '0005-lwlock-wait-hooks',
	ShowPrivateRefCount => '0006-pins-private-refcount',
	RingFlush => '0007-ring-flush-hooks',
	GetAccessStrategyRing => '0007-ring-flush-hooks',
	PinBufferToWrite => '0007-ring-flush-hooks');

# ---- exported symbols ----

# Name => 'code' or 'data'; weak or not does not matter
sub exported
{
	my ($prefix) = @_;
	my ($out, $err) = run_command([ 'nm', '-D', '--defined-only', "$prefix/bin/postgres" ]);
	my %symbols;

	foreach (split /\n/, $out)
	{
		my ($type, $name) = /^\S+ (\S) (\S+)$/ or next;
		$symbols{$name} = $type =~ /[TtWw]/ ? 'code' : 'data';
	}
	return %symbols;
}

my %before = exported($stock);
my %after = exported($patched);
cmp_ok(scalar keys %before, '>', 5000, 'the stock server exports ' . (scalar keys %before) . ' symbols');
is_deeply([ sort grep { !exists $after{$_} } keys %before ], [], 'none of them is gone');
is_deeply([ grep { exists $after{$_} && $after{$_} ne $before{$_} } sort keys %before ],
	[], 'none has become something else');
is_deeply([ sort grep { !exists $before{$_} } keys %after ], [ sort keys %additions ],
	'the new symbols are those of the patches: ' . join(', ', sort keys %additions));

# ---- installed headers ----

sub includedir
{
	my ($prefix) = @_;
	my ($out, $err) = run_command([ "$prefix/bin/pg_config", '--includedir-server' ]);
	return $out;
}

# Only the new headers and LWLock's members private to lwlock.c may differ.  Then
# every other public type is the same.  abi_probe.c has the types that contain LWLock.
my ($differ, $stderr) =
  run_command([ 'diff', '-r', '-U0', includedir($stock), includedir($patched) ]);
my (%only_new, @changes);
foreach (split /\n/, $differ)
{
	if (/^diff /) { next }
	elsif (/^Only in \Q@{[ includedir($patched) ]}\E\/(.*): (.*)$/) { $only_new{"$1/$2"} = 1 }
	elsif (/^\+\+\+ \Q@{[ includedir($patched) ]}\E\/(\S+)/) { push @changes, "in $1" }
	elsif (/^([-+])(?!\1\1 )\s*(.*?)(?:\s*\/\*.*)?$/) { push @changes, "$1 $2" }
}
is_deeply([ sort keys %only_new ],
	[ map { "storage/$_.h" } qw(buf_ring lwlock_queue private_refcount sweep_hooks) ],
	'four headers are new: ' . join(', ', sort keys %only_new));
is_deeply(
	\@changes,
	[
		'in storage/lwlock.h', '- pg_atomic_uint32 state;', '- proclist_head waiters;', '+ uint32		private_words[3];'
	],
	'of the others, only the private members of LWLock differ') or diag $differ;

# ---- an extension built against each ----

sub build_probe
{
	my ($prefix) = @_;
	my $dir = "$PostgreSQL::Test::Utils::tmp_check/abi-" . basename($prefix);

	mkdir $dir or die "could not create $dir: $!";
	delete local @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL MAKEFILES MAKEOVERRIDES)};
	command_ok(
		[
			'make', '-s', '-C', $dir, '-f', "$top/test/hooks/abi/Makefile", "PG_CONFIG=$prefix/bin/pg_config",
			'with_llvm=no', "COPT=@werror"
		],
		'abi_probe and abi_embed compile with the headers of ' . basename($prefix));
	return ("$dir/abi_probe.so", "$dir/abi_embed");
}

my ($stock_probe, $stock_embed) = build_probe($stock);
my ($patched_probe) = build_probe($patched);

my $node = PostgreSQL::Test::Cluster->new('abi', install_path => $patched);
$node->init;

# The patched server loads every library of the stock server: plpgsql, contrib, those
# preloaded.  Only pg_sweep is the patched server's.
my ($stock_libs, $err) = run_command([ "$stock/bin/pg_config", '--pkglibdir' ]);
$node->append_conf('postgresql.conf', qq{
dynamic_library_path = '$stock_libs:\$libdir'
shared_preload_libraries = '$stock_embed, pg_prewarm, pg_stat_statements, pg_sweep'
pg_prewarm.autoprewarm = on
shared_buffers = 8MB
autovacuum = off
compute_query_id = on
});
$node->start;

my %layout;
foreach my $probe ([ stock => $stock_probe ], [ patched => $patched_probe ])
{
	my ($name, $file) = @$probe;
	$node->safe_psql('postgres',
		"CREATE FUNCTION layout_$name() RETURNS text AS '$file', 'abi_probe_layout' LANGUAGE C");
	$layout{$name} = $node->safe_psql('postgres', "SELECT layout_$name()");
}
is($layout{patched}, $layout{stock}, 'sizes, alignments and offsets of ' . ($layout{stock} =~ tr/\n//) . ' types and fields');
like($layout{stock}, qr/^BufferDesc size 64 alignment 4$/m, 'BufferDesc has 64 bytes');
like($layout{stock}, qr/^LWLock size 16 alignment 4$/m, 'LWLock has 16 bytes, aligned to 4');
like($layout{stock}, qr/^PgStatShared_Common\.lock at 4 size 16$/m, 'which a lock after a uint32 needs');
like($layout{stock}, qr/^PgStatShared_Common size 20 alignment 4$/m, 'PgStatShared_Common has 20 bytes');

# ---- run it ----

$node->safe_psql('postgres', qq{
	CREATE FUNCTION abi_probe_buffers() RETURNS text AS '$stock_probe' LANGUAGE C;
	CREATE FUNCTION abi_probe_count(int) RETURNS void AS '$stock_probe' LANGUAGE C STRICT;
	CREATE FUNCTION abi_probe_counted() RETURNS int8 AS '$stock_probe' LANGUAGE C;
	CREATE EXTENSION pg_sweep;
	CREATE EXTENSION pg_buffercache;
	CREATE EXTENSION pg_prewarm;
	CREATE EXTENSION pg_stat_statements;
	CREATE EXTENSION pageinspect;
	CREATE TABLE t AS SELECT i, repeat('x', 500) AS pad FROM generate_series(1, 20000) AS i;
	CREATE INDEX ON t (i);
	CHECKPOINT});

foreach my $strategy ('stock', 'batched')
{
	$node->safe_psql('postgres', "SELECT pg_sweep_set_strategy('$strategy')");
	$node->safe_psql('postgres', 'SELECT sum(length(pad)) FROM t WHERE i % 3 = 0');

	# in one session, whose catalog lookups are over when it compares
	my $pages = $node->safe_psql('postgres', q{
		SELECT count(*) > 0 FROM pg_buffercache WHERE abi_probe_buffers() IS NULL;
		SELECT abi_probe_buffers(), count(relfilenode) || '/' || sum(usagecount) FILTER (WHERE relfilenode IS NOT NULL)
		FROM pg_buffercache});
	my ($probe, $cache) = $pages =~ m{^f\n(\d+/\d+)/\d+\|(\d+/\d+)$};
	is($probe, $cache, "$strategy: stock's pg_buffercache and abi_probe see the same pages and usage counts")
	  or diag $pages;

	is($node->safe_psql('postgres', q{SELECT pg_prewarm('t') = pg_relation_size('t') / 8192}),
		't', "$strategy: stock's pg_prewarm reads the whole table");
	is($node->safe_psql('postgres', q{SELECT count(*) > 10 FROM heap_page_items(get_raw_page('t', 0))}),
		't', "$strategy: stock's pageinspect reads a page");
}

my $counters = 4;
my $times = 50000;
my $script = "$PostgreSQL::Test::Utils::tmp_check/abi_probe_count.sql";
append_to_file($script, "SELECT abi_probe_count($times);\n");
$node->command_ok([ 'pgbench', '-n', '-c', $counters, '-j', 2, '-t', 1, '-f', $script, 'postgres' ],
	"$counters sessions count to $times under an LWLock that abi_probe embeds");
is($node->safe_psql('postgres', 'SELECT abi_probe_counted()'),
	$counters * $times, 'and none was lost');
is($node->safe_psql('postgres', 'SELECT count(*) > 0 FROM pg_stat_statements'),
	't', "stock's pg_stat_statements, preloaded, counts");

# Locks at both boundaries in shared memory and in a DSM segment, in all modes, and
# custom statistics, under each policy.
$node->safe_psql('postgres', qq{
	CREATE FUNCTION abi_embed_work(text, int) RETURNS void AS '$stock_embed' LANGUAGE C STRICT;
	CREATE FUNCTION abi_embed_worked(text) RETURNS text AS '$stock_embed' LANGUAGE C STRICT;
	CREATE FUNCTION abi_embed_report(int, int) RETURNS void AS '$stock_embed' LANGUAGE C STRICT;
	CREATE FUNCTION abi_embed_reported(int) RETURNS text AS '$stock_embed' LANGUAGE C STRICT});
my ($sessions, $transactions, $work, $reports) = (16, 4, 500, 250);
$script = "$PostgreSQL::Test::Utils::tmp_check/abi_embed.sql";
append_to_file(
	$script, qq{
SELECT abi_embed_work('shmem', $work);
SELECT abi_embed_work('dsm', $work);
SELECT abi_embed_report(:client_id % 2, $reports);
});
my $done = 0;
foreach my $policy ('stock', 'lockless', 'lockless_spin')
{
	$node->safe_psql('postgres', "SELECT pg_sweep_set_lwlock_policy('$policy')");
	$node->command_ok(
		[ 'pgbench', '-n', '-c', $sessions, '-j', 2, '-t', $transactions, '-f', $script, 'postgres' ],
		"$policy: $sessions sessions use the locks that abi_embed embeds, and its statistics");
	$done += $sessions * $transactions;
	my $total = $done * $work;
	foreach my $where ('shmem', 'dsm')
	{
		is($node->safe_psql('postgres', "SELECT abi_embed_worked('$where')"),
			"$total $total", "$policy: none was lost in $where, at a 4-byte and at an 8-byte boundary");
	}
	my ($each, $all) = ($done / 2 * $reports, $done * $reports);
	is($node->safe_psql('postgres', "SELECT abi_embed_reported($_)"), "$each $each $all", "$policy: nor of entry $_")
	  foreach (0, 1);
}

# All of this would prove nothing with the patched server's own libraries.
my $maps = $node->safe_psql('postgres',
	q{SELECT pg_prewarm('t'), count(*) FROM pg_buffercache; SELECT pg_read_file('/proc/self/maps')});
like($maps, qr{\Q$stock_libs\E/$_\.so$}m, "$_.so that is mapped is stock's")
  foreach qw(pg_prewarm pg_buffercache pg_stat_statements);
unlike($maps, qr{\Q$patched\E/\S*/pg_(?:prewarm|buffercache|stat_statements)\.so$}m, "and not the patched server's");
my $offset = -s $node->logfile;
$node->restart;
$node->wait_for_log(qr/autoprewarm successfully prewarmed \d\d+ of /, $offset);
pass("after a restart, stock's autoprewarm loads the buffers again");
is($node->safe_psql('postgres', 'SELECT state FROM pg_sweep_status'), 'ok', 'with pg_sweep loaded');
is($node->safe_psql('postgres', "SELECT abi_embed_reported($_)"),
	join(' ', $done / 2 * $reports, $done / 2 * $reports, $done * $reports),
	"abi_embed's statistics are there again, entry $_")
  foreach (0, 1);
is($node->safe_psql('postgres', "SELECT abi_embed_worked('shmem')"), '0 0', 'and shared memory is new');
$node->stop;

# ---- libabigail compares every type that an exported function takes ----

SKIP:
{
	my $version = qx(abidiff --version 2>/dev/null) // '';
	skip 'abidiff is not installed (Debian package abigail-tools)', 1 if $version eq '';

	# abidiff itself is tested by a new field in the middle of a public type
	my $dir = "$PostgreSQL::Test::Utils::tmp_check/abidiff";
	mkdir $dir or die "could not create $dir: $!";
	foreach my $field ('', 'int c; ')
	{
		my $name = $field eq '' ? 'old' : 'new';
		append_to_file("$dir/$name.c", "struct s {int a; ${field}int b;};\nint f(struct s *s) { return s->b; }\n");
		system_or_bail('gcc', '-g', '-shared', '-fPIC', '-o', "$dir/$name.so", "$dir/$name.c");
	}
	command_fails([ 'abidiff', '--exported-interfaces-only', "$dir/old.so", "$dir/new.so" ], 'abidiff sees a changed struct');

	foreach my $prefix ($stock, $patched)
	{
		my ($sections, $ignored) = run_command([ 'readelf', '-S', '-W', "$prefix/bin/postgres" ]);
		like($sections, qr/\.debug_info/, basename($prefix) . ' has the debug information that it needs');
	}

	# Leaf changes: types that changed and those that embed them, but not all that
	# point to them
	my ($out, $warnings) = run_command(
		[ 'abidiff', '--exported-interfaces-only', '--leaf-changes-only', "$stock/bin/postgres", "$patched/bin/postgres" ]);
	my $status = $? >> 8;
	is($status & ~4, 0, 'abidiff: no error, no incompatible change');
	like($out, qr/^\S* ?functions summary: 0 Removed, 0 Changed, \d+ Added function/mi, 'no function removed or changed');
	like($out, qr/^\S* ?variables summary: 0 Removed, 0 Changed, \d+ Added variable/mi, 'no variable removed or changed');

	# Remove all permitted reports on types.  LWLock has other private members:
	my ($types) = "$out\n" =~ /^('(?:struct|union) .*)/ms;
	my $lwlock = qr/type\ 'typedef\ LWLock'\ of\ '\w+::\w+'\ changed:\n
		\s*underlying\ type\ 'struct\ LWLock'\ at\ lwlock\.h:[\d:]+\ changed:\n
		\s*type\ size\ hasn't\ changed\n
		\s*1\ data\ member\ deletion:\n
		\s*'proclist_head\ waiters',\ at\ offset\ 64\ .*\n
		\s*there\ are\ data\ member\ changes:\n
		\s*type\ 'typedef\ pg_atomic_uint32'\ of\ 'LWLock::state'\ changed:\n
		\s*entity\ changed\ from\ 'typedef\ pg_atomic_uint32'\ to\ 'uint32\[3\]'\n
		\s*type\ size\ changed\ from\ 32\ to\ 96\ \(in\ bits\)\n
		\s*and\ name\ of\ 'LWLock::state'\ changed\ to\ 'LWLock::private_words'\ .*\n/x;
	is(scalar($types =~ s/$lwlock//g), 1, 'LWLock has other private members');
	# it is embedded in other types, and those in others, and none became larger:
	$types =~ s/^ *type 'typedef LWLock' of '\w+::\w+' changed, as reported earlier\n//mg;
	$types =~ s/^ *type 'typedef (\w+)' of '\w+::\w+' changed:\n *underlying type 'struct \1' changed at .*, as reported earlier\n//mg;
	$types =~ s/^'(?:struct|union) \w+ at \S+' changed:\n(?:  type size hasn't changed\n  there are data member changes:|  details were reported earlier)\n//mg;
	is($types =~ s/^\s+//r, '', 'and nothing else is said of any type');
	is_deeply([ sort $out =~ /^\s*\[A\] .* \{(\w+)\}$/mg ],
		[ sort keys %additions ], 'the additions are those of the patches');
	note $out;
}

done_testing();
