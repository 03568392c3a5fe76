"""Intervals of integers, and what each operation does to them: for index proofs and for narrowing.

A rule maps the operands' intervals to one that holds all exact results, or None for "anything of the type";
results that may wrap are anything of the type. Fixed-point values are their raw integers, bools 0 and 1; a
tensor has one interval for all its elements.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from kera_hw.types import BoolType, FixType, IntType, TensorType, Type, element_type, shape_of


class Interval(NamedTuple):
    """All integers from ``low`` to ``high``, both included; empty when ``low > high``."""

    low: int
    high: int

    def hull(self, other: Interval) -> Interval:
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def meet(self, other: Interval) -> Interval:
        return Interval(max(self.low, other.low), min(self.high, other.high))

    def within(self, other: Interval) -> bool:
        return other.low <= self.low and self.high <= other.high

    @property
    def empty(self) -> bool:
        return self.low > self.high

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low} to {self.high}"


MaybeInterval = Interval | None  # None: a float or token, which has no integer range

TRUTH = Interval(0, 1)


@lru_cache(maxsize=1024)
def type_interval(kind: Type) -> MaybeInterval:
    """The raw range of a type's elements; None for floats and tokens."""
    kind = element_type(kind)
    if isinstance(kind, BoolType):
        return TRUTH
    raw = kind.raw if isinstance(kind, FixType) else kind
    return Interval(raw.min, raw.max) if isinstance(raw, IntType) else None


def fitted(interval: MaybeInterval, kind: Type) -> MaybeInterval:
    """The interval after wrapping into the type: itself if it fits, else everything."""
    full = type_interval(kind)
    if full is None or interval is None or not interval.within(full):
        return full
    return interval


@dataclass(frozen=True, slots=True)
class OpShape:
    """What a rule may ask about the operation beside its operands' intervals."""

    arg_types: tuple[Type, ...]
    result: Type
    attrs: Mapping[str, Any]


Rule = Callable[[Sequence[Interval], OpShape], MaybeInterval]


def apply_rule(name: str, args: Sequence[MaybeInterval], shape: OpShape) -> MaybeInterval:
    """The interval of a one-result operation; its type's range where no rule is known."""
    if name.startswith("compare."):
        return TRUTH
    rule = RULES.get(name)
    known = [arg for arg in args if arg is not None]
    if rule is None or len(known) != len(args):
        return type_interval(shape.result)
    if any(arg.empty for arg in known):
        return type_interval(shape.result)
    return fitted(rule(known, shape), shape.result)


def _corners(function: Callable[[int, int], int]) -> Rule:
    """For functions monotone in each operand: the extremes lie at the corners."""

    def rule(args: Sequence[Interval], _: OpShape) -> Interval:
        a, b = args[0], args[1]
        values = [function(x, y) for x in a for y in b]
        return Interval(min(values), max(values))

    return rule


def _saturating(function: Callable[[int, int], int]) -> Rule:
    exact = _corners(function)

    def rule(args: Sequence[Interval], shape: OpShape) -> MaybeInterval:
        full, found = type_interval(shape.result), exact(args, shape)
        if full is None or found is None:
            return None
        return Interval(*(max(full.low, min(full.high, x)) for x in found))

    return rule


def _div(args: Sequence[Interval], _: OpShape) -> MaybeInterval:
    a, b = args
    if b.low <= 0 <= b.high:
        return None  # division by zero gives all ones
    values = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x in a for y in b]
    if a.low < 0 < a.high:
        values.append(0)
    return Interval(min(values), max(values))


def _rem(args: Sequence[Interval], _: OpShape) -> MaybeInterval:
    a, b = args
    if b.low <= 0 <= b.high:
        # x % 0 is x, and any other remainder is no further from zero, on the same side.
        return Interval(min(a.low, 0), max(a.high, 0))
    most = max(abs(b.low), abs(b.high)) - 1
    if a.low >= 0 and a.high < min(abs(b.low), abs(b.high)):
        return a
    return Interval(max(a.low, -most) if a.low < 0 else 0, min(a.high, most) if a.high > 0 else 0)


