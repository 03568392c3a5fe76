"""Lanes moved about: into vectors and out of them, from one width to another."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.cpu_gpu.aarch64.machine import Emitter, access
from kera_hw.cpu_gpu.machine.code import Mem, Reg, VReg
from kera_hw.cpu_gpu.select.isa import is_signed, width_of
from kera_hw.types import FloatType, IntType, Type

_SHAPES = {8: "16b", 16: "8h", 32: "4s", 64: "2d"}
_LOWER = {8: "8b", 16: "4h", 32: "2s"}


def shape(width_bits: int) -> str:
    """All lanes of that width, in the names of instructions; what is above those in use does no harm."""
    return _SHAPES[width_bits]


def lower(width_bits: int) -> str:
    """Half as many."""
    return _LOWER[width_bits]


def splat(to: Emitter, kind: Type, register: VReg) -> VReg:
    """A scalar in all lanes."""
    each = shape(width_of(kind))
    if isinstance(kind, FloatType):
        return to.vgives(f"dup.{each}", register, 0)
    return to.vgives(f"dup_of.{each}", register)


def load_splat(to: Emitter, kind: Type, place: Mem) -> VReg:
    """One element in all lanes."""
    return to.vgives(f"dup.{shape(width_of(kind))}", load_bits(to, width_of(kind), place), 0)


def load_bits(to: Emitter, bits: int, place: Mem) -> VReg:
    found = to.vector_register()
    access(to, "ld", f"v{bits}", found, place)
    return found


def gather(to: Emitter, kind: Type, places: Sequence[Mem]) -> VReg:
    """Elements from places of their own."""
    width = width_of(kind)
    whole = load_bits(to, width, places[0])
    for lane, place in enumerate(places[1:], 1):
        to.put(f"ins.l{width}", whole, lane, load_bits(to, width, place))
    return whole


def extract(to: Emitter, kind: Type, register: Reg, lane: int) -> VReg:
    """A lane as a scalar, extended by its sign."""
    width = width_of(kind)
    if isinstance(kind, FloatType):
        return to.vgives(f"lane.l{width}", register, lane)
    op = "smov" if width < 32 and is_signed(kind) else "umov"
    return to.gives(f"{op}.l{width}", register, lane)


def insert(to: Emitter, kind: Type, register: VReg | None, value: VReg, lane: int) -> VReg:
    """With one lane replaced; the first begins a vector, which nobody else reads."""
    width = width_of(kind)
    if isinstance(kind, FloatType):
        if register is None:
            return to.vgives("mov.16b", value)
        to.put(f"ins.l{width}", register, lane, value)
        return register
    if register is None:
        return to.vgives(f"dup_of.{shape(width)}", value)
    to.put(f"ins_of.l{width}", register, lane, value)
    return register


def resize(to: Emitter, register: VReg, before: int, after: int, signed: bool) -> VReg:
    """Low lanes of one width as lanes of another: widened by sign or zeros, or cut off."""
    while before < after:
        register, before = to.vgives(f"{'s' if signed else 'u'}xtl.{lower(before)}", register), 2 * before
    while before > after:
        before //= 2
        register = to.vgives(f"xtn.{lower(before)}", register)
    return register


def iota(to: Emitter, counter: VReg, width_bits: int) -> VReg:
    """A counter and the numbers after it."""
    whole = splat(to, IntType(width_bits, True), counter)
    numbers = sum(k << width_bits * k for k in range(to.vector_bits // width_bits))
    lanes = to.vgives("ldr_q", to.code.constant(numbers.to_bytes(16, "little")))
    return to.vgives(f"add.{shape(width_bits)}", whole, lanes)
