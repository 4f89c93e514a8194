# What partition_bgwriter.pl asks, of partitions with probation.

use strict;
use warnings FATAL => 'all';

use FindBin;
use PostgreSQL::Test::Cluster;

@ARGV = 'clock2q_partitioned';
require "$FindBin::Bin/partition_bgwriter.pl";
