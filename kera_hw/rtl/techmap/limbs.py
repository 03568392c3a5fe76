"""Unsigned numbers wider than a word, in limbs: what operations on them are made of.

Every function is total and keeps widths: a sum has its operands' width (modulo), a product the widths' sum.
Where limbs are cut costs nothing: slices and joins are wiring. Each limb of a sum is a carry chain, so that
registers may stand between them; products are cut into tiles of a multiplier's operands.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder, width_of
from kera_hw.types import BOOL, WORD_BITS, IntType

_LIMB_BITS = 60
"""Width of a word of a longer number: a sum of two and its carry still fit one word."""
_TILE_BITS = 18
"""Width of the pieces that products are made of: a multiplier's operand."""


@dataclass(frozen=True, slots=True)
class Wide:
    """An unsigned number: words of unsigned integer types, least significant first, at least one."""

    limbs: tuple[Ref, ...]

    @property
    def width_bits(self) -> int:
        return sum(width_of(limb.type) for limb in self.limbs)

    @property
    def word(self) -> Ref:
        """The number as one word; it must have only one."""
        (limb,) = self.limbs
        return limb


def unsigned(width_bits: int) -> IntType:
    """The unsigned type of a word."""
    return IntType(width_bits, False)


def of(builder: Builder, ref: Ref) -> Wide:
    """A word or bool as a number of its own width (a signed word by its bits)."""
    return Wide((builder.cast(ref, unsigned(width_of(ref.type))),))


def constant(builder: Builder, value: int, width_bits: int) -> Wide:
    """A constant, modulo 2^width."""
    value &= (1 << width_bits) - 1
    limbs: list[Ref] = []
    for size in _layout(width_bits):
        limbs.append(builder.const(unsigned(size), value & ((1 << size) - 1)))
        value >>= size
    return Wide(tuple(limbs))


