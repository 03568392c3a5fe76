"""Registers of RISC-V, and short ways to append instructions.

A scalar of up to 32 bits is held extended by the sign of its 32nd bit, as instructions on words leave it.
"""
from __future__ import annotations

from functools import cache

from kera_hw.cpu_gpu.machine.allocate import RegisterFile
from kera_hw.cpu_gpu.machine.code import Code, Fixed, Inst, Item, Mark, Mem, Operand, Reg, RegClass, VReg
from kera_hw.cpu_gpu.machine.level import Level
from kera_hw.cpu_gpu.riscv64.encoder import TABLE, vector_type
from kera_hw.cpu_gpu.select.emitter import WordEmitter


def _general(number: int) -> Fixed:
    return Fixed(number, RegClass.GENERAL)


ZERO, RA, SP, FP, NEAR, FAR = map(_general, (0, 1, 2, 8, 30, 31))
"""Never given: of the frame is FP, and far places go by the last two."""
ARGUMENTS = tuple(map(_general, (10, 11, 12)))
MASK = Fixed(0, RegClass.VECTOR)
"""That masked instructions go by."""
SCRATCH = (5, 6, 7, 28)
CALLEE_SAVED = (9, *range(18, 28))
CALLEE_SAVED_FLOATS = (8, 9, *range(18, 28))
_FREE = (*range(10, 18), 29, *CALLEE_SAVED)
_FLOATS = (*range(8), *range(10, 18), *CALLEE_SAVED_FLOATS)
_FLOAT_SCRATCH = tuple(range(28, 32))
_VECTORS = tuple(range(1, 32))
_VECTOR_SCRATCH = 4

MOVES = frozenset({"mv", "fmv", "vmv1"})
KEPT = "kept"
"""No instruction: its operand stays until after the one before, which must not take it for its result."""
_SHORT = range(-2048, 2048)

RVV = Level(
    "riscv64", "riscv64", ("i", "m", "a", "f", "d", "c", "v"), ("fma", "unsigned-conversions"),
    vector_bits=128, vector_registers=32,
)


@cache
def jumps() -> dict[str, bool]:
    """Instructions that go to a label; whether they may also not."""
    leading = (name for name, row in TABLE.rows.items() if any(spot.kind == "label" for spot in row.spots))
    return {name: name != "j" for name in leading}


def files(spilling: bool) -> RegisterFile:
    """``spilling``: with registers set aside through which vectors on the stack pass."""
    kept = len(_VECTORS) - _VECTOR_SCRATCH if spilling else len(_VECTORS)
    return RegisterFile(
        free={RegClass.GENERAL: _FREE, RegClass.FLOAT: _FLOATS, RegClass.VECTOR: _VECTORS[:kept]},
        scratch={
            RegClass.GENERAL: SCRATCH, RegClass.FLOAT: _FLOAT_SCRATCH, RegClass.VECTOR: _VECTORS[kept:],
        },
        moves=MOVES,
    )


def instruction(op: str, *operands: Operand) -> Inst:
    """By the table, but for what has no row there: copies, constants, and what forbids an overlap."""
    roles = _PSEUDO.get(op)
    return Inst(op, operands, TABLE.row_of(op, operands).roles if roles is None else roles)


_PSEUDO = {"mv": ("w", "r"), "fmv": ("w", "r"), KEPT: ("r",), "constant": ("w", "r")}


def number_instructions(target: Reg, value: int) -> list[Inst] | None:
    """What makes a register hold a number of 32 bits with a sign; None for others."""
    value = (value & (1 << 64) - 1) - ((value >> 63 & 1) << 64)
    if value in _SHORT:
        return [instruction("addi", target, ZERO, value)]
    if not -(1 << 31) <= value < 1 << 31:
        return None
    low = (value & 0xFFF) - (value & 0x800) * 2
    found = [instruction("lui", target, (value - low) >> 12 & 0xFFFFF)]
    # On words, so that what `lui` of the highest page has above 32 bits is gone.
    return [*found, instruction("addiw", target, target, low)] if low else found


class Emitter(WordEmitter):
    """Appends instructions of the table to ``code``."""

    def __init__(self, code: Code, level: Level = RVV) -> None:
        super().__init__(code, level)
        self.taken: VReg | None = None
        """How many lanes a loop takes at once, within one that asks for as many as there are."""

    def put(self, op: str, *operands: Operand) -> None:
        """An instruction on operands that there are."""
        self.code.items.append(instruction(op, *operands))

    def fgives(self, op: str, *operands: Operand) -> VReg:
        """A new float register with an instruction's result."""
        found = self.code.vreg(RegClass.FLOAT)
        self.put(op, found, *operands)
        return found

    def apart(self, op: str, source: Reg, *operands: Operand) -> VReg:
        """The same, in another register than that of an operand with narrower lanes."""
        found = self.vgives(op, source, *operands)
        self.put(KEPT, source)
        return found

    def integer(self, value: int) -> VReg:
        """A number of 64 bits; one that takes many instructions lies beside the code."""
        found = self.general()
        made = number_instructions(found, value)
        if made is None:
            self.put("constant", found, self.code.constant((value & (1 << 64) - 1).to_bytes(8, "little")))
        else:
            self.code.items += made
        return found

    def lanes(self, width_bits: int, count: int) -> None:
        """From here on, instructions on vectors are on so many lanes of that width, or those taken."""
        setting = vector_type(width_bits, count, self.vector_bits)
        if self.taken is None:
            self.put("vseti", ZERO, count, setting)
        else:
            self.put("vset", ZERO, self.taken, setting)

    def all_lanes(self, width_bits: int, count: int) -> None:
        """On as many as there are, where ``count`` is the least."""
        self.put("vset", NEAR, ZERO, vector_type(width_bits, count, self.vector_bits))

    def one_lane(self, width_bits: int) -> None:
        """The lowest one, in a whole register."""
        self.put("vseti", ZERO, 1, vector_type(width_bits, self.vector_bits // width_bits, self.vector_bits))

    def up_to(self, width_bits: int, lane: int) -> None:
        """The lanes up to that one, in a whole register."""
        count = self.vector_bits // width_bits
        self.put("vseti", ZERO, lane + 1, vector_type(width_bits, count, self.vector_bits))


def without_repeats(items: list[Item]) -> list[Item]:
    """Without settings of lanes that are as they were."""
    found: list[Item] = []
    known: tuple[Operand, ...] | None = None
    for item in items:
        if isinstance(item, Mark):
            known = None
        elif item.op in ("vset", "vseti"):
            if item.operands == known:
                continue
            known = item.operands
        found.append(item)
    return found


def address(to: Emitter, place: Mem) -> tuple[Reg, int]:
    """A base and an offset that instructions have room for."""
    assert place.base is not None
    base, offset = place.base, place.offset
    if place.index is not None:
        base = added(to, base, place.index, place.scale)
    if offset in _SHORT:
        return base, offset
    return to.gives("add", base, to.integer(offset)), 0


def flat(to: Emitter, place: Mem) -> Reg:
    """The address itself."""
    base, offset = address(to, place)
    return to.gives("addi", base, offset) if offset else base


def added(to: Emitter, base: Reg, index: Reg, scale: int) -> VReg:
    """``base + index * scale``, the scale a power of two."""
    if scale > 1:
        index = to.gives("slli", index, scale.bit_length() - 1)
    return to.gives("add", base, index)
