"""Instructions to words by the table: rows in the manual's notation, read once.

Arm Architecture Reference Manual for A-profile, chapters C4, C6 and C7.
"""
from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from kera_hw.cpu_gpu.machine.code import Fixed, Inst, Label, Mem, Operand, RegClass, VReg
from kera_hw.cpu_gpu.machine.finish import Fixup

WORD_BYTES = 4
_OPERAND = re.compile(r"(?P<role>[=+]?)(?P<file>[XWVBHSDQ])(?P<field>[dnmat])\b|#(?P<number>[a-z]+\d+)"
                      r"(?:\*(?P<times>\d+))?|(?P<other>\bcond\b|\blabel\b|\bliteral\b)")
_DIGITS = re.compile(r"[a-z]+(\d+)")


@dataclass(frozen=True, slots=True)
class Spot:
    """An operand of a row. ``kind``: "g", "v", "number", "cond", "label" or "literal"; ``field`` of the bits.

    ``times``: a number counts so many.
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


def _spots(syntax: str) -> Iterator[Spot]:
    _, _, operands = syntax.partition(" ")
    if syntax.startswith("b.cond"):
        operands = f"cond {operands}"
    for found in _OPERAND.finditer(operands):
        if found["file"]:
            kind = "g" if found["file"] in "XW" else "v"
            yield Spot(kind, f"R{found['field']}", {"=": "w", "+": "m", "": "r"}[found["role"]])
        elif found["number"]:
            yield Spot("number", found["number"], times=int(found["times"] or 1))
        else:
            yield Spot(found["other"], found["other"])


def _varied(line: str, variants: Mapping[str, Mapping[str, str | int]]) -> Iterator[Row]:
    name, syntax, bits, *rest = (part.strip() for part in line.split("|"))
    for variant in rest[0].split() if rest else [""]:
        words: Mapping[str, str | int] = variants[variant] if variant else dict[str, str | int]()
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
        spots = tuple(_spots(said))
        yield Row(f"{name}.{variant}" if variant else name, said, spots, fields, lane_bits)


@cache
def table() -> Mapping[str, Row]:
    """All rows by name."""
    data = tomllib.loads((files("kera_hw.cpu_gpu.aarch64") / "encodings.toml").read_text(encoding="utf-8"))
    found: dict[str, Row] = {}
    for text in data["rows"].values():
        for line in filter(None, text.split("\n")):
            for row in _varied(line, data["variants"]):
                assert row.name not in found, row.name
                assert sum(_width(part) for part in row.bits) == 32, row
                found[row.name] = row
    return found


def _width(part: str) -> int:
    if set(part) <= {"0", "1"}:
        return len(part)
    if part[0] == "R":
        return 5
    found = _DIGITS.fullmatch(part)
    assert found, part
    return int(found[1])


def row_of(name: str, operands: Sequence[Operand]) -> Row:
    """The row of that name, which takes these operands."""
    row = table()[name]
    assert len(row.spots) == len(operands) and all(map(_fits, row.spots, operands)), (row, operands)
    return row


def _fits(spot: Spot, operand: Operand) -> bool:
    if isinstance(operand, VReg | Fixed):
        return spot.kind == {RegClass.GENERAL: "g", RegClass.VECTOR: "v"}.get(operand.cls)
    if isinstance(operand, Mem):
        return spot.kind == "literal"
    return spot.kind == "label" if isinstance(operand, Label) else spot.kind in ("number", "cond")


def bit_mask(value: int, width_bits: int) -> int | None:
    """N:immr:imms of a logical instruction's constant; None for one that can't be written so.

    A run of ones, rotated, repeated in elements of 2 to 64 bits.
    """
    value &= (1 << width_bits) - 1
    size = width_bits
    while size > 2 and value & ((1 << size // 2) - 1) == value >> size // 2 & ((1 << size // 2) - 1):
        size //= 2
        value &= (1 << size) - 1
    ones = value.bit_count()
    if ones in (0, size):
        return None
    for turned in range(size):
        if (value << turned | value >> (size - turned)) & ((1 << size) - 1) == (1 << ones) - 1:
            sizes = ~(2 * size - 1) & 0x3F if size < 64 else 0
            return (size == 64) << 12 | turned << 6 | sizes | ones - 1
    return None


def _number(part: str, value: int, row: Row) -> int:
    """What a field of bits says of a number."""
    width = row.lane_bits
    match part:
        case "bm13":
            found = bit_mask(value, 64 if row.name.endswith(".x") else 32)
            assert found is not None
            return found
        case "shl7":
            return width + value
        case "shr7":
            return 2 * width - value
        case "ln5":
            return value * (width // 4) | width // 8
        case _:
            return value


def word(row: Row, operands: Sequence[Operand]) -> int:
    """The instruction; of what leads to a label the distance is left out."""
    fields: dict[str, int] = {}
    for spot, operand in zip(row.spots, operands, strict=True):
        if isinstance(operand, Fixed):
            fields[spot.field] = operand.number
        elif spot.kind == "cond":
            assert isinstance(operand, int)
            fields["c4"], fields["n4"] = operand, operand ^ 1
        elif spot.kind == "number":
            assert isinstance(operand, int) and operand % spot.times == 0
            fields[spot.field] = _number(spot.field, operand // spot.times, row)
    whole = 0
    for part in row.bits:
        width = _width(part)
        value = int(part, 2) if set(part) <= {"0", "1"} else fields.get(part, 0)
        assert -(1 << width - 1) <= value < 1 << width, (row, operands)
        whole = whole << width | value & ((1 << width) - 1)
    return whole


_DISTANCES = {"l26": (0, 26), "l19": (5, 19)}
"""Of the fields that lead to labels: where they begin, and their bits."""


def encode(inst: Inst) -> tuple[bytes, list[Fixup]]:
    """An instruction over the machine's registers, and what its label needs."""
    row = row_of(inst.op, inst.operands)
    labels = [_label(operand) for operand in inst.operands if isinstance(operand, Label | Mem)]
    content = word(row, inst.operands).to_bytes(WORD_BYTES, "little")
    return content, [Fixup(0, 0, one, row.name) for one in labels]


def _label(operand: Label | Mem) -> int:
    number = operand.number if isinstance(operand, Label) else operand.label
    assert number is not None
    return number


def resolve(content: bytearray, place: int, op: str, distance: int) -> bool:
    """Writes a distance into a word; False where it does not reach."""
    row = table()[op]
    whole = int.from_bytes(content[place : place + WORD_BYTES], "little")
    if "lh19" in row.bits:
        if not -(1 << 20) <= distance < 1 << 20:
            return False
        whole |= (distance & 3) << 29 | (distance >> 2 & 0x7FFFF) << 5
    else:
        first, width = next(place for part, place in _DISTANCES.items() if part in row.bits)
        if distance % WORD_BYTES or not -(1 << width - 1) <= distance // WORD_BYTES < 1 << width - 1:
            return False
        whole |= (distance // WORD_BYTES & ((1 << width) - 1)) << first
    content[place : place + WORD_BYTES] = whole.to_bytes(WORD_BYTES, "little")
    return True
