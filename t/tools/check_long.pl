# tools/check-long, with steps that only say that they run: it goes on after a failure,
# fails then, and leaves out what has passed on the same commit with the same settings
# and nothing uncommitted.

use strict;
use warnings FATAL => 'all';

use File::Copy;
use File::Path qw(make_path);
use IPC::Run;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $top = sweep_root();
my $clone = "$PostgreSQL::Test::Utils::tmp_check/check_long";
my @git = ('git', '-C', $clone, '-c', 'user.name=test', '-c', 'user.email=test@localhost');
my @long = map { s{.*/}{}r } grep { -f && -x } glob("$top/test/long/*");
my @steps = sort 'check-cassert', 'check-release', 'check-core', 'check-numa', @long;

plan skip_all => 'there is no git' unless eval { (run_command([ 'git', '--version' ]))[0] };

sub script
{
	my ($name, $line) = @_;

	open my $fh, '>', "$clone/$name" or die "$name: $!";
	print $fh "#!/bin/bash\n$line\n";
	close $fh;
	chmod 0755, "$clone/$name";
}

sub commit { system_or_bail(@git, 'add', '-A'); system_or_bail(@git, 'commit', '-q', '-m', 'test') }

# Returns the exit status, the steps that ran, those in the list that were left out, and
# those that failed.
sub check_long
{
	my ($out, $err) = ('', '');

	IPC::Run::run([ "$clone/tools/check-long" ], '>', \$out, '2>', \$err);
	my $status = $? >> 8;
	my ($list) = $out =~ /^check-long:\n(.*)/ms;
	return (
		$status,
		[ sort "$out$err" =~ /^ran (\S+)/mg ],
		[ sort $list =~ /^ +(\S+) .* passed before, on this commit$/mg ],
		[ sort $list =~ /^ +(\S+) .* FAILED$/mg ]);
}

make_path("$clone/tools", "$clone/test/long");
copy("$top/tools/$_", "$clone/tools/$_") or die "$_: $!" foreach ('check-long', 'lib.sh');
chmod 0755, "$clone/tools/check-long";
script('.gitignore', "/build/\n");
script('tools/as-user', 'exec "$@"');
script('tools/server', ':');
# the variant is the last argument
script('tools/check', 'echo "ran check-${!#}"');
script("tools/$_", "echo ran $_") foreach ('check-core', 'check-numa');
script("test/long/$_", "echo ran $_") foreach (@long);
script('test/long/pins_table', 'echo ran pins_table; exit 1');
system_or_bail(@git, 'init', '-q');
commit();

is_deeply([check_long()], [ 1, \@steps, [], ['pins_table'] ], 'each step runs, though one fails');

my @others = grep { $_ ne 'pins_table' } @steps;
is_deeply([check_long()], [ 1, ['pins_table'], \@others, ['pins_table'] ], 'what has passed is left out');

{
	local $ENV{PG_SWEEP_RING_CRASHES} = 1;
	is_deeply((check_long())[1], \@steps, 'with another setting all run');
}
script('uncommitted', ':');
is_deeply((check_long())[1], \@steps, 'with an uncommitted file all run');
unlink "$clone/uncommitted";

script('test/long/pins_table', 'echo ran pins_table');
commit();
is_deeply([check_long()], [ 0, \@steps, [], [] ], 'on another commit all run');
is_deeply([check_long()], [ 0, [], \@steps, [] ], 'and none again');

done_testing();
