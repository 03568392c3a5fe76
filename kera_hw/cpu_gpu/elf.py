"""Finished code in files that linkers and loaders take: an ELF object, and a shared library.

Code is position independent and holds its own constants, so that neither needs relocations but for debuggers.
Sections: code, data that is only read, and lines of source (``dwarf``); no page is writable but the library's
dynamic table, nor is the stack executable.

System V Application Binary Interface, chapters 4 and 5, and its supplements for processors.
"""
from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kera_hw.cpu_gpu.dwarf import DebugSection, Row, debug_sections

_PAGE_BYTES = 4096
_ALIGNMENT_BYTES = 64
_HEADER_BYTES, _SEGMENT_BYTES, _SYMBOL_BYTES = 64, 56, 24
_RELOCATABLE, _SHARED = 1, 3
_PROGBITS, _SYMTAB, _STRTAB, _RELA, _HASH, _DYNAMIC, _DYNSYM = 1, 2, 3, 4, 5, 6, 11
_WRITE, _ALLOC, _EXECUTE, _INFO_LINK = 1, 2, 4, 0x40
_LOAD, _DYNAMIC_SEGMENT, _GNU_STACK = 1, 2, 0x6474E551
_R, _RX, _RW = 4, 5, 6
_FUNCTION, _OBJECT, _OF_SECTION = 2, 1, 3


@dataclass(frozen=True, slots=True)
class ElfMachine:
    """What a file is for: ``e_machine``; ``e_flags`` say which calling convention, where several are.
    ``absolute``: relocations to an address of so many bytes."""

    number: int
    absolute: Mapping[int, int]
    flags: int = 0


@dataclass(frozen=True, slots=True)
class Named:
    """Contents that others link to by a name."""

    name: str
    contents: bytes


@dataclass(frozen=True, slots=True)
class _Symbol:
    name: str
    kind: int
    section: int
    value: int
    size_bytes: int


@dataclass(slots=True)
class _Section:
    name: str
    kind: int
    flags: int
    contents: bytes
    link: int = 0
    info: int = 0
    alignment: int = 1
    entry_bytes: int = 0
    address: int = 0
    offset: int = 0


@dataclass(slots=True)
class _Strings:
    """A table of names, each ending in a zero byte."""

    contents: bytearray = field(default_factory=lambda: bytearray(1))

    def add(self, name: str) -> int:
        place = len(self.contents)
        self.contents += name.encode() + b"\0"
        return place


def object_file(
    machine: ElfMachine, function: Named, data: Sequence[Named], rows: Sequence[Row] = ()
) -> bytes:
    """A relocatable object; ``rows``: the sources of its code."""
    readonly, symbols = _data(function, data, code=1, section=2)
    names = _Strings()
    debug = debug_sections(function.name, len(function.contents), list(rows)) if rows else ()
    numbers = {".text": 1, **{section.name: 6 + k for k, section in enumerate(debug)}}
    own = _section_symbols(numbers.values())
    table = _symbols(symbols, names, [0, 0], own)
    sections = [
        _Section(".text", _PROGBITS, _ALLOC | _EXECUTE, function.contents, alignment=_ALIGNMENT_BYTES),
        _Section(".rodata", _PROGBITS, _ALLOC, readonly, alignment=_ALIGNMENT_BYTES),
        _Section(".symtab", _SYMTAB, 0, table, link=4, info=1 + len(numbers), alignment=8,
                 entry_bytes=_SYMBOL_BYTES),
        _Section(".strtab", _STRTAB, 0, bytes(names.contents)),
        _Section(".note.GNU-stack", _PROGBITS, 0, b""),
        *(_Section(section.name, _PROGBITS, 0, section.contents) for section in debug),
        *(_relocations(section, numbers, machine) for section in debug if section.references),
    ]
    out = bytearray(_HEADER_BYTES)
    for section in sections:
        out += bytes(-len(out) % section.alignment)
        section.offset = len(out)
        out += section.contents
    return _with_headers(machine, out, sections, _RELOCATABLE, 0)


def _section_symbols(numbers: Iterable[int]) -> bytes:
    """Local symbols of sections, which relocations are counted from."""
    return b"".join(struct.pack("<IBBHQQ", 0, _OF_SECTION, 0, number, 0, 0) for number in numbers)


def _relocations(section: DebugSection, numbers: Mapping[str, int], machine: ElfMachine) -> _Section:
    """Each against the symbol of the section that it leads to; symbols are in the order of ``numbers``."""
    places = list(numbers)
    kinds = machine.absolute
    contents = b"".join(
        struct.pack("<QIIq", one.place, kinds[one.size_bytes], places.index(one.target) + 1, 0)
        for one in section.references
    )
    return _Section(f".rela{section.name}", _RELA, _INFO_LINK, contents, link=3, info=numbers[section.name],
                    alignment=8, entry_bytes=_SYMBOL_BYTES)


