"""Products of floats in the order ``exact``: significands multiplied as one long integer, rounded once.

The product is a row of 32-bit digits that is multiplied by one significand after another. A digit may be a
little longer meanwhile: what it exceeds moves up by one place each time, and carries move all the way at the
end, so that each step is a few operations on whole rows.
"""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.ops.expansions.long import (
    DIGIT_BITS,
    SIGNED,
    WORD,
    add,
    decided,
    fields,
    high,
    leading,
    low,
    rounded,
    word_of,
)
from kera_hw.ops.expansions.parts import integer, select, shifted, unsigned
from kera_hw.ops.spec import Attrs, V, Writer
from kera_hw.types import U32, FloatType, TensorType, Type, element_type

_FACTOR_BITS = 27
"""Of a factor: a digit of 33 bits times it leaves room for what comes from below."""


def is_exact(kind: Type, attrs: Attrs) -> bool:
    """Whether a reduction is one of floats that is rounded once."""
    return isinstance(element_type(kind), FloatType) and attrs["order"] == "exact"


def reduced(source: TensorType, element: Type, axis: int) -> Type:
    """The type of a reduction's result."""
    shape = () if axis == -1 else (*source.shape[:axis], *source.shape[axis + 1 :])
    return TensorType(element, shape, source.space) if shape else element


def of_nothing(to: Writer[V], kind: FloatType, source: TensorType, axis: int, value: int) -> V:
    """A reduction over no element, 0 or 1."""
    one = ((1 << (kind.exponent_bits - 1)) - 1) << kind.fraction_bits
    bits = to.constant(reduced(source, unsigned(kind.width_bits), axis), one if value else 0)
    return to.op("convert.bitcast", bits, type=kind)


def rows_of(to: Writer[V], x: V, axis: int) -> V:
    """The axis last, all others as one before it."""
    source = x.type
    assert isinstance(source, TensorType)
    if axis == -1:
        return to.op("tensor.reshape", x, shape=(1, source.size))
    order = (*(k for k in range(len(source.shape)) if k != axis), axis)
    count = source.shape[axis]
    turned = to.op("tensor.permute", x, axes=order)
    return to.op("tensor.reshape", turned, shape=(source.size // count, count))


def _raised(to: Writer[V], row: V) -> V:
    """Every digit one place up."""
    kind = row.type
    assert isinstance(kind, TensorType)
    rows, count = kind.shape
    zero = integer(to, U32, 0)
    kept = to.op("tensor.slice", row, zero, zero, sizes=(rows, count - 1))
    return to.op("tensor.pad", kept, word_of(to, 0), low=(0, 1), high=(0, 0))


def _multiplied(to: Writer[V], row: V, factors: Sequence[V]) -> V:
    """A row of digits times the factor in pieces of 27 bits, lowest first."""
    product = to.op("integer.mul", row, factors[0])
    if len(factors) > 1:  # the second piece stands 27 bits higher
        second = to.op("integer.mul", row, factors[1])
        above = DIGIT_BITS - _FACTOR_BITS
        stays = to.op("bits.and", second, word_of(to, (1 << above) - 1))
        moves = _raised(to, shifted(to, "bits.shr", second, above))
        product = add(to, product, shifted(to, "bits.shl", stays, _FACTOR_BITS), moves)
    return to.op("integer.add", low(to, product), _raised(to, high(to, product)))


def _long_product(to: Writer[V], significand: V, bits: int, axis: int) -> V:
    """Rows of digits, not carried through: the products of all significands along the axis."""
    pieces = [rows_of(to, significand, axis)]
    if bits > _FACTOR_BITS:
        mask = word_of(to, (1 << _FACTOR_BITS) - 1)
        pieces = [to.op("bits.and", pieces[0], mask), shifted(to, "bits.shr", pieces[0], _FACTOR_BITS)]
    source = pieces[0].type
    assert isinstance(source, TensorType)
    rows, count = source.shape
    row_type = TensorType(WORD, (rows, count * bits // DIGIT_BITS + 2), source.space)
    params = [to.param(k, kind) for k, kind in enumerate((U32, row_type, *(source for _ in pieces)))]
    index, row, *columns = params
    factors: list[V] = []
    for column in columns:
        one = to.op("tensor.slice", column, integer(to, U32, 0), index, sizes=(rows, 1))
        factors.append(to.op("tensor.broadcast", one, shape=row_type.shape))
    body = to.region([param.type for param in params], [_multiplied(to, row, factors)])
    ones = to.op("tensor.pad", to.constant(TensorType(WORD, (rows, 1), source.space), 1), word_of(to, 0),
                 low=(0, 0), high=(0, row_type.shape[1] - 1))
    return to.op("control.loop", ones, *pieces, carried=1, count=count, index_type=U32, region=body,
                 start=0, step=1)


def _carried(to: Writer[V], row: V, result: Type) -> list[V]:
    """The digits of the rows, below 2^32 each, in the shape of the result."""
    source = row.type
    assert isinstance(source, TensorType)
    rows, count = source.shape
    zero = integer(to, U32, 0)
    found: list[V] = []
    carry: V | None = None
    for k in range(count):
        place = integer(to, U32, k)
        if isinstance(result, TensorType):
            digit = to.op("tensor.slice", row, zero, place, sizes=(rows, 1))
            digit = to.op("tensor.reshape", digit, shape=result.shape)
        else:
            digit = to.op("tensor.index", row, zero, place)
        total = digit if carry is None else to.op("integer.add", digit, carry)
        found.append(low(to, total))
        carry = high(to, total)
    return found


def product(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V] | None:
    """The order `exact` on floats: the significands' product in 32-bit digits, rounded once."""
    (x,), source, axis = args, args[0].type, int(attrs["axis"])
    if not is_exact(source, attrs):
        return None
    kind = element_type(source)
    assert isinstance(source, TensorType) and isinstance(kind, FloatType)
    count = source.size if axis == -1 else source.shape[axis]
    if count == 0 or source.size == 0:
        return (of_nothing(to, kind, source, axis, 1),)
    term, significand = fields(to, x, kind)
    rows = _long_product(to, significand, kind.fraction_bits + 1, axis)
    digits = _carried(to, rows, reduced(source, WORD, axis))
    positions = to.op("convert.cast", term.position, type=SIGNED)
    least = 2 - (1 << (kind.exponent_bits - 1)) - kind.fraction_bits  # exponent of the least number
    exponent = add(
        to, to.op("reduce.sum", positions, axis=axis, order=""), integer(to, SIGNED, (count - 1) * least)
    )
    signs = to.op("reduce.sum", to.op("convert.cast", term.negative, type=U32), axis=axis, order="")
    negative = to.op("bits.test", signs, index=0)
    zero, infinite, nan = (
        to.op("reduce.any", flags, axis=axis) for flags in (term.zero, term.infinite, term.nan)
    )
    bits = rounded(to, kind, leading(to, digits), exponent)
    bits = select(to, zero, word_of(to, 0), bits)  # whatever the exponents of the other factors
    above = to.op("bits.and", infinite, to.op("bits.not", negative))
    below = to.op("bits.and", infinite, negative)
    nan = to.op("bits.or", nan, to.op("bits.and", zero, infinite))
    return (decided(to, kind, bits, negative, nan, above, below),)
