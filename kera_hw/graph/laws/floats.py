"""Laws of float arithmetic that hold for every bit pattern: zeros keep their signs, and a NaN is the one NaN.

What is not here is mostly false: x + 0 loses -0, x * 0 and x - x miss infinities and NaN, x == x misses NaN,
sums do not associate.
"""
from __future__ import annotations

from collections.abc import Callable

from kera_hw.graph.laws.terms import Known, Law, Literal, Made, Match, Op, Var, laws
from kera_hw.types import FloatType, Type, element_type

X, Y, Z, K = Var("x"), Var("y"), Var("z"), Known("k")


def _bias(kind: FloatType) -> int:
    return (1 << (kind.exponent_bits - 1)) - 1


def _sign(kind: FloatType) -> int:
    return 1 << (kind.width_bits - 1)


def _one(kind: FloatType) -> int:
    return _bias(kind) << kind.fraction_bits


def _literal(name: str, bits: Callable[[FloatType], int]) -> Literal:
    def of(kind: Type) -> int | None:
        return bits(kind) if isinstance(kind, FloatType) else None

    return Literal(name, of)


ZERO = _literal("0.0", lambda kind: 0)
MINUS_ZERO = _literal("-0.0", _sign)
ONE = _literal("1.0", _one)
MINUS_ONE = _literal("-1.0", lambda kind: _sign(kind) | _one(kind))


def _format(m: Match, name: str) -> FloatType:
    kind = m.element(name)
    assert isinstance(kind, FloatType)
    return kind


def inverse_of(kind: FloatType, bits: int) -> int | None:
    """The bits of 1 / k, if k is a power of two and both are normal numbers."""
    exponent = bits >> kind.fraction_bits & (1 << kind.exponent_bits) - 1
    if bits & (1 << kind.fraction_bits) - 1 or not 0 < exponent < 2 * _bias(kind):
        return None
    return bits & _sign(kind) | 2 * _bias(kind) - exponent << kind.fraction_bits


def _inverse(m: Match) -> int | None:
    return inverse_of(_format(m, "k"), m.value("k"))


def _has_inverse(m: Match) -> bool:
    return _inverse(m) is not None


def _inverted(m: Match) -> int:
    found = _inverse(m)
    assert found is not None
    return found


def _there_and_back(m: Match) -> bool:
    """Through a format that holds all values of the first."""
    kind, through = m.element("x"), m.element("through")
    if not isinstance(kind, FloatType) or not isinstance(through, FloatType):
        return False
    holds = through.exponent_bits >= kind.exponent_bits and through.fraction_bits >= kind.fraction_bits
    return holds and kind == element_type(m.type)


def _neg(x: Var) -> Op:
    return Op("floating.neg", (x,))


_INVERSE = Made(lambda m: m["k"].type, _inverted)

FLOATS: tuple[Law, ...] = (
    *laws("floating.add", (X, MINUS_ZERO), X),
    *laws("floating.sub", (X, ZERO), X),
    *laws("floating.mul floating.div", (X, ONE), X),
    *laws("floating.mul floating.div", (X, MINUS_ONE), _neg(X)),
    # The same number scaled the same way: rounded once, it is the same.
    *laws("floating.div", (X, K), Op("floating.mul", (X, _INVERSE)), _has_inverse),
    *laws("floating.abs", (_neg(X),), Op("floating.abs", (X,))),
    *laws("floating.abs", (Op("floating.abs", (X,)),), Op("floating.abs", (X,))),
    *laws("floating.add", (X, _neg(Y)), Op("floating.sub", (X, Y))),
    *laws("floating.sub", (X, _neg(Y)), Op("floating.add", (X, Y))),
    *laws("floating.mul", (_neg(X), _neg(Y)), Op("floating.mul", (X, Y))),
    *laws("floating.div", (_neg(X), _neg(Y)), Op("floating.div", (X, Y))),
    *laws("floating.fma", (X, Y, MINUS_ZERO), Op("floating.mul", (X, Y))),
    *laws("floating.fma", (ONE, X, Z), Op("floating.add", (X, Z))),
    *laws("floating.fma", (X, ONE, Z), Op("floating.add", (X, Z))),
    *laws("floating.fma", (MINUS_ONE, X, Z), Op("floating.sub", (Z, X))),
    *laws("floating.fma", (X, MINUS_ONE, Z), Op("floating.sub", (Z, X))),
    *laws("convert.cast", (Op("convert.cast", (X,), name="through"),), X, _there_and_back),
)
