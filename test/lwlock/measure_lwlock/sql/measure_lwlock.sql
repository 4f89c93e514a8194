CREATE EXTENSION measure_lwlock;

-- A lock that no other process uses needs no preparation.
SELECT measure_lwlock_pairs(1000);
SELECT measure_lwlock_pairs(1000, 'shared');
SELECT measure_lwlock_pairs(0, 'exclusive');

-- The hot one needs shared memory: t/lwlock/measure.pl has the rest.
SELECT * FROM measure_lwlock_hot(10);
SELECT measure_lwlock_turns();

-- Invalid arguments.
SELECT measure_lwlock_pairs(-1);
SELECT measure_lwlock_pairs(1, 'wait until free');
SELECT * FROM measure_lwlock_hot();
SELECT * FROM measure_lwlock_hot(0);
SELECT * FROM measure_lwlock_hot(duration_ms => -1);
SELECT * FROM measure_lwlock_hot(1, hold => -1);
SELECT * FROM measure_lwlock_hot(1, think => -1);
SELECT * FROM measure_lwlock_hot(1, participants => 0);
SELECT * FROM measure_lwlock_hot(1, hold => NULL);
SELECT * FROM measure_lwlock_hot(1, mode => 'none');
SELECT measure_lwlock_release(0);
SELECT measure_lwlock_release(1, samples => 0);

-- For superusers only.
CREATE ROLE regress_sweep_lwlock;
SET ROLE regress_sweep_lwlock;
SELECT measure_lwlock_pairs(1);
SELECT * FROM measure_lwlock_hot(1);
SELECT measure_lwlock_turns();
SELECT measure_lwlock_release(1);
RESET ROLE;

DROP ROLE regress_sweep_lwlock;
DROP EXTENSION measure_lwlock;
