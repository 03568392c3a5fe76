"""Short names for the integer operations that float units are made of.

Two ways to read an integer have their methods here. A vector has a width that is meant exactly: sums are
modulo that, slices and joins count bits. An exact integer has a value: every result gets the narrowest type
that holds all it can be, sums and products never wrap, and bits leave only where a shift drops them. Either
may be wider than a word: a wide product or sum is one operation here, which mapping cuts.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder, width_of
from kera_hw.types import BOOL, IntType, TensorType, Type

Range = tuple[int, int]
"""The least and the greatest value; an ``Interval`` is one."""

TILE_BITS = 18
"""Width of the pieces that exact products are made of: a multiplier's operand."""


def uint(width: int) -> IntType:
    """The unsigned integer type of ``width`` bits."""
    return IntType(width, False)


class Wires:
    """Integer and bit operations on a builder, under names short enough to read a circuit by.

    Conditions are bools. Methods of vectors come first, those of exact integers after them.
    """

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    # Constants and shape

    def const(self, value: int, width: int) -> Ref:
        """An unsigned constant of ``width`` bits."""
        return self.builder.const(uint(width), value)

    def flag(self, value: bool) -> Ref:
        """A constant bool."""
        return self.builder.const(BOOL, int(value))

    def width(self, value: Ref) -> int:
        """Bits of a value (1 for a bool)."""
        return width_of(value.type)

    def cast(self, value: Ref, kind: Type) -> Ref:
        return self.builder.cast(value, kind)

    def resize(self, value: Ref, width: int) -> Ref:
        """Truncated, or extended with zeros (an unsigned value) or the sign (a signed one), and unsigned."""
        if isinstance(value.type, IntType) and value.type.signed:
            return self.cast(self.cast(value, IntType(width, True)), uint(width))
        return self.cast(value, uint(width))

    def signed(self, value: Ref, width: int) -> Ref:
        """The value in a signed type of ``width`` bits (unsigned sources keep their value where it fits)."""
        return self.cast(value, IntType(width, True))

    def bit(self, value: Ref, index: int) -> Ref:
        """Bit ``index`` as a bool."""
        return self.builder.op("bits.test", value, index=index)

    def bits(self, value: Ref, high: int, low: int) -> Ref:
        """Bits ``high`` down to ``low``, unsigned."""
        if low == 0 and high == self.width(value) - 1 and value.type == uint(high + 1):
            return value
        return self.builder.op("bits.extract", value, high=high, low=low)

    def low_bits(self, value: Ref, count: int) -> Ref:
        return self.bits(value, count - 1, 0)

    def high_bits(self, value: Ref, count: int) -> Ref:
        return self.bits(value, self.width(value) - 1, self.width(value) - count)

    def cat(self, *parts: Ref) -> Ref:
        """Parts joined, the first the most significant; bools count one bit."""
        vectors = [self.cast(part, uint(1)) if part.type == BOOL else part for part in parts]
        return vectors[0] if len(vectors) == 1 else self.builder.op("bits.cat", *vectors)

    def window(self, value: Ref, high: int, low: int) -> Ref:
        """Bits ``high`` down to ``low``, unsigned, with zeros above the value."""
        width = self.width(value)
        missing = high + 1 - max(width, low)
        parts = [self.const(0, missing)] if missing > 0 else []
        if low < width:
            parts.append(self.bits(value, min(high, width - 1), low))
        return self.cat(*parts)

    def extended(self, value: Ref, width: int) -> Ref:
        """The low bits, or zeros above the value."""
        return value if self.width(value) == width else self.window(value, width - 1, 0)

    def scaled(self, value: Ref, zeros: int) -> Ref:
        """Zeros put below the value."""
        return self.cat(value, *self.zeros(zeros))

    def zeros(self, width: int) -> tuple[Ref, ...]:
        """``width`` bits of 0 to join with others; none are no part at all."""
        return (self.const(0, width),) if width else ()

    def spread(self, flag: Ref, width: int) -> Ref:
        """A bool repeated ``width`` times."""
        ones = self.const((1 << width) - 1, width)
        return self.select(flag, ones, self.const(0, width))

    # Logic

    def both(self, *flags: Ref) -> Ref:
        """AND of bools or of equal vectors."""
        return self._fold("bits.and", flags)

    def either(self, *flags: Ref) -> Ref:
        """OR of bools or of equal vectors."""
        return self._fold("bits.or", flags)

    def differ(self, *flags: Ref) -> Ref:
        """XOR of bools or of equal vectors."""
        return self._fold("bits.xor", flags)

    def _fold(self, opcode: str, items: Sequence[Ref]) -> Ref:
        result = items[0]
        for item in items[1:]:
            result = self.builder.op(opcode, result, item)
        return result

    def tree(self, opcode: str, items: Sequence[Ref]) -> Ref:
        """An associative operation over at least one operand, as a balanced tree."""
        level = list(items)
        while len(level) > 1:
            odd = level[len(level) - len(level) % 2 :]
            level = [self.builder.op(opcode, a, b) for a, b in zip(level[::2], level[1::2])] + odd
        return level[0]

    def invert(self, value: Ref) -> Ref:
        return self.builder.op("bits.not", value)

    def unless(self, value: Ref, condition: Ref) -> Ref:
        """``value`` (a bool) and not ``condition``."""
        return self.both(value, self.invert(condition))

    def select(self, condition: Ref, then: Ref, otherwise: Ref) -> Ref:
        return self.builder.select(condition, then, otherwise)

    def flip_if(self, condition: Ref, value: Ref) -> Ref:
        """``condition ? ~value : value``."""
        return self.differ(value, self.spread(condition, self.width(value)))

    def any(self, value: Ref) -> Ref:
        """Whether any bit is set."""
        return self.builder.op("compare.ne", value, self.builder.const(value.type, 0))

    def none(self, value: Ref) -> Ref:
        """Whether no bit is set."""
        return self.builder.op("compare.eq", value, self.builder.const(value.type, 0))

    def all(self, value: Ref) -> Ref:
        """Whether every bit of an unsigned vector is set."""
        return self.equals(value, (1 << self.width(value)) - 1)

    def all_of(self, value: Ref, most: int) -> Ref:
        """Whether a value that is never more than ``most`` reaches it: only bits set in ``most`` are seen."""
        return self.both(*(self.bit(value, k) for k in range(most.bit_length()) if most >> k & 1))

    def equals(self, value: Ref, constant: int) -> Ref:
        return self.builder.op("compare.eq", value, self.builder.const(value.type, constant))

    def less(self, a: Ref, b: Ref) -> Ref:
        return self.builder.op("compare.lt", a, b)

    # Arithmetic

    def add(self, *terms: Ref) -> Ref:
        """Sum of terms of one type, modulo its width."""
        return self._fold("integer.add", terms)

    def subtract(self, a: Ref, b: Ref) -> Ref:
        return self.builder.op("integer.sub", a, b)

    def multiply(self, a: Ref, b: Ref) -> Ref:
        """Product of terms of one type, modulo its width."""
        return self.builder.op("integer.mul", a, b)

    def product(self, a: Ref, b: Ref) -> Ref:
        """The exact product of unsigned vectors, as wide as both together."""
        kind = uint(self.width(a) + self.width(b))
        return self.multiply(self.cast(a, kind), self.cast(b, kind))

    def left(self, value: Ref, amount: Ref | int) -> Ref:
        """``value << amount``; the value's width is kept, far amounts give 0."""
        return self.builder.op("bits.shl", value, self._amount(amount))

    def right(self, value: Ref, amount: Ref | int) -> Ref:
        """``value >> amount``: arithmetic on signed values."""
        return self.builder.op("bits.shr", value, self._amount(amount))

    def _amount(self, amount: Ref | int) -> Ref:
        return self.builder.const(IntType.holding(0, amount), amount) if isinstance(amount, int) else amount

    def leading_zeros(self, value: Ref) -> Ref:
        """Zeros above the highest set bit of an unsigned vector (its width for 0), as narrow as that fits."""
        count = self.builder.op("bits.clz", value)
        return self.cast(count, IntType.holding(0, self.width(value)))

    # Exact integers

    def integer(self, value: int) -> Ref:
        return self.builder.const(IntType.holding(value, value), value)

    def fit(self, value: Ref, span: Range | None = None) -> Ref:
        """The same integer in the narrowest type; ``span`` may say more than its range does."""
        if value.type == BOOL:
            return self.builder.cast(value, IntType(1, False))
        return self.builder.cast(value, IntType.holding(*(span or self.builder.range(value))))

    def _exact(self, opcode: str, a: Ref, b: Ref, span: Range) -> Ref:
        a, b = self.fit(a), self.fit(b)
        ranges = (self.builder.range(a), self.builder.range(b), span)
        kind = IntType.holding(min(low for low, _ in ranges), max(high for _, high in ranges))
        return self.fit(self.builder.op(opcode, self.builder.cast(a, kind), self.builder.cast(b, kind)))

    def range(self, value: Ref) -> Range:
        return (0, 1) if value.type == BOOL else self.builder.range(value)

    def sum_of(self, *terms: Ref) -> Ref:
        """The sum."""
        total = terms[0]
        for term in terms[1:]:
            (a, b), (c, d) = self.range(total), self.range(term)
            total = self._exact("integer.add", total, term, (a + c, b + d))
        return total

    def difference(self, a: Ref, b: Ref) -> Ref:
        """``a - b``."""
        (p, q), (r, s) = self.range(a), self.range(b)
        return self._exact("integer.sub", a, b, (p - s, q - r))

    def times(self, a: Ref, b: Ref) -> Ref:
        """The product."""
        corners = [x * y for x in self.range(a) for y in self.range(b)]
        return self._exact("integer.mul", a, b, (min(corners), max(corners)))

    def raised(self, value: Ref, amount: int) -> Ref:
        """``value * 2^amount``."""
        if amount == 0:
            return value
        low, high = self.range(value)
        kind = IntType.holding(low << amount, high << amount)
        return self.builder.op("bits.shl", self.builder.cast(value, kind), self._amount(amount))

    def lowered(self, value: Ref, amount: int) -> Ref:
        """``floor(value / 2^amount)``; a negative amount shifts left."""
        if amount <= 0:
            return self.raised(value, -amount)
        value = self.fit(value)
        return self.fit(self.builder.op("bits.shr", value, self._amount(amount)))

    def piece(self, value: Ref, high: int, low: int) -> Ref:
        """Bits ``high`` down to ``low`` of the two's complement form, unsigned."""
        kind = value.type
        assert isinstance(kind, IntType)
        if kind.width_bits <= high:
            value = self.builder.cast(value, IntType(high + 1, kind.signed))
        return self.fit(self.builder.op("bits.extract", value, high=high, low=low))

    def digit(self, value: Ref, index: int) -> Ref:
        """One bit of the two's complement form, as a bool."""
        kind = value.type
        assert isinstance(kind, IntType)
        if kind.width_bits <= index:
            value = self.builder.cast(value, IntType(index + 1, kind.signed))
        return self.builder.op("bits.test", value, index=index)

    def choose(self, condition: Ref, then: Ref, otherwise: Ref) -> Ref:
        """``condition ? then : otherwise``."""
        (a, b), (c, d) = self.range(then), self.range(otherwise)
        kind = IntType.holding(min(a, c), max(b, d))
        return self.builder.select(
            condition, self.builder.cast(then, kind), self.builder.cast(otherwise, kind),
        )

    def negated_if(self, condition: Ref, value: Ref) -> Ref:
        """``condition ? -value : value``."""
        return self.choose(condition, self.difference(self.integer(0), value), value)

    def is_below(self, a: Ref, b: Ref) -> Ref:
        """Whether a < b."""
        return self._exact_relation("compare.lt", a, b)

    def is_equal(self, a: Ref, b: Ref) -> Ref:
        """Whether a = b."""
        return self._exact_relation("compare.eq", a, b)

    def _exact_relation(self, opcode: str, a: Ref, b: Ref) -> Ref:
        (p, q), (r, s) = self.range(a), self.range(b)
        kind = IntType.holding(min(p, r), max(q, s))
        return self.builder.op(opcode, self.builder.cast(a, kind), self.builder.cast(b, kind))

    def raised_by(self, value: Ref, amount: Ref) -> Ref:
        """``value * 2^amount`` for a non-negative variable amount."""
        low, high = self.range(value)
        most = self.range(amount)[1]
        kind = IntType.holding(min(low, low << most), high << most)
        return self.builder.op("bits.shl", self.builder.cast(value, kind), self.fit(amount))

    def lowered_by(self, value: Ref, amount: Ref) -> Ref:
        """``floor(value / 2^amount)`` for a non-negative variable amount."""
        return self.fit(self.builder.op("bits.shr", self.fit(value), self.fit(amount)))

    def lookup(self, index: Ref, contents: Sequence[int]) -> Ref:
        """``contents[index]``: a table of constants. Indices past the end give its last word."""
        span = (min(contents), max(contents))
        known = self.builder.value(index)
        if known is not None:
            return self.integer(contents[min(known, len(contents) - 1)])
        if span[0] == span[1]:
            return self.integer(span[0])
        kind = IntType.holding(*span)
        low, _ = self.range(index)
        assert low >= 0, "a table is read by unsigned positions"
        store = self.builder.store
        tensor = TensorType(kind, (len(contents),))
        table = store.constant(tensor, np.array(contents, dtype=np.int64 if kind.signed else np.uint64))
        return store.op("tensor.index", table, self.fit(index))

    def times_lowered(self, a: Ref, b: Ref, drop: int) -> Ref:
        """``floor(a * b / 2^drop)``, exactly, by products of a multiplier's size.

        ``b`` is at most as wide as a multiplier; ``a`` is cut into pieces of that width. Carries run only
        through the pieces whose products lose bits.
        """
        carried: Ref | None = None
        terms: list[Ref] = []
        pieces = self.tiles(a)
        for index, piece in enumerate(pieces):
            term, weight = self.times(piece, b), index * TILE_BITS
            if weight >= drop:
                terms.append(self.raised(term, weight - drop))
                continue
            if carried is not None:
                term = self.sum_of(term, carried)
            carried = self.lowered(term, min(TILE_BITS, drop - weight))
        if carried is not None:
            carried = self.lowered(carried, max(0, drop - TILE_BITS * len(pieces)))
            terms.append(carried)
        return self.sum_of(*terms)

    def tiles(self, a: Ref) -> list[Ref]:
        """``a`` in pieces of a multiplier's width, lowest first; only the last may be negative."""
        kind = self.fit(a).type
        assert isinstance(kind, IntType)
        width = kind.width_bits
        parts: list[Ref] = []
        low = 0
        while width - low > TILE_BITS:
            parts.append(self.piece(a, low + TILE_BITS - 1, low))
            low += TILE_BITS
        parts.append(self.lowered(a, low))
        return parts
