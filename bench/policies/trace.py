"""Traces of page references: those of a recording server, the player's, and
libCacheSim's. README.md beside this file describes the formats.

A Trace has the number of the page of each reference, in order. Pages are numbered
from 0, without gaps."""

import struct
from dataclasses import dataclass
from pathlib import Path

from bench.lib.paths import BenchError

try:
    import numpy as np
except ImportError:             # the list of benches does not need it
    np = None

# What a recording server writes (trace.patch)
RECORDED = struct.Struct("<8sIIIII12x")
RECORDED_MAGIC = b"PGPTRACE"
RECORD = np and np.dtype([
    ("when", "<u8"), ("tablespace", "<u4"), ("database", "<u4"),
    ("relation", "<u4"), ("block", "<u4"), ("hash", "<u4"), ("buffer", "<u4"),
    ("fork", "u1"), ("flags", "u1"), ("unused", "<u2", 3)])
HIT, RING, EXTEND, PINNED = 0x01, 0x02, 0x04, 0x08
VICTIM, FREED, UNPINNED, END = 0x10, 0x20, 0x40, 0x80
EVENTS = VICTIM | FREED | UNPINNED

# What the player reads
PAGES = struct.Struct("<8sIIQI4x")
PAGES_MAGIC = b"PGPAGES\0"

# libCacheSim's "oracleGeneral": next is the index of the object's next
# reference, or -1
ORACLE = np and np.dtype([("time", "<u4"), ("object", "<u8"), ("size", "<u4"),
                          ("next", "<i8")])

VERSION = 1                     # of .pages
RECORDED_VERSION = 2
MOST_PAGES = 2**32 - 1          # one number is for "none"


@dataclass
class Trace:
    pages: object               # numpy's array of uint32, of each reference
    count: int                  # number of different pages
    sample: int = 1             # 1 of so many pages is in it
    left_out: int = 0           # references through a ring

    def __len__(self):
        return len(self.pages)


def need():
    """Fails with one line if numpy is missing."""
    if np is None:
        raise BenchError("numpy is missing: run tools/deps, or install the package"
                         " python3-numpy")


def numbered(keys, sample=1, left_out=0):
    """A Trace of any numbers, in the order of their first reference."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if len(first) > MOST_PAGES:
        raise BenchError(f"{len(first)} pages are too many")
    rank = np.empty(len(first), dtype="<u4")
    rank[np.argsort(first, kind="stable")] = np.arange(len(first), dtype="<u4")
    return Trace(rank[inverse.reshape(-1)], len(first), sample, left_out)


def read(path):
    """A trace in any format: a folder is a server's."""
    path = Path(path)
    try:
        reader = (read_recorded if path.is_dir()
                  else READERS.get(path.suffix))
        if reader is None:
            raise BenchError(f"{path}: a trace is a folder that a server has"
                             f" written, or ends in {', '.join(READERS)}")
        trace = reader(path)
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}")
    if not len(trace):
        raise BenchError(f"{path} has no references")
    return trace


# -- recorded

def read_file(path):
    """(header, records without the last) of one process' file."""
    data = path.read_bytes()
    if len(data) < RECORDED.size or not data.startswith(RECORDED_MAGIC):
        raise BenchError(f"{path} is not from a recording server")
    _, version, size, sample, pid, _ = header = RECORDED.unpack_from(data)
    if version != RECORDED_VERSION or size != RECORD.itemsize:
        raise BenchError(f"{path} has version {version} and records of {size}"
                         f" bytes; {RECORDED_VERSION} and {RECORD.itemsize} are"
                         " known")
    whole = (len(data) - RECORDED.size) // RECORD.itemsize
    records = np.frombuffer(data, RECORD, whole, RECORDED.size)
    if (len(data) != RECORDED.size + whole * RECORD.itemsize or not whole
            or not records[-1]["flags"] & END):
        raise BenchError(f"{path} is not whole: process {pid} was killed, could"
                         " not write, or still runs")
    if (int(records[-1]["hash"]) != (whole - 1) % 2**32
            or np.any(records[:-1]["flags"] & END)):
        raise BenchError(f"{path} is damaged: it says {records[-1]['hash']}"
                         f" records and has {whole - 1}")
    return header, records[:-1]


