"""The threads of pgsql-hackers that the scenarios are from: what was measured
there, on what, and their figures, as they stand in the messages."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Thread:
    subject: str
    author: str
    date: str                   # "" where the archive's page has none
    message: str                # its id; "" where none is known
    machine: str
    cpus: int                   # that its steps and sizes belong to
    said: str                   # what was measured and found, in short
    found: str                  # the ratio, in a word
    headings: tuple = ()
    figures: tuple = ()         # rows; the first column is the step

    def source(self):
        where = f"message {self.message}" if self.message else "pgsql-hackers"
        return ", ".join(filter(None, (f'{self.author}: "{self.subject}"',
                                       self.date, where)))


BURD_CPUS = 384

BURD_RO = Thread(
    "[PATCH] Batched clock sweep to reduce cross-socket atomic contention",
    "Greg Burd", "", "79629577-3ad8-4b1c-a469-ebc2cb4c5104@app.fastmail.com",
    "r8i.metal-96xl: 384 vCPUs, 2 sockets, 6 NUMA nodes, 3 TB, huge pages",
    BURD_CPUS,
    "pgbench, scale 3000 (some 45 GB) with shared_buffers of 32 GB, so 71 % of"
    " the data. Read-only: batches of 64 made it 16 to 20 % faster, on another"
    " machine of two sockets (m6i.metal, 128 vCPUs) 19 to 20 %; on one of a"
    " single socket batches were off.", "1.16 .. 1.20",
    ("clients", "stock, tps", "batched, tps", "ratio"),
    ((64, 31457, 36353, 1.16), (128, 31678, 37864, 1.20),
     (256, 31510, 37558, 1.19), (384, 31431, 37464, 1.19),
     (512, 31329, 37040, 1.18)))

BURD_RW = Thread(
    BURD_RO.subject, BURD_RO.author, BURD_RO.date, BURD_RO.message,
    BURD_RO.machine, BURD_CPUS,
    "The same database, read-write: no difference, from -1 % to +1 %. (And"
    " HammerDB's TPC-C, -2 % to +4 %, which is not among the scenarios.)",
    "0.99 .. 1.01",
    BURD_RO.headings,
    ((64, 7685, 7713, 1.00), (128, 10420, 10541, 1.01),
     (256, 12393, 12463, 1.01), (384, 15317, 15197, 0.99),
     (512, 17930, 17978, 1.00)))

VONDRA = Thread(
    "Re: Adding basic NUMA awareness", "Tomas Vondra", "2025-08-04",
    "51e51832-7f47-412a-a1a6-b972101cc8cb@vondra.me",
    "hb176: EPYC, 176 cores, 4 NUMA nodes", 176,
    "A table of 1 GB a client, scanned by that client again and again, with"
    " shared_buffers of 60, 75, 90 and 110 % of all tables. Partitioned"
    " (\"numa\": 4 partitions; \"numa-16\": 16) was 1.3 to 4.1 times as fast at 60 %,"
    " the same pattern at 75 and 90 %, with much less impact at 110 %. Little"
    " or no difference on a small machine (ryzen) and on an older one of 2"
    " nodes (xeon). The figures are those of 60 %.",
    "1.29 .. 4.11 with 60 %",
    ("clients", "stock, tps", "numa, tps", "numa-16, tps", "ratio: numa",
     "ratio: numa-16"),
    ((8, 20, 27, 26, 1.33, 1.29), (16, 23, 39, 45, 1.70, 1.93),
     (32, 21, 57, 68, 2.68, 3.21), (64, 23, 62, 93, 2.77, 4.11),
     (96, 26, 74, 97, 2.82, 3.69), (128, 27, 75, 89, 2.77, 3.28)))

BORISOV = Thread(
    "Lockless queue of waiters in LWLock", "Pavel Borisov", "2022-10-31",
    "CALT9ZEEz+=Nepc5eti6x531q64Z6+DxtP3h-h_8O5HDdtkJcPw@mail.gmail.com",
    "32 vCPUs, x86-64, database on tmpfs", 32,
    "Inserts into an unlogged table without an index, and SELECT"
    " txid_current(), with 1 to 2000 connections. Transactions a second are in"
    " pictures alone: \"significantly\" more with some 1000 connections, a little"
    " fewer with some 20, against a patch that only made leaving the queue"
    " cheaper. In figures, for the insert with 20 connections, acquisitions of"
    " ProcArrayLock without sleeping: exclusive 46.0 % with the lock-free"
    " queue, 74.0 % without; shared 93.6 % and 97.9 %.",
    "in pictures alone")

PLAGEMAN = Thread(
    "Eagerly evict bulkwrite strategy ring", "Melanie Plageman", "2025-07-16",
    "", "not said; local SSDs, turbo boost and idle states off", 0,
    "COPY FROM of files of 1 GB into one table of two integers, 16 writers,"
    " four files each: 6.2 minutes, and 5 with the patch, some 20 % less; some"
    " 15 % less with 4 writers, nothing gained with one. A reader with files of"
    " 150 MB saw 5 to 10 %.", "0.81 (16 writers), 0.85 (4), 1 (1)",
    ("writers", "stock, minutes", "patch, minutes", "ratio"),
    ((1, None, None, 1.00), (4, None, None, 0.85), (16, "6.2", "5", 0.81)))

FREUND = Thread(
    "Re: [RFC, POC] Don't require a NBuffer sized PrivateRefCount array of"
    " local buffer pins", "Andres Freund", "2014-08-26", "",
    "not said; taken for 32 CPUs", 32,
    "An array of 8 pins and a hash table for more, instead of an array as long"
    " as the pool: \"a slight performance win in pgbench read only\", scale 350"
    " in 6 GB, 128 clients, 1.03 (medians of four runs: 165,267 and 170,730"
    " tps). That design is in the stock server of today; what is measured here"
    " is the patch of core-hooks that replaces it.", "1.03",
    ("clients", "before, tps", "array and hash table, tps", "ratio"),
    ((128, 165267, 170730, 1.03),))

# the same, for what is no transaction
FREUND_PINS = replace(FREUND, headings=(), figures=(), found="-")
