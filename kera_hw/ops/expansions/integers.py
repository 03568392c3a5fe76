"""Integer arithmetic from addition, multiplication, unsigned division and choice."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from kera_hw.ops.expansions.parts import (
    cast,
    integer,
    is_negative,
    is_zero,
    pattern,
    raw_type,
    reread,
    select,
    shifted,
    unsigned,
)
from kera_hw.ops.spec import Attrs, Expansion, V, Writer
from kera_hw.types import IntType

_WORD = unsigned(64)
_HALF = unsigned(32)


def negated(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """0 - x."""
    return (to.op("integer.sub", integer(to, args[0].type, 0), args[0]),)


def absolute(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """-x where x < 0."""
    (x,) = args
    if not raw_type(x.type).signed:
        return (x,)
    return (select(to, is_negative(to, x), to.op("integer.neg", x), x),)


def sign(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """0 where x = 0, else -1 where x < 0, else 1; all modulo 2^W."""
    (x,) = args
    zero, one = integer(to, x.type, 0), integer(to, x.type, 1)
    result = select(to, is_zero(to, x), zero, one)
    if not raw_type(x.type).signed:
        return (result,)
    return (select(to, is_negative(to, x), integer(to, x.type, -1), result),)


def minimum(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """a where a < b, else b."""
    return (select(to, to.op("compare.lt", *args), *args),)


def maximum(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """b where a < b, else a."""
    a, b = args
    return (select(to, to.op("compare.lt", a, b), b, a),)


# Saturation


def _bound(to: Writer[V], negative: V, kind: IntType) -> V:
    """The least number where ``negative``, else the greatest."""
    return select(to, negative, integer(to, kind, kind.min), integer(to, kind, kind.max))


def saturating_add(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """The sum; where both signs differ from its own (unsigned: it is below a), the bound of a's sign."""
    a, b = args
    kind, total = raw_type(a.type), to.op("integer.add", a, b)
    if not kind.signed:
        return (select(to, to.op("compare.lt", total, a), integer(to, kind, kind.max), total),)
    turned = to.op("bits.and", to.op("bits.xor", a, total), to.op("bits.xor", b, total))
    return (select(to, is_negative(to, turned), _bound(to, is_negative(to, a), kind), total),)


def saturating_sub(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """The difference; where signs differ and its own is not a's (unsigned: a < b), the bound of a's sign."""
    a, b = args
    kind, total = raw_type(a.type), to.op("integer.sub", a, b)
    if not kind.signed:
        return (select(to, to.op("compare.lt", a, b), integer(to, kind, 0), total),)
    turned = to.op("bits.and", to.op("bits.xor", a, b), to.op("bits.xor", a, total))
    return (select(to, is_negative(to, turned), _bound(to, is_negative(to, a), kind), total),)


def saturating_mul(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """The exact product, clamped: in one word to 32 bits, beyond that in two words of magnitudes."""
    a, b = args
    kind = raw_type(a.type)
    if kind.width_bits <= 32:
        wide = to.op("integer.mul_wide", a, b)
        held = to.op("integer.min", wide, integer(to, wide.type, kind.max))
        if kind.signed:
            held = to.op("integer.max", held, integer(to, wide.type, kind.min))
        return (cast(to, held, kind),)
    high, low = product_128(to, *(_magnitude(to, x) for x in args))
    negative = to.op("compare.ne", is_negative(to, a), is_negative(to, b)) if kind.signed else None
    limit = integer(to, _WORD, kind.max)
    if negative is not None:
        limit = select(to, negative, integer(to, _WORD, -kind.min), limit)
    over = to.op("bits.or", to.op("compare.ne", high, integer(to, _WORD, 0)), to.op("compare.gt", low, limit))
    found = cast(to, select(to, over, limit, low), kind)
    return (found if negative is None else select(to, negative, to.op("integer.neg", found), found),)


def _magnitude(to: Writer[V], x: V) -> V:
    """|x| in 64 bits, that of the least number as well."""
    return cast(to, pattern(to, to.op("integer.abs", x)), _WORD)


def product_128(to: Writer[V], a: V, b: V) -> tuple[V, V]:
    """The upper and lower words of a product of 64-bit words, from products of their halves."""
    (a_high, a_low), (b_high, b_low) = (_halves(to, x) for x in (a, b))
    low, high = to.op("integer.mul_wide", a_low, b_low), to.op("integer.mul_wide", a_high, b_high)
    middle = (to.op("integer.mul_wide", a_high, b_low), to.op("integer.mul_wide", a_low, b_high))
    carry = _halves(to, low)[0]
    total = cast(to, carry, _WORD)
    for part in middle:
        total = to.op("integer.add", total, cast(to, _halves(to, part)[1], _WORD))
        high = to.op("integer.add", high, shifted(to, "bits.shr", part, 32))
    return to.op("integer.add", high, shifted(to, "bits.shr", total, 32)), to.op("integer.mul", a, b)


def _halves(to: Writer[V], word: V) -> tuple[V, V]:
    return cast(to, shifted(to, "bits.shr", word, 32), _HALF), cast(to, word, _HALF)


# Several words


def mul_wide(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """The product of both in the wider type."""
    kind = raw_type(args[0].type)
    wide = IntType(2 * kind.width_bits, kind.signed)
    return (to.op("integer.mul", *(cast(to, x, wide) for x in args)),)


def add_carry(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """Both sums modulo 2^W of the patterns; a carry is where one came out smaller."""
    a, b = (pattern(to, x) for x in args[:2])
    first = to.op("integer.add", a, b)
    total = to.op("integer.add", first, cast(to, args[2], first.type))
    carry = to.op("bits.or", to.op("compare.lt", first, a), to.op("compare.lt", total, first))
    return reread(to, total, args[0].type), carry


def divided(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V] | None:
    """Signed: the quotient of the magnitudes, negated where the signs differ; all bits set by 0."""
    a, b = args
    kind = raw_type(a.type)
    if not kind.signed:
        return None
    quotient = to.op("integer.div", *(pattern(to, to.op("integer.abs", x)) for x in args))
    result = reread(to, quotient, a.type)
    differ = to.op("compare.ne", is_negative(to, a), is_negative(to, b))
    result = select(to, differ, to.op("integer.neg", result), result)
    return (select(to, is_zero(to, b), integer(to, kind, -1), result),)


def remainder(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """a - (a / b) * b, all modulo 2^W."""
    a, b = args
    return (to.op("integer.sub", a, to.op("integer.mul", to.op("integer.div", a, b), b)),)


EXPANSIONS: Mapping[str, Expansion] = {
    "integer.neg": negated,
    "integer.abs": absolute,
    "integer.sign": sign,
    "integer.min": minimum,
    "integer.max": maximum,
    "integer.saturating_add": saturating_add,
    "integer.saturating_sub": saturating_sub,
    "integer.saturating_mul": saturating_mul,
    "integer.mul_wide": mul_wide,
    "integer.add_carry": add_carry,
    "integer.div": divided,
    "integer.rem": remainder,
}
