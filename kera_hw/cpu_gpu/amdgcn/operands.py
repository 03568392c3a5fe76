"""Scalars as instructions take them: in registers, or as constants where those may stand.

What is narrower than 32 bits lives in a word. It may be *loose*, with anything above its width: additions,
products and what masks bits need not care, and what compares, widens or shifts right extends it first. A bool
is 0 or 1 in a word, so that lanes that don't run keep theirs; 64 bits are a pair.
"""
from __future__ import annotations

from kera_hw.cpu_gpu.amdgcn.code import MOVE, Code, high, is_inline, low
from kera_hw.cpu_gpu.gpu.writer import Held, Scalar
from kera_hw.cpu_gpu.machine.code import Part, VReg
from kera_hw.loops.program import Literal
from kera_hw.types import BoolType, FloatType, IntType, Type

WORD = (1 << 32) - 1


def is_narrow(kind: Type) -> bool:
    return isinstance(kind, IntType) and kind.width_bits < 32


def is_wide(kind: Type) -> bool:
    return isinstance(kind, IntType | FloatType) and kind.width_bits == 64


def is_signed(kind: Type) -> bool:
    return isinstance(kind, IntType) and kind.signed


def letter(kind: Type) -> str:
    """What instructions call a type: u32, i64, f32."""
    if isinstance(kind, FloatType):
        return f"f{kind.width_bits}"
    return f"{'i' if is_signed(kind) else 'u'}{64 if is_wide(kind) else 32}"


def constant(scalar: Scalar[VReg]) -> int | None:
    """A constant as bits extended to a word or a pair."""
    held = scalar.held
    if not isinstance(held, Literal):
        return None
    kind = scalar.type
    value = kind.wrap(held.bits) if isinstance(kind, IntType) else held.bits
    return value & ((1 << (64 if is_wide(kind) else 32)) - 1)


def source(code: Code, scalar: Scalar[VReg], loose: bool = False) -> VReg | int:
    """A word, or any constant, as the first operand of short instructions may be."""
    found = constant(scalar)
    return word(code, scalar, loose) if found is None else found


def argument(code: Code, scalar: Scalar[VReg], loose: bool = False) -> VReg | int:
    """A word, or a constant that any operand may be."""
    found = constant(scalar)
    return found if found is not None and is_inline(found) else word(code, scalar, loose)


def word(code: Code, scalar: Scalar[VReg], loose: bool = False) -> VReg:
    """In a register, extended unless it may be loose."""
    if isinstance(scalar.held, Literal):
        return code.give(MOVE, source(code, scalar))
    if scalar.held.loose and not loose:
        return extended(code, scalar.held.register, scalar.type)
    return scalar.held.register


def extended(code: Code, register: VReg, kind: Type) -> VReg:
    """From a narrow type's width to a word."""
    assert isinstance(kind, IntType)
    if kind.signed:
        return code.give("v_bfe_i32", register, 0, kind.width_bits)
    return code.give("v_and_b32", kind.max, register)


def pair(code: Code, scalar: Scalar[VReg]) -> VReg:
    """64 bits in a register."""
    found = constant(scalar)
    if found is not None:
        return code.both(found & WORD, found >> 32)
    assert isinstance(scalar.held, Held)
    return scalar.held.register


def wide_argument(code: Code, scalar: Scalar[VReg]) -> VReg | int:
    """64 bits, or a constant that any operand may be."""
    found = constant(scalar)
    return found if found is not None and is_inline(found) else pair(code, scalar)


def lower(code: Code, scalar: Scalar[VReg], loose: bool = False) -> VReg | Part:
    """The lower word of whatever it is."""
    return low(pair(code, scalar)) if is_wide(scalar.type) else word(code, scalar, loose)


def widened(code: Code, scalar: Scalar[VReg]) -> VReg:
    """An integer or a bool as 64 bits, by its sign if it has one."""
    kind = scalar.type
    if is_wide(kind):
        return pair(code, scalar)
    value = word(code, scalar)
    if not is_signed(kind):
        return code.both(value, 0)
    result = code.pair()
    code.op(MOVE, low(result), value)
    code.op("v_ashrrev_i32", high(result), 31, value)
    return result


def is_bool(kind: Type) -> bool:
    return isinstance(kind, BoolType)
