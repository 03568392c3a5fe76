"""Sums and inner products of floats in the order ``exact``: term by term into an accumulator in memory.

A term adds to two to five of the digits of ``accumulator``, wherever its exponent puts it; behind the digits
stand the counts of terms that are NaN, infinite, or not -0.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from kera_hw.ops.expansions import exact_product
from kera_hw.ops.expansions.accumulator import Flags, result, summand
from kera_hw.ops.expansions.exact_product import is_exact, of_nothing, reduced, rows_of
from kera_hw.ops.expansions.long import SIGNED
from kera_hw.ops.expansions.parts import integer
from kera_hw.ops.spec import Attrs, Expansion, V, Writer
from kera_hw.types import U32, FloatType, TensorType, element_type

_COUNTS = 4


def _raised(to: Writer[V], row: V, place: V, amount: V) -> V:
    """An entry of the accumulator made greater."""
    more = to.op("integer.add", to.op("tensor.index", row, place), amount)
    return to.op("tensor.update", row, more, place)


def _row(to: Writer[V], args: Sequence[V], kind: FloatType) -> V:
    """The sum over vectors of one length."""
    source = args[0].type
    assert isinstance(source, TensorType)
    index = to.param(0, U32)
    vectors = [to.param(2 + k, source) for k in range(len(args))]
    term = summand(to, [to.op("tensor.index", vector, index) for vector in vectors], kind)
    count = term.digit_count
    row_type = TensorType(SIGNED, (count + _COUNTS,), source.space)
    row = to.param(1, row_type)
    row = _raised(to, row, term.first, term.parts[0])
    for k, part in enumerate(term.parts[1:], 1):
        row = _raised(to, row, to.op("integer.add", term.first, integer(to, term.first.type, k)), part)
    what = term.term
    positive = to.op("bits.not", what.negative)
    seen = (
        what.nan, to.op("bits.and", what.infinite, positive), to.op("bits.and", what.infinite, what.negative),
        to.op("bits.not", to.op("bits.and", what.zero, what.negative)),
    )
    for k, flag in enumerate(seen):
        row = _raised(to, row, integer(to, U32, count + k), to.op("convert.cast", flag, type=SIGNED))
    body = to.region([U32, row_type, *(source for _ in args)], [row])
    row = to.op(
        "control.loop", to.constant(row_type, 0), *args,
        carried=1, count=source.size, index_type=U32, region=body, start=0, step=1,
    )
    digits = [to.op("tensor.index", row, integer(to, U32, k)) for k in range(count + _COUNTS)]
    nan, above, below, plain = (
        to.op("compare.gt", digit, integer(to, SIGNED, 0)) for digit in digits[count:]
    )
    flags = Flags(nan, above, below, to.op("bits.not", plain))
    return result(to, kind, digits[:count], flags, len(args) > 1)


def total(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V] | None:
    """The order `exact` on floats: an accumulator of 32-bit digits, rounded once."""
    (x,), source, axis = args, args[0].type, int(attrs["axis"])
    if not is_exact(source, attrs):
        return None
    kind = element_type(source)
    assert isinstance(source, TensorType) and isinstance(kind, FloatType)
    if source.size == 0:
        return (of_nothing(to, kind, source, axis, 0),)
    sums = reduced(source, kind, axis)
    if not isinstance(sums, TensorType):
        return (_row(to, [to.op("tensor.reshape", x, shape=(source.size,))], kind),)
    rows = rows_of(to, x, axis)
    assert isinstance(rows.type, TensorType)
    height, width = rows.type.shape
    line = TensorType(kind, (width,), source.space)
    body = to.region([line], [_row(to, [to.param(0, line)], kind)])
    found = to.op("control.scan", rows, carried=0, items=1, length=height, region=body)
    return (to.op("tensor.reshape", found, shape=sums.shape),)


def dot(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V] | None:
    """The order `exact` on floats: exact products in an accumulator of 32-bit digits, rounded once."""
    source = args[0].type
    if not is_exact(source, attrs):
        return None
    kind = element_type(source)
    assert isinstance(source, TensorType) and isinstance(kind, FloatType)
    return (_row(to, args, kind) if source.size else of_nothing(to, kind, source, -1, 0),)


EXPANSIONS: Mapping[str, Expansion] = {
    "reduce.sum": total, "reduce.dot": dot, "reduce.prod": exact_product.product,
}
