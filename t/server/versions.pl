# Library and SQL objects of different versions.  Made for this test: version 0.9, which
# has one view and one column less, its upgrade script, and two later versions than the
# library's.  The server says which side is to be brought up to the other.  An upgrade
# makes what a fresh CREATE EXTENSION makes, and views and rights that users have added
# stay.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $node = sweep_node('main');
plan skip_all => 'a folder for extensions of a test needs PostgreSQL 18'
  if $node->pg_version < 18;

my $installed = $node->config_data('--sharedir') . '/extension';
my $folder = "$PostgreSQL::Test::Utils::tmp_check/versions";

sub sql { return $node->safe_psql($_[1] // 'postgres', $_[0]); }

#
# The versions
#
my $control = slurp_file("$installed/pg_sweep.control");
my ($version) = $control =~ /^default_version = '(.*)'/m;
my $new = slurp_file("$installed/pg_sweep--$version.sql");

# Cut what a pattern matches out of a text; returns what was cut
sub cut
{
	my ($text, $pattern) = @_;

	$$text =~ s/($pattern)// or die "the SQL file has no $pattern";
	return $1;
}

# What belongs to one function and its view, without their rights
sub cut_function
{
	my ($text, $name) = @_;

	return cut($text, qr/CREATE FUNCTION pg_sweep_get_$name\(.*?\n\n/s)
	  . cut($text, qr/CREATE VIEW pg_sweep_$name .*?\n\n/s)
	  . cut($text, qr/(?:COMMENT ON (?:VIEW|COLUMN) pg_sweep_$name\b[^\n]*\n)+/);
}

# What the SQL file does at its end about an object: right is EXECUTE or SELECT
sub rights
{
	my ($right, $object) = @_;

	return "REVOKE ALL ON $object FROM PUBLIC;\nGRANT $right ON $object TO pg_monitor;\n";
}

# A column more at the end of pg_sweep_pins, as extension/README.md says how
sub upgrade_pins
{
	my ($old, $function, $comment) = @_;

	return qq{
ALTER FUNCTION pg_sweep_get_pins() RENAME TO pg_sweep_get_pins_$old;
$function
CREATE OR REPLACE VIEW pg_sweep_pins AS
    SELECT * FROM pg_sweep_get_pins();
DROP FUNCTION pg_sweep_get_pins_$old();
$comment
} . rights('EXECUTE', 'FUNCTION pg_sweep_get_pins()');
}

my $old = $new;
my $ring = cut_function(\$old, 'ring');
my ($pins) = $new =~ /(CREATE FUNCTION pg_sweep_get_pins\(.*?;\n)/s;
$old =~ s/,\s+pg_sweep_(?:get_)?ring\b(?:\(\))?//g;
cut(\$old, qr/,\n    OUT table_slots int8(?=\))/);
my $comment = cut(\$old, qr/COMMENT ON COLUMN pg_sweep_pins\.table_slots [^\n]*\n/);
my %files = (
	'pg_sweep.control' => $control,
	"pg_sweep--$version.sql" => $new,
	'pg_sweep--0.9.sql' => $old,
	"pg_sweep--0.9--$version.sql" => upgrade_pins('0_9', $pins, $comment)
	  . $ring
	  . rights('EXECUTE', 'FUNCTION pg_sweep_get_ring()')
	  . rights('SELECT', 'pg_sweep_ring'),
	"pg_sweep--$version--$version.1.sql" =>
	  upgrade_pins('before', $pins =~ s/(OUT table_slots int8)/$1, OUT more text/r, ''),
	"pg_sweep--$version.1--$version.10.sql" => q{
CREATE FUNCTION pg_sweep_get_future(OUT n int4) AS 'MODULE_PATHNAME', 'pg_sweep_get_future' LANGUAGE C;
});
mkdir $_ or die "cannot make $_: $!" for $folder, "$folder/extension";
append_to_file("$folder/extension/$_", $files{$_}) for keys %files;

$node->append_conf('postgresql.conf', "extension_control_path = '$folder:\$system'\n");
$node->start;

#
# A library newer than the objects
#
my $note = 'SELECT state, note FROM pg_sweep_status';
my $newer = "The SQL objects are of version 0.9, the library is of version $version; use ALTER EXTENSION pg_sweep UPDATE.";

sql(q{CREATE EXTENSION pg_sweep VERSION '0.9'});
is(sql($note), "ok|$newer", 'newer library: pg_sweep_status says what to do');
like(
	($node->psql('postgres', 'SELECT * FROM pg_sweep_pins'))[2],
	qr/ERROR:  function pg_sweep_get_pins\(\) is declared with 4 columns, but the library has 5\nHINT:  \Q$newer\E/,
	'newer library: a view that has changed says so');
cmp_ok(sql('SELECT count(*) FROM pg_sweep_strategies'), '>', 1, 'newer library: one that has not works');
is(sql(q{SELECT pg_sweep_set_strategy('batched')}), 'stock', 'newer library: a switch works');
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$node->restart;
is( sql($note),
	qq{not preloaded|Add pg_sweep to "shared_preload_libraries" and restart the server. $newer},
	'newer library, not preloaded: it says both');
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_sweep'\n");
$node->restart;

#
# Its objects are brought up to it
#
sql(q{
CREATE ROLE watcher LOGIN;
GRANT SELECT ON pg_sweep_pins TO watcher;
CREATE VIEW most AS SELECT max(most_pinned) FROM pg_sweep_pins;
CREATE VIEW every_pin AS SELECT * FROM pg_sweep_pins;
ALTER EXTENSION pg_sweep UPDATE;
});
is(sql($note), 'ok|', 'updated: nothing is left to do');
cmp_ok(sql('SELECT min(table_slots) FROM pg_sweep_pins'), '>', 0, 'updated: the new column is there');
is(sql('SELECT max >= 1 FROM most'), 't', 'updated: a view of a user on a view of ours works');
is(sql(q{SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'every_pin'::regclass}),
	'pid backend_type buffers_pinned most_pinned', 'updated: and has the columns that it had');
is(sql(q{SELECT has_table_privilege('watcher', 'pg_sweep_pins', 'SELECT')}),
	't', 'updated: a right that was granted stays');
sql('REVOKE SELECT ON pg_sweep_pins FROM watcher');

# All that belongs to the extension, and how
my $members = q{
SELECT pg_describe_object(d.classid, d.objid, 0),
       coalesce(pg_get_functiondef(p.oid), pg_get_viewdef(c.oid)),
       coalesce(p.proacl, c.relacl), i.initprivs,
       (SELECT string_agg(format('%s: %s', objsubid, description), ', ' ORDER BY objsubid)
          FROM pg_description WHERE classoid = d.classid AND objoid = d.objid)
  FROM pg_depend d
  LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
  LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
  LEFT JOIN pg_init_privs i ON i.classoid = d.classid AND i.objoid = d.objid
 WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
   AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_sweep')
   AND d.classid <> 'pg_type'::regclass
 ORDER BY 1};
sql('CREATE DATABASE fresh');
sql('CREATE EXTENSION pg_sweep', 'fresh');
my @fresh = split /^(?=(?:function|view) )/m, sql($members, 'fresh');
cmp_ok(scalar @fresh, '>=', 31, 'there are ' . @fresh . ' functions and views');
is_deeply([ split /^(?=(?:function|view) )/m, sql($members) ],
	\@fresh, 'updated: functions, views, rights and comments are those of a fresh extension');

#
# Objects newer than the library
#
my $older = "The SQL objects are of version $version.1, the library is of version $version; install library version $version.1 and restart the server.";

sql("ALTER EXTENSION pg_sweep UPDATE TO '$version.1'");
is(sql($note), "ok|$older", 'older library: pg_sweep_status says what to do');
like(
	($node->psql('postgres', 'SELECT * FROM pg_sweep_pins'))[2],
	qr/ERROR:  function pg_sweep_get_pins\(\) is declared with 6 columns, but the library has 5\nHINT:  \Q$older\E/,
	'older library: a view that has changed says so');
is(sql(q{SELECT pg_sweep_set_strategy('stock')}), 'stock', 'older library: a switch works');
is(sql($note, 'fresh'), 'ok|', 'older library: not in a database with its objects');

# 1.0.10 is later than 1.0.1, and needs a function that is not there
like(
	($node->psql('postgres', "ALTER EXTENSION pg_sweep UPDATE TO '$version.10'"))[2],
	qr/ERROR:  could not find function "pg_sweep_get_future" in file/,
	'older library: an update to a version that needs more of it is refused');
is(sql(q{SELECT extversion FROM pg_extension WHERE extname = 'pg_sweep'}),
	"$version.1", 'and nothing of it is left');

$node->stop;
done_testing();
