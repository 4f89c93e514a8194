-- A few rows are read most of the time, one in five transactions writes, and one
-- in 150 reads 2,000 rows beside them by the index.
\set rows 100000 * :scale
\set aid 1 + permute(random_zipfian(1, :rows, 1.05), :rows)
\set what random(1, 150)
\if :what = 1
\set first random(1, :rows - 2000)
SELECT sum(abalance) FROM pgbench_accounts WHERE aid BETWEEN :first AND :first + 1999;
\elif :what <= 30
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;
\else
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
\endif
