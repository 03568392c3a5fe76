"""Native operations on scalars as instructions.

What is narrower than 32 bits lives in a 32-bit register. It may be *loose*, with anything above its width:
additions, products and what masks bits need not care, and what compares, widens or shifts right extends it
first. A bool is a predicate.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kera_hw.cpu_gpu.gpu.writer import Held
from kera_hw.cpu_gpu.ptx.code import Code, float_text, register_type
from kera_hw.cpu_gpu.ptx.table import width_bits
from kera_hw.legal.native import Signature
from kera_hw.loops.program import Literal
from kera_hw.types import BoolType, FloatType, IntType, Type


@dataclass(frozen=True, slots=True)
class Source:
    """An operand: a register or a constant."""

    code: Code
    type: Type
    held: Held[str] | Literal

    def read(self, loose: bool = False) -> str:
        """As it is written in an instruction: extended to 32 bits, unless it may be loose."""
        if isinstance(self.held, Literal):
            return literal(self.code, self.held)
        if self.held.loose and not loose:
            return extended(self.code, self.held.register, self.type)
        return self.held.register

    def register(self) -> str:
        """The same in a register, which some operands have to be."""
        text = self.read()
        kind = register_type(self.type)
        return text if isinstance(self.held, Held) or kind == "pred" else self.code.give(f"mov.{kind}", text)


def literal(code: Code, constant: Literal) -> str:
    """There are no constant predicates, so that one is computed."""
    kind, bits = constant.type, constant.bits
    if isinstance(kind, FloatType):
        return float_text(bits, kind.width_bits)
    if isinstance(kind, BoolType):
        return code.give("setp.ne.u32", code.give("mov.u32", str(bits)), "0")
    assert isinstance(kind, IntType)
    return str(kind.wrap(bits))


def is_narrow(kind: Type) -> bool:
    return isinstance(kind, IntType) and kind.width_bits < 32


def typed(kind: Type) -> str:
    """The type that instructions have: that of the register, with a sign."""
    if isinstance(kind, IntType):
        return f"{'s' if kind.signed else 'u'}{max(kind.width_bits, 32)}"
    return register_type(kind)


def extended(code: Code, register: str, kind: Type) -> str:
    """From a narrow type's width to 32 bits."""
    assert isinstance(kind, IntType)
    if kind.signed:
        return code.give(f"cvt.s32.s{kind.width_bits}", register)
    return code.give("and.b32", register, str(kind.max))


Rule = Callable[[Code, Sequence[Source], Signature], Held[str]]
"""Writes an operation, and says where the result is."""


def _plain(verb: str, reverse: bool = False) -> Rule:
    """One instruction in the operands' type."""

    def rule(code: Code, args: Sequence[Source], op: Signature) -> Held[str]:
        operands = [arg.read() for arg in (reversed(args) if reverse else args)]
        return Held(code.give(f"{verb}.{typed(op.operands[0])}", *operands))

    return rule


def _modular(verb: str) -> Rule:
    """Where the result's low bits depend on the operands' low bits alone."""

    def rule(code: Code, args: Sequence[Source], op: Signature) -> Held[str]:
        operands = [arg.read(loose=True) for arg in args]
        return Held(code.give(f"{verb}.{typed(op.result)}", *operands), is_narrow(op.result))

    return rule


def _logic(verb: str) -> Rule:
    def rule(code: Code, args: Sequence[Source], op: Signature) -> Held[str]:
        operands = [arg.read(loose=True) for arg in args]
        return Held(code.give(f"{verb}.{register_type(op.result)}", *operands), is_narrow(op.result))

    return rule


def _negative(code: Code, args: Sequence[Source], op: Signature) -> Held[str]:
    """The manual has `neg` for signed types; modulo 2^W it is the same for others."""
    width = width_bits(typed(op.result))
    return Held(code.give(f"neg.s{width}", args[0].read(loose=True)), is_narrow(op.result))


