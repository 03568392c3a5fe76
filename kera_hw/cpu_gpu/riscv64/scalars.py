"""Native operations on scalars."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kera_hw.cpu_gpu.machine.code import Reg, VReg
from kera_hw.cpu_gpu.riscv64.machine import ZERO, Emitter
from kera_hw.cpu_gpu.select.isa import Scalar, is_narrow, is_signed, width_of
from kera_hw.legal.native import Signature
from kera_hw.types import BoolType, FloatType, IntType, Type

Found = tuple[VReg, bool]
Rule = Callable[[Emitter, Sequence[Scalar], Signature], Found]
"""The result, and whether it is loose."""

ROUNDINGS = {"round": "near", "floor": "down", "ceil": "up", "trunc": "zero"}
FLOAT_VERBS = ("add", "sub", "mul", "div", "sqrt")
WHOLE_FROM = {32: 0x4B00_0000, 64: 0x4330_0000_0000_0000}
"""The bits of the least power of two from which on all numbers are whole."""


def word(kind: Type) -> str:
    """The ending of instructions on 32 bits."""
    return "" if isinstance(kind, IntType) and kind.width_bits == 64 else "w"


def precision(kind: Type) -> str:
    return "s" if width_of(kind) == 32 else "d"


def extended(to: Emitter, kind: IntType, register: Reg) -> VReg:
    """A narrow integer extended by its sign."""
    if kind.width_bits == 8 and not kind.signed:
        return to.gives("andi", register, 0xFF)
    there = 64 - kind.width_bits
    return to.gives("srai" if kind.signed else "srli", to.gives("slli", register, there), there)


def widened(to: Emitter, source: Type, value: Reg, target: Type) -> VReg:
    """An integer as ``target`` holds it: of 32 bits without a sign, as 64 bits, the upper half is zero."""
    if not word(target) and source == IntType(32, False):
        return to.gives("srli", to.gives("slli", value, 32), 32)
    if word(target) and not word(source):
        return to.gives("addiw", value, 0)
    return to.gives("mv", value)


def _two(op: str, words: bool = True) -> Rule:
    """Where the result's low bits depend on the operands' low bits alone."""

    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        name = op + (word(sign.result) if words else "")
        return to.gives(name, args[0].get(True), args[1].get(True)), is_narrow(sign.result)

    return rule


def _negative(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
    return to.gives(f"sub{word(sign.result)}", ZERO, args[0].get(True)), is_narrow(sign.result)


def _absolute(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
    """(x ^ s) - s, s being all ones below zero."""
    value = args[0].get()
    signs = to.gives("srai", value, 63)
    found = to.gives(f"sub{word(sign.result)}", to.gives("xor", value, signs), signs)
    return found, is_narrow(sign.result)


def _extreme(verb: str) -> Rule:
    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        a, b = (arg.get() for arg in args)
        pair = (a, b) if verb == "min" else (b, a)
        less = to.gives("slt" if is_signed(sign.result) else "sltu", *pair)
        return chosen(to, less, a, b), False

    return rule


def chosen(to: Emitter, condition: Reg, then: Reg, otherwise: Reg) -> VReg:
    """By a bool, without a jump."""
    every = to.gives("sub", ZERO, condition)
    return to.gives("xor", otherwise, to.gives("and", to.gives("xor", then, otherwise), every))


def _divided(verb: str) -> Rule:
    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        unsigned = "" if is_signed(sign.result) else "u"
        found = to.gives(f"{verb}{unsigned}{word(sign.result)}", *(arg.get() for arg in args))
        return found, False

    return rule


def _inverse(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
    if isinstance(sign.result, BoolType):
        return to.gives("xori", args[0].get(), 1), False
    return to.gives("xori", args[0].get(True), -1), is_narrow(sign.result)


def _shift(verb: str) -> Rule:
    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        left = verb == "shl"
        op = "sll" if left else "sra" if is_signed(sign.result) else "srl"
        found = to.gives(f"{op}{word(sign.result)}", args[0].get(left), args[1].get())
        return found, left and is_narrow(sign.result)

    return rule


def _compare(verb: str) -> Rule:
    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        return compared(to, sign.operands[0], verb, args), False

    return rule


def compared(to: Emitter, kind: Type, verb: str, args: Sequence[Scalar]) -> VReg:
    """0 or 1."""
    a, b = (arg.get() for arg in args)
    if verb in ("gt", "ge"):
        a, b = b, a
    if isinstance(kind, FloatType):
        op = {"eq": "feq", "ne": "feq", "lt": "flt", "gt": "flt", "le": "fle", "ge": "fle"}[verb]
        found = to.gives(f"{op}.{precision(kind)}", a, b)
        return to.gives("xori", found, 1) if verb == "ne" else found
    if verb in ("eq", "ne"):
        other = to.gives("xor", a, b)
        return to.gives("sltiu", other, 1) if verb == "eq" else to.gives("sltu", ZERO, other)
    less = "slt" if is_signed(kind) else "sltu"
    if verb in ("lt", "gt"):
        return to.gives(less, a, b)
    return to.gives("xori", to.gives(less, b, a), 1)


def _select(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
    condition, (then, otherwise) = args[0].get(), (arg.get(True) for arg in args[1:])
    if not isinstance(sign.result, FloatType):
        return chosen(to, condition, then, otherwise), is_narrow(sign.result)
    which = precision(sign.result)
    bits = chosen(to, condition, *(to.gives(f"from.{which}", one) for one in (then, otherwise)))
    return to.fgives(f"to.{which}", bits), False


def _float(verb: str) -> Rule:
    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        return to.fgives(f"{verb}.{precision(sign.result)}", *(arg.get() for arg in args)), False

    return rule


def _sign(op: str) -> Rule:
    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        value = args[0].get()
        return to.fgives(f"{op}.{precision(sign.result)}", value, value), False

    return rule


def _rounded(mode: str) -> Rule:
    """By way of an integer, with the sign that it had; of a number that is whole, or none, itself."""

    def rule(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
        value, which = args[0].get(), precision(sign.result)
        there = to.fgives(f"of_l.{which}", to.gives(f"to_l_{mode}.{which}", value))
        found = to.fgives(f"fsgnj.{which}", there, value)
        limit = to.fgives(f"to.{which}", to.integer(WHOLE_FROM[width_of(sign.result)]))
        small = to.gives(f"flt.{which}", to.fgives(f"fsgnjx.{which}", value, value), limit)
        bits = chosen(to, small, to.gives(f"from.{which}", found), to.gives(f"from.{which}", value))
        return to.fgives(f"to.{which}", bits), False

    return rule


def _cast(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
    source, target = sign.operands[0], sign.result
    if isinstance(source, FloatType) and isinstance(target, FloatType):
        return to.fgives("fcvt_ds" if width_of(target) == 64 else "fcvt_sd", args[0].get()), False
    if isinstance(source, FloatType):
        size = "w" if word(target) else "l"
        return to.gives(f"to_{size}_zero.{precision(source)}", args[0].get()), False
    if isinstance(target, FloatType):
        size = ("w" if word(source) else "l") + ("" if is_signed(source) else "u")
        return to.fgives(f"of_{size}.{precision(target)}", args[0].get()), False
    shorter = not isinstance(source, BoolType) and width_of(target) <= width_of(source)
    return widened(to, source, args[0].get(loose=shorter), target), is_narrow(target)


def _bitcast(to: Emitter, args: Sequence[Scalar], sign: Signature) -> Found:
    source, target = sign.operands[0], sign.result
    if isinstance(source, FloatType):
        return to.gives(f"from.{precision(source)}", args[0].get()), False
    if isinstance(target, FloatType):
        return to.fgives(f"to.{precision(target)}", args[0].get()), False
    return to.gives("mv", args[0].get(True)), is_narrow(target)


RULES: Mapping[str, Rule] = {
    "integer.add": _two("add"), "integer.sub": _two("sub"), "integer.mul": _two("mul"),
    "integer.neg": _negative, "integer.abs": _absolute,
    "integer.min": _extreme("min"), "integer.max": _extreme("max"),
    "integer.div": _divided("div"), "integer.rem": _divided("rem"),
    "bits.and": _two("and", False), "bits.or": _two("or", False), "bits.xor": _two("xor", False),
    "bits.not": _inverse, "bits.shl": _shift("shl"), "bits.shr": _shift("shr"),
    **{f"floating.{verb}": _float(f"f{verb}") for verb in FLOAT_VERBS},
    **{f"floating.{verb}": _rounded(mode) for verb, mode in ROUNDINGS.items()},
    "floating.neg": _sign("fsgnjn"), "floating.abs": _sign("fsgnjx"), "floating.fma": _float("fmadd"),
    **{f"compare.{verb}": _compare(verb) for verb in ("eq", "ne", "lt", "le", "gt", "ge")},
    "control.select": _select, "convert.cast": _cast, "convert.bitcast": _bitcast,
}
"""By operation of the registry."""
