"""ARM64, as the selection of instructions asks for it."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.cpu_gpu.aarch64 import lanes, scalars, vectors
from kera_hw.cpu_gpu.aarch64.machine import ARGUMENTS, LO, SCRATCH, Emitter, access, added
from kera_hw.cpu_gpu.machine.code import Fixed, Label, Mem, Reg, RegClass, VReg
from kera_hw.cpu_gpu.select.isa import (
    COMPARED,
    Arg,
    Known,
    Scalar,
    Splat,
    Strips,
    is_narrow,
    is_signed,
    width_of,
)
from kera_hw.legal.native import Signature
from kera_hw.types import BoolType, FloatType, IntType, Type

_SHORT = 1 << 12


class Arm(Emitter):
    """Implements ``select.isa.Isa``."""

    @property
    def strips(self) -> Strips | None:
        return None

    def arguments(self) -> tuple[VReg, VReg, VReg]:
        """By way of registers that are never given to anything, so that no argument is overwritten unread."""
        passed = [Fixed(number, RegClass.GENERAL) for number in SCRATCH[: len(ARGUMENTS)]]
        for register, given in zip(passed, ARGUMENTS):
            self.put("mov.x", register, given)
        found = self.general(), self.general(), self.general()
        for register, given in zip(found, passed):
            self.copy(register, given)
        return found

    # Addresses and control

    def number(self, value: int) -> VReg:
        found = self.general()
        self.integer(value, found)
        return found

    def copy(self, target: VReg, source: Reg, vector: bool = False) -> None:
        self.put("mov.x" if target.cls is RegClass.GENERAL else "mov.16b", target, source)

    def add_number(self, register: VReg, value: int) -> None:
        op, number = ("addi.x", value) if value >= 0 else ("subi.x", -value)
        if number < _SHORT:
            self.put(op, register, register, number)
        else:
            self.put("add.x", register, register, self.number(value))

    def sum_of(self, base: Reg, index: Reg, scale: int, offset: int) -> VReg:
        found = added(self, base, index, scale)
        if offset:
            self.add_number(found, offset)
        return found

    def times(self, register: Reg, value: int) -> VReg:
        if value > 0 and value & (value - 1) == 0:
            return self.shifted(register, value.bit_length() - 1)
        return self.gives("mul.x", register, self.number(value))

    def multiple_below(self, register: Reg, step: int) -> VReg:
        return self.masked(register, -step, "x")

    def branch_below(self, register: Reg, end: Reg | int, label: Label) -> None:
        if isinstance(end, int) and 0 <= end < _SHORT:
            self.put("cmpi.x", register, end)
        else:
            self.put("cmp.x", register, self.number(end) if isinstance(end, int) else end)
        self.put("b.cond", LO, label)

    def branch_zero(self, condition: Reg, label: Label) -> None:
        self.put("cbz.w", condition, label)

    def jump(self, label: Label) -> None:
        self.put("b", label)

    def as_index(self, kind: Type, register: VReg) -> VReg:
        return scalars.widened(self, kind, register, "x")

    # Scalars

    def scalar_register(self, kind: Type) -> VReg:
        return self.vector_register() if isinstance(kind, FloatType) else self.general()

    def literal(self, kind: Type, bits: int) -> VReg:
        if isinstance(kind, FloatType):
            size_bytes = kind.width_bits // 8
            place = self.code.constant(bits.to_bytes(size_bytes, "little"))
            return self.vgives("ldr_s" if size_bytes == 4 else "ldr_d", place)
        value = bits if isinstance(kind, BoolType) else kind.wrap(bits) if isinstance(kind, IntType) else bits
        return self.number(value if scalars.size(kind) == "x" else value & 0xFFFF_FFFF)

    def load(self, kind: Type, place: Mem) -> VReg:
        found, width = self.scalar_register(kind), width_of(kind)
        if isinstance(kind, FloatType):
            access(self, "ld", f"v{width}", found, place)
        elif width < 32:
            access(self, "ld", f"{'i' if is_signed(kind) else 'u'}{width}", found, place)
        else:
            access(self, "ld", f"m{width}", found, place)
        return found

    def store(self, kind: Type, place: Mem, register: VReg) -> None:
        width = width_of(kind)
        file = "v" if isinstance(kind, FloatType) else "u" if width < 32 else "m"
        access(self, "st", f"{file}{width}", register, place)

    def extend(self, kind: IntType, register: VReg) -> VReg:
        return scalars.extended(self, kind, register)

    def scalar(self, op: Signature, args: Sequence[Scalar]) -> tuple[VReg, bool]:
        found, loose = scalars.RULES[op.opcode](self, args, op)
        return found, loose and is_narrow(op.result)

    def chosen(
        self, compared: Signature, op: Signature, args: Sequence[Scalar]
    ) -> tuple[VReg, bool] | None:
        return scalars.chosen(self, compared, op, args[:COMPARED], args[COMPARED:])

    # Lanes

    def splat(self, kind: Type, register: VReg, count: int) -> VReg:
        return lanes.splat(self, kind, register)

    def splat_literal(self, kind: Type, bits: int, count: int) -> VReg:
        return self.repeated(bits, width_of(kind))

    def iota(self, counter: VReg, count: int, width_bits: int) -> VReg:
        return lanes.iota(self, counter, width_bits)

    def load_lanes(self, kind: Type, place: Mem, count: int) -> VReg:
        return lanes.load_bits(self, width_of(kind) * count, place)

    def load_splat(self, kind: Type, place: Mem, count: int) -> VReg:
        return lanes.load_splat(self, kind, place)

    def look_up(self, kind: Type, table: Mem, entries: int, index: VReg, count: int) -> VReg | None:
        return None

    def gather(self, kind: Type, places: Sequence[Mem]) -> VReg:
        return lanes.gather(self, kind, places)

    def wraps_entries(self, kind: Type, entries: int, count: int) -> bool:
        return False

    def store_lanes(self, kind: Type, place: Mem, register: VReg, count: int) -> None:
        access(self, "st", f"v{width_of(kind) * count}", register, place)

    def extract(self, kind: Type, register: VReg, lane: int) -> VReg:
        return lanes.extract(self, kind, register, lane)

    def insert(self, kind: Type, register: VReg | None, value: VReg, lane: int) -> VReg:
        return lanes.insert(self, kind, register, value, lane)

    def mask_bits(self, count: int) -> int:
        return min(64, self.vector_bits // count)

    def lanes_register(self, kind: Type) -> VReg:
        return self.vector_register()

    def bool_lane(self, register: VReg, mask_bits: int, lane: int) -> VReg:
        found = lanes.extract(self, IntType(mask_bits, False), register, lane)
        return self.gives("andi.w", found, 1)

    def mask_of_lanes(self, values: Sequence[VReg]) -> tuple[VReg, int]:
        width = self.mask_bits(len(values))
        whole: VReg | None = None
        for lane, value in enumerate(values):
            whole = lanes.insert(self, IntType(width, True), whole, self.gives("neg.x", value), lane)
        assert whole is not None
        return whole, width

    def mask_of(self, condition: VReg, mask_bits: int, count: int) -> VReg:
        return vectors.mask_of(self, condition, mask_bits)

    def resize_mask(self, register: VReg, before: int, after: int, count: int) -> VReg:
        return lanes.resize(self, register, before, after, True)

    def vector(
        self, op: Signature, count: int, args: Sequence[Arg], splat: Splat, known: Known
    ) -> tuple[VReg, int] | None:
        rule = vectors.RULES.get(op.opcode)
        return None if rule is None else rule(vectors.Lanes(self, count, op, args, splat, known))

    def chosen_lanes(
        self, compared: Signature, op: Signature, count: int, args: Sequence[Arg], splat: Splat, known: Known
    ) -> VReg | None:
        return None

    def merged_sum(
        self, op: Signature, count: int, args: Sequence[Arg], splat: Splat, known: Known
    ) -> VReg | None:
        return None
