"""Registers of ARM64, and short ways to append instructions."""
from __future__ import annotations

from functools import cache

from kera_hw.cpu_gpu.aarch64.encoder import TABLE, bit_mask
from kera_hw.cpu_gpu.machine.allocate import RegisterFile
from kera_hw.cpu_gpu.machine.code import Code, Fixed, Inst, Mem, Operand, Reg, RegClass, VReg
from kera_hw.cpu_gpu.machine.level import Level
from kera_hw.cpu_gpu.select.emitter import WordEmitter

ARGUMENTS = tuple(Fixed(number, RegClass.GENERAL) for number in range(3))
SP = Fixed(31, RegClass.GENERAL)
NEAR, FAR = (Fixed(number, RegClass.GENERAL) for number in (16, 17))
"""Never given: far places go by them."""
SCRATCH = (12, 13, 14, 15)
CALLEE_SAVED = tuple(range(19, 29))
CALLEE_SAVED_VECTORS = tuple(range(8, 16))
"""Of which the lower 64 bits are the caller's."""
_FREE = (*range(12), *CALLEE_SAVED)
_VECTORS = (*range(8), *range(16, 32), *CALLEE_SAVED_VECTORS)
_VECTOR_SCRATCH = 4

MOVES = frozenset({"mov.x", "mov.16b"})
EQ, NE, HS, LO, MI, PL, VS, VC, HI, LS, GE, LT, GT, LE = range(14)
"""Conditions by their numbers; exclusive or with 1 gives the opposite."""

NEON = Level(
    "aarch64", "aarch64", ("fp", "asimd"),
    ("bit-counts", "fma", "minimum", "rotations", "saturating-conversions", "unsigned-conversions"),
    vector_bits=128, vector_registers=32,
)


@cache
def jumps() -> dict[str, bool]:
    """Instructions that go to a label; whether they may also not."""
    leading = (name for name, row in TABLE.rows.items() if any(spot.kind == "label" for spot in row.spots))
    return {name: name != "b" for name in leading if name != "adr"}


def files(spilling: bool) -> RegisterFile:
    """``spilling``: with registers set aside through which vectors on the stack pass."""
    kept = len(_VECTORS) - _VECTOR_SCRATCH if spilling else len(_VECTORS)
    return RegisterFile(
        free={RegClass.GENERAL: _FREE, RegClass.VECTOR: _VECTORS[:kept]},
        scratch={RegClass.GENERAL: SCRATCH, RegClass.VECTOR: _VECTORS[kept:]},
        moves=MOVES,
    )


class Emitter(WordEmitter):
    """Appends instructions of the table to ``code``."""

    def __init__(self, code: Code, level: Level = NEON) -> None:
        super().__init__(code, level)

    def put(self, op: str, *operands: Operand) -> None:
        """An instruction on operands that there are."""
        self.code.items.append(instruction(op, *operands))

    def integer(self, value: int, target: Reg | None = None) -> Reg:
        """A number of 64 bits, 16 of them an instruction."""
        found = self.general() if target is None else target
        for inst in number_instructions(found, value):
            self.code.items.append(inst)
        return found

    def repeated(self, bits: int, width_bits: int) -> VReg:
        """A constant in every lane."""
        lane = (bits & ((1 << width_bits) - 1)).to_bytes(width_bits // 8, "little")
        if not any(lane):
            return self.vgives("zero")
        return self.vgives("ldr_q", self.code.constant(lane * (self.vector_bits // 8 // len(lane))))

    def shifted(self, register: Reg, amount: int, size: str = "x") -> VReg:
        """To the left by a number below the width."""
        bits = 64 if size == "x" else 32
        return self.gives(f"ubfm.{size}", register, -amount % bits, bits - 1 - amount)

    def masked(self, register: Reg, value: int, size: str) -> VReg:
        """And-ed with a constant."""
        if bit_mask(value, 64 if size == "x" else 32) is not None:
            return self.gives(f"andi.{size}", register, value)
        return self.gives(f"and.{size}", register, self.integer(value))


def instruction(op: str, *operands: Operand) -> Inst:
    return Inst(op, operands, TABLE.row_of(op, operands).roles)


def number_instructions(target: Reg, value: int) -> list[Inst]:
    """What makes a register hold a number of 64 bits."""
    parts = [value >> 16 * k & 0xFFFF for k in range(4)]
    if parts.count(0xFFFF) > parts.count(0):
        start = next((k for k in range(4) if parts[k] != 0xFFFF), 0)
        found = [instruction("movn.x", target, ~parts[start] & 0xFFFF, 16 * start)]
        rest = [k for k in range(4) if k != start and parts[k] != 0xFFFF]
    else:
        start = next((k for k in range(4) if parts[k]), 0)
        found = [instruction("movz.x", target, parts[start], 16 * start)]
        rest = [k for k in range(4) if k != start and parts[k]]
    return [*found, *(instruction("movk.x", target, parts[k], 16 * k) for k in rest)]


_KINDS = {
    "u8": 1, "i8": 1, "u16": 2, "i16": 2, "m32": 4, "m64": 8,
    "v8": 1, "v16": 2, "v32": 4, "v64": 8, "v128": 16,
}


def access(to: Emitter, verb: str, kind: str, register: Reg, place: Mem) -> None:
    """A load (`ld`) or store (`st`) of an element, its address in a form that the machine has."""
    assert place.base is not None
    size_bytes = _KINDS[kind]
    base, offset = place.base, place.offset
    if place.index is not None:
        if offset == 0 and place.scale in (1, size_bytes):
            form = "at" if place.scale == 1 else "scaled"
            to.put(f"{verb}_{form}.{kind}", register, base, place.index)
            return
        base = added(to, base, place.index, place.scale)
    if offset % size_bytes == 0 and 0 <= offset < size_bytes << 12:
        to.put(f"{verb}.{kind}", register, base, offset)
    elif -256 <= offset < 256:
        to.put(f"{verb}_near.{kind}", register, base, offset)
    else:
        to.put(f"{verb}_at.{kind}", register, base, to.integer(offset))


def added(to: Emitter, base: Reg, index: Reg, scale: int) -> VReg:
    """``base + index * scale``, the scale a power of two."""
    if scale == 1:
        return to.gives("add.x", base, index)
    return to.gives("add_lsl.x", base, index, scale.bit_length() - 1)
