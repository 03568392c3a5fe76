"""Native operations on scalars as instructions.

What is narrower than 32 bits lives in an i32. It may be *loose*, with anything above its width: additions,
products and what masks bits need not care, and what compares, widens or shifts right extends it first.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kera_hw.legal.native import Signature
from kera_hw.types import BoolType, FloatType, IntType, Type
from kera_hw.wasm.code import Code, value_type


class Source(Protocol):
    """An operand: pushes itself, extended to its width or loose."""

    @property
    def type(self) -> Type: ...
    def push(self, loose: bool = False) -> None: ...


@dataclass(frozen=True, slots=True)
class Local:
    """A scalar in a local."""

    code: Code
    local: int
    type: Type
    loose: bool = False

    def push(self, loose: bool = False) -> None:
        self.code.get(self.local)
        if self.loose and not loose:
            extend(self.code, self.type)


def is_narrow(kind: Type) -> bool:
    return isinstance(kind, IntType) and kind.width_bits < 32


def extend(code: Code, kind: Type) -> None:
    """The value on the stack, extended from a narrow type's width to 32 bits."""
    assert isinstance(kind, IntType)
    if kind.signed:
        code.op(f"i32.extend{kind.width_bits}_s")
    else:
        code.number(kind.max)
        code.op("i32.and")


def prefix(kind: Type) -> str:
    return value_type(kind).name.lower()


def sign(kind: Type) -> str:
    return "s" if isinstance(kind, IntType) and kind.signed else "u"


Rule = Callable[[Code, Sequence[Source], Signature], bool]
"""Pushes the result; whether it is loose."""


def _plain(verb: str) -> Rule:
    """The instruction of that name in the operands' type."""

    def rule(code: Code, args: Sequence[Source], op: Signature) -> bool:
        for arg in args:
            arg.push()
        code.op(f"{prefix(op.operands[0])}.{verb}")
        return False

    return rule


def _modular(verb: str) -> Rule:
    """Where the result's low bits depend on the operands' low bits alone."""

    def rule(code: Code, args: Sequence[Source], op: Signature) -> bool:
        for arg in args:
            arg.push(loose=True)
        code.op(f"{prefix(op.result)}.{verb}")
        return is_narrow(op.result)

    return rule


def _signed(verb: str) -> Rule:
    """An instruction in two forms, by the operands' sign."""

    def rule(code: Code, args: Sequence[Source], op: Signature) -> bool:
        for arg in args:
            arg.push()
        code.op(f"{prefix(op.operands[0])}.{verb}_{sign(op.operands[0])}")
        return False

    return rule


def _negative(code: Code, args: Sequence[Source], op: Signature) -> bool:
    where = prefix(op.result)
    code.op(f"{where}.const", 0)
    args[0].push(loose=True)
    code.op(f"{where}.sub")
    return is_narrow(op.result)


def _absolute(code: Code, args: Sequence[Source], op: Signature) -> bool:
    where = prefix(op.result)
    code.op(f"{where}.const", 0)
    args[0].push()
    code.op(f"{where}.sub")
    args[0].push()
    args[0].push()
    code.op(f"{where}.const", 0)
    code.op(f"{where}.lt_s")
    code.op("select")
    return is_narrow(op.result)


def _extreme(comparison: str) -> Rule:
    def rule(code: Code, args: Sequence[Source], op: Signature) -> bool:
        for arg in (*args, *args):
            arg.push()
        code.op(f"{prefix(op.result)}.{comparison}_{sign(op.result)}")
        code.op("select")
        return False

    return rule


def _inverse(code: Code, args: Sequence[Source], op: Signature) -> bool:
    if isinstance(op.result, BoolType):
        args[0].push()
        code.op("i32.eqz")
        return False
    where = prefix(op.result)
    args[0].push(loose=True)
    code.op(f"{where}.const", (1 << int(where[1:])) - 1)
    code.op(f"{where}.xor")
    return is_narrow(op.result)


