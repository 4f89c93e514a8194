"""The command line: settings as they are written, and what is refused without
a server."""

import unittest

from ab import options, settings
from ab.errors import UserError

TWO = ("--a", "stock", "--b", "batched")
REFUSED = (
    (("-S", "--a", "stock"), "at least two settings"),
    (("-S", "--a", "stock", "--setting", ""), "setting is empty"),
    (("-S", "--a", "stock", "--b", "x: balance=on, balance=off"),
     r"pg_sweep\.balance twice"),
    (("-S", "--a", "stock", "--b", "x: ab.d='1"), "quote is not closed"),
    (("-S", "--a", "stock", "--b", "x: ab.d=a'1'"), "quote a whole value"),
    (("-S", "--a", "stock", "--b", "x: ,"), "nothing between two commas"),
    (("-S", "--a", "stock", "--b", "x: work_mem="), "has no value"),
    (("-S", "--a", "stock", "--b", "lwlock_policy.=lockless"), "which tranche"),
    (("-S", "--a", "stock", "--b", "x: a-b=1"), "no name of a parameter"),
    (("-S", "--a", "stock", "--b", "x" * 41), "at most 40 characters"),
    (TWO, "no load"),
    (("-S", "--attach", *TWO), "--attach excludes"),
    (("-f", "/no/such", *TWO), "cannot read /no/such"),
    (("-S", *TWO, "-c", "0"), "at least 1"),
    (("-S", *TWO, "--pgbench-options=-T 5"), "-T cannot be chosen"),
    (("-S", *TWO, "--pgbench-options=--sampl=0.5"),
     "--sampling-rate cannot be chosen"),
    (("-S", *TWO, "--pgbench-options=-rC"), "write each option by itself"),
    (("-S", *TWO, "-d", "dbname=x password=y"), r"use PGPASSWORD or \.pgpass"),
    (("-S", *TWO, "-d", "dbname=x application_name=y"), "application_name"),
    (("-S", *TWO, "--minutes", "0.1"), "too short for two blocks"),
    (("-S", *TWO, "--slice", "1", "--settle", "1"), "must be shorter"),
    (("--attach", *TWO, "--settle", "1"), "at least 1.1 s"),
    (("-S", *TWO, "--minutes", "nan"), "--minutes must be a number"),
    (("-S", *TWO, "--slice", "inf"), "--slice must be a number"),
    (("-S", *TWO, "--blocks", "0"), "--blocks must be 1 to"),
    (("--restore", "--forget"), "exclude each other"),
)


def checked(*arguments):
    args = options.parse(arguments)
    options.check(args)
    return args


class TestSettings(unittest.TestCase):
    def test_forms(self):
        for text, name, values in (
                ("batched", "batched", {"strategy": "batched"}),
                ("now:", "now", {}),
                ("small: batched, batch_size=8", "small",
                 {"strategy": "batched", "pg_sweep.batch_size": "8"}),
                ("x: log_line_prefix='a, ''b'", "x",
                 {"log_line_prefix": "a, 'b"}),
                ("x: PG_SWEEP.LWLOCK_POLICY=lockless", "x",
                 {"lwlock_policy": "lockless"}),
                ("x: pg_sweep.strategy=auto", "x", {"strategy": "auto"}),
                ("x: lwlock_policy.WALWrite=lockless", "x",
                 {"lwlock_policy.WALWrite": "lockless"}),
                ("x: balance=off, ring_eager_flush=on", "x",
                 {"pg_sweep.balance": "off",
                  "pg_sweep.ring_eager_flush": "on"})):
            with self.subTest(text):
                self.assertEqual(settings.parse(text),
                                 settings.Setting(name, values))

    def test_same_name_gets_a_number(self):
        self.assertEqual([s.name for s in settings.parse_all(["a", "a"])],
                         ["a", "a (2)"])

    def test_switched_by_a_function(self):
        self.assertFalse(settings.is_parameter("lwlock_policy.WALWrite"))
        self.assertTrue(settings.is_parameter("pg_sweep.balance"))


class TestOptions(unittest.TestCase):
    def test_refusals(self):
        for arguments, reason in REFUSED:
            with self.subTest(arguments), \
                    self.assertRaisesRegex(UserError, reason):
                checked(*arguments)

    def test_durations(self):
        for arguments, blocks, slice_, settle in (
                ((), 49, 3.0, 1.1), (("--quick",), 10, 2.3, 1.1),
                (("--slice", "1"), 149, 1.0, 0.5),
                (("--minutes", "1"), 9, 3.0, 1.1)):
            args = checked("-S", *TWO, *arguments)
            self.assertEqual((args.blocks, args.slice, args.settle),
                             (blocks, slice_, settle), arguments)
        args = checked("--attach", *TWO)
        self.assertEqual((args.blocks, args.slice, args.settle),
                         (29, 30.0, 11.0))


if __name__ == "__main__":
    unittest.main()