def _layout(width_bits: int) -> list[int]:
    """Widths of the words of a number, least significant first, about equal."""
    if width_bits <= WORD_BITS:
        return [width_bits]
    count = -(-width_bits // _LIMB_BITS)
    size = -(-width_bits // count)
    return [min(size, width_bits - low) for low in range(0, width_bits, size)]


# Wiring


def cat(builder: Builder, refs: Sequence[Ref]) -> Ref:
    """Words joined into one of at most 64 bits, the first the most significant."""
    if len(refs) == 1:
        return builder.cast(refs[0], unsigned(width_of(refs[0].type)))
    return builder.op("bits.cat", *(builder.cast(ref, unsigned(width_of(ref.type))) for ref in refs))


def extract_word(builder: Builder, number: Wide, high: int, low: int) -> Ref:
    """Bits ``high`` down to ``low`` (at most 64 of them; zeros above the number) as one word."""
    parts: list[Ref] = []
    position = 0
    for limb in number.limbs:
        size = width_of(limb.type)
        first, last = max(low - position, 0), min(high - position, size - 1)
        if first <= last:
            whole = first == 0 and last == size - 1
            parts.append(limb if whole else builder.op("bits.extract", limb, high=last, low=first))
        position += size
    missing = high + 1 - max(position, low)
    if missing > 0:
        parts.append(builder.const(unsigned(missing), 0))
    return cat(builder, parts[::-1])


def cut(builder: Builder, number: Wide, sizes: Sequence[int]) -> Wide:
    """The same bits in words of the given widths, least significant first; zeros above the number."""
    if [width_of(limb.type) for limb in number.limbs] == list(sizes):
        return number
    limbs: list[Ref] = []
    low = 0
    for size in sizes:
        limbs.append(extract_word(builder, number, low + size - 1, low))
        low += size
    return Wide(tuple(limbs))


def extract(builder: Builder, number: Wide, high: int, low: int) -> Wide:
    """Bits ``high`` down to ``low``, zeros above the number."""
    limbs: list[Ref] = []
    for size in _layout(high + 1 - low):
        limbs.append(extract_word(builder, number, low + size - 1, low))
        low += size
    return Wide(tuple(limbs))


def join(builder: Builder, *parts: Wide) -> Wide:
    """Numbers joined, the first the most significant."""
    number = Wide(tuple(limb for part in reversed(parts) for limb in part.limbs))
    return cut(builder, number, _layout(number.width_bits))


def resize(builder: Builder, number: Wide, width_bits: int) -> Wide:
    """The low bits, or zeros above the number."""
    return number if number.width_bits == width_bits else extract(builder, number, width_bits - 1, 0)


def scale(builder: Builder, number: Wide, zeros: int) -> Wide:
    """Zeros put below the number."""
    return join(builder, number, constant(builder, 0, zeros)) if zeros else number


def bit(builder: Builder, number: Wide, index: int) -> Ref:
    """Bit ``index`` as a bool."""
    for limb in number.limbs:
        size = width_of(limb.type)
        if index < size:
            return builder.op("bits.test", limb, index=index)
        index -= size
    return builder.const(BOOL, 0)


# Logic


def _even(builder: Builder, numbers: Sequence[Wide]) -> list[Wide]:
    """Numbers of one width cut alike."""
    sizes = _layout(numbers[0].width_bits)
    assert all(number.width_bits == numbers[0].width_bits for number in numbers), "widths differ"
    return [cut(builder, number, sizes) for number in numbers]


def bitwise(builder: Builder, opcode: str, *operands: Wide) -> Wide:
    """A bitwise operation (``bits.and``, ``bits.not``, ...) on numbers of one width."""
    columns = zip(*(number.limbs for number in _even(builder, operands)))
    return Wide(tuple(builder.op(opcode, *column) for column in columns))


def spread(builder: Builder, flag: Ref, width_bits: int) -> Wide:
    """A bool repeated."""
    ones, zeros = constant(builder, -1, width_bits), constant(builder, 0, width_bits)
    return select(builder, flag, ones, zeros)


def select(builder: Builder, condition: Ref, then: Wide, otherwise: Wide) -> Wide:
    """``condition ? then : otherwise``, of one width."""
    a, b = _even(builder, (then, otherwise))
    return Wide(tuple(builder.select(condition, x, y) for x, y in zip(a.limbs, b.limbs)))


def any_set(builder: Builder, number: Wide) -> Ref:
    """Whether any bit is set."""
    flags = [builder.op("compare.ne", limb, builder.const(limb.type, 0)) for limb in number.limbs]
    return tree(builder, "bits.or", flags)


def tree(builder: Builder, opcode: str, refs: Sequence[Ref]) -> Ref:
    """An associative operation over at least one operand, as a balanced tree."""
    level = list(refs)
    while len(level) > 1:
        left = level[len(level) - len(level) % 2 :]
        level = [builder.op(opcode, a, b) for a, b in zip(level[::2], level[1::2])] + left
    return level[0]


# Sums


def add(builder: Builder, a: Wide, b: Wide, carry: Ref | None = None) -> Wide:
    """``a + b + carry`` modulo 2^width, numbers of one width; ``carry`` is a bool."""
    x, y = _even(builder, (a, b))
    limbs: list[Ref] = []
    for index, (p, q) in enumerate(zip(x.limbs, y.limbs)):
        size = width_of(p.type)
        last = index == len(x.limbs) - 1
        kind = unsigned(size if last else size + 1)
        total = builder.op("integer.add", builder.cast(p, kind), builder.cast(q, kind))
        if carry is not None:
            total = builder.op("integer.add", total, builder.cast(carry, kind))
        limbs.append(total if last else builder.op("bits.extract", total, high=size - 1, low=0))
        if not last:
            carry = builder.op("bits.test", total, index=size)
    return Wide(tuple(limbs))


def subtract(builder: Builder, a: Wide, b: Wide) -> Wide:
    """``a - b`` modulo 2^width, numbers of one width."""
    x, y = _even(builder, (a, b))
    if len(x.limbs) == 1:
        return Wide((builder.op("integer.sub", x.word, y.word),))
    return add(builder, x, bitwise(builder, "bits.not", y), builder.const(BOOL, 1))


def multiply(builder: Builder, a: Wide, b: Wide) -> Wide:
    """The exact product, of the widths' sum.

    Beyond one word it is made of pieces as wide as a multiplier: products of pieces i and i + k abut for
    fixed k, so every k gives two rows without overlap, and only rows are added.
    """
    width = a.width_bits + b.width_bits
    if width <= WORD_BITS:
        kind = unsigned(width)
        return Wide((builder.op("integer.mul", *(builder.cast(n.word, kind) for n in (a, b))),))
    count = -(-max(a.width_bits, b.width_bits) // _TILE_BITS)
    pieces = [[_piece(builder, number, i) for i in range(count)] for number in (a, b)]
    total: Wide | None = None
    for k in range(count - 1, -1, -1):
        rows = [_row(builder, pieces[0], pieces[1], k)]
        if k:
            rows.append(_row(builder, pieces[1], pieces[0], k))
        size = 2 * _TILE_BITS * count - k * _TILE_BITS
        for row in rows:
            row = resize(builder, row, size)
            total = row if total is None else add(builder, resize(builder, total, size), row)
        if k:
            assert total is not None
            total = scale(builder, total, _TILE_BITS)
    assert total is not None
    return resize(builder, total, width)


def _piece(builder: Builder, number: Wide, index: int) -> Ref | None:
    low = index * _TILE_BITS
    high = min(low + _TILE_BITS, number.width_bits) - 1
    return None if high < low else extract_word(builder, number, high, low)


def _row(builder: Builder, a: Sequence[Ref | None], b: Sequence[Ref | None], k: int) -> Wide:
    """Products of pieces i of ``a`` and i + k of ``b``, abutting."""
    products: list[Wide] = []
    for x, y in zip(a, b[k:]):
        kind = unsigned(2 * _TILE_BITS)
        if x is None or y is None:
            products.append(constant(builder, 0, 2 * _TILE_BITS))
        else:
            products.append(Wide((builder.op("integer.mul", builder.cast(x, kind), builder.cast(y, kind)),)))
    return join(builder, *reversed(products))


# Comparisons and counting


def less(builder: Builder, a: Wide, b: Wide) -> Ref:
    """``a < b``, numbers of one width: by the highest limb that differs."""
    x, y = _even(builder, (a, b))
    found = builder.const(BOOL, 0)
    for p, q in zip(x.limbs, y.limbs):
        equal = builder.op("compare.eq", p, q)
        found = builder.op("bits.or", builder.op("compare.lt", p, q), builder.op("bits.and", equal, found))
    return found


def leading_zeros(builder: Builder, number: Wide) -> Ref:
    """Zeros above the highest set bit, the width for zero, in the smallest type that holds the width."""
    width = number.width_bits
    kind = IntType.holding(0, width)
    if width <= WORD_BITS:
        return builder.cast(builder.op("bits.clz", number.word), kind)
    low = width - WORD_BITS
    upper = extract_word(builder, number, width - 1, low)
    lower = leading_zeros(builder, extract(builder, number, low - 1, 0))
    offset = builder.op("integer.add", builder.cast(lower, kind), builder.const(kind, WORD_BITS))
    empty = builder.op("compare.eq", upper, builder.const(upper.type, 0))
    return builder.select(empty, offset, builder.cast(builder.op("bits.clz", upper), kind))
