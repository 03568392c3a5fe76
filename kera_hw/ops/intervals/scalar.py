"""Interval rules of scalar operations: arithmetic, bits, comparisons and conversions of integers."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from kera_hw.ops.intervals.interval import TRUTH, Interval, MaybeInterval, OpShape, Rule, type_interval
from kera_hw.types import FixType, Type, bit_width, element_type


def corners(function: Callable[[int, int], int]) -> Rule:
    """For functions monotone in each operand: the extremes lie at the corners."""

    def rule(args: Sequence[Interval], _: OpShape) -> Interval:
        a, b = args[0], args[1]
        values = [function(x, y) for x in a for y in b]
        return Interval(min(values), max(values))

    return rule


def saturating(function: Callable[[int, int], int]) -> Rule:
    """The same, clamped to the type."""
    exact = corners(function)

    def rule(args: Sequence[Interval], shape: OpShape) -> MaybeInterval:
        found = exact(args, shape)
        return None if found is None else _clamped(found, shape)

    return rule


def full_interval(kind: Type) -> Interval:
    """The interval of an integer type."""
    full = type_interval(kind)
    assert full is not None, f"{kind} has no integer range"
    return full


def _clamped(found: Interval, shape: OpShape) -> Interval:
    full = full_interval(shape.result)
    return Interval(*(max(full.low, min(full.high, x)) for x in found))


def _wrapped(found: Interval, shape: OpShape) -> Interval:
    """A range that wraps as a whole stays a range: 256..260 as u8 is 0..4."""
    full = full_interval(shape.result)
    modulus = full.high - full.low + 1
    turns = (found.low - full.low) // modulus
    return Interval(found.low - turns * modulus, found.high - turns * modulus)


def add(args: Sequence[Interval], _: OpShape) -> Interval:
    return Interval(args[0].low + args[1].low, args[0].high + args[1].high)


def sub(args: Sequence[Interval], _: OpShape) -> Interval:
    return Interval(args[0].low - args[1].high, args[0].high - args[1].low)


mul = corners(lambda a, b: a * b)


def truncated(a: int, b: int) -> int:
    """The quotient, truncated toward zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def div(args: Sequence[Interval], _: OpShape) -> MaybeInterval:
    a, b = args
    if b.low <= 0 <= b.high:
        return None  # division by zero gives all ones
    values = [truncated(x, y) for x in a for y in b]
    if a.low < 0 < a.high:
        values.append(0)
    return Interval(min(values), max(values))


def rem(args: Sequence[Interval], _: OpShape) -> MaybeInterval:
    a, b = args
    if b.low <= 0 <= b.high:
        # x % 0 is x, and any other remainder is no further from zero, on the same side.
        return Interval(min(a.low, 0), max(a.high, 0))
    most = max(abs(b.low), abs(b.high)) - 1
    if a.low >= 0 and a.high < min(abs(b.low), abs(b.high)):
        return a
    return Interval(max(a.low, -most) if a.low < 0 else 0, min(a.high, most) if a.high > 0 else 0)


def neg(args: Sequence[Interval], _: OpShape) -> Interval:
    return Interval(-args[0].high, -args[0].low)


def absolute(args: Sequence[Interval], _: OpShape) -> Interval:
    (a,) = args
    if a.low >= 0:
        return a
    return Interval(0 if a.high >= 0 else -a.high, max(a.high, -a.low))


def sign(args: Sequence[Interval], shape: OpShape) -> MaybeInterval:
    """One as a value of the format, or the nearest that it holds."""
    (a,) = args
    one = 1 << _fraction(element_type(shape.result))
    return _clamped(Interval(*(one * ((x > 0) - (x < 0)) for x in a)), shape)


def rotate(args: Sequence[Interval], shape: OpShape) -> MaybeInterval:
    """Bits go round: of all that is known of the value, whether it is 0 remains."""
    full, a = full_interval(shape.result), args[0]
    if a.low == a.high == 0:
        return a
    return Interval(1, full.high) if full.low == 0 and a.low > 0 else None


def bit_and(args: Sequence[Interval], _: OpShape) -> MaybeInterval:
    a, b = args
    if a.low >= 0 and b.low >= 0:
        return Interval(0, min(a.high, b.high))
    if a.low >= 0 or b.low >= 0:
        return Interval(0, a.high if a.low >= 0 else b.high)
    return None


def bit_or(args: Sequence[Interval], shape: OpShape) -> MaybeInterval:
    found = bit_xor(args, shape)
    return None if found is None else Interval(max(args[0].low, args[1].low), found.high)


def bit_xor(args: Sequence[Interval], _: OpShape) -> MaybeInterval:
    a, b = args
    if a.low < 0 or b.low < 0:
        return None
    return Interval(0, (1 << max(a.high.bit_length(), b.high.bit_length())) - 1)


def bit_not(args: Sequence[Interval], shape: OpShape) -> MaybeInterval:
    (a,) = args
    full = full_interval(shape.result)
    return Interval(full.high + full.low - a.high, full.high + full.low - a.low)


def shr(args: Sequence[Interval], shape: OpShape) -> Interval:
    a, s = args
    far = _width(shape)  # from there on only the sign is left
    values = [x >> min(k, far) for x in a for k in s]
    return Interval(min(values), max(values))