def _and(args: Sequence[Interval], _: OpShape) -> MaybeInterval:
    a, b = args
    if a.low >= 0 and b.low >= 0:
        return Interval(0, min(a.high, b.high))
    if a.low >= 0 or b.low >= 0:
        return Interval(0, a.high if a.low >= 0 else b.high)
    return None


def _or(args: Sequence[Interval], shape: OpShape) -> MaybeInterval:
    found = _xor(args, shape)
    return None if found is None else Interval(max(args[0].low, args[1].low), found.high)


def _xor(args: Sequence[Interval], _: OpShape) -> MaybeInterval:
    a, b = args
    if a.low < 0 or b.low < 0:
        return None
    return Interval(0, (1 << max(a.high.bit_length(), b.high.bit_length())) - 1)


def _not(args: Sequence[Interval], shape: OpShape) -> MaybeInterval:
    (a,) = args
    full = type_interval(shape.result)
    assert full is not None
    return Interval(full.high + full.low - a.high, full.high + full.low - a.low)


def _shr(args: Sequence[Interval], _: OpShape) -> Interval:
    a, s = args
    values = [x >> min(k, 64) for x in a for k in s]
    return Interval(min(values), max(values))


def _shl(args: Sequence[Interval], _: OpShape) -> MaybeInterval:
    a, s = args
    if s.high > 64:
        return None
    values = [x << k for x in a for k in s]
    return Interval(min(values), max(values))


def _abs(args: Sequence[Interval], _: OpShape) -> Interval:
    (a,) = args
    if a.low >= 0:
        return a
    return Interval(0 if a.high >= 0 else -a.high, max(a.high, -a.low))


def _sign(args: Sequence[Interval], shape: OpShape) -> MaybeInterval:
    (a,) = args
    if isinstance(element_type(shape.result), FixType):
        return None  # 1 is not 1 as a raw integer
    return Interval(max(-1, min(1, a.low)), max(-1, min(1, a.high)))


def _cast(args: Sequence[Interval], shape: OpShape) -> MaybeInterval:
    (a,) = args
    source, target = element_type(shape.arg_types[0]), element_type(shape.result)
    shift = _fraction(target) - _fraction(source)
    scaled = Interval(*(x << shift if shift >= 0 else x >> -shift for x in a))
    full = type_interval(target)
    if full is None:
        return None  # to a float
    modulus = full.high - full.low + 1
    # A range that wraps as a whole stays a range: 256..260 as u8 is 0..4.
    turns = (scaled.low - full.low) // modulus
    return Interval(scaled.low - turns * modulus, scaled.high - turns * modulus)


def _fraction(kind: Type) -> int:
    return kind.fraction_bits if isinstance(kind, FixType) else 0


def _extract(args: Sequence[Interval], shape: OpShape) -> MaybeInterval:
    (a,) = args
    high, low = shape.attrs["high"], shape.attrs["low"]
    if a.low < 0 or (a.high >> low) >= 1 << (high - low + 1):
        return None
    return Interval(a.low >> low, a.high >> low)


def _iota(args: Sequence[Interval], shape: OpShape) -> Interval:
    return Interval(0, max(0, shape.attrs["size"] - 1) << _fraction(element_type(shape.result)))


def _width(shape: OpShape) -> int:
    source = type_interval(shape.arg_types[0])
    assert source is not None
    return (source.high - source.low).bit_length()


def _popcount(args: Sequence[Interval], shape: OpShape) -> Interval:
    (a,) = args
    most = a.high.bit_length() if a.low >= 0 else _width(shape)
    return Interval(int(not a.low <= 0 <= a.high), most)


