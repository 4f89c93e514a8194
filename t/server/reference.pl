
# docs/reference.md against the running server: it has each parameter, function,
# view and column of the extension, with type, default, range and unit as the
# server tells them, the columns in their order, and nothing that does not exist.
# The comparison itself is tested, too: on changed copies of the page it must
# report what was changed.

use strict;
use warnings FATAL => 'all';

use FindBin;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $top = "$FindBin::RealBin/../..";
my $page = slurp_file("$top/docs/reference.md");

# Names that begin like those of the extension and are something else
my @other_names = qw(pg_sweep_ab);

my %types = (
	'timestamp with time zone' => 'timestamptz');
my %changed_by = (
	sighup => 'reload',
	postmaster => 'restart',
	superuser => 'superuser');

# A line per view: its columns in their order
sub orders
{
	my ($columns) = @_;

	return map { "order $_: @{ $columns->{$_} }" } keys %$columns;
}

# Lines "key: attributes", sorted, of what the page says
sub documented
{
	my ($text) = @_;
	my (@facts, $section, $view, %columns);

	for my $line (split /\n/, $text)
	{
		if ($line =~ /^(##+) (.*)/)
		{
			($section, $view) = $1 eq '##' ? ($2, undef) : ($section, $2);
			push @facts, "view $view" if defined $view && $section eq 'Views';
		}
		next unless $line =~ s/^\| `//;
		my ($name, @cells) = split /\s*\|\s*/, $line =~ s/`//gr;

		if ($section eq 'Parameters')
		{
			my ($type, $default, $range, $unit, $by) = @cells;
			$unit = '' unless $unit eq 'ms';
			push @facts, "parameter $name: $type, $default, $range, $unit, $by";
		}
		elsif ($section eq 'Functions')
		{
			push @facts, "function $name: $cells[0]";
		}
		elsif (defined $view)
		{
			push @facts, "column $view.$name: $cells[0]";
			push @{ $columns{$view} }, $name;
		}
	}
	return sort @facts, orders(\%columns);
}

# The same of what the server has
sub existing
{
	my ($node) = @_;
	my (@facts, %columns);
	my $rows = sub {
		my ($query) = @_;
		return map { [ split /\|/, $_, -1 ] } split /\n/,
		  $node->safe_psql('postgres', $query);
	};

	for ($rows->(
			q{
SELECT name, vartype, boot_val, coalesce(array_to_string(enumvals, ', '), min_val || ' .. ' || max_val),
       coalesce(unit, ''), context
  FROM pg_settings WHERE name LIKE 'pg\_sweep.%'}))
	{
		my ($name, $type, $default, $range, $unit, $context) = @$_;
		push @facts,
		  "parameter $name: $type, $default, $range, $unit, $changed_by{$context}";
	}
	for ($rows->(
			q{
SELECT proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), proargmodes IS NULL
  FROM pg_depend d
  JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND e.oid = d.refobjid
  JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
 WHERE d.deptype = 'e' AND e.extname = 'pg_sweep'}))
	{
		my ($name, $arguments, $result, $inputs_only) = @$_;
		$arguments = '' if $inputs_only ne 't';
		push @facts, "function $name($arguments): " . ($types{$result} // $result);
	}
	for ($rows->(
			q{
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod)
  FROM pg_depend d
  JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND e.oid = d.refobjid
  JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
  JOIN pg_attribute a ON a.attrelid = c.oid
 WHERE d.deptype = 'e' AND e.extname = 'pg_sweep' AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attnum}))
	{
		my ($view, $column, $type) = @$_;
		push @facts, "view $view" unless grep { $_ eq "view $view" } @facts;
		push @facts, "column $view.$column: " . ($types{$type} // $type);
		push @{ $columns{$view} }, $column;
	}
	return sort @facts, orders(\%columns);
}

# What one list has and the other has not: a list of complaints
sub differences
{
	my ($documented, $existing) = @_;
	my %documented = map { $_ => 1 } @$documented;
	my %existing = map { $_ => 1 } @$existing;

	return (
		(map { "not documented: $_" } grep { !$documented{$_} } @$existing),
		(map { "does not exist: $_" } grep { !$existing{$_} } @$documented));
}

# Names that a text mentions and that do not exist
sub unknown_names
{
	my ($text, $existing) = @_;
	my %known =
	  map { $_ => 1 } @other_names,
	  map { /^(?:parameter|function|view) ([\w.]+)/ ? $1 : () } @$existing;
	my %unknown;

	while ($text =~ /\b(pg_sweep(?:\.[a-z]|_[a-z])[a-z0-9_]*)(\*)?/g)
	{
		my ($name, $all) = ($1, $2);
		next if $name =~ /^pg_sweep\.(?:c|h|so|o|control|git)$/;
		next if $all && grep { index($_, $name) == 0 } keys %known;
		$unknown{$name} = 1 unless $known{$name};
	}
	return sort keys %unknown;
}

my $node = sweep_node('main');
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_sweep');
my @existing = existing($node);

for my $kind ('parameter', 'function', 'view', 'column', 'order')
{
	my $of = sub { grep { /^$kind / } @_ };
	my @documented = $of->(documented($page));
	my @there = $of->(@existing);

	cmp_ok(scalar @there, '>', 9, 'the server tells ' . @there . " times: $kind");
	is_deeply([ differences(\@documented, \@there) ], [],
		"docs/reference.md and the server agree on each $kind");
}

# Guides may only mention what exists, too
for my $path ('README.md', 'docs/reference.md', 'docs/results.md',
	map { "docs/$_.md" } qw(sweep numa lwlock ring ab))
{
	is_deeply([ unknown_names(slurp_file("$top/$path"), \@existing) ],
		[], "$path mentions no parameter, function or view that does not exist");
}

# The vocabulary leads to what is there
my ($words) = $page =~ /^## Words\n(.*?)^## /ms;
my @paths = $words =~ m{`((?:extension|t|test)/\w+)`}g;
push @paths, map { "core-hooks/$ENV{SWEEP_MAJOR}/$_.patch" } $words =~ /`(\d{4}-[\w-]+)`/g;
cmp_ok(scalar @paths, '>=', 20, 'the vocabulary names folders and patches');
is_deeply([ grep { !-e "$top/$_" } @paths ],
	[], 'the vocabulary names no folder or patch that does not exist');

# Each change of a copy is reported
for (
	[ qr/^\| `pg_sweep\.balance` .*\n/m, '', 'not documented: parameter pg_sweep.balance' ],
	[ qr/^\| `laps` \| bigint.*\n/m, '', 'not documented: column pg_sweep_ring.laps' ],
	[ qr/^\| `pg_sweep_get_ring\(\)` .*\n/m, '', 'not documented: function pg_sweep_get_ring()' ],
	[ qr/^### pg_sweep_flows\n/m, '', 'not documented: view pg_sweep_flows' ],
	[ qr/`laps`(?= \| bigint)/, '`rounds`', 'does not exist: column pg_sweep_ring.rounds' ],
	[ qr/`pg_sweep\.balance`/, '`pg_sweep.balanced`', 'does not exist: parameter pg_sweep.balanced' ],
	[ qr/(`pg_sweep_get_ring)\(\)/, '`pg_sweep_get_rings()', 'does not exist: function pg_sweep_get_rings()' ],
	[ qr/^### pg_sweep_flows$/m, '### pg_sweep_flow', 'does not exist: view pg_sweep_flow' ],
	[ qr/0 \.\. 1024/, '1 .. 1024', 'does not exist: parameter pg_sweep.batch_size: integer, 0, 1 .. 1024' ],
	[ qr/(`pg_sweep\.lwlock_track_waits` \| bool \|) `on`/, '`pg_sweep.lwlock_track_waits` | bool | `off`', 'does not exist: parameter pg_sweep.lwlock_track_waits: bool, off' ],
	[ qr/`laps` \| bigint/, '`laps` | integer', 'does not exist: column pg_sweep_ring.laps: integer' ])
{
	my ($from, $to, $complaint) = @$_;
	my $changed = $page;

	ok($changed =~ s/$from/$to/, "a copy of the page is changed: $complaint");
	my @complaints = differences([ documented($changed) ], \@existing);
	ok(scalar(grep { index($_, $complaint) == 0 } @complaints), 'and the change is reported')
	  or diag(join "\n", @complaints);
}
is_deeply(
	[ map { /^(.*?: order .*? laps)/ } differences([ documented($page =~ s/^(\| `laps` .*\n)(\| `victims` .*\n)/$2$1/mr) ], \@existing) ],
	[ 'not documented: order pg_sweep_ring: ring laps', 'does not exist: order pg_sweep_ring: ring victims laps' ],
	'columns in another order are reported');
is_deeply([ unknown_names('pg_sweep_strategies, pg_sweep_starategies, pg_sweep.batch', \@existing) ],
	[ 'pg_sweep.batch', 'pg_sweep_starategies' ], 'a name that does not exist is reported');

$node->stop;
done_testing();