def read_folder(folder):
    """(sample, references of all processes in the order of their times)."""
    files = sorted(folder.glob("*.trace"))
    if not files:
        raise BenchError(f"{folder} has no file of a recording server")
    headers, parts = zip(*map(read_file, files))
    samples = {header[3] for header in headers}
    if len(samples) > 1:
        raise BenchError(f"{folder} has files of several recordings: samples of"
                         f" 1 of {' and '.join(map(str, sorted(samples)))}")
    records = np.concatenate(parts)
    records = records[records["flags"] & EVENTS == 0]
    order = np.argsort(records["when"], kind="stable")
    return samples.pop(), records[order]


def page_keys(records):
    """A number for each page: 24 bits for the relation, 8 for its tablespace and
    fork, 32 for the block."""
    def ranks(values, most):
        names, rank = np.unique(values, return_inverse=True)
        if len(names) > most:
            raise BenchError(f"{len(names)} relations are too many")
        return rank.astype("<u8")

    wide = {name: records[name].astype("<u8")
            for name in ("tablespace", "database", "relation", "block", "fork")}
    return (ranks(wide["database"] << 32 | wide["relation"], 2**24) << 40
            | ranks(wide["tablespace"] << 8 | wide["fork"], 2**8) << 32
            | wide["block"])


def read_recorded(folder):
    sample, records = read_folder(folder)
    ring = (records["flags"] & RING) != 0
    return numbered(page_keys(records[~ring]), sample, int(ring.sum()))


# -- the player's

def read_pages(path):
    data = path.read_bytes()
    if len(data) < PAGES.size or not data.startswith(PAGES_MAGIC):
        raise BenchError(f"{path} is no .pages file")
    _, version, sample, references, count = PAGES.unpack_from(data)
    if version != VERSION:
        raise BenchError(f"{path} has version {version}; {VERSION} is known")
    if len(data) != PAGES.size + 4 * references:
        raise BenchError(f"{path} is cut or too long: it says {references}"
                         f" references and has {(len(data) - PAGES.size) / 4:g}")
    pages = np.frombuffer(data, "<u4", references, PAGES.size)
    if references and int(pages.max()) >= count:
        raise BenchError(f"{path} is damaged: page {pages.max()} of {count}")
    return Trace(pages, count, sample)


def write_pages(trace, path):
    with open(path, "wb") as file:
        file.write(PAGES.pack(PAGES_MAGIC, VERSION, trace.sample, len(trace),
                              trace.count))
        file.write(np.ascontiguousarray(trace.pages, "<u4").data)


# -- others'

def read_array(path, dtype):
    size = path.stat().st_size
    if size % dtype.itemsize:
        raise BenchError(f"{path} is cut: {size} bytes are no whole number of"
                         f" records of {dtype.itemsize}")
    return np.fromfile(path, dtype)


def read_numbers(path):
    """Nothing but page numbers of 32 bits, which stay as they are if they have no
    gaps."""
    pages = read_array(path, np.dtype("<u4"))
    if len(pages) and np.all(np.bincount(pages)):
        return Trace(pages, int(pages.max()) + 1)
    return numbered(pages)


def read_oracle(path):
    """The sizes of objects do not count: each is a page."""
    records = read_array(path, ORACLE)
    if np.any(records["next"][:-1] == 0):
        raise BenchError(f"{path} is no oracleGeneral trace: the next reference"
                         " of an object comes after this one")
    return numbered(np.ascontiguousarray(records["object"]))


def write_oracle(trace, path):
    """Object numbers begin with 1, and the time is the number of the reference
    (libCacheSim's Belady needs only next)."""
    records = np.zeros(len(trace), ORACLE)
    records["time"] = np.arange(len(trace)) % 2**32
    records["object"] = trace.pages.astype("<u8") + 1
    records["size"] = 1
    records["next"] = -1
    order = np.argsort(trace.pages, kind="stable")
    same = trace.pages[order][1:] == trace.pages[order][:-1]
    records["next"][order[:-1][same]] = order[1:][same]
    records.tofile(path)


READERS = {".pages": read_pages, ".u32": read_numbers,
           ".oracleGeneral": read_oracle}
WRITERS = {".pages": write_pages, ".oracleGeneral": write_oracle}
