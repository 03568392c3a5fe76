"""Comparisons, minimum and maximum: one carry chain over the magnitudes serves both signs."""
from __future__ import annotations

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats import order
from kera_hw.rtl.lower.floats.fields import Fields, unpack
from kera_hw.rtl.lower.floats.units import Unit
from kera_hw.rtl.lower.floats.wires import Wires
from kera_hw.types import FloatType


def _precedes(wires: Wires, x: Fields, y: Fields) -> Ref:
    """``x < y`` where both are numbers of one sign, or x is negative and y is not.

    For two negatives the order turns, but equal magnitudes must stay "not less": the sign stands below the
    lowest bit of y's magnitude, so that equal negatives compare as less and are turned to not less.
    """
    chain = wires.less(wires.cat(x.magnitude, wires.flag(False)), wires.cat(y.magnitude, x.sign))
    return wires.select(wires.differ(x.sign, y.sign), x.sign, wires.differ(chain, x.sign))


def _unordered(x: Fields, y: Fields) -> Ref:
    return x.wires.either(x.is_nan, y.is_nan)


def _both_zero(x: Fields, y: Fields) -> Ref:
    return x.wires.both(x.is_zero, y.is_zero)


def _in_one_chain(builder: Builder, a: Ref, b: Ref) -> bool:
    """Whether carry cells hold the logic that one chain for everything needs; with a constant, less does."""
    return builder.carry_logic and builder.value(a) is None and builder.value(b) is None


def lower_lt(builder: Builder, kind: FloatType, a: Ref, b: Ref) -> Ref:
    """``a < b``; false with a NaN; zeros are equal."""
    if _in_one_chain(builder, a, b):
        return order.relation(builder, kind, a, b, or_equal=False)
    x, y = unpack(builder, kind, a), unpack(builder, kind, b)
    wires = x.wires
    return wires.unless(_precedes(wires, x, y), wires.either(_unordered(x, y), _both_zero(x, y)))


def lower_le(builder: Builder, kind: FloatType, a: Ref, b: Ref) -> Ref:
    """``a <= b``: not ``b < a``, unless a NaN takes part."""
    if _in_one_chain(builder, a, b):
        return order.relation(builder, kind, a, b, or_equal=True)
    x, y = unpack(builder, kind, a), unpack(builder, kind, b)
    wires = x.wires
    above = wires.unless(_precedes(wires, y, x), _both_zero(x, y))
    return wires.unless(wires.invert(above), _unordered(x, y))


def lower_gt(builder: Builder, kind: FloatType, a: Ref, b: Ref) -> Ref:
    return lower_lt(builder, kind, b, a)


def lower_ge(builder: Builder, kind: FloatType, a: Ref, b: Ref) -> Ref:
    return lower_le(builder, kind, b, a)


def lower_eq(builder: Builder, kind: FloatType, a: Ref, b: Ref) -> Ref:
    """``a == b``: equal bits that are no NaN, or zeros of either sign."""
    x, y = unpack(builder, kind, a), unpack(builder, kind, b)
    wires = x.wires
    same = builder.op("compare.eq", x.magnitude, y.magnitude)
    signs = wires.either(wires.invert(wires.differ(x.sign, y.sign)), x.is_zero)
    return wires.unless(wires.both(same, signs), x.is_nan)


def lower_ne(builder: Builder, kind: FloatType, a: Ref, b: Ref) -> Ref:
    return builder.op("bits.not", lower_eq(builder, kind, a, b))


def _extreme(builder: Builder, kind: FloatType, a: Ref, b: Ref, least: bool) -> Ref:
    """IEEE 754-2019 minimum or maximum: NaN if either is, -0 below +0."""
    x, y = unpack(builder, kind, a), unpack(builder, kind, b)
    wires = x.wires
    first = _precedes(wires, x, y)
    chosen = wires.select(first, a, b) if least else wires.select(first, b, a)
    return wires.select(_unordered(x, y), wires.const(kind.canonical_nan, kind.width_bits), chosen)


def lower_min(builder: Builder, kind: FloatType, a: Ref, b: Ref) -> Ref:
    return _extreme(builder, kind, a, b, True)


def lower_max(builder: Builder, kind: FloatType, a: Ref, b: Ref) -> Ref:
    return _extreme(builder, kind, a, b, False)


UNITS = {
    "compare.eq": Unit(lower_eq),
    "compare.ne": Unit(lower_ne),
    "compare.lt": Unit(lower_lt),
    "compare.le": Unit(lower_le),
    "compare.gt": Unit(lower_gt),
    "compare.ge": Unit(lower_ge),
    "floating.min": Unit(lower_min),
    "floating.max": Unit(lower_max),
}
