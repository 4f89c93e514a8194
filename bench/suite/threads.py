"""The threads of pgsql-hackers that the scenarios are from."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Thread:
    source: str
    machine: str
    found: str                  # the ratio
    clients: tuple = ()         # in the thread
    cpus: int = 0               # of the machine on which they were


BURD_RO = Thread(
    'Greg Burd: "[PATCH] Batched clock sweep to reduce cross-socket atomic'
    ' contention", 79629577-3ad8-4b1c-a469-ebc2cb4c5104@app.fastmail.com',
    "r8i.metal-96xl: 384 vCPUs, 2 sockets, 6 NUMA nodes, 3 TB, huge pages",
    "1.16 .. 1.20", (64, 128, 256, 384, 512), 384)

BURD_RW = replace(BURD_RO, found="0.99 .. 1.01")

VONDRA = Thread(
    'Tomas Vondra: "Re: Adding basic NUMA awareness", 2025-08-04,'
    " 51e51832-7f47-412a-a1a6-b972101cc8cb@vondra.me",
    "hb176: EPYC, 176 cores, 4 NUMA nodes",
    "1.29 .. 4.11 at 60 %", (8, 16, 32, 64, 96, 128), 176)

BORISOV = Thread(
    'Pavel Borisov: "Lockless queue of waiters in LWLock", 2022-10-31,'
    " CALT9ZEEz+=Nepc5eti6x531q64Z6+DxtP3h-h_8O5HDdtkJcPw@mail.gmail.com",
    "32 vCPUs, x86-64, database on tmpfs",
    "in pictures alone: higher with some 1000 connections, slightly lower with"
    " some 20")

PLAGEMAN = Thread(
    'Melanie Plageman: "Eagerly evict bulkwrite strategy ring", 2025-07-16',
    "not named; local SSDs, turbo boost and idle states off",
    "0.81 (16 writers), 0.85 (4), 1 (1)")

FREUND = Thread(
    "Andres Freund: \"Re: [RFC, POC] Don't require a NBuffer sized"
    ' PrivateRefCount array of local buffer pins", 2014-08-26',
    "not named; taken for 32 CPUs",
    "1.03: an array of 8 pins and a hash table, against an array as long as the"
    " pool; the stock server of today has that design", (16, 128), 32)
FREUND_PINS = replace(FREUND, found="-")
