"""Every row of the table against a foreign disassembler, on random registers, addresses and constants."""
from __future__ import annotations

import random
import re

import capstone
import pytest

from kera_hw.cpu_gpu.machine.code import Fixed, Inst, Label, Mem, Operand, RegClass
from kera_hw.cpu_gpu.x86_64.encoder import Row, encode, table

GENERAL = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{k}" for k in range(8, 16)))
_DISASSEMBLER = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
ROWS = [row for rows in table().values() for row in rows]
_TRIES = 40
# Where a row's name says how operands are meant, and the disassembler says that otherwise.
_SPOKEN = {
    "movi": "mov", "movzx8": "movzx", "movzx16": "movzx", "movsx8": "movsx", "movsx16": "movsx",
    "store8": "mov", "store16": "mov", "rolcl": "rol", "rorcl": "ror", "shlcl": "shl",
    "shrcl": "shr", "sarcl": "sar", "vmovd_g": "vmovd", "vmovq_g": "vmovq",
    "imuli": "imul", "jump": "jmp", "kmovq_k": "kmovq", "kmovq_g": "kmovq",
    **{f"vp{verb}.z": f"vp{verb}q" for verb in ("and", "andn", "or", "xor")},
    **{f"vround{kind}.z": f"vrndscale{kind}" for kind in ("ps", "pd", "ss", "sd")}, "vmovdqu.z": "vmovdqu64",
}


def _part(number: int, width_bits: int) -> str:
    """A general register's name in the disassembler's words."""
    name = GENERAL[number]
    if width_bits == 64:
        return name
    if number >= 8:
        return name + {32: "d", 16: "w", 8: "b"}[width_bits]
    if width_bits == 32:
        return "e" + name[1:]
    if width_bits == 16:
        return name[1:]
    return {"rax": "al", "rcx": "cl", "rdx": "dl", "rbx": "bl"}.get(name, name[1:] + "l")


def _address(below: random.Random) -> tuple[Mem, str]:
    base = below.randrange(16)
    index = below.choice([None, *(k for k in range(16) if k != 4)])
    scale = below.choice([1, 2, 4, 8]) if index is not None else 1
    offset = below.choice([0, 0, 8, -8, 127, -128, 128, -129, 100_000, -100_000])
    text = GENERAL[base]
    if index is not None:
        text += f"+{GENERAL[index]}" + (f"*{scale}" if scale > 1 else "")
    if offset:
        text += f"{'+' if offset > 0 else '-'}{abs(offset)}"
    register = None if index is None else Fixed(index, RegClass.GENERAL)
    return Mem(Fixed(base, RegClass.GENERAL), register, scale, offset), f"[{text}]"


def _operand(kind: str, below: random.Random, evex: bool) -> tuple[Operand, str | None]:
    """An operand and what it is called; None where that is not compared."""
    if kind.endswith("/m") and below.random() < 0.5:
        return _address(below)
    match kind.removesuffix("/m"):
        case "g" | "g8" | "g16":
            number = below.randrange(16)
            names = "|".join(_part(number, width) for width in (64, 32, 16, 8))
            return Fixed(number, RegClass.GENERAL), names
        case "v" | "v4":
            number = below.randrange(32 if evex else 16)
            return Fixed(number, RegClass.VECTOR), f"xmm{number}|ymm{number}|zmm{number}"
        case "k" | "by":
            number = below.randrange(1 if kind == "by" else 0, 8)
            return Fixed(number, RegClass.MASK), f"k{number}"
        case "m":
            return _address(below)
        case "i8":
            return below.randrange(128), None
        case "i32":
            return below.randrange(-(1 << 31), 1 << 31), None
        case "i64":
            return below.randrange(1 << 64), None
        case _:
            assert kind == "rel"
            return Label(1), None


def _in_our_words(text: str) -> str:
    """An address without sizes and spaces, numbers decimal, a scale of 1 left out."""
    text = re.sub(r"(?:byte|word|dword|qword|xmmword|ymmword|zmmword) ptr ", "", text)
    text = re.sub(r"0x[0-9a-f]+", lambda found: str(int(found[0], 16)), text)
    return text.replace(" ", "").replace("*1]", "]").replace("*1+", "+").replace("*1-", "-")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name} {' '.join(row.kinds)}")
def test_a_row(row: Row) -> None:
    below = random.Random(row.name)
    vector = any(kind.startswith("v") for kind in row.kinds)
    for _ in range(_TRIES):
        pairs = [_operand(kind, below, row.evex) for kind in row.kinds]
        lengths = [128, 256, *([512] if row.evex else [])]
        size = below.choice([32, 64]) if row.wide == "{W}" or not vector else below.choice(lengths)
        if row.name.startswith(("vextracti64", "vinserti64")):
            size = max(size, 256)
        content, _ = encode(Inst(row.name, tuple(one for one, _ in pairs), row.roles, size))
        found = list(_DISASSEMBLER.disasm(content, 0))
        assert len(found) == 1 and found[0].size == len(content), content.hex()
        name = row.name.removesuffix(".z").removesuffix(".s")
        spoken = _SPOKEN.get(row.name) or _SPOKEN.get(name, name)
        mnemonic = f"v{found[0].mnemonic}" if row.name.endswith(".s") else found[0].mnemonic
        assert _is_called(mnemonic, spoken), (mnemonic, row.name)
        named = [name for _, name in pairs if name is not None]
        said = [part for part in re.split(r",|{|}", _in_our_words(found[0].op_str)) if part]
        for name in named:
            assert any(part in name.split("|") for part in said), (found[0].op_str, named)
        if "by" in row.kinds:
            continue  # the mask is written beside the first operand
        order = [next(k for k, part in enumerate(said) if part in name.split("|")) for name in named]
        if len(set(named)) == len(named):
            assert order == sorted(order), (found[0].op_str, named)


def _is_called(mnemonic: str, name: str) -> bool:
    """Predicates and conditions have names of their own there; constants make no other name."""
    if name.startswith(("vcmp", "vpcmp")):
        return mnemonic.startswith(name[:4]) and mnemonic.endswith(name.removeprefix("vpcmp")[-2:])
    return mnemonic in (name, name.removesuffix("i"), {"cdq": "cqo"}.get(name, name))
