-- package: pgaudit
-- preload: pgaudit
CREATE EXTENSION pgaudit;
CREATE TABLE secret (i int);
SET pgaudit.log = 'read, write';
INSERT INTO secret VALUES (4711);
SELECT i = 4711 FROM secret;
RESET pgaudit.log;
\! sleep 1
SELECT count(*) = 2
  FROM regexp_matches(pg_read_file('/var/tmp/sweep-log/server.log'), 'AUDIT: SESSION,\d+,1,(READ,SELECT|WRITE,INSERT),,,[^,]* secret', 'g');
DROP EXTENSION pgaudit;