def shl(args: Sequence[Interval], shape: OpShape) -> MaybeInterval:
    a, s = args
    if s.high > _width(shape):
        return None
    values = [x << k for x in a for k in s]
    return Interval(min(values), max(values))


def _width(shape: OpShape) -> int:
    """Bits of an element of the first operand."""
    return bit_width(element_type(shape.arg_types[0]))


def clmul(args: Sequence[Interval], _: OpShape) -> Interval:
    """Degrees of polynomials add up."""
    a, b = args
    highest, least = ([end.bit_length() for end in ends] for ends in ((a.high, b.high), (a.low, b.low)))
    if not all(highest):
        return Interval(0, 0)
    low = 1 << sum(least) - 2 if all(least) else 0
    return Interval(low, (1 << sum(highest) - 1) - 1)


def popcount(args: Sequence[Interval], shape: OpShape) -> Interval:
    (a,) = args
    most = a.high.bit_length() if a.low >= 0 else _width(shape)
    return Interval(int(not a.low <= 0 <= a.high), most)


def clz(args: Sequence[Interval], shape: OpShape) -> Interval:
    (a,) = args
    width = _width(shape)
    if a.low >= 0:
        return Interval(width - a.high.bit_length(), width - a.low.bit_length())
    return Interval(0, 0 if a.high < 0 else width)


def ctz(args: Sequence[Interval], shape: OpShape) -> Interval:
    """The lowest bit set stands no higher than the highest one of the magnitude."""
    (a,) = args
    if a.low <= 0 <= a.high:
        return Interval(0, _width(shape))
    return Interval(0, max(abs(a.low), abs(a.high)).bit_length() - 1)


def extract(args: Sequence[Interval], shape: OpShape) -> MaybeInterval:
    """The bits above those taken are the same all over the interval, or anything can come."""
    (a,) = args
    high, low = shape.attrs["high"], shape.attrs["low"]
    if a.low >> (high + 1) != a.high >> (high + 1):
        return None
    above = (a.low >> (high + 1)) << (high + 1)
    return Interval((a.low - above) >> low, (a.high - above) >> low)


def test_bit(args: Sequence[Interval], shape: OpShape) -> Interval:
    (a,) = args
    index = shape.attrs["index"]
    return Interval(a.low >> index & 1, a.low >> index & 1) if a.low >> index == a.high >> index else TRUTH


def cat(args: Sequence[Interval], shape: OpShape) -> Interval:
    low = high = 0
    for part, kind in zip(args, shape.arg_types, strict=True):
        width = bit_width(element_type(kind))
        # Negative parts count as their bits: all of them together keep their order.
        turn = 1 << width if part.high < 0 else 0
        field = Interval(part.low + turn, part.high + turn)
        if field.low < 0:
            field = Interval(0, (1 << width) - 1)
        low, high = low << width | field.low, high << width | field.high
    return Interval(low, high)


def less(args: Sequence[Interval], _: OpShape) -> Interval:
    a, b = args
    return Interval(int(a.high < b.low), int(a.low < b.high))


def less_or_equal(args: Sequence[Interval], _: OpShape) -> Interval:
    a, b = args
    return Interval(int(a.high <= b.low), int(a.low <= b.high))


def equal(args: Sequence[Interval], _: OpShape) -> Interval:
    a, b = args
    return Interval(int(a.low == a.high == b.low == b.high), int(a.low <= b.high and b.low <= a.high))


def not_equal(args: Sequence[Interval], shape: OpShape) -> Interval:
    found = equal(args, shape)
    return Interval(1 - found.high, 1 - found.low)


def swapped(rule: Rule) -> Rule:
    """The rule of the operation with its operands exchanged."""
    return lambda args, shape: rule((args[1], args[0]), shape)


def cast(args: Sequence[Interval], shape: OpShape) -> MaybeInterval:
    target = element_type(shape.result)
    if type_interval(target) is None:
        return None  # to a float
    shift = _fraction(target) - _fraction(element_type(shape.arg_types[0]))
    return _wrapped(Interval(*(x << shift if shift >= 0 else x >> -shift for x in args[0])), shape)


def bitcast(args: Sequence[Interval], shape: OpShape) -> MaybeInterval:
    return None if type_interval(shape.result) is None else _wrapped(args[0], shape)


def round_to(args: Sequence[Interval], shape: OpShape) -> Interval:
    """Every mode is monotone and gives one of the two neighbours."""
    (a,) = args
    shift = _fraction(element_type(shape.result)) - _fraction(element_type(shape.arg_types[0]))
    if shift >= 0:
        exact = Interval(a.low << shift, a.high << shift)
    elif shape.attrs["mode"] == "floor":
        exact = Interval(a.low >> -shift, a.high >> -shift)
    else:
        exact = Interval(a.low >> -shift, -(-a.high >> -shift))
    return _clamped(exact, shape) if shape.attrs["overflow"] == "saturate" else _wrapped(exact, shape)


def _fraction(kind: Type) -> int:
    return kind.fraction_bits if isinstance(kind, FixType) else 0


def iota(_: Sequence[Interval], shape: OpShape) -> MaybeInterval:
    return Interval(0, max(0, shape.attrs["size"] - 1) << _fraction(element_type(shape.result)))


def select(args: Sequence[Interval], _: OpShape) -> Interval:
    condition, then, otherwise = args
    if condition.low == condition.high:
        return then if condition.low else otherwise
    return then.hull(otherwise)