def shared_library(
    machine: ElfMachine, name: str, function: Named, data: Sequence[Named], rows: Sequence[Row] = ()
) -> bytes:
    """A library for the dynamic loader, which is called ``name``; ``rows``: the sources of its code."""
    readonly, symbols = _data(function, data, code=5, section=4)
    strings = _Strings()
    soname = strings.add(name)
    named = [strings.add(symbol.name) for symbol in symbols]
    # Pages: what is only read, then code, then the dynamic table; files and memory have the same offsets.
    read = [
        _Section(".dynsym", _DYNSYM, _ALLOC, bytes(_SYMBOL_BYTES * (len(symbols) + 1)), link=2, info=1,
                 alignment=8, entry_bytes=_SYMBOL_BYTES),
        _Section(".dynstr", _STRTAB, _ALLOC, bytes(strings.contents)),
        _Section(".hash", _HASH, _ALLOC, _hash_table([symbol.name for symbol in symbols]), link=1,
                 alignment=8, entry_bytes=4),
        _Section(".rodata", _PROGBITS, _ALLOC, readonly, alignment=_ALIGNMENT_BYTES),
    ]
    code = _Section(".text", _PROGBITS, _ALLOC | _EXECUTE, function.contents, alignment=_PAGE_BYTES)
    dynamic = _Section(".dynamic", _DYNAMIC, _ALLOC | _WRITE, bytes(16 * 7), link=2, alignment=_PAGE_BYTES,
                       entry_bytes=16)
    out = bytearray(_HEADER_BYTES + 5 * _SEGMENT_BYTES)
    for section in (*read, code, dynamic):
        out += bytes(-len(out) % section.alignment)
        section.address = section.offset = len(out)
        out += section.contents
    bases = [0, read[0].address, read[1].address, read[2].address, read[3].address, code.address]
    table = _table(symbols, named, bases)
    dynsym, dynstr, hashes, _ = read
    entries = [
        (4, hashes.address), (5, dynstr.address), (6, dynsym.address), (10, len(dynstr.contents)),
        (11, _SYMBOL_BYTES), (14, soname), (0, 0),
    ]
    out[dynsym.offset : dynsym.offset + len(table)] = table
    packed = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    out[dynamic.offset : dynamic.offset + len(packed)] = packed
    segments = [
        (_LOAD, _R, 0, read[-1].offset + len(readonly), _PAGE_BYTES),
        (_LOAD, _RX, code.offset, len(code.contents), _PAGE_BYTES),
        (_LOAD, _RW, dynamic.offset, len(dynamic.contents), _PAGE_BYTES),
        (_DYNAMIC_SEGMENT, _RW, dynamic.offset, len(dynamic.contents), 8),
        (_GNU_STACK, _RW, 0, 0, 16),
    ]
    headers = b"".join(
        struct.pack("<IIQQQQQQ", kind, flags, start, start, start, size, size, alignment)
        for kind, flags, start, size, alignment in segments
    )
    out[_HEADER_BYTES : _HEADER_BYTES + len(headers)] = headers
    size_bytes = len(function.contents)
    debug = debug_sections(function.name, size_bytes, list(rows), code.address) if rows else ()
    more = [_Section(one.name, _PROGBITS, 0, one.contents) for one in debug]
    for section in more:
        section.offset = len(out)
        out += section.contents
    return _with_headers(machine, out, [*read, code, dynamic, *more], _SHARED, len(segments))


def _data(
    function: Named, data: Sequence[Named], code: int, section: int
) -> tuple[bytes, list[_Symbol]]:
    """What is only read, one after another, and all symbols by the numbers of their sections."""
    out = bytearray()
    symbols = [_Symbol(function.name, _FUNCTION, code, 0, len(function.contents))]
    for one in data:
        out += bytes(-len(out) % _ALIGNMENT_BYTES)
        symbols.append(_Symbol(one.name, _OBJECT, section, len(out), len(one.contents)))
        out += one.contents
    return bytes(out), symbols


def _symbols(symbols: Sequence[_Symbol], names: _Strings, bases: Sequence[int], own: bytes) -> bytes:
    return _table(symbols, [names.add(symbol.name) for symbol in symbols], [0, *bases], own)


def _table(
    symbols: Sequence[_Symbol], names: Sequence[int], bases: Sequence[int], own: bytes = b""
) -> bytes:
    """Global symbols after the empty one and local ones; ``bases``: what is added to the values of each
    section."""
    rows = [
        struct.pack(
            "<IBBHQQ", name, 1 << 4 | symbol.kind, 0, symbol.section, bases[symbol.section] + symbol.value,
            symbol.size_bytes,
        )
        for symbol, name in zip(symbols, names, strict=True)
    ]
    return bytes(_SYMBOL_BYTES) + own + b"".join(rows)


def _hash_table(names: Sequence[str]) -> bytes:
    """One chain holds all symbols, of which there are few."""
    count = len(names) + 1
    return struct.pack(f"<{3 + count}I", 1, count, 1, 0, *range(2, count), 0)


def _with_headers(
    machine: ElfMachine, out: bytearray, sections: Sequence[_Section], kind: int, segments: int
) -> bytes:
    """With the section headers behind and the file's header in front."""
    names = _Strings()
    places = [names.add(section.name) for section in sections]
    own = _Section(".shstrtab", _STRTAB, 0, b"")
    places.append(names.add(own.name))
    own.contents, own.offset = bytes(names.contents), len(out)
    out += own.contents
    out += bytes(-len(out) % 8)
    start = len(out)
    out += bytes(64)
    for place, section in zip(places, [*sections, own], strict=True):
        out += struct.pack(
            "<IIQQQQIIQQ", place, section.kind, section.flags, section.address, section.offset,
            len(section.contents), section.link, section.info, section.alignment, section.entry_bytes,
        )
    count = len(sections) + 2
    out[:_HEADER_BYTES] = b"\x7fELF\2\1\1" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", kind, machine.number, 1, 0, _HEADER_BYTES if segments else 0, start, machine.flags,
        _HEADER_BYTES, _SEGMENT_BYTES if segments else 0, segments, 64, count, count - 1,
    )
    return bytes(out)
