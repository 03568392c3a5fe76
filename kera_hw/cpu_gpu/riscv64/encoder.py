"""Instructions to words by the table.

The RISC-V Instruction Set Manual, volume I, and the RISC-V "V" Vector Extension, version 1.0.
"""
from __future__ import annotations

from collections.abc import Mapping

from kera_hw.cpu_gpu.machine.code import RegClass
from kera_hw.cpu_gpu.machine.words import WORD_BYTES, Row, WordTable

_BRANCH, _JUMP = 1 << 12, 1 << 20
"""Bytes that they reach."""


def _derived(row: Row, field: str, value: int) -> Mapping[str, int]:
    return {"sh7": value >> 5 & 0x7F, "sl5": value & 0x1F} if field == "s12" else {}


TABLE = WordTable(
    "kera_hw.cpu_gpu.riscv64",
    {"X": RegClass.GENERAL, "F": RegClass.FLOAT, "V": RegClass.VECTOR}, _derived,
)


def resolve(content: bytearray, place: int, op: str, distance: int) -> bool:
    """Writes the distance of a branch or jump into its word; False where it does not reach."""
    reach = _JUMP if "j20" in TABLE.rows[op].bits else _BRANCH
    if distance % 2 or not -reach <= distance < reach:
        return False
    parts = (
        ((20, 31, 1), (1, 21, 10), (11, 20, 1), (12, 12, 8)) if reach == _JUMP
        else ((12, 31, 1), (5, 25, 6), (1, 8, 4), (11, 7, 1))
    )  # of the distance from which bit on, where in the word, how many
    whole = int.from_bytes(content[place : place + WORD_BYTES], "little")
    for source, target, count in parts:
        whole |= (distance >> source & ((1 << count) - 1)) << target
    content[place : place + WORD_BYTES] = whole.to_bytes(WORD_BYTES, "little")
    return True


def halves(distance: int) -> tuple[int, int]:
    """Of 32 bits: what `auipc` or `lui` adds in pages, and the signed rest."""
    low = (distance & 0xFFF) - (distance & 0x800) * 2
    return (distance - low) >> 12 & 0xFFFFF, low


def vector_type(lane_bits: int, count: int, least_bits: int) -> int:
    """`vtypei` for lanes of that width, tail and masked ones agnostic.

    Of a register of ``least_bits`` at the least, such a part as ``count`` lanes take, so that lanes of all
    widths are as many.
    """
    part = least_bits // (lane_bits * count)
    group = {1: 0, 2: 7, 4: 6, 8: 5}[part]
    return 1 << 7 | 1 << 6 | {8: 0, 16: 1, 32: 2, 64: 3}[lane_bits] << 3 | group
