"""Instructions to bytes by the table: rows in the manual's notation, read once.

Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapters 2 and 3.1.1.
"""
from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from kera_hw.cpu_gpu.machine.code import Fixed, Inst, Label, Mem, Operand, RegClass, VReg
from kera_hw.cpu_gpu.machine.finish import Fixup

_MAPS = {"0F": 1, "0F38": 2, "0F3A": 3}
_PREFIXES = {"66": 1, "F3": 2, "F2": 3}
_SIB, _BASE_BP, _DISP8, _DISP32 = 4, 5, 0x40, 0x80


@dataclass(frozen=True, slots=True)
class Row:
    """One form. ``kinds`` and ``roles`` of its operands; ``digit`` extends the opcode in ModRM.reg.

    ``places``: for each operand where it is encoded: reg, rm, vvvv, is4, aaa, imm, rel, or opcode.
    ``evex``: with the prefix that reaches 32 registers, 512 bits and masks; its name ends in `.z`.
    """

    name: str
    kinds: tuple[str, ...]
    roles: tuple[str, ...]
    places: tuple[str, ...]
    prefix: bytes
    opcode: bytes
    digit: int | None
    vex: tuple[str, int, int] | None  # length, pp, map
    wide: str  # "{W}", "W0", "W1", "WIG" or ""
    evex: bool = False


def _places(kinds: list[str], vex: bool, digit: int | None, opcode_register: bool) -> tuple[str, ...]:
    """By the manual's operand encodings: the operand that may be memory is ModRM.rm."""
    found: list[str] = []
    registers = [k for k, kind in enumerate(kinds) if kind in ("g", "v", "g8", "k")]
    memory = next((k for k, kind in enumerate(kinds) if kind.endswith("/m") or kind == "m"), None)
    if memory is None and registers:
        memory = registers[0] if digit is not None and not vex else registers[-1]
    rest = [k for k in registers if k != memory]
    for k, kind in enumerate(kinds):
        if kind in ("i8", "i32", "i64"):
            found.append("imm")
        elif kind == "rel":
            found.append("rel")
        elif kind == "v4":
            found.append("is4")
        elif kind == "by":
            found.append("aaa")
        elif opcode_register:
            found.append("opcode")
        elif k == memory:
            found.append("rm")
        elif vex and digit is not None:
            found.append("vvvv")
        else:
            found.append("reg" if k == rest[0] else "vvvv")
    return tuple(found)


_SHIFTED = re.compile(r"(shlx|sarx|shrx)")


def _row(text: str, cc: tuple[str, int] | None = None) -> Row:
    name, operands, encoding = (part.strip() for part in text.split("|"))
    pairs = [f"r {part}".split()[-2:] for part in operands.split(",")] if operands else []
    kinds, roles = [kind for _, kind in pairs], tuple(role for role, _ in pairs)
    parts = encoding.split()
    vex: tuple[str, int, int] | None = None
    wide, prefix, opcode, digit, opcode_register = "", b"", b"", None, False
    evex = parts[0].startswith("EVEX")
    if evex or parts[0].startswith("VEX"):
        _, length, *fields, wide = parts.pop(0).split(".")
        pp = next((_PREFIXES[item] for item in fields if item in _PREFIXES), 0)
        vex = (length, pp, _MAPS[fields[-1]])
    for part in parts:
        if part in ("{W}", "REX.W"):
            wide = part
        elif part.startswith("/"):
            digit = None if part == "/r" else int(part[1:])
        elif part in ("66", "f3", "f2") and not opcode and not vex:
            prefix += bytes.fromhex(part)
        else:
            code, _, added = part.partition("+")
            number = int(code, 16) + (cc[1] if added == "cc" and cc is not None else 0)
            opcode_register = added == "r"
            opcode += bytes([number])
    places = _places(kinds, vex is not None, digit, opcode_register)
    if _SHIFTED.match(name):  # the count is in vvvv, after the operand that may be memory
        places = ("reg", "rm", "vvvv")
    name += cc[0] if cc else ".z" if evex else ""
    return Row(name, tuple(kinds), roles, places, prefix, opcode, digit, vex, wide, evex)


def _twins(text: str, rows: Mapping[str, Sequence[Row]]) -> Iterator[Row]:
    """EVEX forms that differ from the VEX ones in nothing but the prefix, and what W says there."""
    for line in filter(None, text.split("\n")):
        wide, names = line.split("|")
        for name in names.split():
            for row in rows[name]:
                kept = row.wide == "{W}"
                yield replace(row, name=f"{name}.z", wide=row.wide if kept else wide.strip(), evex=True)


