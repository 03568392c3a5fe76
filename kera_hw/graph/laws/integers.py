"""Laws of integers, fixed point and bools that hold for every value, or for those that ranges leave."""
from __future__ import annotations

from kera_hw.graph.laws.terms import Attrs, Condition, Known, Law, Literal, Made, Match, Op, Var, laws
from kera_hw.ops.intervals import raw_interval, type_interval
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Trait
from kera_hw.types import BoolType, FixType, FloatType, IntType, Type, bit_width, element_type

X, Y, C = Var("x"), Var("y"), Var("c")
K = Known("k")


def _one(kind: Type) -> int | None:
    return 1 if raw_interval(kind).high >= 1 else None  # i1 has none: its only other value is -1


def _ones(kind: Type) -> int:
    """The raw integer with every bit set."""
    raw = kind.raw if isinstance(kind, FixType) else kind
    return -1 if isinstance(raw, IntType) and raw.signed else raw_interval(kind).high


ZERO = Literal("0", lambda kind: 0)
ONE = Literal("1", _one)
ONES = Literal("~0", _ones)
FALSE, TRUE = Literal("false", lambda kind: 0), Literal("true", lambda kind: 1)


# Conditions


def no_float(name: str) -> Condition:
    """The value is no float, for which x = x may be false."""
    return lambda m: not isinstance(m.element(name), FloatType)


def is_bool(name: str) -> Condition:
    return lambda m: isinstance(m.element(name), BoolType)


def not_negative(name: str) -> Condition:
    def holds(m: Match) -> bool:
        found = m.range(name)
        return found is not None and found.low >= 0

    return holds


def not_above(low: str, high: str) -> Condition:
    """No value of the one is above any of the other."""

    def holds(m: Match) -> bool:
        a, b = m.range(low), m.range(high)
        return a is not None and b is not None and a.high <= b.low

    return holds


def below(low: str, high: str) -> Condition:
    """Every value of the one is below all of the other."""

    def holds(m: Match) -> bool:
        a, b = m.range(low), m.range(high)
        return a is not None and b is not None and a.high < b.low

    return holds


def power_of_two(name: str) -> Condition:
    """A constant 2, 4, 8, ..."""

    def holds(m: Match) -> bool:
        value = m.value(name)
        return value > 1 and not value & (value - 1)

    return holds


def _covers(m: Match) -> bool:
    """The mask k keeps every bit that x, which is not negative, can have."""
    found, mask = m.range("x"), m.value("k")
    if found is None or found.low < 0:
        return False
    reach = (1 << found.high.bit_length()) - 1
    return mask & reach == reach


def _beyond(m: Match) -> bool:
    return m.value("k") >= bit_width(m.element("x"))


def _full_turns(m: Match) -> bool:
    return m.value("k") % bit_width(m.element("x")) == 0


# What is made


def exponent(name: str) -> Made:
    """log2 of a constant, as an amount to shift by."""

    def log2(m: Match) -> int:
        return m.value(name).bit_length() - 1

    return Made(lambda m: IntType.holding(0, log2(m)), log2)


def predecessor(name: str) -> Made:
    """A constant less one, in its scalar type."""
    return Made(lambda m: m.element(name), lambda m: m.value(name) - 1)


_INVOLUTIONS = " ".join(name for name, spec in OPS.items() if Trait.INVOLUTION in spec.traits)
_IDEMPOTENT = " ".join(name for name, spec in OPS.items() if Trait.IDEMPOTENT in spec.traits)
_COMMUTATIVE = [name for name, spec in OPS.items() if Trait.COMMUTATIVE in spec.traits]


def _one_constant(m: Match) -> bool:
    return m.view.value(m["x"]) is None and m["x"].type == m["k"].type


TRAITS: tuple[Law, ...] = (
    *(Law(name, (Op(name, (X,), same_attrs=True),), X) for name in _INVOLUTIONS.split()),
    *laws(_IDEMPOTENT, (X, X), X),
)

ARITHMETIC: tuple[Law, ...] = (
    *laws("integer.add integer.sub integer.saturating_add integer.saturating_sub", (X, ZERO), X),
    *laws("fixed.add fixed.sub fixed.saturating_add fixed.saturating_sub", (X, ZERO), X),
    *laws("integer.sub fixed.sub", (X, X), ZERO),
    *laws("integer.mul integer.saturating_mul", (X, ZERO), ZERO),
    *laws("integer.mul integer.saturating_mul integer.div", (X, ONE), X),
    *laws("integer.mul", (X, K), Op("bits.shl", (X, exponent("k"))), power_of_two("k")),
    *laws("integer.div", (X, K), Op("bits.shr", (X, exponent("k"))), power_of_two("k"), not_negative("x")),
    *laws("integer.rem", (X, K), Op("bits.and", (X, predecessor("k"))),
          power_of_two("k"), not_negative("x")),
    *laws("integer.rem", (X, Y), X, not_negative("x"), below("x", "y")),
    *laws("integer.abs fixed.abs", (X,), X, not_negative("x")),
    *laws("integer.min fixed.min", (X, Y), X, not_above("x", "y")),
    *laws("integer.max fixed.max", (X, Y), Y, not_above("x", "y")),
)

