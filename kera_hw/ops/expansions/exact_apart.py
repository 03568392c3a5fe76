"""Sums and inner products in the order ``exact`` without a memory: every digit is a sum of its own.

Each term is sent to the digits that its exponent names, nothing to all others. In a circuit that is an adder
tree a digit behind a few gates, where an accumulator that is indexed would be a multiplexer and a row of
selections for each term.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from kera_hw.ops.expansions.accumulator import Flags, Summand, result, summand
from kera_hw.ops.expansions.exact_product import is_exact, of_nothing
from kera_hw.ops.expansions.long import SIGNED
from kera_hw.ops.expansions.parts import integer, select
from kera_hw.ops.spec import Attrs, Expansion, V, Writer
from kera_hw.types import FloatType, TensorType, element_type


def _collected(to: Writer[V], term: Summand[V], axis: int) -> list[V]:
    """The digits of the sum over an axis, signed, least first."""
    first, parts, last = term.first, term.parts, term.last
    kind = element_type(first.type)
    here = [to.op("compare.eq", first, integer(to, kind, k)) for k in range(last + 1)]
    nothing = integer(to, SIGNED, 0)
    digits: list[V] = []
    for k in range(term.digit_count):
        amount = nothing
        for j, part in enumerate(parts):
            if 0 <= k - j <= last:
                amount = select(to, here[k - j], part, amount)
        digits.append(to.op("reduce.sum", amount, axis=axis, order=""))
    return digits


def _reduced(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V] | None:
    """Digits added apart, rounded once."""
    source, axis = args[0].type, int(attrs.get("axis", -1))
    if not is_exact(source, attrs):
        return None
    kind = element_type(source)
    assert isinstance(source, TensorType) and isinstance(kind, FloatType)
    if source.size == 0:
        return (of_nothing(to, kind, source, axis, 0),)
    found = summand(to, args, kind)
    term = found.term
    minus = to.op("reduce.all", to.op("bits.and", term.zero, term.negative), axis=axis)
    above, below = (
        to.op("reduce.any", to.op("bits.and", term.infinite, sign), axis=axis)
        for sign in (to.op("bits.not", term.negative), term.negative)
    )
    flags = Flags(to.op("reduce.any", term.nan, axis=axis), above, below, minus)
    return (result(to, kind, _collected(to, found, axis), flags, len(args) > 1),)


EXPANSIONS: Mapping[str, Expansion] = {"reduce.sum": _reduced, "reduce.dot": _reduced}
"""In place of their rows' expansions."""