def _absolute(code: Code, args: Sequence[Source], op: Signature) -> Held[str]:
    """The greater of x and -x, which is the least for the least; of `abs` the manual does not say."""
    value, kind = args[0].read(), typed(op.result)
    return Held(code.give(f"max.{kind}", value, code.give(f"neg.{kind}", value)), is_narrow(op.result))


def _shift(verb: str) -> Rule:
    """By an amount below the width. Amounts are 32 bits wide for every type."""

    def rule(code: Code, args: Sequence[Source], op: Signature) -> Held[str]:
        left = verb == "shl"
        value = args[0].read(loose=left)
        kind = register_type(op.result) if left else typed(op.result)
        return Held(code.give(f"{verb}.{kind}", value, _amount(code, args[1])), left and is_narrow(op.result))

    return rule


def _amount(code: Code, source: Source) -> str:
    if isinstance(source.held, Literal):
        return str(source.held.bits & 63)
    text = source.read()
    return code.give("cvt.u32.u64", text) if register_type(source.type) == "b64" else text


def _compare(verb: str) -> Rule:
    """Quiet; a NaN is different from all, which the manual calls `neu`."""

    def rule(code: Code, args: Sequence[Source], op: Signature) -> Held[str]:
        kind = op.operands[0]
        cmp = "neu" if verb == "ne" and isinstance(kind, FloatType) else verb
        return Held(code.give(f"setp.{cmp}.{typed(kind)}", *(arg.read() for arg in args)))

    return rule


def _select(code: Code, args: Sequence[Source], op: Signature) -> Held[str]:
    condition, then, otherwise = args
    chosen = condition.read()
    if isinstance(op.result, BoolType):
        if_so = code.give("and.pred", chosen, then.read())
        if_not = code.give("and.pred", code.give("not.pred", chosen), otherwise.read())
        return Held(code.give("or.pred", if_so, if_not))
    operands = then.read(loose=True), otherwise.read(loose=True), chosen
    return Held(code.give(f"selp.{register_type(op.result)}", *operands), is_narrow(op.result))


def _extreme(verb: str) -> Rule:
    """Of floats: the instruction takes the number where one is a NaN, so that it is put in place after."""

    def rule(code: Code, args: Sequence[Source], op: Signature) -> Held[str]:
        kind = op.result
        a, b = (arg.read() for arg in args)
        found = code.give(f"{verb}.{typed(kind)}", a, b)
        if not isinstance(kind, FloatType):
            return Held(found)
        unordered = code.give(f"setp.nan.{typed(kind)}", a, b)
        nan = float_text(kind.canonical_nan, kind.width_bits)
        return Held(code.give(f"selp.{typed(kind)}", nan, found, unordered))

    return rule


def _count(verb: str) -> Rule:
    """Of the bits of a 32- or 64-bit word, as a u32; trailing zeros are leading ones of the mirror image."""

    def rule(code: Code, args: Sequence[Source], op: Signature) -> Held[str]:
        kind, value = register_type(op.operands[0]), args[0].read()
        if verb == "ctz":
            value = code.give(f"brev.{kind}", value)
        return Held(code.give(f"{'popc' if verb == 'popcount' else 'clz'}.{kind}", value))

    return rule


def _rotate(direction: str) -> Rule:
    """In one funnel shift; 64 bits by two shifts, of which one by 64 gives 0."""

    def rule(code: Code, args: Sequence[Source], op: Signature) -> Held[str]:
        value, amount = args[0].read(), args[1]
        if register_type(op.result) == "b32":
            return Held(code.give(f"shf.{direction}.wrap.b32", value, value, amount.read()))
        near = code.give("and.b32", _amount(code, amount), "63")
        far = code.give("sub.s32", "64", near)
        left, right = (near, far) if direction == "l" else (far, near)
        parts = code.give("shl.b64", value, left), code.give("shr.u64", value, right)
        return Held(code.give("or.b64", *parts))

    return rule


