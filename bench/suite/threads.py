"""The threads of pgsql-hackers that the scenarios are from."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Thread:
    source: str
    machine: str
    said: str
    found: str                  # the ratio, in a word
    clients: tuple = ()         # in the thread
    cpus: int = 0               # of the machine on which they were


BURD_RO = Thread(
    'Greg Burd: "[PATCH] Batched clock sweep to reduce cross-socket atomic'
    ' contention", 79629577-3ad8-4b1c-a469-ebc2cb4c5104@app.fastmail.com',
    "r8i.metal-96xl: 384 vCPUs, 2 sockets, 6 NUMA nodes, 3 TB, huge pages",
    "pgbench, scale 3000 (some 45 GB), shared_buffers of 32 GB: 71 % of the"
    " data. Read-only, stock and batches of 64: 31,457 and 36,353 tps with 64"
    " clients, 31,678 and 37,864 with 128, 31,329 and 37,040 with 512. On"
    " m6i.metal (128 vCPUs, two sockets) they were 19 to 20 % faster. On one"
    " socket batches were off.", "1.16 .. 1.20", (64, 128, 256, 384, 512), 384)

BURD_RW = replace(
    BURD_RO, said="The same database, read-write. Stock and batches of 64: 7,685"
    " and 7,713 tps with 64 clients, 17,930 and 17,978 with 512.",
    found="0.99 .. 1.01")

VONDRA = Thread(
    'Tomas Vondra: "Re: Adding basic NUMA awareness", 2025-08-04,'
    " 51e51832-7f47-412a-a1a6-b972101cc8cb@vondra.me",
    "hb176: EPYC, 176 cores, 4 NUMA nodes",
    "One table of 1 GB per client, scanned by that client again and again, with"
    " shared_buffers of 60, 75, 90 and 110 % of all tables. At 60 %, stock, 4"
    " and 16 partitions: 20, 27 and 26 scans/s with 8 clients, 21, 57 and 68 with"
    " 32, 27, 75 and 89 with 128. Similar at 75 and 90 %, with much less effect"
    " at 110 %. On a small machine (ryzen) and an older one with 2 nodes (xeon)"
    " there was little or no difference.",
    "1.29 .. 4.11 at 60 %", (8, 16, 32, 64, 96, 128), 176)

BORISOV = Thread(
    'Pavel Borisov: "Lockless queue of waiters in LWLock", 2022-10-31,'
    " CALT9ZEEz+=Nepc5eti6x531q64Z6+DxtP3h-h_8O5HDdtkJcPw@mail.gmail.com",
    "32 vCPUs, x86-64, database on tmpfs",
    "Inserts into an unlogged table without an index, and SELECT"
    " txid_current(), with 1 to 2000 connections. Rates are in pictures alone:"
    ' "significantly" higher with some 1000 connections, slightly lower with'
    " some 20, compared with a patch that only made leaving the queue cheaper."
    " Acquisitions of ProcArrayLock without a sleep, insert with 20"
    " connections: exclusive 46.0 % with the lock-free queue, 74.0 % without;"
    " shared 93.6 % and 97.9 %.", "in pictures alone")

PLAGEMAN = Thread(
    'Melanie Plageman: "Eagerly evict bulkwrite strategy ring", 2025-07-16',
    "not named; local SSDs, turbo boost and idle states off",
    "COPY FROM of files of 1 GB into one table of two integers. 16 writers with"
    " four files each: 6.2 minutes, and 5 with the patch, some 20 % less. 4"
    " writers: some 15 % less. One writer: no gain.",
    "0.81 (16 writers), 0.85 (4), 1 (1)")

FREUND = Thread(
    "Andres Freund: \"Re: [RFC, POC] Don't require a NBuffer sized"
    ' PrivateRefCount array of local buffer pins", 2014-08-26',
    "not named; taken for 32 CPUs",
    "An array of 8 pins and a hash table for more, instead of an array as long"
    ' as the pool: "a slight performance win in pgbench read only", scale 350 in'
    " 6 GB, 128 clients: 165,267 tps before, 170,730 after (medians of four"
    " runs). The stock server of today has that design; the patch of core-hooks"
    " replaces it.", "1.03", (16, 128), 32)
FREUND_PINS = replace(FREUND, found="-")
