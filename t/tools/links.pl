
# Links between the Markdown files of the repository: each leads to a file, and
# each anchor to a heading there.  The README stays short.

use strict;
use warnings FATAL => 'all';

use FindBin;
use PostgreSQL::Test::Utils;
use Test::More;

my $top = "$FindBin::RealBin/../..";

# As GitHub makes them of headings
sub anchors
{
	my ($text) = @_;
	my %anchors;

	while ($text =~ /^#+ (.*)/mg)
	{
		my $anchor = lc $1;

		$anchor =~ s/[^\w\- ]//g;
		$anchor =~ tr/ /-/;
		$anchors{$anchor} = 1;
	}
	return \%anchors;
}

# The links of a file that lead nowhere
sub broken
{
	my ($file, $text) = @_;
	my ($folder) = $file =~ m{^(.*)/};
	my @broken;

	$text =~ s/^```.*?^```//msg;
	while ($text =~ /\]\(([^()\s]*)\)/g)
	{
		my $link = $1;
		next if $link =~ m{^\w+:};
		my ($path, $anchor) = split /#/, $link;
		my $target = ($path // '') eq '' ? $file : "$folder/$path";

		if (!-e $target)
		{
			push @broken, $link;
		}
		elsif (defined $anchor && $target =~ /\.md$/)
		{
			my $there = $target eq $file ? $text : slurp_file($target);
			push @broken, $link unless anchors($there)->{$anchor};
		}
	}
	return @broken;
}

my @files = grep { -f } map { glob "$top/$_" }
  qw(*.md docs/*.md docs/design/*.md */README.md */*/README.md */*/*/README.md);
@files = grep { !m{^\Q$top\E/build/} } @files;
cmp_ok(scalar @files, '>', 20, 'there are Markdown files');

for my $file (@files)
{
	my $name = $file =~ s{^\Q$top\E/}{}r;
	is_deeply([ broken($file, slurp_file($file)) ], [], "$name: no link is broken");
}

is_deeply([ broken("$top/README.md", '[a](docs) [b](nowhere.md) [c](#nothing) [d](https://example.org)') ],
	[ 'nowhere.md', '#nothing' ], 'a broken link is reported');

my $readme = slurp_file("$top/README.md");
cmp_ok(scalar(split /\n/, $readme), '<=', 150, 'README.md has at most 150 lines');
cmp_ok(scalar(split ' ', $readme), '<=', 1500, 'README.md has at most 1,500 words');

done_testing();
