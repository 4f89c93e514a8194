"""Which memory a recorded run of instructions has accessed, and how.

The recorder (test/sweep/measure_sweep) gives the registers before each
instruction; objdump says what the instruction is. What is read or written where
follows from both."""

import bisect
import re
import struct
import subprocess
from collections import Counter, namedtuple
from dataclasses import dataclass

from bench.lib.paths import BenchError

STEP = struct.Struct("<17Q")    # rip, then the general registers by number
REGISTERS = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
             *(f"r{i}" for i in range(8, 16)))
INDEX = {name: i + 1 for i, name in enumerate(REGISTERS)}
LOW_MASK = (1 << 64) - 1

# Memory of the kernel's that a process runs code in to read a clock, or which CPU
# it is on; there is no shared memory of the server in what that accesses.
KERNEL_CODE = ("[vdso]", "[vsyscall]")

# Executed instructions further apart than this are disassembled apart.
NEAR = 256
LONGEST_INSTRUCTION = 15

LOAD, STORE, ATOMIC, PREFETCH = "loads", "stores", "atomics", "prefetches"

LINE = re.compile(r"^\s*([0-9a-f]+):\s+(.*?)\s*(?:#.*|<.*>)?$")
MEMORY = re.compile(r"(?:%(?P<segment>[c-gs]s):)?(?P<offset>-?0x[0-9a-f]+|-?\d+)?"
                    r"\((?P<base>%\w+)?(?:,(?P<index>%\w+)?"
                    r"(?:,(?P<scale>[1248]))?)?\)")

# What instructions do with a memory operand, by name without the suffix for
# its size: only with the last operand (the destination) there is a difference.
WRITES = r"(?:c?mov\w*|vmov\w*|set\w+|pop)"
CHANGES = (r"(?:add|sub|adc|sbb|and|or|xor|inc|dec|neg|not|shl|shr|sal|sar|rol|"
           r"ror)[bwlq]?")
READS_ONLY = r"(?:cmp\w*|test\w*|push\w*|v?u?comis[sd]|bt[lq]?|call|jmp|div\w*|mul\w*)"
LOADS = (r"(?:c?mov\w*|vmov\w*|add\w*|sub\w*|adc\w*|sbb\w*|and\w*|or[bwlq]?|"
         r"xor\w*|imul\w*|mul\w*|div\w*|idiv\w*|cmp\w*|test\w*|push\w*|"
         r"v?p\w+|v?u?comis[sd]|v?cvt\w+|lzcnt|tzcnt|bs[rf]|popcnt|call|jmp|bt[lq]?)")
NOTHING = r"(?:lea\w*|nop\w*|endbr\w*)"

# An access to more than a word is as many accesses: which ones are next to each
# other in memory, and fit into one of its large registers, is the compiler's
# business, and differs where it has to call somebody after each.
WORD = 8
LARGE = {"%xmm": 16, "%ymm": 32, "%zmm": 64}
# whole registers; other instructions with such a register access a word or less
WHOLE = r"(?!v?mov[hl])v?(?:movdq[au]\d*|movnt\w+|lddqu|p\w+|\w+p[sd])"

Access = namedtuple("Access", "kind base index scale offset")


@dataclass(frozen=True)
class Mapping:
    start: int
    end: int
    path: str


def accesses(record):
    """Counter of (kind, name of the piece, offset in it), of shared memory;
    and of instructions how many."""
    if not record.steps or len(record.steps) % STEP.size:
        raise BenchError("the server recorded no instructions")
    steps = list(STEP.iter_unpack(record.steps))
    code = disassemble({step[0] for step in steps}, read_maps(record.maps))
    found = Counter()
    for step in steps:
        for access in code.get(step[0], ()):
            found[access.kind, address_of(access, step)] += 1
    shared = Counter()
    for (kind, address), times in found.items():
        where = record.find(address)
        if where is not None:
            shared[(kind, *where)] += times
    return shared, len(steps)


def address_of(access, step):
    address = access.offset
    if access.base:
        address += step[access.base]
    if access.index:
        address += step[access.index] * access.scale
    return address & LOW_MASK