def _clz(args: Sequence[Interval], shape: OpShape) -> Interval:
    (a,) = args
    width = _width(shape)
    if a.low >= 0:
        return Interval(width - a.high.bit_length(), width - a.low.bit_length())
    return Interval(0, 0 if a.high < 0 else width)


def _ctz(args: Sequence[Interval], shape: OpShape) -> Interval:
    """The lowest bit set stands no higher than the highest one of the magnitude."""
    (a,) = args
    if a.low <= 0 <= a.high:
        return Interval(0, _width(shape))
    return Interval(0, max(abs(a.low), abs(a.high)).bit_length() - 1)


def _axis_extent(shape: OpShape) -> int:
    """How many elements a reduction takes together; axis -1 is all of them."""
    kind, axis = shape.arg_types[0], int(shape.attrs["axis"])
    assert isinstance(kind, TensorType)
    return kind.size if axis < 0 else kind.shape[axis]


def _position(args: Sequence[Interval], shape: OpShape) -> Interval:
    return Interval(0, max(0, _axis_extent(shape) - 1))


def _sum(args: Sequence[Interval], shape: OpShape) -> Interval:
    count = _axis_extent(shape)
    return Interval(args[0].low * count, args[0].high * count)


def _keep(args: Sequence[Interval], _: OpShape) -> Interval:
    return args[0]


def _element(args: Sequence[Interval], shape: OpShape) -> MaybeInterval:
    """An element of the first operand, or the zero that an empty tensor gives."""
    return None if 0 in shape_of(shape.arg_types[0]) else args[0]


def _hull(args: Sequence[Interval], _: OpShape) -> MaybeInterval:
    if not args:
        return None
    return Interval(min(a.low for a in args), max(a.high for a in args))


_ARITHMETIC: dict[str, Rule] = {
    "add": _corners(lambda a, b: a + b),
    "sub": _corners(lambda a, b: a - b),
    "mul": _corners(lambda a, b: a * b),
    "min": _corners(min),
    "max": _corners(max),
    "abs": _abs,
    "neg": lambda args, _: Interval(-args[0].high, -args[0].low),
    "sign": _sign,
    "saturating_add": _saturating(lambda a, b: a + b),
    "saturating_sub": _saturating(lambda a, b: a - b),
}

RULES: dict[str, Rule] = {
    **{f"integer.{verb}": rule for verb, rule in _ARITHMETIC.items()},
    **{f"fixed.{verb}": rule for verb, rule in _ARITHMETIC.items()},
    "fixed.mul": _ARITHMETIC["mul"],
    "integer.div": _div,
    "integer.rem": _rem,
    "integer.mul_wide": _ARITHMETIC["mul"],
    "integer.saturating_mul": _saturating(lambda a, b: a * b),
    "bits.and": _and,
    "bits.or": _or,
    "bits.xor": _xor,
    "bits.not": _not,
    "bits.shl": _shl,
    "bits.shr": _shr,
    "bits.extract": _extract,
    "bits.popcount": _popcount,
    "bits.clz": _clz,
    "bits.ctz": _ctz,
    "convert.cast": _cast,
    "control.select": lambda args, _: args[1].hull(args[2]),
    "tensor.iota": _iota,
    "tensor.index": _element,
    "tensor.slice": _keep,
    "tensor.reshape": _keep,
    "tensor.permute": _keep,
    "tensor.broadcast": _keep,
    "tensor.reverse": _keep,
    "tensor.gather": _element,
    "tensor.concat": _hull,
    "tensor.stack": _hull,
    "tensor.pad": _hull,
    "tensor.shift_in": _hull,
    "tensor.update": lambda args, _: args[0].hull(args[1]),
    "tensor.update_slice": lambda args, _: args[0].hull(args[1]),
    "reduce.min": _keep,
    "reduce.max": _keep,
    "reduce.sum": _sum,
    "reduce.argmin": _position,
    "reduce.argmax": _position,
}
