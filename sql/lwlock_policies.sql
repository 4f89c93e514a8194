--
-- Waiting for LWLocks: SQL surface, privileges, policies of tranches.
--
-- Runs against any server that has pg_sweep preloaded, with any settings and
-- any other load, and leaves it with the policies that it found.
--
CREATE EXTENSION pg_sweep;
SELECT lwlock_policy AS original FROM pg_sweep_status \gset

-- Policies of single tranches
CREATE TABLE put_back AS
SELECT policy, tranche
FROM pg_sweep_lwlock_policies WHERE own AND tranche <> 'extension';
DO $$
BEGIN
    PERFORM pg_sweep_set_lwlock_policy('default', tranche)
    FROM pg_sweep_lwlock_policies WHERE own AND tranche <> 'extension';
END $$;
SELECT pg_sweep_set_lwlock_policy('stock') = :'original' AS "returned what was active";

--
-- The surface
--
SELECT pg_get_function_arguments('pg_sweep_set_lwlock_policy'::regproc) AS arguments;

--
-- The default
--
SELECT lwlock_policy, lwlock_policy_configured = current_setting('pg_sweep.lwlock_policy') AS configured
FROM pg_sweep_status;
SELECT pg_sweep_set_lwlock_policy('lockless');
SELECT pg_sweep_set_lwlock_policy('lockless_spin');
SELECT lwlock_policy, lwlock_policy_configured = current_setting('pg_sweep.lwlock_policy') AS configured
FROM pg_sweep_status;
-- the active one
SELECT pg_sweep_set_lwlock_policy('lockless_spin');
-- any case; the answer is the name as it is written
SELECT pg_sweep_set_lwlock_policy('LOCKLESS');
SELECT pg_sweep_set_lwlock_policy('Stock', NULL);
-- every tranche has it
SELECT policy, own, count(*) > 80 AS many, bool_or(tranche IS NULL) AS "default"
FROM pg_sweep_lwlock_policies GROUP BY policy, own;
-- not undone by an abort
BEGIN;
SELECT pg_sweep_set_lwlock_policy('lockless');
ROLLBACK;
SELECT lwlock_policy FROM pg_sweep_status;
SELECT pg_sweep_set_lwlock_policy('stock');
-- NULL changes nothing
SELECT pg_sweep_set_lwlock_policy(NULL) IS NULL AS is_null;
SELECT pg_sweep_set_lwlock_policy(NULL, 'WALWrite') IS NULL AS is_null;
SELECT lwlock_policy FROM pg_sweep_status;

--
-- Tranches
--
SELECT pg_sweep_set_lwlock_policy('lockless_spin', 'WALWrite');
SELECT pg_sweep_set_lwlock_policy('lockless', 'BufferContent');
SELECT * FROM pg_sweep_lwlock_policies WHERE own ORDER BY tranche COLLATE "C";
SELECT tranche, policy, own FROM pg_sweep_lwlock_policies
WHERE tranche = 'ProcArray' OR tranche IS NULL ORDER BY tranche COLLATE "C";
-- names of locks, of groups of them, and of an extension's
SELECT tranche, policy FROM pg_sweep_lwlock_policies
WHERE tranche IN ('WALWrite', 'XidGen', 'BufferContent', 'BufferMapping', 'LockManager', 'pg_sweep')
ORDER BY tranche COLLATE "C";
-- those of wait events; one row per name
SELECT name AS missing FROM pg_wait_events WHERE type = 'LWLock'
EXCEPT SELECT tranche FROM pg_sweep_lwlock_policies;
SELECT tranche FROM pg_sweep_lwlock_policies GROUP BY tranche HAVING count(*) > 1;
-- a new default leaves them alone
SELECT pg_sweep_set_lwlock_policy('lockless');
SELECT tranche, policy, own FROM pg_sweep_lwlock_policies
WHERE tranche IN ('WALWrite', 'BufferContent', 'ProcArray') OR tranche IS NULL ORDER BY tranche COLLATE "C";
-- a tranche may have the default's policy as its own
SELECT pg_sweep_set_lwlock_policy('lockless', 'WALWrite');
SELECT pg_sweep_set_lwlock_policy('lockless', 'WALWrite');
SELECT policy, own FROM pg_sweep_lwlock_policies WHERE tranche = 'WALWrite';
-- remove them
SELECT pg_sweep_set_lwlock_policy('Default', 'WALWrite');
SELECT pg_sweep_set_lwlock_policy('default', 'BufferContent');
SELECT pg_sweep_set_lwlock_policy('default', 'BufferContent');
SELECT count(*) AS own FROM pg_sweep_lwlock_policies WHERE own AND tranche <> 'extension';
SELECT pg_sweep_set_lwlock_policy('stock');