BITS: tuple[Law, ...] = (
    *laws("bits.or bits.xor", (X, ZERO), X),
    *laws("bits.and", (X, ONES), X),
    *laws("bits.and", (X, K), X, _covers),
    *laws("bits.and", (X, ZERO), ZERO),
    *laws("bits.or", (X, ONES), ONES),
    *laws("bits.xor", (X, X), ZERO),
    *laws("bits.shl bits.shr bits.rotl bits.rotr", (X, ZERO), X),
    *laws("bits.shl bits.shr bits.rotl bits.rotr", (ZERO, Y), ZERO),
    *laws("bits.shl", (X, K), ZERO, _beyond),
    *laws("bits.rotl bits.rotr", (X, K), X, _full_turns),
)

COMPARISONS: tuple[Law, ...] = (
    *laws("compare.eq compare.le compare.ge", (X, X), TRUE, no_float("x")),
    *laws("compare.ne compare.lt compare.gt", (X, X), FALSE, no_float("x")),
    *laws("compare.eq", (X, TRUE), X, is_bool("x")),
    *laws("compare.eq", (X, FALSE), Op("bits.not", (X,)), is_bool("x")),
)

CHOICES: tuple[Law, ...] = (
    *laws("control.select", (TRUE, X, Y), X),
    *laws("control.select", (FALSE, X, Y), Y),
    *laws("control.select", (C, X, X), X),
    *laws("control.select", (Op("bits.not", (C,)), X, Y), Op("control.select", (C, Y, X))),
)


def _same_type(m: Match) -> bool:
    return m["x"].type == m.type


def _through_enough(m: Match) -> bool:
    """The first conversion keeps the value, or all the bits that the second one leaves."""
    kinds = (m.element("x"), m.element("through"), element_type(m.type))
    if not all(isinstance(kind, IntType) for kind in kinds):
        return False
    found, middle = m.range("x"), type_interval(kinds[1])
    assert found is not None and middle is not None
    return found.within(middle) or bit_width(kinds[2]) <= bit_width(kinds[1])


def _no_float(m: Match) -> bool:
    """A NaN would become the canonical one on the way."""
    kinds = (m.element("x"), m.element("through"), element_type(m.type))
    return not any(isinstance(kind, FloatType) for kind in kinds)


CONVERSIONS: tuple[Law, ...] = (
    *laws("convert.cast convert.bitcast", (X,), X, _same_type),
    *laws("convert.cast", (Op("convert.cast", (X,), name="through"),), Op("convert.cast", (X,)),
          _through_enough),
    *laws("convert.bitcast", (Op("convert.bitcast", (X,), name="through"),), Op("convert.bitcast", (X,)),
          _no_float),
)

ORDER: tuple[Law, ...] = tuple(Law(name, (K, X), Op(name, (X, K)), (_one_constant,)) for name in _COMMUTATIVE)
"""A constant stands on the right."""

INTEGERS: tuple[Law, ...] = (*TRAITS, *ARITHMETIC, *BITS, *COMPARISONS, *CHOICES, *CONVERSIONS)


# On the way to cells there are fewer kinds of operations, and a select of bools is logic.

_NEGATIVE = Op("compare.lt", (X, Made(lambda m: m.element("x"), lambda m: 0)))
_BIAS = Op("control.select", (_NEGATIVE, predecessor("k"), Made(lambda m: m.element("x"), lambda m: 0)))

CIRCUITS: tuple[Law, ...] = (
    *laws("integer.div", (X, K), Op("bits.shr", (Op("integer.add", (X, _BIAS)), exponent("k"))),
          power_of_two("k")),
    *laws("integer.rem", (X, K),
          Op("integer.sub", (X, Op("bits.shl", (Op("integer.div", (X, K)), exponent("k"))))),
          power_of_two("k")),
    *laws("compare.gt", (X, Y), Op("compare.lt", (Y, X))),
    *laws("compare.le", (X, Y), Op("bits.not", (Op("compare.lt", (Y, X)),)), no_float("x")),
    *laws("compare.ge", (X, Y), Op("bits.not", (Op("compare.lt", (X, Y)),)), no_float("x")),
    Law("compare.ne", (X, Y), Op("bits.not", (Op("compare.eq", (X, Y)),))),
    *laws("control.select", (C, TRUE, Y), Op("bits.or", (C, Y)), is_bool("y")),
    *laws("control.select", (C, FALSE, Y), Op("bits.and", (Op("bits.not", (C,)), Y)), is_bool("y")),
    *laws("control.select", (C, X, TRUE), Op("bits.or", (Op("bits.not", (C,)), X)), is_bool("x")),
    *laws("control.select", (C, X, FALSE), Op("bits.and", (C, X)), is_bool("x")),
)


# In a program a type is no wider than its values; in a circuit mapping sees to that.


def _width_needed(m: Match) -> IntType | None:
    """The narrowest type that holds both operands and the result, if that is narrower."""
    kind, need = element_type(m.type), m.interval
    if not isinstance(kind, IntType) or need is None or need == type_interval(kind):
        return None
    for name in ("x", "y"):
        found = m.range(name)
        assert found is not None
        need = need.hull(found)
    small = IntType.holding(*need)
    return small if small.width_bits < kind.width_bits else None


def _narrowed(m: Match) -> Attrs:
    return {"type": _width_needed(m)}


def _extended(m: Match) -> Attrs:
    return {"type": element_type(m.type)}


PROGRAMS: tuple[Law, ...] = (
    *(
        Law(
            name, (X, Y),
            Op("convert.cast", (Op(name, (
                Op("convert.cast", (X,), _narrowed), Op("convert.cast", (Y,), _narrowed),
            )),), _extended),
            (lambda m: _width_needed(m) is not None,),
        )
        for name in ("integer.add", "integer.sub", "integer.mul")
    ),
)