def _cast(code: Code, args: Sequence[Source], op: Signature) -> Held[str]:
    """A conversion that keeps the number where the result can hold it; floats saturate, and a NaN gives 0."""
    source, target = op.operands[0], op.result
    before, after = typed(source), typed(target)
    if isinstance(source, BoolType):
        return Held(code.give(f"selp.{register_type(target)}", "1", "0", args[0].read()))
    if isinstance(source, FloatType):
        value = args[0].read()
        if isinstance(target, FloatType):
            return Held(code.give("cvt.f64.f32" if after == "f64" else "cvt.rn.f32.f64", value))
        found = code.give(f"cvt.rzi.{after}.{before}", value)
        if before == "f32" and width_bits(after) == 32:
            return Held(found)
        nan = code.give(f"setp.nan.{before}", value, value)  # the manual has MIN or 2^63 for these
        return Held(code.give(f"selp.b{width_bits(after)}", "0", found, nan))
    if isinstance(target, FloatType):
        return Held(code.give(f"cvt.rn.{after}.{before}", args[0].read()))
    assert isinstance(source, IntType) and isinstance(target, IntType)
    value = args[0].read(loose=target.width_bits <= source.width_bits)
    held = args[0].held
    if isinstance(held, Literal):
        number = target.wrap(source.wrap(held.bits))
        return Held(code.give(f"mov.{register_type(target)}", str(number)))
    if width_bits(after) > width_bits(before):
        value = code.give(f"cvt.{before[0]}64.{before}", value)  # extended by the sign of what it was
    elif width_bits(after) < width_bits(before):
        value = code.give("cvt.u32.u64", value)
    return Held(value, is_narrow(target))


def _bitcast(code: Code, args: Sequence[Source], op: Signature) -> Held[str]:
    before, after = register_type(op.operands[0]), register_type(op.result)
    held = args[0].held
    if isinstance(held, Literal):
        text = literal(code, Literal(op.result, held.bits))
        return Held(code.give(f"mov.{after}", text))
    if before == after:
        return Held(held.register, is_narrow(op.result))
    result = code.new(after)
    code.op(f"mov.b{width_bits(after)}", result, held.register)
    return Held(result)


_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_ROUNDINGS = {"floor": "rmi", "ceil": "rpi", "round": "rni", "trunc": "rzi"}


def _integral(rounding: str) -> Rule:
    def rule(code: Code, args: Sequence[Source], op: Signature) -> Held[str]:
        kind = typed(op.result)
        return Held(code.give(f"cvt.{rounding}.{kind}.{kind}", args[0].read()))

    return rule


RULES: Mapping[str, Rule] = {
    **{f"integer.{verb}": _modular(verb) for verb in ("add", "sub")},
    "integer.mul": _modular("mul.lo"), "integer.neg": _negative, "integer.abs": _absolute,
    "integer.min": _extreme("min"), "integer.max": _extreme("max"),
    "integer.div": _plain("div"), "integer.rem": _plain("rem"),
    **{f"bits.{verb}": _logic(verb) for verb in ("and", "or", "xor", "not")},
    "bits.shl": _shift("shl"), "bits.shr": _shift("shr"),
    "bits.popcount": _count("popcount"), "bits.clz": _count("clz"), "bits.ctz": _count("ctz"),
    "bits.rotl": _rotate("l"), "bits.rotr": _rotate("r"),
    **{f"floating.{verb}": _plain(f"{verb}.rn") for verb in ("add", "sub", "mul", "div", "fma", "sqrt")},
    "floating.neg": _plain("neg"), "floating.abs": _plain("abs"),
    "floating.copysign": _plain("copysign", reverse=True),  # the manual has the sign first
    "floating.min": _extreme("min"), "floating.max": _extreme("max"),
    **{f"floating.{verb}": _integral(rounding) for verb, rounding in _ROUNDINGS.items()},
    **{f"compare.{verb}": _compare(verb) for verb in _COMPARISONS},
    "control.select": _select, "convert.cast": _cast, "convert.bitcast": _bitcast,
}
"""By operation of the registry."""