_ESCAPES = {1: b"\x0f", 2: b"\x0f\x38", 3: b"\x0f\x3a"}


def _legacy_form(row: Row) -> Row:
    """The form without a prefix for three operands: of two vectors and a source the first is both."""
    assert row.vex is not None
    _, pp, escape = row.vex
    kinds, roles = row.kinds, row.roles
    vectors = kinds[:2] == ("v", "v") and (len(kinds) > 2 or row.digit is not None)
    if vectors and not (len(kinds) == 3 and kinds[2] == "i8" and row.digit is None):
        kinds, roles = ("v", *kinds[2:]), ("m", *roles[2:])
    prefix = next((bytes.fromhex(text) for text, number in _PREFIXES.items() if number == pp), b"")
    wide = "REX.W" if row.wide == "W1" else row.wide if row.wide == "{W}" else ""
    places = _places(list(kinds), False, row.digit, False)
    return Row(
        f"{row.name}.s", kinds, roles, places, prefix, _ESCAPES[escape] + row.opcode, row.digit, None, wide
    )


def _rows() -> Iterator[Row]:
    data = tomllib.loads((files("kera_hw.cpu_gpu.x86_64") / "encodings.toml").read_text(encoding="utf-8"))
    conditions, twins, legacy = (data.pop(name) for name in ("conditions", "twins", "legacy"))
    found: dict[str, list[Row]] = {}
    for row in _written(data, conditions):
        found.setdefault(row.name, []).append(row)
        yield row
    yield from _twins(twins, found)
    for name in legacy.split():
        yield from map(_legacy_form, found[name])


def _written(data: Mapping[str, str], conditions: Sequence[str]) -> Iterator[Row]:
    for section, text in data.items():
        for line in filter(None, text.split("\n")):
            if section == "conditional":
                yield from (_row(line, (name, number)) for number, name in enumerate(conditions))
            else:
                yield _row(line)


@cache
def table() -> dict[str, tuple[Row, ...]]:
    """All forms of each instruction."""
    found: dict[str, tuple[Row, ...]] = {}
    for row in _rows():
        found[row.name] = (*found.get(row.name, ()), row)
    return found


_KINDS = {RegClass.GENERAL: "g", RegClass.VECTOR: "v", RegClass.MASK: "k"}


def form(name: str, operands: tuple[Operand, ...]) -> Row:
    """The form that takes these operands."""
    row = _form(name, "".join(map(_sort, operands)))
    assert row is not None, f"{name} takes no {operands}"
    return row


def _sort(operand: Operand) -> str:
    """A letter for what kind of operand it is."""
    if isinstance(operand, (VReg, Fixed)):
        return _KINDS[operand.cls]
    return "m" if isinstance(operand, Mem) else "l" if isinstance(operand, Label) else "i"


@cache
def _form(name: str, sorts: str) -> Row | None:
    """The form that takes operands of these sorts."""
    fitting = (row for row in table()[name] if len(row.kinds) == len(sorts))
    return next((row for row in fitting if all(map(_fits, row.kinds, sorts))), None)


def _fits(kind: str, sort: str) -> bool:
    match sort:
        case "m":
            return kind == "m" or kind.endswith("/m")
        case "l":
            return kind == "rel"
        case "i":
            return kind in ("i8", "i32", "i64")
        case _:
            return kind[0] == sort or (kind == "by" and sort == "k")


def encode(inst: Inst) -> tuple[bytes, list[Fixup]]:
    """An instruction over the machine's registers, and what its labels need."""
    row = form(inst.op, inst.operands)
    named = dict(zip(row.places, inst.operands))
    reg = _number(named.get("reg"))
    rm, vvvv = named.get("rm"), _number(named.get("vvvv"))
    if row.digit is not None:
        reg = row.digit
    w = {"{W}": inst.size_bits == 64, "REX.W": True, "W1": True}.get(row.wide, False)
    if row.evex:
        head = _evex(row, inst, reg, rm, vvvv, w, _number(named.get("aaa")))
    else:
        head = _vex(row, inst, reg, rm, vvvv, w) if row.vex else _legacy(row, reg, rm, named, w)
    body, fixup = b"", None
    if "rm" in named:
        body, fixup = _modrm(reg, rm, not row.evex)
    tail = _immediates(row, named)
    whole = head + body + tail
    fixups: list[Fixup] = []
    if fixup is not None:
        fixups.append(Fixup(len(head) + len(body) - 4, len(whole), fixup))
    if "rel" in named:
        label = named["rel"]
        assert isinstance(label, Label)
        whole += bytes(4)
        fixups.append(Fixup(len(whole) - 4, len(whole), label.number))
    return whole, fixups


