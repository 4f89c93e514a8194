# What partitioned.pl asks, of partitions with probation.

use strict;
use warnings FATAL => 'all';

use FindBin;
use PostgreSQL::Test::Cluster;

@ARGV = 'clock2q_partitioned';
require "$FindBin::Bin/partitioned.pl";
