"""The instruction table: names to opcodes and immediates, and instructions to bytes.

Rows are data (``instructions.toml``), held against a foreign assembler in the tests. Constants are given as
bit patterns, so that NaNs keep theirs.
"""
from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class Instruction(NamedTuple):
    """``immediates``: their kinds in order. ``align``: log2 of the bytes that a memory access has."""

    name: str
    opcode: bytes
    immediates: tuple[str, ...] = ()
    align: int = 0


def unsigned(value: int) -> bytes:
    """LEB128."""
    out = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        out.append(low | (0x80 if value else 0))
        if not value:
            return bytes(out)


def signed(value: int) -> bytes:
    """LEB128 in two's complement."""
    out = bytearray()
    while True:
        low = value & 0x7F
        value >>= 7
        done = value == -(low >> 6)
        out.append(low | (0 if done else 0x80))
        if done:
            return bytes(out)


def _opcode(text: str) -> bytes:
    """Of hexadecimal digits: a byte, or a prefix and a number."""
    return bytes([int(text[:2], 16)]) + (unsigned(int(text[2:], 16)) if len(text) > 2 else b"")


def _vector(number: int) -> bytes:
    return b"\xfd" + unsigned(number)


def _row(opcode: bytes, name: str, *immediates: str) -> Instruction:
    kinds: list[str] = []
    align = 0
    for item in ",".join(immediates).split(",") if immediates else ():
        kind, _, value = item.partition("=")
        if kind == "align":
            align = int(value)
            kinds.append("memory")
        elif kind == "zeros":
            kinds += ["zero"] * int(value)
        else:
            kind, _, count = item.partition("*")
            kinds += [kind] * int(count or 1)
    return Instruction(name, opcode, tuple(kinds), align)


def _rows() -> Iterator[Instruction]:
    data = tomllib.loads((files("kera_hw.wasm") / "instructions.toml").read_text(encoding="utf-8"))
    for section, text in data.items():
        vector = section.startswith("vector")
        for line in text.split("\n"):
            first, *rest = line.split() or [""]
            if not first:
                continue
            if not section.endswith("runs"):
                yield _row(_vector(int(first)) if vector else _opcode(first), *rest)
                continue
            for k, name in enumerate(rest):
                if name == "-":
                    continue
                if vector:
                    yield Instruction(name, _vector(int(first) + k))
                else:
                    yield Instruction(name, _opcode(f"{int(first, 16) + k:0{len(first)}x}"))


@cache
def instructions() -> dict[str, Instruction]:
    """All instructions by name."""
    return {row.name: row for row in _rows()}


def encode(name: str, *values: int) -> bytes:
    """An instruction. A memory access takes its offset; constants are bit patterns, as unsigned numbers."""
    row = instructions()[name]
    out = bytearray(row.opcode)
    given = iter(values)
    for kind in row.immediates:
        if kind == "zero":
            out.append(0)
            continue
        value = next(given)
        if kind == "memory":
            out += unsigned(row.align) + unsigned(value)
        elif kind in ("lane", "type"):
            out.append(value)
        elif kind in ("i32", "i64"):
            width = int(kind[1:])
            out += signed(value - (value >> (width - 1) << width))
        elif kind in ("f32", "f64", "v128"):
            out += value.to_bytes({"f32": 4, "f64": 8, "v128": 16}[kind], "little")
        else:
            out += unsigned(value)
    assert next(given, None) is None, f"{name} takes fewer immediates"
    return bytes(out)
