CREATE EXTENSION sweep_lwlock;

-- A lock that nobody else has needs no preparation.
SELECT sweep_lwlock_pairs(1000);
SELECT sweep_lwlock_pairs(1000, 'shared');
SELECT sweep_lwlock_pairs(0, 'exclusive');

-- The hot one is in shared memory, which must have been requested: t/001_hot.pl
-- has the rest.
SELECT * FROM sweep_lwlock_hot(10);
SELECT sweep_lwlock_turns();

-- Arguments that make no sense.
SELECT sweep_lwlock_pairs(-1);
SELECT sweep_lwlock_pairs(1, 'wait until free');
SELECT * FROM sweep_lwlock_hot();
SELECT * FROM sweep_lwlock_hot(0);
SELECT * FROM sweep_lwlock_hot(duration_ms => -1);
SELECT * FROM sweep_lwlock_hot(1, hold => -1);
SELECT * FROM sweep_lwlock_hot(1, think => -1);
SELECT * FROM sweep_lwlock_hot(1, participants => 0);
SELECT * FROM sweep_lwlock_hot(1, hold => NULL);
SELECT * FROM sweep_lwlock_hot(1, mode => 'none');

-- For superusers only.
CREATE ROLE regress_sweep_lwlock;
SET ROLE regress_sweep_lwlock;
SELECT sweep_lwlock_pairs(1);
SELECT * FROM sweep_lwlock_hot(1);
SELECT sweep_lwlock_turns();
RESET ROLE;

DROP ROLE regress_sweep_lwlock;
DROP EXTENSION sweep_lwlock;
