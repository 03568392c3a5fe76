"""The `.keg` container: constants, primitive readers and writers.

The page docs/reference/keg.md states the format byte by byte.

All integers inside sections are unsigned LEB128 in their shortest form; the header is little endian.
"""
from __future__ import annotations

import struct
from dataclasses import dataclass

from kera_hw.support import content_hash

MAGIC = b"KEG\0"
VERSION = 1
HEADER = struct.Struct("<4sHH")  # magic, version, section count
ENTRY = struct.Struct("<IQQ32s")  # kind, offset, length, SHA3-256 of the section

STRINGS, TYPES, ATTRIBUTES, NODES, REGIONS, EXPORTS, DEBUG, PLACES, STRUCTS = range(1, 10)
SECTION_NAMES = {
    STRINGS: "strings", TYPES: "types", ATTRIBUTES: "attributes", NODES: "nodes",
    REGIONS: "regions", EXPORTS: "exports", DEBUG: "debug",
    PLACES: "places", STRUCTS: "structs",
}
NO_IDENTITY = frozenset((DEBUG, PLACES, STRUCTS))
KINDS = ("fn", "stream")
MAX_TYPE_DEPTH = 64
MAX_TENSOR_SIZE = 1 << 40


class Malformed(Exception):
    """The bytes are no canonical `.keg`; carries the diagnostic code and a whole sentence."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Section:
    kind: int
    data: bytes


def section_hash(kind: int, data: bytes) -> bytes:
    return content_hash("section/" + SECTION_NAMES[kind], data)


def write_container(sections: list[Section]) -> bytes:
    """Header, table, then the sections back to back in ascending kind."""
    offset = HEADER.size + ENTRY.size * len(sections)
    table, body = bytearray(), bytearray()
    for section in sections:
        table += ENTRY.pack(section.kind, offset, len(section.data), section_hash(section.kind, section.data))
        body += section.data
        offset += len(section.data)
    return HEADER.pack(MAGIC, VERSION, len(sections)) + bytes(table) + bytes(body)


def read_container(data: bytes) -> dict[int, bytes]:
    """Sections by kind; raises Malformed unless header, table, extents and hashes are exactly right."""
    if len(data) < HEADER.size:
        raise Malformed("K0801", "The file is shorter than a .keg header.")
    magic, version, count = HEADER.unpack_from(data)
    if magic != MAGIC:
        raise Malformed("K0801", "The file does not begin with the .keg magic bytes 4B 45 47 00.")
    if version != VERSION:
        raise Malformed("K0802", f"The file has .keg version {version}; this reader knows version {VERSION}.")
    expected = HEADER.size + ENTRY.size * count
    if count > len(SECTION_NAMES) or len(data) < expected:
        raise Malformed("K0803", "The section table does not fit in the file.")
    sections: dict[int, bytes] = {}
    last_kind = 0
    for i in range(count):
        kind, offset, length, digest = ENTRY.unpack_from(data, HEADER.size + ENTRY.size * i)
        if kind not in SECTION_NAMES or kind <= last_kind:
            raise Malformed("K0803", f"Section {i} has an unknown kind or is out of order.")
        if offset != expected or length > len(data) - offset:
            raise Malformed("K0803", f"The {SECTION_NAMES[kind]} section does not lie where it must.")
        sections[kind] = data[offset : offset + length]
        if section_hash(kind, sections[kind]) != digest:
            raise Malformed("K0804", f"The {SECTION_NAMES[kind]} section does not match its hash.")
        expected, last_kind = offset + length, kind
    if expected != len(data):
        raise Malformed("K0803", "Bytes follow the last section.")
    missing = [name for kind, name in SECTION_NAMES.items() if kind not in {*sections, *NO_IDENTITY}]
    if missing:
        raise Malformed("K0803", f"The {missing[0]} section is missing.")
    return sections


class Cursor:
    """Bounds-checked reading of one section."""

    def __init__(self, data: bytes, where: str) -> None:
        self.data = data
        self.where = where
        self.position = 0

    def fail(self, message: str) -> Malformed:
        return Malformed("K0805", f"In the {self.where} section, byte {self.position}: {message}")

    def byte(self) -> int:
        if self.position >= len(self.data):
            raise self.fail("the section ends early.")
        self.position += 1
        return self.data[self.position - 1]

    def uint(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if byte == 0 and shift:
                    raise self.fail("an integer is not in its shortest form.")
                return value
            shift += 7
            if shift > 63:
                raise self.fail("an integer is longer than 64 bits.")

    def raw(self, count: int) -> bytes:
        if count > len(self.data) - self.position:
            raise self.fail("the section ends early.")
        self.position += count
        return self.data[self.position - count : self.position]

    def bytes(self) -> bytes:
        return self.raw(self.uint())

    def text(self) -> str:
        try:
            return self.bytes().decode("utf-8")
        except UnicodeDecodeError:
            raise self.fail("a string is not UTF-8.") from None

    def count(self) -> int:
        """A number of entries; each takes at least one byte, so it is bounded by what is left."""
        value = self.uint()
        if value > len(self.data) - self.position:
            raise self.fail("a count exceeds the section.")
        return value

    def index(self, size: int, what: str) -> int:
        value = self.uint()
        if value >= size:
            raise self.fail(f"{what} {value} does not exist.")
        return value

    def finish(self) -> None:
        if self.position != len(self.data):
            raise self.fail("bytes follow the last entry.")
