# A function that the SQL file of another version declares with fewer or more columns
# raises an error: values are not taken for others, and the server does not crash.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $node = sweep_node('columns', conf => "shared_buffers = 16MB\npg_sweep.strategy = partitioned\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_sweep; CREATE SCHEMA other');

# name, symbol, columns
my @functions = map { [ split /\|/, $_, 4 ] } split /\n/, $node->safe_psql('postgres', q{
SELECT proname, prosrc, proretset,
       (SELECT string_agg(format('OUT %I %s', n, t::regtype), ', ' ORDER BY i)
          FROM unnest(proargnames, proallargtypes) WITH ORDINALITY AS c(n, t, i))
  FROM pg_proc WHERE prosrc LIKE 'pg\_sweep\_get\_%' AND prolang = (SELECT oid FROM pg_language WHERE lanname = 'c')
 ORDER BY 1});
cmp_ok(scalar @functions, '>=', 11, 'there are ' . @functions . ' functions behind views');

# A process that has allocated buffers, and stays
my $session = $node->background_psql('postgres');
$session->query_safe('CREATE TABLE t AS SELECT generate_series(1, 10000)');

my $with_rows = 0;
foreach my $function (@functions)
{
	my ($name, $symbol, $set, $columns) = @$function;
	my $of = $set eq 't' ? 'SETOF' : '';
	my $n = () = $columns =~ /OUT /g;
	my %other = ($n - 1 => $columns =~ s/, OUT [^,]*$//r, $n + 1 => "$columns, OUT one_more text");

	# it has something to show
	next if $node->safe_psql('postgres', "SELECT count(*) FROM $name()") == 0;
	$with_rows++;

	foreach my $declared (sort { $a <=> $b } keys %other)
	{
		$node->safe_psql('postgres', qq{
CREATE OR REPLACE FUNCTION other.${name}_$declared($other{$declared}) RETURNS $of record
AS '\$libdir/pg_sweep', '$symbol' LANGUAGE C VOLATILE STRICT});
		my ($ret, $stdout, $stderr) = $node->psql('postgres', "SELECT * FROM other.${name}_$declared()");
		is($ret, 3, "$name with $declared columns: refused");
		like($stderr, qr/ERROR:  function other\.${name}_$declared\(\) is declared with $declared columns, but the library has $n\nHINT:  .* drop the extension and create it again/,
			"$name with $declared columns: saying why");
	}
}
cmp_ok($with_rows, '>=', 8, "$with_rows of them had rows");
$session->quit;
unlike(slurp_file($node->logfile), qr/was terminated by signal/, 'and no process has crashed');
$node->stop;
done_testing();
