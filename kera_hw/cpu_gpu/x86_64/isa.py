"""x86-64 at its levels, as the selection of instructions asks for it."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.cpu_gpu.machine.code import Label, Mem, Reg, RegClass, VReg
from kera_hw.cpu_gpu.select.isa import COMPARED, Arg, Known, Pairs, Scalar, Splat, Strips, is_narrow, width_of
from kera_hw.cpu_gpu.x86_64 import lanes, masks, scalars, vectors
from kera_hw.cpu_gpu.x86_64.machine import RAX, RCX, RDI, RDX, RSI, Emitter
from kera_hw.cpu_gpu.x86_64.pairs import PairProducts
from kera_hw.legal.native import Signature
from kera_hw.types import BoolType, FloatType, IntType, Type

_NEAR = range(-(1 << 31), 1 << 31)


class X86(Emitter):
    """Implements ``select.isa.Isa``."""

    @property
    def pairs(self) -> Pairs:
        return PairProducts(self)

    @property
    def strips(self) -> Strips | None:
        return None

    def arguments(self) -> tuple[VReg, VReg, VReg]:
        """By way of registers that are never given to anything, so that no argument is overwritten unread."""
        self.put("mov", RAX, RDI)
        self.put("mov", RCX, RSI)
        found = self.general(), self.general(), self.general()
        for register, given in zip(found, (RAX, RCX, RDX)):
            self.copy(register, given)
        return found

    # Addresses and control

    def number(self, value: int) -> VReg:
        return self._integer(value, 64)

    def _integer(self, value: int, size_bits: int) -> VReg:
        value &= (1 << size_bits) - 1
        found = self.general()
        if value < 1 << 31:
            self.put("movi", found, value, size_bits=32)
        elif size_bits == 32 or value >= (1 << 64) - (1 << 31):
            self.put("movi", found, value & 0xFFFF_FFFF, size_bits=size_bits)
        else:
            self.put("movabs", found, value)
        return found

    def copy(self, target: VReg, source: Reg, vector: bool = False) -> None:
        if target.cls is RegClass.VECTOR:
            self.put("vmovaps", target, source, size_bits=self.vector_bits if vector else 128)
        elif target.cls is RegClass.MASK:
            self.put("kmovq", target, source)
        else:
            self.put("mov", target, source)

    def add_number(self, register: VReg, value: int) -> None:
        if value in _NEAR:
            self.put("addi", register, value)
        else:
            self.put("add", register, self.number(value))

    def sum_of(self, base: Reg, index: Reg, scale: int, offset: int) -> VReg:
        return self.gives("lea", Mem(base, index, scale, offset))

    def times(self, register: Reg, value: int) -> VReg:
        if value in _NEAR:
            return self.gives("imuli", register, value)
        return self.changed("imul", register, self.number(value))

    def multiple_below(self, register: Reg, step: int) -> VReg:
        return self.changed("andi", register, -step)

    def rounds_to_whole(self, place: Mem, each: int) -> VReg | None:
        """A store over two lines of the cache takes twice the time."""
        if self.vector_bits == 128:
            return None
        found = self.changed("neg", self.gives("lea", place))
        self.put("andi", found, self.vector_bits // 8 - 1)
        self.put("shri", found, each.bit_length() - 1)
        return found

    def branch_below(self, register: Reg, end: Reg | int, label: Label) -> None:
        if isinstance(end, int) and end in _NEAR:
            self.put("cmpi", register, end)
        else:
            self.put("cmp", register, self.number(end) if isinstance(end, int) else end)
        self.put("jb", label)

    def branch_zero(self, condition: Reg, label: Label) -> None:
        self.put("test", condition, condition, size_bits=32)
        self.put("je", label)

    def jump(self, label: Label) -> None:
        self.put("jmp", label)

    def as_index(self, kind: Type, register: VReg) -> VReg:
        return scalars.widened(self, kind, register, 64)

    # Scalars

    def scalar_register(self, kind: Type) -> VReg:
        return self.vector_register() if isinstance(kind, FloatType) else self.general()

    def literal(self, kind: Type, bits: int) -> VReg:
        if isinstance(kind, FloatType):
            size = kind.width_bits // 8
            place = self.constant(bits, size)
            return self.vgives("vmovss" if size == 4 else "vmovsd", place)
        value = bits if isinstance(kind, BoolType) else kind.wrap(bits) if isinstance(kind, IntType) else bits
        return self._integer(value, scalars.size_of(kind))

    def load(self, kind: Type, place: Mem) -> VReg:
        width = width_of(kind)
        if isinstance(kind, FloatType):
            return self.vgives("vmovss" if width == 32 else "vmovsd", place)
        if width < 32:
            signed = isinstance(kind, IntType) and kind.signed
            return self.gives(f"mov{'s' if signed else 'z'}x{width}", place, size_bits=32)
        return self.gives("mov", place, size_bits=width)

    def store(self, kind: Type, place: Mem, register: VReg) -> None:
        width = width_of(kind)
        if isinstance(kind, FloatType):
            self.put("vmovss" if width == 32 else "vmovsd", place, register)
        elif width < 32:
            self.put(f"store{width}", place, register)
        else:
            self.put("mov", place, register, size_bits=width)

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
        return lanes.splat(self, kind, register, count)

    def splat_literal(self, kind: Type, bits: int, count: int) -> VReg:
        return lanes.splat_literal(self, kind, bits, count)

    def iota(self, counter: VReg, count: int, width_bits: int) -> VReg:
        return lanes.iota(self, counter, count, width_bits)

    def load_lanes(self, kind: Type, place: Mem, count: int) -> VReg:
        return lanes.load(self, kind, place, count)

    def load_splat(self, kind: Type, place: Mem, count: int) -> VReg:
        return lanes.load_splat(self, kind, place, count)

    def gather(self, kind: Type, places: Sequence[Mem]) -> VReg:
        return lanes.gather(self, kind, places)

    def look_up(self, kind: Type, table: Mem, entries: int, index: VReg, count: int) -> VReg | None:
        return masks.look_up(self, kind, table, entries, index, count) if self.level.evex else None

    def wraps_entries(self, kind: Type, entries: int, count: int) -> bool:
        return self.level.evex and masks.wraps_entries(self, kind, entries, count)

    def store_lanes(self, kind: Type, place: Mem, register: VReg, count: int) -> None:
        lanes.store(self, kind, place, register, count)

    def extract(self, kind: Type, register: VReg, lane: int) -> VReg:
        return lanes.extract(self, kind, register, lane)

    def lanes_from(self, kind: Type, register: VReg, lane: int, count: int) -> VReg | None:
        return lanes.lanes_from(self, kind, register, lane, count)

    def insert(self, kind: Type, register: VReg | None, value: VReg, lane: int) -> VReg:
        return lanes.insert(self, kind, register, value, lane)

    def mask_bits(self, count: int) -> int:
        return masks.MASK_BITS if self.level.evex else min(64, self.vector_bits // count)

    def lanes_register(self, kind: Type) -> VReg:
        is_mask = self.level.evex and isinstance(kind, BoolType)
        return self.mask_register() if is_mask else self.vector_register()

    def bool_lane(self, register: VReg, mask_bits: int, lane: int) -> VReg:
        if self.level.evex:
            return masks.bool_lane(self, register, lane)
        found = lanes.extract(self, IntType(mask_bits, False), register, lane)
        self.put("andi", found, 1, size_bits=32)
        return found

    def mask_of_lanes(self, values: Sequence[VReg]) -> tuple[VReg, int]:
        if self.level.evex:
            return masks.mask_of_lanes(self, list(values)), masks.MASK_BITS
        width = self.mask_bits(len(values))
        whole: VReg | None = None
        for lane, value in enumerate(values):
            every = self.changed("neg", value)
            whole = lanes.insert(self, IntType(width, True), whole, every, lane)
        assert whole is not None
        return whole, width

    def mask_of(self, condition: VReg, mask_bits: int, count: int) -> VReg:
        if self.level.evex:
            return masks.mask_of(self, condition)
        return vectors.mask_of(self, condition, mask_bits, count)

    def resize_mask(self, register: VReg, before: int, after: int, count: int) -> VReg:
        if self.level.evex:
            return register
        return lanes.resize_mask(self, register, before, after, count)

    def vector(
        self, op: Signature, count: int, args: Sequence[Arg], splat: Splat, known: Known
    ) -> tuple[VReg, int] | None:
        rule = (masks if self.level.evex else vectors).RULES.get(op.opcode)
        return None if rule is None else rule(vectors.Lanes(self, count, op, args, splat, known))

    def chosen_lanes(
        self, compared: Signature, op: Signature, count: int, args: Sequence[Arg], splat: Splat, known: Known
    ) -> VReg | None:
        pair, choice = args[:COMPARED], args[COMPARED:]
        return (masks if self.level.evex else vectors).chosen(
            vectors.Lanes(self, count, compared, pair, splat, known),
            vectors.Lanes(self, count, op, choice, splat, known),
        )

    def merged_sum(
        self, op: Signature, count: int, args: Sequence[Arg], splat: Splat, known: Known
    ) -> VReg | None:
        if not self.level.evex:
            return None
        return masks.merged_sum(vectors.Lanes(self, count, op, args, splat, known))
