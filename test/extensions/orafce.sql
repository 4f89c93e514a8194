-- package: orafce
CREATE EXTENSION orafce;
SELECT oracle.add_months('2026-01-31'::date, 1) = '2026-02-28';
SELECT oracle.instr('a patch, a hook', 'a', 2) = 4;
SELECT count(*) = 1 FROM oracle.dual;
-- its pipes are in shared memory
SELECT dbms_pipe.create_pipe('sweep', 10) IS NOT NULL;
SELECT dbms_pipe.pack_message('hello') IS NOT NULL;
SELECT dbms_pipe.send_message('sweep') = 0;
SELECT dbms_pipe.receive_message('sweep', 5) = 0;
SELECT dbms_pipe.unpack_message_text() = 'hello';
SELECT dbms_pipe.remove_pipe('sweep') IS NOT NULL;
DROP EXTENSION orafce;