--
-- What is refused
--
SELECT pg_sweep_set_lwlock_policy('futex');
\echo :LAST_ERROR_SQLSTATE
SELECT pg_sweep_set_lwlock_policy('');
SELECT pg_sweep_set_lwlock_policy(' lockless');
SELECT pg_sweep_set_lwlock_policy('lockles');
SELECT pg_sweep_set_lwlock_policy('default');
SELECT pg_sweep_set_lwlock_policy('futex', 'WALWrite');
SELECT pg_sweep_set_lwlock_policy('futex', 'nothing');
SELECT pg_sweep_set_lwlock_policy('lockless', 'nothing');
\echo :LAST_ERROR_SQLSTATE
SELECT pg_sweep_set_lwlock_policy('lockless', '');
SELECT pg_sweep_set_lwlock_policy('lockless', 'walwrite');
-- core's word for tranches without a name is not a name
SELECT pg_sweep_set_lwlock_policy('lockless', 'extension');
SELECT lwlock_policy FROM pg_sweep_status;
SELECT count(*) AS own FROM pg_sweep_lwlock_policies WHERE own AND tranche <> 'extension';

--
-- Parameters
--
SET pg_sweep.lwlock_policy = 'lockless';
SET pg_sweep.lwlock_spin_tries = 1;
SET pg_sweep.lwlock_handoff_after = 1;
ALTER SYSTEM SET pg_sweep.lwlock_policy = 'futex';
ALTER SYSTEM SET pg_sweep.lwlock_policy = 'default';
ALTER SYSTEM SET pg_sweep.lwlock_spin_tries = 10001;
ALTER SYSTEM SET pg_sweep.lwlock_handoff_after = -1;
ALTER SYSTEM SET pg_sweep.lwlock_track_waits = 'all';
SET pg_sweep.lwlock_track_waits = off;
SHOW pg_sweep.lwlock_track_waits;
RESET pg_sweep.lwlock_track_waits;

--
-- Privileges
--
CREATE ROLE regress_sweep_user;
CREATE ROLE regress_sweep_monitor IN ROLE pg_monitor;

SET ROLE regress_sweep_user;
SELECT pg_sweep_set_lwlock_policy('lockless');
SELECT pg_sweep_set_lwlock_policy('lockless', 'WALWrite');
SET pg_sweep.lwlock_track_waits = off;

SET ROLE regress_sweep_monitor;
SELECT count(*) >= 0 AS answered FROM pg_sweep_lwlock_waits;
SELECT policy, own FROM pg_sweep_lwlock_policies WHERE tranche IS NULL;
SELECT pg_sweep_set_lwlock_policy('lockless');

RESET ROLE;
GRANT EXECUTE ON FUNCTION pg_sweep_set_lwlock_policy(text, text) TO regress_sweep_user;
SET ROLE regress_sweep_user;
SELECT pg_sweep_set_lwlock_policy('lockless', 'WALWrite');
SELECT pg_sweep_set_lwlock_policy('default', 'WALWrite');
RESET ROLE;
REVOKE EXECUTE ON FUNCTION pg_sweep_set_lwlock_policy(text, text) FROM regress_sweep_user;
DROP ROLE regress_sweep_user, regress_sweep_monitor;

--
-- Counters, under any load
--
SELECT bool_and(mode IN ('exclusive', 'shared', 'wait until free')) IS NOT FALSE AS modes,
       bool_and(policy IN ('stock', 'lockless', 'lockless_spin')) IS NOT FALSE AS policies,
       bool_and(contended >= 0 AND spun >= 0 AND queued >= 0 AND slept >= 0 AND spurious_wakeups >= 0
                AND overtaken >= 0 AND handed_over >= 0) IS NOT FALSE AS counters,
       bool_and(wait_time >= 0 AND longest_wait >= 0) IS NOT FALSE AS times,
       bool_and(array_ndims(histogram) = 1 AND array_lower(histogram, 1) = 1
                AND cardinality(histogram) = 24) IS NOT FALSE AS histograms,
       count(*) = count(DISTINCT (tranche, mode, policy)) AS "different rows"
FROM pg_sweep_lwlock_waits;
SELECT count(*) AS "rows about nothing" FROM pg_sweep_lwlock_waits
WHERE contended + spun + queued + slept + spurious_wakeups + overtaken + handed_over + wait_time + longest_wait = 0
  AND 0 = ALL (histogram);

--
-- Drop it
--
DO $$
BEGIN
    PERFORM pg_sweep_set_lwlock_policy(policy, tranche) FROM put_back;
END $$;
SELECT pg_sweep_set_lwlock_policy(:'original') IS NOT NULL AS restored;
DROP TABLE put_back;
DROP EXTENSION pg_sweep;
