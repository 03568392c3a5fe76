"""Lines of source for debuggers: a compilation unit, its one function, and the table of lines.

DWARF Debugging Information Format, version 4, chapters 3, 6.2 and 7. Paths are as the program was given,
without a directory: a debugger looks for them from where it is.
"""
from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal as OneOf

from kera_hw.cpu_gpu.machine.finish import Machine

_VERSION = 4
_ADDRESS_BYTES = 8
_COMPILE_UNIT, _SUBPROGRAM = 0x11, 0x2E
_NAME, _STMT_LIST, _LOW_PC, _HIGH_PC, _PRODUCER, _EXTERNAL = 0x03, 0x10, 0x11, 0x12, 0x25, 0x3F
_DATA8, _STRING, _ADDR, _SEC_OFFSET, _FLAG_PRESENT = 0x07, 0x08, 0x01, 0x17, 0x19
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE = 1, 2, 3, 4
_END_SEQUENCE, _SET_ADDRESS = 1, 2
_OPERANDS = bytes((0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1))
"""Of the standard opcodes, from 1 on."""

Target = OneOf[".text", ".debug_abbrev", ".debug_line"]


@dataclass(frozen=True, slots=True)
class Row:
    """The source of instructions from ``offset`` on."""

    offset: int
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Reference:
    """At ``place`` stands an address in, or an offset of, another section, ``size_bytes`` wide."""

    place: int
    size_bytes: int
    target: Target


@dataclass(frozen=True, slots=True)
class DebugSection:
    name: str
    contents: bytes
    references: tuple[Reference, ...] = ()


def rows_of(machine: Machine) -> list[Row]:
    """Where the source changes; what comes before the first instruction that has one belongs to that."""
    found: list[Row] = []
    for offset, inst in machine.instructions:
        place = inst.place
        if place is None or (found and (found[-1].path, found[-1].line) == (place.path, place.line)):
            continue
        found.append(Row(offset if found else 0, place.path, place.line))
    return found


def debug_sections(
    function: str, size_bytes: int, rows: list[Row], address: int = 0
) -> tuple[DebugSection, DebugSection, DebugSection]:
    """Abbreviations, the unit and the lines of a function whose code begins at ``address``."""
    paths = list(dict.fromkeys(row.path for row in rows))
    return (
        DebugSection(".debug_abbrev", _abbreviations()),
        _information(paths[0], function, size_bytes, address),
        _lines(paths, size_bytes, rows, address),
    )


def _abbreviations() -> bytes:
    extent = ((_LOW_PC, _ADDR), (_HIGH_PC, _DATA8))
    unit = ((_PRODUCER, _STRING), (_NAME, _STRING), (_STMT_LIST, _SEC_OFFSET), *extent)
    routine = ((_EXTERNAL, _FLAG_PRESENT), (_NAME, _STRING), *extent)
    out = bytearray()
    for number, (tag, has_children, attributes) in enumerate(
        ((_COMPILE_UNIT, 1, unit), (_SUBPROGRAM, 0, routine)), start=1
    ):
        out += bytes((number, tag, has_children))
        for name, form in attributes:
            out += bytes((name, form))
        out += b"\0\0"
    return bytes(out) + b"\0"


def _information(path: str, function: str, size_bytes: int, address: int) -> DebugSection:
    out, references = bytearray(4), list[Reference]()

    def refer(size: int, target: Target, value: int) -> None:
        references.append(Reference(len(out), size, target))
        out.extend(value.to_bytes(size, "little"))

    out += struct.pack("<H", _VERSION)
    refer(4, ".debug_abbrev", 0)
    out += bytes((_ADDRESS_BYTES, 1)) + _text("kera") + _text(path)
    refer(4, ".debug_line", 0)
    refer(_ADDRESS_BYTES, ".text", address)
    out += struct.pack("<Q", size_bytes) + bytes((2,)) + _text(function)
    refer(_ADDRESS_BYTES, ".text", address)
    out += struct.pack("<Q", size_bytes) + b"\0"
    out[:4] = struct.pack("<I", len(out) - 4)
    return DebugSection(".debug_info", bytes(out), tuple(references))


def _lines(paths: list[str], size_bytes: int, rows: Iterable[Row], address: int) -> DebugSection:
    header = bytes((1, 1, 1)) + struct.pack("<bBB", -5, 14, len(_OPERANDS) + 1) + _OPERANDS + b"\0"
    header += b"".join(_text(path) + b"\0\0\0" for path in paths) + b"\0"
    out = struct.pack("<IHI", 0, _VERSION, len(header)) + header
    out += bytes((0, 1 + _ADDRESS_BYTES, _SET_ADDRESS))
    reference = Reference(len(out), _ADDRESS_BYTES, ".text")
    out += address.to_bytes(_ADDRESS_BYTES, "little") + b"".join(_steps(paths, size_bytes, rows))
    return DebugSection(".debug_line", struct.pack("<I", len(out) - 4) + out[4:], (reference,))


def _steps(paths: list[str], size_bytes: int, rows: Iterable[Row]) -> Iterator[bytes]:
    """The program that makes the table, row by row."""
    offset, line, path = 0, 1, paths[0]
    for row in rows:
        if row.path != path:
            yield bytes((_SET_FILE,)) + _unsigned(paths.index(row.path) + 1)
        yield bytes((_ADVANCE_PC,)) + _unsigned(row.offset - offset)
        yield bytes((_ADVANCE_LINE,)) + _signed(row.line - line) + bytes((_COPY,))
        offset, line, path = row.offset, row.line, row.path
    yield bytes((_ADVANCE_PC,)) + _unsigned(size_bytes - offset) + bytes((0, 1, _END_SEQUENCE))


def _text(text: str) -> bytes:
    return text.encode().replace(b"\0", b"?") + b"\0"


def _unsigned(number: int) -> bytes:
    """LEB128."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def _signed(number: int) -> bytes:
    """LEB128 of a number of either sign."""
    out = bytearray()
    while not -0x40 <= number < 0x40:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number & 0x7F))