def _number(operand: Operand | None) -> int:
    if operand is None:
        return 0
    assert isinstance(operand, Fixed)
    return operand.number


def _address(rm: Operand | None) -> tuple[int, int]:
    """Numbers of the registers whose top bits the prefix holds: base (or the register itself), index."""
    if isinstance(rm, Mem):
        return _number(rm.base), _number(rm.index)
    return _number(rm), 0


def _legacy(row: Row, reg: int, rm: Operand | None, named: dict[str, Operand], w: bool) -> bytes:
    base, index = _address(rm)
    if "opcode" in named:
        base = _number(named["opcode"])
    rex = 0x40 | w << 3 | (reg >> 3) << 2 | (index >> 3) << 1 | base >> 3
    bytes_only = any(kind.startswith("g8") for kind in row.kinds)  # else 4 to 7 are ah to bh
    opcode = row.opcode
    if "opcode" in named:
        opcode = opcode[:-1] + bytes([opcode[-1] + (base & 7)])
    return row.prefix + (bytes([rex]) if rex != 0x40 or bytes_only else b"") + opcode


def _evex(
    row: Row, inst: Inst, reg: int, rm: Operand | None, vvvv: int, w: bool, mask: int
) -> bytes:
    """Section 2.7.1; a register's fifth bit lies apart, that of ModRM.rm where an index has its fourth."""
    assert row.vex is not None
    length, pp, escape = row.vex
    size = {128: 0, 256: 1, 512: 2}[inst.size_bits] if length == "L" else {"256": 1, "512": 2}.get(length, 0)
    base, index = _address(rm)
    if isinstance(rm, Fixed):
        index = base >> 4 << 3
    first = (~reg >> 3 & 1) << 7 | (~index >> 3 & 1) << 6 | (~base >> 3 & 1) << 5 | (~reg >> 4 & 1) << 4
    second = w << 7 | (~vvvv & 15) << 3 | 4 | pp
    return bytes([0x62, first | escape, second, size << 5 | (~vvvv >> 4 & 1) << 3 | mask]) + row.opcode


def _vex(row: Row, inst: Inst, reg: int, rm: Operand | None, vvvv: int, w: bool) -> bytes:
    assert row.vex is not None
    length, pp, escape = row.vex
    long = length in ("256", "1") or (length == "L" and inst.size_bits == 256)
    base, index = _address(rm)
    assert max(reg, vvvv, base) < 16, f"{row.name} does not reach all registers"
    last = (~vvvv & 15) << 3 | long << 2 | pp
    if escape == 1 and not w and base < 8 and index < 8:
        return bytes([0xC5, (reg < 8) << 7 | last]) + row.opcode
    second = (reg < 8) << 7 | (index < 8) << 6 | (base < 8) << 5 | escape
    return bytes([0xC4, second, w << 7 | last]) + row.opcode


def _modrm(reg: int, rm: Operand | None, bytes_scale: bool) -> tuple[bytes, int | None]:
    """ModRM, SIB and displacement; the label that the displacement leads to, if it is one.

    ``bytes_scale``: whether a displacement of one byte counts bytes; where it does not, there is none.
    """
    field = (reg & 7) << 3
    if not isinstance(rm, Mem):
        return bytes([0xC0 | field | (_number(rm) & 7)]), None
    if rm.label is not None:
        return bytes([field | 5]) + bytes(4), rm.label
    base = _number(rm.base)
    short = bytes_scale and -128 <= rm.offset < 128
    mode = 0 if rm.offset == 0 and base & 7 != _BASE_BP else _DISP8 if short else _DISP32
    offset = b"" if mode == 0 else rm.offset.to_bytes(1 if mode == _DISP8 else 4, "little", signed=True)
    if rm.index is None and base & 7 != _SIB:
        return bytes([mode | field | (base & 7)]) + offset, None
    index = _SIB if rm.index is None else _number(rm.index) & 7
    scale = {1: 0, 2: 1, 4: 2, 8: 3}[rm.scale]
    return bytes([mode | field | _SIB, scale << 6 | index << 3 | (base & 7)]) + offset, None


def _immediates(row: Row, named: dict[str, Operand]) -> bytes:
    if "is4" in named:
        return bytes([_number(named["is4"]) << 4])
    if "imm" not in named:
        return b""
    value, kind = named["imm"], row.kinds[row.places.index("imm")]
    assert isinstance(value, int)
    width = int(kind[1:])
    return (value & ((1 << width) - 1)).to_bytes(width // 8, "little")
