"""Every row of the table against GNU as and Capstone, on random registers and constants."""
from __future__ import annotations

import random
import re
from pathlib import Path

import capstone
import pytest

from kera_hw.cpu_gpu.aarch64.encoder import TABLE, bit_mask, resolve
from kera_hw.cpu_gpu.machine.code import Fixed, Label, Mem, Operand, RegClass
from kera_hw.cpu_gpu.machine.words import Row, Spot
from tests.unit.assembly import assembled

ROWS = list(TABLE.rows.values())
CONDITIONS = ("eq", "ne", "hs", "lo", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le")
_TRIES = 12
_DISTANCE_BYTES = 64
_DISASSEMBLER = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM)


def _operand(spot: Spot, row: Row, below: random.Random) -> tuple[Operand, str]:
    """An operand and what the syntax says in its place."""
    if spot.kind in TABLE.registers:
        # Of general registers the last is none, or the stack pointer, by instruction.
        cls = TABLE.registers[spot.kind]
        number = below.randrange(31 if cls is RegClass.GENERAL else 32)
        return Fixed(number, cls), str(number)
    if spot.kind == "cond":
        number = below.randrange(len(CONDITIONS))
        return number, CONDITIONS[number]
    if spot.kind in ("label", "literal"):
        label = Label(1) if spot.kind == "label" else Mem(None, label=1)
        return label, f". + {_DISTANCE_BYTES}"
    width = row.lane_bits
    match spot.field:
        case "bm13":
            size = 64 if row.name.endswith(".x") else 32
            ones = ((1 << below.randrange(1, size)) - 1) << below.randrange(size)
            value = (ones | ones >> size) & ((1 << size) - 1)
        case "shl7":
            value = below.randrange(width)
        case "shr7":
            value = below.randrange(1, width + 1)
        case "ln5":
            value = below.randrange(128 // width)
        case "s9":
            # Of what is a multiple of the element, assemblers make the other form.
            value = below.randrange(-256, 0)
        case "r6" | "m6" | "i6":
            value = below.randrange(32 if row.name.endswith(".w") else 64)
        case "h2":
            value = below.randrange(2 if row.name.endswith(".w") else 4)
        case field:
            value = below.randrange(1 << int(field[1:]))
    return value * spot.times, str(value * spot.times)


def _line(row: Row, said: list[str]) -> str:
    texts = iter(said)
    if row.name == "b.cond":
        return row.syntax.replace("cond", said[0]).replace("label", said[1])
    pattern = r"[=+]?([XWVBHSDQ])[dnmat]\b|#[a-z]+\d+(?:\*\d+)?|\bcond\b|\blabel\b|\bliteral\b"
    return re.sub(pattern, lambda found: (found[1] or "") + next(texts), row.syntax)


def _tried(row: Row) -> list[tuple[bytes, str]]:
    below = random.Random(row.name)
    found: list[tuple[bytes, str]] = []
    for _ in range(_TRIES):
        operands, said = zip(*(_operand(spot, row, below) for spot in row.spots)) if row.spots else ((), ())
        content = bytearray(TABLE.word(row, operands).to_bytes(4, "little"))
        if any(spot.kind in ("label", "literal") for spot in row.spots):
            assert resolve(content, 0, row.name, _DISTANCE_BYTES)
        found.append((bytes(content), _line(row, list(said))))
    return found


def test_every_row_is_what_gnu_as_makes_of_it(tmp_path: Path) -> None:
    pairs = [pair for row in ROWS for pair in _tried(row)]
    made = assembled("aarch64-linux-gnu", ["-march=armv8-a"], [line for _, line in pairs], tmp_path)
    wrong = [
        (line, content.hex(), made[4 * k : 4 * k + 4].hex())
        for k, (content, line) in enumerate(pairs) if made[4 * k : 4 * k + 4] != content
    ]
    assert wrong == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_one_instruction_of_those_registers(row: Row) -> None:
    for content, line in _tried(row):
        (found,) = _DISASSEMBLER.disasm(content, 0)
        written = re.findall(r"\b[xwvbhsdq]\d+\b", line.lower())
        shown = re.findall(r"\b[xwvbhsdq]\d+\b", found.op_str)
        assert shown == written[: len(shown)] or set(shown) == set(written), (line, found.op_str)
        name = line.split()[0]
        assert found.mnemonic in (name, *_ALIASES.get(name, ())), (line, found.mnemonic)


_ALIASES = {
    "ubfm": ("lsl", "lsr", "ubfx", "ubfiz", "uxtb", "uxth"),
    "sbfm": ("asr", "sbfx", "sbfiz", "sxtb", "sxth", "sxtw"),
    "sxtl": ("sshll",), "uxtl": ("ushll",), "movz": ("mov",), "movn": ("mov",), "ins": ("mov",),
    "umov": ("mov",), "mvn": ("not",),
}


def test_masks_of_bits_are_those_that_a_constant_can_be() -> None:
    """All runs of ones of every length, turned and repeated, and nothing else among small numbers."""
    runs: set[int] = set()
    for size in (2, 4, 8, 16, 32, 64):
        for ones in range(1, size):
            run = (1 << ones) - 1
            for turned in range(size):
                element = (run >> turned | run << (size - turned)) & ((1 << size) - 1)
                runs.add(sum(element << place for place in range(0, 64, size)))
    assert len({bit_mask(value, 64) for value in runs}) == len(runs) == 5334
    assert all((bit_mask(value, 64) is not None) == (value in runs) for value in range(5000))
