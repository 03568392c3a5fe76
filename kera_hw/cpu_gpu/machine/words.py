"""Tables of instructions that are 32-bit words: rows in the notation of a manual, read once.

A row: name | syntax | bits, the most significant first | variants. A row is called by its name and a variant.
In the syntax stand the operands that an instruction is given, in order: registers by a capital letter and
that of the field of bits for their number (`=Xd` written, `+Vd` written and read, else read), numbers by `#`
and a field whose digits are its width (`#i12*8` counts eights, `s` begins one with a sign), and labels. Bits
are fields, zeros and ones. A variant's words are put for capital ones in the syntax, for small ones in bits.
"""
from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files

from kera_hw.cpu_gpu.machine.code import Fixed, Label, Mem, Operand, RegClass, VReg

WORD_BYTES = 4
_OPERAND = re.compile(r"(?P<role>[=+]?)(?P<file>[A-Z])(?P<field>[dnmat])\b|#(?P<number>[a-z]+\d+)"
                      r"(?:\*(?P<times>\d+))?|(?P<other>\bcond\b|\blabel\b|\bliteral\b)")
_DIGITS = re.compile(r"[a-z]+(\d+)")
_BINARY = {"0", "1"}
Words = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Spot:
    """An operand of a row; ``field`` of the bits. ``times``: a number counts so many.

    ``kind``: the letter of a file of registers, "number", "cond", "label" or "literal".
    """

    kind: str
    field: str
    role: str = "r"
    times: int = 1


@dataclass(frozen=True, slots=True)
class Row:
    """One form: ``syntax`` is what assemblers call it, ``bits`` are fields, ``lane_bits`` a lane's width."""

    name: str
    syntax: str
    spots: tuple[Spot, ...]
    bits: tuple[str, ...]
    lane_bits: int

    @property
    def roles(self) -> tuple[str, ...]:
        return tuple(spot.role for spot in self.spots)


Derive = Callable[[Row, str, int], Mapping[str, int]]
"""What the number of an operand puts into fields, where that is not the field of its name alone."""


@dataclass(frozen=True)
class WordTable:
    """Of the package that has the table. ``registers``: the class of each letter in the syntax."""

    package: str
    registers: Mapping[str, RegClass]
    derive: Derive

    @cached_property
    def rows(self) -> Mapping[str, Row]:
        """All by name."""
        data = tomllib.loads((files(self.package) / "encodings.toml").read_text(encoding="utf-8"))
        found: dict[str, Row] = {}
        for text in data["rows"].values():
            for line in filter(None, text.split("\n")):
                for row in _varied(line, data["variants"]):
                    assert row.name not in found, row.name
                    assert sum(map(_width, row.bits)) == 8 * WORD_BYTES, row
                    found[row.name] = row
        return found

    def row_of(self, name: str, operands: Sequence[Operand]) -> Row:
        """The row of that name, which takes these operands."""
        row = self.rows[name]
        fits = len(row.spots) == len(operands) and all(map(self._fits, row.spots, operands))
        assert fits, (row, operands)
        return row

    def _fits(self, spot: Spot, operand: Operand) -> bool:
        if isinstance(operand, VReg | Fixed):
            return self.registers.get(spot.kind) is operand.cls
        if isinstance(operand, Mem):
            return spot.kind == "literal"
        return spot.kind == "label" if isinstance(operand, Label) else spot.kind in ("number", "cond")

    def word(self, row: Row, operands: Sequence[Operand]) -> int:
        """The instruction; of what leads to a label the distance is left out."""
        fields: dict[str, int] = {}
        for spot, operand in zip(row.spots, operands, strict=True):
            if isinstance(operand, Fixed):
                fields[spot.field] = operand.number
            elif isinstance(operand, int):
                assert operand % spot.times == 0
                number = operand // spot.times
                fields |= {spot.field: number, **self.derive(row, spot.field, number)}
        whole = 0
        for part in row.bits:
            width = _width(part)
            value = int(part, 2) if set(part) <= _BINARY else fields.get(part, 0)
            assert -(1 << width - 1) <= value < 1 << width, (row, operands)
            whole = whole << width | value & ((1 << width) - 1)
        return whole


def _spots(syntax: str) -> Iterator[Spot]:
    name, _, operands = syntax.partition(" ")
    if "cond" in name:
        operands = f"cond {operands}"
    for found in _OPERAND.finditer(operands):
        if found["file"]:
            yield Spot(found["file"], f"R{found['field']}", {"=": "w", "+": "m", "": "r"}[found["role"]])
        elif found["number"]:
            yield Spot("number", found["number"], times=int(found["times"] or 1))
        else:
            yield Spot(found["other"], found["other"])


def _varied(line: str, variants: Mapping[str, Words]) -> Iterator[Row]:
    name, syntax, bits, *rest = (part.strip() for part in line.split("|"))
    for variant in rest[0].split() if rest else [""]:
        words: Words = variants[variant] if variant else dict[str, str | int]()
        said = syntax
        for word, value in words.items():
            if word == "K":
                shift = int(value).bit_length() - 1
                said = said.replace("lsl #K", f"lsl #{shift}").replace("*K", f"*{value}")
            elif word in "RF":
                said = re.sub(rf"\b{word}(?=[dnmat]\b)", str(value), said)
            elif word.isupper() and word != "Q":
                said = re.sub(rf"(?<=\.){word}\b|(?<=[a-z]){word}(?= )", str(value), said)
        fields = tuple(str(words.get(part, part)) for part in bits.split())
        lane_bits = words.get("lane", 0)
        assert isinstance(lane_bits, int)
        yield Row(f"{name}.{variant}" if variant else name, said, tuple(_spots(said)), fields, lane_bits)


def _width(part: str) -> int:
    if set(part) <= _BINARY:
        return len(part)
    if part[0] == "R":
        return 5
    found = _DIGITS.fullmatch(part)
    assert found, part
    return int(found[1])
