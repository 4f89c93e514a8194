# What clock2q_server.pl asks, of four partitions with probation.

use strict;
use warnings FATAL => 'all';

use FindBin;
use PostgreSQL::Test::Cluster;

@ARGV = ('clock2q_partitioned', 4);
require "$FindBin::Bin/clock2q_server.pl";