def read_maps(text):
    """Executable files in a process' memory: where each begins and ends."""
    extent = {}
    for line in text.splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) < 6 or not (fields[5].startswith("/")
                                   or fields[5] in KERNEL_CODE):
            continue
        start, end = (int(number, 16) for number in fields[0].split("-"))
        first, last = extent.get(fields[5], (start, end))
        extent[fields[5]] = min(first, start), max(last, end)
    return sorted((Mapping(start, end, path)
                   for path, (start, end) in extent.items()),
                  key=lambda mapping: mapping.start)


def disassemble(addresses, mappings):
    """{address: [Access]} of all of them."""
    starts = [mapping.start for mapping in mappings]
    ranges = []                 # mapping, first, last
    for address in sorted(addresses):
        i = bisect.bisect_right(starts, address) - 1
        if i < 0 or address >= mappings[i].end:
            raise BenchError(f"an instruction at {address:#x}, where no file"
                             " is mapped")
        if (ranges and ranges[-1][0] is mappings[i]
                and address - ranges[-1][2] < NEAR):
            ranges[-1][2] = address
        else:
            ranges.append([mappings[i], address, address])
    code = {}
    for mapping, first, last in ranges:
        if mapping.path in KERNEL_CODE:
            addresses = {address for address in addresses
                         if not first <= address <= last}
        else:
            code.update(objdump(mapping, first, last))
    for address in addresses - code.keys():
        raise BenchError(f"objdump finds no instruction at {address:#x}")
    return code


def objdump(mapping, first, last):
    """A library, or a program that can be anywhere, begins at address 0 of its
    file."""
    done = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", "-M", "att",
         f"--start-address={first - mapping.start:#x}",
         f"--stop-address={last - mapping.start + LONGEST_INSTRUCTION:#x}",
         mapping.path], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True)
    if done.returncode != 0:
        raise BenchError(f"objdump {mapping.path}: {done.stderr.strip()}")
    code = {}
    for line in done.stdout.splitlines():
        match = LINE.match(line)
        if match:
            address = int(match[1], 16) + mapping.start
            if address <= last:
                code[address] = instruction(match[2], address, line)
    return code


def instruction(text, address, line):
    """The accesses of one instruction in AT&T syntax."""
    prefixes = []
    name, _, operands = text.partition(" ")
    while name in ("lock", "rep", "repz", "repnz", "bnd", "notrack", "data16",
                   "cs", "ds"):
        prefixes.append(name)
        name, _, operands = operands.strip().partition(" ")
    operand = MEMORY.search(operands)
    if operand is None:
        return []
    place = memory(operand, line)
    if place is None or re.fullmatch(NOTHING, name):
        return []
    if name.startswith("prefetch"):
        return [Access(PREFETCH, *place)]
    destination = operand.end() == len(operands.rstrip())
    kinds = kinds_of(name, "lock" in prefixes, destination, "," in
                     operands[:operand.start()])
    if kinds is None or MEMORY.search(operands, operand.end()):
        raise BenchError(f"do not know what this instruction accesses: {line}")
    return [Access(kind, *place[:-1], place[-1] + word)
            for word in range(0, size_of(name, operands), WORD)
            for kind in kinds]


def size_of(name, operands):
    """In bytes; of what is not larger than a word, one of these."""
    if not re.fullmatch(WHOLE, name):
        return WORD
    return max((size for register, size in LARGE.items()
                if register in operands), default=WORD)


def kinds_of(name, locked, destination, two_operands):
    if locked or name.startswith("xchg"):
        return [ATOMIC]
    if destination and re.fullmatch(CHANGES, name):
        return [LOAD, STORE]
    if destination and re.fullmatch(WRITES, name) and (
            two_operands or re.fullmatch(r"set\w+|pop\w*", name)):
        return [STORE]
    if re.fullmatch(READS_ONLY, name) or (not destination
                                          and re.fullmatch(LOADS, name)):
        return [LOAD]
    return None


def memory(operand, line):
    """base, index (both as positions in a step), scale, offset; None if it is
    memory of the thread, which is private."""
    if operand["segment"] in ("fs", "gs"):
        return None
    if operand["base"] == "%rip":
        # objdump prints the address after it; the library's own data
        return None
    if operand["base"] is None and operand["index"] is None:
        return None
    try:
        return (INDEX[operand["base"][1:]] if operand["base"] else 0,
                INDEX[operand["index"][1:]] if operand["index"] else 0,
                int(operand["scale"] or 1), int(operand["offset"] or "0", 0))
    except KeyError:
        raise BenchError(f"do not know this operand: {line}")
