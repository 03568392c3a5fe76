"""Rotations, reversal, counting and fields from shifts and logic."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from kera_hw.ops.expansions.parts import cast, integer, pattern, raw_type, reread, shifted, unsigned
from kera_hw.ops.spec import Attrs, Expansion, V, Writer
from kera_hw.types import U32, IntType

_WORD_BITS = 64
_WORD = unsigned(_WORD_BITS)
_SWAPS = tuple((step, sum(((1 << step) - 1) << low for low in range(0, 64, 2 * step))) for step in
               (1, 2, 4, 8, 16, 32))
"""How far bits move at each stage of a reversal, and which of two neighbours is the lower."""


def _rotated(left: bool) -> Expansion:
    def rule(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
        """A shift by n modulo W joined with one by the rest the other way."""
        x, amount = args
        width, given = raw_type(x.type).width_bits, raw_type(amount.type)
        counting = unsigned(max(given.width_bits, width.bit_length()))
        turn = cast(to, amount, counting)
        if given.max >= width:
            turn = to.op("integer.rem", turn, integer(to, counting, width))
        rest = to.op("integer.sub", integer(to, counting, width), turn)
        up, down = (turn, rest) if left else (rest, turn)
        word = pattern(to, x)
        joined = to.op("bits.or", to.op("bits.shl", word, up), to.op("bits.shr", word, down))
        return (reread(to, joined, x.type),)

    return rule


def _reversed(least: int) -> Expansion:
    def rule(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
        """Neighbours swapped in 64 bits, then pairs of them and so on; the upper W bits of that."""
        (x,) = args
        word = cast(to, pattern(to, x), _WORD)
        for step, mask in _SWAPS:
            if step < least:
                continue
            lower = integer(to, _WORD, mask)
            down = to.op("bits.and", shifted(to, "bits.shr", word, step), lower)
            word = to.op("bits.or", down, shifted(to, "bits.shl", to.op("bits.and", word, lower), step))
        width = raw_type(x.type).width_bits
        top = cast(to, shifted(to, "bits.shr", word, _WORD_BITS - width), unsigned(width))
        return (reread(to, top, x.type),)

    return rule


_HOLES = tuple(sum(1 << k for k in range(place, 64, 4)) for place in range(4))
"""Every fourth bit, from each of the lowest."""


def clmul(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """Products of every fourth bit of the one and every fourth of the other; each column's lowest bit."""
    # Between columns is room for what they carry, 15 at most, but for the last of 64 bits, which carries out
    # of the word. After T. Pornin, "Constant-time multiplication" in BearSSL (ghash_ctmul64).
    kind = unsigned(min(64, 2 * raw_type(args[0].type).width_bits))
    masks = [integer(to, kind, mask & kind.max) for mask in _HOLES]
    wide = [cast(to, x, kind) for x in args]
    a, b = ([to.op("bits.and", x, mask) for mask in masks] for x in wide)
    parts: list[V] = []
    for place, mask in enumerate(masks):
        column = to.op("integer.mul", a[0], b[place])
        for k in (1, 2, 3):
            column = to.op("bits.xor", column, to.op("integer.mul", a[k], b[(place - k) % 4]))
        parts.append(to.op("bits.and", column, mask))
    halves = [to.op("bits.or", *pair) for pair in (parts[:2], parts[2:])]
    return (to.op("bits.or", *halves),)


def popcount(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """Sums of neighbouring fields that double in width."""
    bits = raw_type(args[0].type).width_bits
    width = next(width for width in (8, 16, 32, 64) if bits <= width)
    kind = unsigned(width)
    total = cast(to, pattern(to, args[0]), kind)
    for step, mask in _SWAPS:
        if step >= width:
            break
        lower = integer(to, kind, mask)
        upper = to.op("bits.and", shifted(to, "bits.shr", total, step), lower)
        total = to.op("integer.add", to.op("bits.and", total, lower), upper)
    return (cast(to, total, U32),)


def clz(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """W less how many bits are set once the highest has been copied to all below it."""
    word = pattern(to, args[0])
    width = raw_type(args[0].type).width_bits
    step = 1
    while step < width:
        word = to.op("bits.or", word, shifted(to, "bits.shr", word, step))
        step *= 2
    return (to.op("integer.sub", integer(to, U32, width), to.op("bits.popcount", word)),)


def ctz(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """How many bits are set in ~x & (x - 1)."""
    word = pattern(to, args[0])
    before = to.op("integer.sub", word, integer(to, word.type, 1))
    return (to.op("bits.popcount", to.op("bits.and", to.op("bits.not", word), before)),)


def extract(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """Shifted down and truncated."""
    low, high = attrs["low"], attrs["high"]
    return (cast(to, shifted(to, "bits.shr", pattern(to, args[0]), low), unsigned(high - low + 1)),)


def test(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """Whether the field of that bit alone is not 0."""
    index = attrs["index"]
    bit = to.op("bits.extract", args[0], high=index, low=index)
    return (to.op("compare.ne", bit, integer(to, bit.type, 0)),)


def cat(to: Writer[V], args: Sequence[V], attrs: Attrs) -> Sequence[V]:
    """Each pattern shifted to its place, joined."""
    widths = [raw_type(x.type).width_bits for x in args]
    kind = IntType(sum(widths), False)
    low, found = kind.width_bits, None
    for x, width in zip(args, widths):
        low -= width
        part = shifted(to, "bits.shl", cast(to, pattern(to, x), kind), low)
        found = part if found is None else to.op("bits.or", found, part)
    assert found is not None
    return (found,)


EXPANSIONS: Mapping[str, Expansion] = {
    "bits.rotl": _rotated(left=True),
    "bits.rotr": _rotated(left=False),
    "bits.reverse_bits": _reversed(1),
    "bits.reverse_bytes": _reversed(8),
    "bits.clmul": clmul,
    "bits.popcount": popcount,
    "bits.clz": clz,
    "bits.ctz": ctz,
    "bits.extract": extract,
    "bits.test": test,
    "bits.cat": cat,
}