def _shift(verb: str) -> Rule:
    """By an amount below the width; of the value only a shift to the right looks above it."""

    def rule(code: Code, args: Sequence[Source], op: Signature) -> bool:
        left = verb == "shl"
        args[0].push(loose=left)
        args[1].push()
        code.op(f"{prefix(op.result)}.{verb}" + ("" if left else f"_{sign(op.result)}"))
        return left and is_narrow(op.result)

    return rule


def _compare(verb: str) -> Rule:
    def rule(code: Code, args: Sequence[Source], op: Signature) -> bool:
        kind = op.operands[0]
        for arg in args:
            arg.push()
        signless = verb in ("eq", "ne") or isinstance(kind, FloatType)
        code.op(f"{prefix(kind)}.{verb}" + ("" if signless else f"_{sign(kind)}"))
        return False

    return rule


def _select(code: Code, args: Sequence[Source], op: Signature) -> bool:
    condition, then, otherwise = args
    then.push(loose=True)
    otherwise.push(loose=True)
    condition.push()
    code.op("select")
    return is_narrow(op.result)


def _count(verb: str) -> Rule:
    """Of the bits of a 32- or 64-bit word, as a u32."""

    def rule(code: Code, args: Sequence[Source], op: Signature) -> bool:
        where = prefix(op.operands[0])
        args[0].push()
        code.op(f"{where}.{verb}")
        if where == "i64":
            code.op("i32.wrap_i64")
        return False

    return rule


def cast(code: Code, args: Sequence[Source], op: Signature) -> bool:
    """A conversion that keeps the number where the result can hold it."""
    source, target = op.operands[0], op.result
    before, after = prefix(source), prefix(target)
    if isinstance(source, FloatType) or isinstance(target, FloatType):
        args[0].push()
        if isinstance(source, FloatType) and isinstance(target, FloatType):
            code.op("f64.promote_f32" if after == "f64" else "f32.demote_f64")
        elif isinstance(target, FloatType):
            code.op(f"{after}.convert_{before}_{sign(source)}")
        else:
            code.op(f"{after}.trunc_sat_{before}_{sign(target)}")
        return False
    shorter = isinstance(source, IntType) and isinstance(target, IntType) and (
        target.width_bits <= source.width_bits
    )
    args[0].push(loose=shorter)
    if before != after:
        code.op("i32.wrap_i64" if after == "i32" else f"i64.extend_i32_{sign(source)}")
    return is_narrow(target)


def _bitcast(code: Code, args: Sequence[Source], op: Signature) -> bool:
    before, after = prefix(op.operands[0]), prefix(op.result)
    args[0].push(loose=True)
    if before != after:
        code.op(f"{after}.reinterpret_{before}")
    return is_narrow(op.result)


_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_FLOATING = (
    "add", "sub", "mul", "div", "neg", "abs", "sqrt", "floor", "ceil", "trunc", "min", "max", "copysign",
)

RULES: Mapping[str, Rule] = {
    **{f"integer.{verb}": _modular(verb) for verb in ("add", "sub", "mul")},
    "integer.neg": _negative, "integer.abs": _absolute,
    "integer.min": _extreme("lt"), "integer.max": _extreme("gt"),
    "integer.div": _signed("div"), "integer.rem": _signed("rem"),
    **{f"bits.{verb}": _modular(verb) for verb in ("and", "or", "xor")},
    "bits.not": _inverse, "bits.shl": _shift("shl"), "bits.shr": _shift("shr"),
    "bits.popcount": _count("popcnt"), "bits.clz": _count("clz"), "bits.ctz": _count("ctz"),
    "bits.rotl": _plain("rotl"), "bits.rotr": _plain("rotr"),
    **{f"floating.{verb}": _plain(verb) for verb in _FLOATING},
    "floating.round": _plain("nearest"),
    **{f"compare.{verb}": _compare(verb) for verb in _COMPARISONS},
    "control.select": _select, "convert.cast": cast, "convert.bitcast": _bitcast,
}
"""By operation of the registry."""
