"""Every row of the table against GNU as, and against Capstone where it knows the instruction."""
from __future__ import annotations

import random
import re
from pathlib import Path

import capstone
import pytest

from kera_hw.cpu_gpu.machine.code import Fixed, Label, Operand, RegClass
from kera_hw.cpu_gpu.machine.words import Row, Spot
from kera_hw.cpu_gpu.riscv64.encoder import TABLE, halves, resolve, vector_type
from tests.unit.assembly import assembled

ROWS = list(TABLE.rows.values())
_TRIES = 12
_DISTANCE_BYTES = 64
_DISASSEMBLER = capstone.Cs(capstone.CS_ARCH_RISCV, capstone.CS_MODE_RISCV64)
_SETTINGS = [vector_type(bits, count, 128) for bits, count in ((8, 2), (8, 16), (16, 8), (32, 2), (64, 2))]


def _operand(spot: Spot, row: Row, below: random.Random) -> tuple[Operand, str]:
    """An operand and what the syntax says in its place."""
    if spot.kind in TABLE.registers:
        cls = TABLE.registers[spot.kind]
        number = below.randrange(1, 32)
        return Fixed(number, cls), {RegClass.GENERAL: "x", RegClass.FLOAT: "f"}.get(cls, "v") + str(number)
    if spot.kind == "label":
        return Label(1), f". + {_DISTANCE_BYTES}"
    width = int(spot.field[1:])
    if spot.field[0] == "z":
        value = below.choice(_SETTINGS)
    elif spot.field[0] == "s":
        value = below.randrange(-(1 << width - 1), 1 << width - 1)
    else:
        value = below.randrange(1 << width)
    return value, str(value)


def _tried(row: Row) -> list[tuple[bytes, str]]:
    below = random.Random(row.name)
    found: list[tuple[bytes, str]] = []
    for _ in range(_TRIES):
        operands, said = zip(*(_operand(spot, row, below) for spot in row.spots))
        content = bytearray(TABLE.word(row, operands).to_bytes(4, "little"))
        if any(spot.kind == "label" for spot in row.spots):
            assert resolve(content, 0, row.name, _DISTANCE_BYTES)
        texts = iter(said)
        pattern = r"[=+]?[XFV][dnma]\b|#[a-z]+\d+|\blabel\b"
        found.append((bytes(content), re.sub(pattern, lambda _: next(texts), row.syntax)))  # noqa: B023
    return found


def test_every_row_is_what_gnu_as_makes_of_it(tmp_path: Path) -> None:
    pairs = [pair for row in ROWS for pair in _tried(row)]
    lines = [".option norelax", ".option norvc", *(line for _, line in pairs)]
    made = assembled("riscv64-linux-gnu", ["-march=rv64gcv"], lines, tmp_path)
    wrong = [
        (line, content.hex(), made[4 * k : 4 * k + 4].hex())
        for k, (content, line) in enumerate(pairs) if made[4 * k : 4 * k + 4] != content
    ]
    assert wrong == []


SCALAR = [row for row in ROWS if not row.name.startswith("v")]


@pytest.mark.parametrize("row", SCALAR, ids=lambda row: row.name)
def test_a_scalar_row_is_one_instruction_of_that_name(row: Row) -> None:
    for content, line in _tried(row):
        (found,) = _DISASSEMBLER.disasm(content, 0)
        names = line.split()[0], *_ALIASES.get(row.name.partition(".")[0], ())
        assert found.mnemonic in names, (line, found.mnemonic)


_ALIASES = {
    "j": ("jal",), "addi": ("mv", "nop"), "addiw": ("sext.w",), "sub": ("neg",), "xori": ("not",),
    **{f"fsgnj{kind}": tuple(f"{name}.{part}" for part in "sd") for kind, name in (
        ("", "fmv"), ("n", "fneg"), ("x", "fabs"),
    )},
}


def test_distances_are_whole() -> None:
    """What `auipc` and the signed rest add up to, and what branches don't reach."""
    below = random.Random(5)
    some = [below.randrange(1 << 30) for _ in range(50)]
    for distance in (0, 0x7FF, 0x800, 0xFFF, -1, -0x800, -0x801, *some):
        high, low = halves(distance)
        assert -2048 <= low < 2048 and ((high << 12) + low - distance) % (1 << 32) == 0
    for op, reach in (("beq", 1 << 12), ("j", 1 << 20)):
        tried = ((reach - 2, True), (-reach, True), (reach, False), (-reach - 2, False), (3, False))
        for distance, holds in tried:
            assert resolve(bytearray(4), 0, op, distance) == holds
