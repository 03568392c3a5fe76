"""Instructions to words by the table: rows in the manual's notation, read once.

Arm Architecture Reference Manual for A-profile, chapters C4, C6 and C7.
"""
from __future__ import annotations

from collections.abc import Mapping

from kera_hw.cpu_gpu.machine.code import Inst, Label, Mem, RegClass
from kera_hw.cpu_gpu.machine.finish import Fixup
from kera_hw.cpu_gpu.machine.words import WORD_BYTES, Row, WordTable


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


def _derived(row: Row, field: str, value: int) -> Mapping[str, int]:
    width = row.lane_bits
    match field:
        case "cond":
            return {"c4": value, "n4": value ^ 1}
        case "bm13":
            found = bit_mask(value, 64 if row.name.endswith(".x") else 32)
            assert found is not None
            return {field: found}
        case "shl7":
            return {field: width + value}
        case "shr7":
            return {field: 2 * width - value}
        case "ln5":
            return {field: value * (width // 4) | width // 8}
        case _:
            return {}


_FILES = dict.fromkeys("XW", RegClass.GENERAL) | dict.fromkeys("VBHSDQ", RegClass.VECTOR)
TABLE = WordTable("kera_hw.cpu_gpu.aarch64", _FILES, _derived)

_DISTANCES = {"l26": (0, 26), "l19": (5, 19)}
"""Of the fields that lead to labels: where they begin, and their bits."""


def encode(inst: Inst) -> tuple[bytes, list[Fixup]]:
    """An instruction over the machine's registers, and what its label needs."""
    row = TABLE.row_of(inst.op, inst.operands)
    labels = [_label(operand) for operand in inst.operands if isinstance(operand, Label | Mem)]
    content = TABLE.word(row, inst.operands).to_bytes(WORD_BYTES, "little")
    return content, [Fixup(0, 0, one, row.name) for one in labels]


def _label(operand: Label | Mem) -> int:
    number = operand.number if isinstance(operand, Label) else operand.label
    assert number is not None
    return number


def resolve(content: bytearray, place: int, op: str, distance: int) -> bool:
    """Writes a distance into a word; False where it does not reach."""
    row = TABLE.rows[op]
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
