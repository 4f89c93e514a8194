"""What one session of a real server allocates, recorded by the test module
measure_sweep: the state that it starts from, the victims, and the instructions."""

import struct
from array import array
from dataclasses import dataclass, field

from bench.lib import callgrind
from bench.lib.paths import BenchError

MAGIC = b"swrec\0\0\1"
HEADER = struct.Struct("<8sIiIIII")
PIECE = struct.Struct("<48sQQ")
MIXED = -1                      # usage: by a hash, see sweep_record.c

CONTROL = "Buffer Strategy Status"
DESCRIPTORS = "Buffer Descriptors"
SWEEP = "pg_sweep"
OTHER = "other shared memory"

# What COPY ... WITH (FORMAT binary) begins with, and how it ends.
COPY_MAGIC = b"PGCOPY\n\377\r\n\0"
COPY_END = b"\377\377"


@dataclass(frozen=True)
class Piece:
    name: str
    address: int
    size: int
    content: memoryview = field(repr=False)


@dataclass(frozen=True)
class Record:
    raw: bytes = field(repr=False)      # of the start, as the module wrote it
    buffers: int
    procno: int
    hand: int
    passes: int
    pieces: dict
    victims: array = field(repr=False)
    steps: memoryview = field(repr=False, default=None)
    maps: str = field(repr=False, default="")

    def find(self, address):
        """(name of the piece, offset), None if it is private memory."""
        for piece in self.pieces.values():
            if 0 <= address - piece.address < piece.size:
                return piece.name, address - piece.address
        if any(address in mapping for mapping in self.shared_memory()):
            return OTHER, 0
        return None

    def shared_memory(self):
        """Addresses of all memory that other processes may have, too."""
        for line in self.maps.splitlines():
            addresses, permissions, _ = line.split(maxsplit=2)
            if permissions == "rw-s":
                yield range(*(int(number, 16)
                              for number in addresses.split("-")))


def take(cluster, settings, before, allocations, usage, pin_every=0,
         step=False):
    """Run a single-user server of the cluster: the statements of before, then
    so many allocations."""
    path = cluster.dir / "record"
    path.unlink(missing_ok=True)
    names = ", ".join(f"'{name}'" for name in (CONTROL, DESCRIPTORS, SWEEP))
    statement = (
        "COPY (SELECT r.* FROM (SELECT array_agg(name) AS names,"
        " array_agg(size) AS sizes FROM pg_shmem_allocations"
        f" WHERE name IN ({names})) AS p, measure_sweep_record({allocations},"
        f" {usage}, names, sizes, {pin_every}, {'true' if step else 'false'})"
        f" AS r) TO '{path}' WITH (FORMAT binary)")
    output = callgrind.single_user(cluster, settings, [*before, statement])
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BenchError(f"the server wrote no record: {error.strerror}")
    path.unlink()
    return parse(content), output


def parse(content):
    """The one row of a COPY in binary format."""
    view = memoryview(content)
    if content[:len(COPY_MAGIC)] != COPY_MAGIC or content[-2:] != COPY_END:
        raise BenchError("the server's record is not in COPY's format")
    at = len(COPY_MAGIC) + 8            # flags, length of an extension
    columns, = struct.unpack_from(">h", view, at)
    at += 2
    values = []
    for _ in range(columns):
        length, = struct.unpack_from(">i", view, at)
        at += 4
        values.append(None if length < 0 else view[at:at + length])
        at += max(length, 0)
    if columns != 4 or at != len(content) - 2:
        raise BenchError("the server's record has other columns than expected")
    start, victims, steps, maps = values
    (magic, buffers, procno, hand, passes, npieces,
     _) = HEADER.unpack_from(start)
    if magic != MAGIC:
        raise BenchError("the server's record is of another version of"
                         " measure_sweep")
    return Record(raw=bytes(start),
                  buffers=buffers, procno=procno, hand=hand, passes=passes,
                  pieces=parse_pieces(start, npieces),
                  victims=array("i", bytes(victims)), steps=steps,
                  maps="" if maps is None else str(maps, "utf-8"))


def parse_pieces(start, npieces):
    pieces = {}
    at = HEADER.size + npieces * PIECE.size
    for i in range(npieces):
        name, address, size = PIECE.unpack_from(start,
                                                HEADER.size + i * PIECE.size)
        name = name.rstrip(b"\0").decode()
        pieces[name] = Piece(name, address, size, start[at:at + size])
        at += size + -size % 8
    return pieces
