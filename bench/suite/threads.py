"""The threads of pgsql-hackers that the scenarios are from, and their figures, as
they are in the messages."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Thread:
    source: str
    machine: str
    cpus: int                   # that its steps and sizes belong to
    said: str
    found: str                  # the ratio, in a word
    headings: tuple = ()
    figures: tuple = ()         # rows; the first column is the step


BURD_RO = Thread(
    'Greg Burd: "[PATCH] Batched clock sweep to reduce cross-socket atomic'
    ' contention", 79629577-3ad8-4b1c-a469-ebc2cb4c5104@app.fastmail.com',
    "r8i.metal-96xl: 384 vCPUs, 2 sockets, 6 NUMA nodes, 3 TB, huge pages", 384,
    "pgbench, scale 3000 (some 45 GB), shared_buffers of 32 GB: 71 % of the"
    " data. Read-only: batches of 64 were 16 to 20 % faster. On m6i.metal (128"
    " vCPUs, two sockets) they were 19 to 20 % faster. On one socket batches"
    " were off.", "1.16 .. 1.20",
    ("clients", "stock, tps", "batched, tps", "ratio"),
    ((64, 31457, 36353, 1.16), (128, 31678, 37864, 1.20),
     (256, 31510, 37558, 1.19), (384, 31431, 37464, 1.19),
     (512, 31329, 37040, 1.18)))

BURD_RW = replace(
    BURD_RO, said="The same database, read-write: from -1 % to +1 %.",
    found="0.99 .. 1.01",
    figures=((64, 7685, 7713, 1.00), (128, 10420, 10541, 1.01),
             (256, 12393, 12463, 1.01), (384, 15317, 15197, 0.99),
             (512, 17930, 17978, 1.00)))

VONDRA = Thread(
    'Tomas Vondra: "Re: Adding basic NUMA awareness", 2025-08-04,'
    " 51e51832-7f47-412a-a1a6-b972101cc8cb@vondra.me",
    "hb176: EPYC, 176 cores, 4 NUMA nodes", 176,
    "One table of 1 GB per client, scanned by that client again and again, with"
    " shared_buffers of 60, 75, 90 and 110 % of all tables. Partitioned"
    ' ("numa": 4 partitions; "numa-16": 16) was 1.3 to 4.1 times as fast at'
    " 60 %, similar at 75 and 90 %, with much less effect at 110 %. On a small"
    " machine (ryzen) and an older one with 2 nodes (xeon) there was little or"
    " no difference. The figures are those at 60 %.",
    "1.29 .. 4.11 at 60 %",
    ("clients", "stock, tps", "numa, tps", "numa-16, tps", "ratio: numa",
     "ratio: numa-16"),
    ((8, 20, 27, 26, 1.33, 1.29), (16, 23, 39, 45, 1.70, 1.93),
     (32, 21, 57, 68, 2.68, 3.21), (64, 23, 62, 93, 2.77, 4.11),
     (96, 26, 74, 97, 2.82, 3.69), (128, 27, 75, 89, 2.77, 3.28)))

BORISOV = Thread(
    'Pavel Borisov: "Lockless queue of waiters in LWLock", 2022-10-31,'
    " CALT9ZEEz+=Nepc5eti6x531q64Z6+DxtP3h-h_8O5HDdtkJcPw@mail.gmail.com",
    "32 vCPUs, x86-64, database on tmpfs", 32,
    "Inserts into an unlogged table without an index, and SELECT"
    " txid_current(), with 1 to 2000 connections. Rates are in pictures alone:"
    ' "significantly" higher with some 1000 connections, slightly lower with'
    " some 20, compared with a patch that only made leaving the queue cheaper."
    " Acquisitions of ProcArrayLock without a sleep, insert with 20"
    " connections: exclusive 46.0 % with the lock-free queue, 74.0 % without;"
    " shared 93.6 % and 97.9 %.", "in pictures alone")

PLAGEMAN = Thread(
    'Melanie Plageman: "Eagerly evict bulkwrite strategy ring", 2025-07-16',
    "not named; local SSDs, turbo boost and idle states off", 0,
    "COPY FROM of files of 1 GB into one table of two integers. 16 writers with"
    " four files each: 6.2 minutes, and 5 with the patch, some 20 % less. 4"
    " writers: some 15 % less. One writer: no gain.",
    "0.81 (16 writers), 0.85 (4), 1 (1)",
    ("writers", "stock, minutes", "patch, minutes", "ratio"),
    ((1, "-", "-", 1.00), (4, "-", "-", 0.85), (16, "6.2", "5", 0.81)))

FREUND = Thread(
    "Andres Freund: \"Re: [RFC, POC] Don't require a NBuffer sized"
    ' PrivateRefCount array of local buffer pins", 2014-08-26',
    "not named; taken for 32 CPUs", 32,
    "An array of 8 pins and a hash table for more, instead of an array as long"
    ' as the pool: "a slight performance win in pgbench read only", scale 350 in'
    " 6 GB, 128 clients (medians of four runs). The stock server of today has"
    " that design; the patch of core-hooks replaces it.", "1.03",
    ("clients", "before, tps", "array and hash table, tps", "ratio"),
    ((128, 165267, 170730, 1.03),))
FREUND_PINS = replace(FREUND, headings=(), figures=(), found="-")
