"""RISC-V, as the selection of instructions asks for it."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.cpu_gpu.machine.code import Fixed, Label, Mem, Reg, RegClass, VReg
from kera_hw.cpu_gpu.riscv64 import scalars, vectors
from kera_hw.cpu_gpu.riscv64.encoder import vector_type
from kera_hw.cpu_gpu.riscv64.machine import ARGUMENTS, SCRATCH, ZERO, Emitter, added, address, flat
from kera_hw.cpu_gpu.select.isa import Arg, Known, Scalar, Splat, Strips, is_narrow, is_signed, width_of
from kera_hw.legal.native import Signature
from kera_hw.types import BoolType, FloatType, IntType, Type

_SHORT = range(-2048, 2048)
_SIZES = {8: "b", 16: "h", 32: "w", 64: "d"}
_COPIES = {RegClass.GENERAL: "mv", RegClass.FLOAT: "fmv", RegClass.VECTOR: "vmv1"}


class Riscv(Emitter):
    """Implements ``select.isa.Isa``."""

    @property
    def strips(self) -> Strips:
        return self

    def begin(self, counter: Reg, end: Reg | int, count: int) -> VReg:
        last = self.number(end) if isinstance(end, int) else end
        setting = vector_type(self.vector_bits // count, count, self.vector_bits)
        self.taken = self.gives("vset", self.gives("sub", last, counter), setting)
        return self.taken

    def over(self) -> None:
        self.taken = None

    def move(self, register: VReg, rounds: VReg, distance: int) -> None:
        self.put("add", register, register, rounds if distance == 1 else self.times(rounds, distance))

    def arguments(self) -> tuple[VReg, VReg, VReg]:
        """By way of registers that are never given to anything, so that no argument is overwritten unread."""
        passed = [Fixed(number, RegClass.GENERAL) for number in SCRATCH[: len(ARGUMENTS)]]
        for register, given in zip(passed, ARGUMENTS):
            self.put("mv", register, given)
        found = self.general(), self.general(), self.general()
        for register, given in zip(found, passed):
            self.copy(register, given)
        self.one_lane(64)  # copies of vectors need a setting, whichever
        return found

    # Addresses and control

    def number(self, value: int) -> VReg:
        return self.integer(value)

    def copy(self, target: VReg, source: Reg, vector: bool = False) -> None:
        self.put(_COPIES[target.cls], target, source)

    def add_number(self, register: VReg, value: int) -> None:
        if value in _SHORT:
            self.put("addi", register, register, value)
        else:
            self.put("add", register, register, self.number(value))

    def sum_of(self, base: Reg, index: Reg, scale: int, offset: int) -> VReg:
        found = added(self, base, index, scale)
        if offset:
            self.add_number(found, offset)
        return found

    def times(self, register: Reg, value: int) -> VReg:
        if value > 0 and value & (value - 1) == 0:
            return self.gives("slli", register, value.bit_length() - 1)
        return self.gives("mul", register, self.number(value))

    def multiple_below(self, register: Reg, step: int) -> VReg:
        return self.gives("and", register, self.number(-step))

    def branch_below(self, register: Reg, end: Reg | int, label: Label) -> None:
        self.put("bltu", register, self.number(end) if isinstance(end, int) else end, label)

    def branch_zero(self, condition: Reg, label: Label) -> None:
        self.put("beq", condition, ZERO, label)

    def jump(self, label: Label) -> None:
        self.put("j", label)

    def as_index(self, kind: Type, register: VReg) -> VReg:
        return scalars.widened(self, kind, register, IntType(64, True))

    # Scalars

    def scalar_register(self, kind: Type) -> VReg:
        return self.code.vreg(RegClass.FLOAT) if isinstance(kind, FloatType) else self.general()

    def literal(self, kind: Type, bits: int) -> VReg:
        if isinstance(kind, FloatType):
            value = self.integer(_extended(bits, kind.width_bits))
            return self.fgives(f"to.{scalars.precision(kind)}", value)
        if isinstance(kind, BoolType):
            return self.integer(bits)
        value = kind.wrap(bits) if isinstance(kind, IntType) else bits
        return self.integer(_extended(value, 32) if scalars.word(kind) else value)

    def load(self, kind: Type, place: Mem) -> VReg:
        found, width = self.scalar_register(kind), width_of(kind)
        unsigned = "u" if width < 32 and not is_signed(kind) else ""
        op = f"{'f' if isinstance(kind, FloatType) else ''}l{_SIZES[width]}{unsigned}"
        self.put(op, found, *self._offset(place))
        return found

    def _offset(self, place: Mem) -> tuple[int, Reg]:
        base, offset = address(self, place)
        return offset, base

    def store(self, kind: Type, place: Mem, register: VReg) -> None:
        op = f"{'f' if isinstance(kind, FloatType) else ''}s{_SIZES[width_of(kind)]}"
        self.put(op, register, *self._offset(place))

    def extend(self, kind: IntType, register: VReg) -> VReg:
        return scalars.extended(self, kind, register)

    def scalar(self, op: Signature, args: Sequence[Scalar]) -> tuple[VReg, bool]:
        found, loose = scalars.RULES[op.opcode](self, args, op)
        return found, loose and is_narrow(op.result)

    def chosen(
        self, compared: Signature, op: Signature, args: Sequence[Scalar]
    ) -> tuple[VReg, bool] | None:
        return None

    # Lanes

    def splat(self, kind: Type, register: VReg, count: int) -> VReg:
        self.all_lanes(width_of(kind), count)
        return self.vgives("vfmvf" if isinstance(kind, FloatType) else "vmvx", register)

    def splat_literal(self, kind: Type, bits: int, count: int) -> VReg:
        return vectors.repeated(self, bits, width_of(kind), count)

    def iota(self, counter: VReg, count: int, width_bits: int) -> VReg:
        self.lanes(width_bits, count)
        return self.vgives("vaddx", self.vgives("vid"), counter)

    def load_lanes(self, kind: Type, place: Mem, count: int) -> VReg:
        start, width = flat(self, place), width_of(kind)
        self.lanes(width, count)
        return self.vgives(f"vle{width}", start)

    def load_splat(self, kind: Type, place: Mem, count: int) -> VReg:
        """One element again and again."""
        start, width = flat(self, place), width_of(kind)
        self.lanes(width, count)
        return self.vgives(f"vlse{width}", start, ZERO)

    def looks_up(self, kind: Type, entries: int) -> bool:
        """Where each entry's distance in bytes is a number of the lanes' width."""
        return entries * width_of(kind) // 8 <= 1 << width_of(kind)

    def look_up(self, kind: Type, table: Mem, entries: int, index: VReg, count: int) -> VReg | None:
        if not self.looks_up(kind, entries):
            return None
        start, width = flat(self, table), width_of(kind)
        self.lanes(width, count)
        if width > 8:
            index = self.vgives("vslli", index, (width // 8).bit_length() - 1)
        return self.vgives(f"vluxei{width}", start, index)

    def gather(self, kind: Type, places: Sequence[Mem]) -> VReg:
        """Elements from places of their own, each put where it belongs."""
        whole = self.splat(kind, self.load(kind, places[0]), len(places))
        for lane, place in enumerate(places[1:], 1):
            self._put(kind, whole, self.load(kind, place), lane)
        return whole

    def wraps_entries(self, kind: Type, entries: int, count: int) -> bool:
        return False

    def store_lanes(self, kind: Type, place: Mem, register: VReg, count: int) -> None:
        start, width = flat(self, place), width_of(kind)
        self.lanes(width, count)
        self.put(f"vse{width}", register, start)

    def extract(self, kind: Type, register: VReg, lane: int) -> VReg:
        width = width_of(kind)
        self.one_lane(width)
        if lane:
            register = self.vgives("vslidedown", register, lane)
            self.one_lane(width)
        if isinstance(kind, FloatType):
            return self.fgives("vfmvfs", register)
        found = self.gives("vmvxs", register)
        return self.extend(kind, found) if isinstance(kind, IntType) and width < 32 else found

    def insert(self, kind: Type, register: VReg | None, value: VReg, lane: int) -> VReg:
        if register is None:
            return self.splat(kind, value, self.vector_bits // width_of(kind))
        self._put(kind, register, value, lane)
        return register

    def _put(self, kind: Type, whole: VReg, value: VReg, lane: int) -> None:
        """A scalar in place of a lane; those above are not there yet."""
        width = width_of(kind)
        self.one_lane(width)
        alone = self.vgives("vfmvsf" if isinstance(kind, FloatType) else "vmvsx", value)
        self.up_to(width, lane)
        self.put("vslideup", whole, alone, lane)

    def mask_bits(self, count: int) -> int:
        return vectors.MASK_BITS

    def lanes_register(self, kind: Type) -> VReg:
        return self.vector_register()

    def bool_lane(self, register: VReg, mask_bits: int, lane: int) -> VReg:
        self.one_lane(64)
        found = self.gives("vmvxs", register)
        return self.gives("andi", self.gives("srli", found, lane), 1)

    def mask_of_lanes(self, values: Sequence[VReg]) -> tuple[VReg, int]:
        whole = values[0]
        for lane, value in enumerate(values[1:], 1):
            whole = self.gives("or", whole, self.gives("slli", value, lane))
        self.one_lane(64)
        return self.vgives("vmvsx", whole), vectors.MASK_BITS

    def mask_of(self, condition: VReg, mask_bits: int, count: int) -> VReg:
        return vectors.mask_of(self, condition, count)

    def resize_mask(self, register: VReg, before: int, after: int, count: int) -> VReg:
        return register

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


def _extended(bits: int, width_bits: int) -> int:
    """As registers hold so many bits."""
    bits &= (1 << width_bits) - 1
    return bits - ((bits >> width_bits - 1) << width_bits)
