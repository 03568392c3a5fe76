"""Exact integer arithmetic while building: every result gets a type that holds all its values.

The elementary functions are computed in fixed point: a value is an integer times a power of two that the
code around it knows. Sums and products here never wrap; bits leave only where a shift drops them.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.types import BOOL, IntType, TensorType

Range = tuple[int, int]
"""The least and the greatest value; an ``Interval`` is one."""

TILE_BITS = 18
"""Width of the pieces that wide products are made of: a multiplier's operand."""


def type_of(span: Range) -> IntType:
    """The narrowest integer type of a range; unsigned where no value is negative."""
    return IntType.holding(*span)


class Exact:
    """Operations on integers of a builder whose results are exact."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def const(self, value: int) -> Ref:
        return self.builder.const(type_of((value, value)), value)

    def fit(self, value: Ref, span: Range | None = None) -> Ref:
        """The same integer in the narrowest type; ``span`` may say more than its range does."""
        if value.type == BOOL:
            return self.builder.cast(value, IntType(1, False))
        return self.builder.cast(value, type_of(span or self.builder.range(value)))

    def _binary(self, opcode: str, a: Ref, b: Ref, span: Range) -> Ref:
        a, b = self.fit(a), self.fit(b)
        ranges = (self.builder.range(a), self.builder.range(b), span)
        kind = type_of((min(low for low, _ in ranges), max(high for _, high in ranges)))
        return self.fit(self.builder.op(opcode, self.builder.cast(a, kind), self.builder.cast(b, kind)))

    def range(self, value: Ref) -> Range:
        return (0, 1) if value.type == BOOL else self.builder.range(value)

    def add(self, *terms: Ref) -> Ref:
        """The sum."""
        total = terms[0]
        for term in terms[1:]:
            (a, b), (c, d) = self.range(total), self.range(term)
            total = self._binary("integer.add", total, term, (a + c, b + d))
        return total

    def sub(self, a: Ref, b: Ref) -> Ref:
        """``a - b``."""
        (p, q), (r, s) = self.range(a), self.range(b)
        return self._binary("integer.sub", a, b, (p - s, q - r))

    def mul(self, a: Ref, b: Ref) -> Ref:
        """The product of two values whose product fits 64 bits."""
        corners = [x * y for x in self.range(a) for y in self.range(b)]
        return self._binary("integer.mul", a, b, (min(corners), max(corners)))

    def shl(self, value: Ref, amount: int) -> Ref:
        """``value * 2^amount``."""
        if amount == 0:
            return value
        low, high = self.range(value)
        kind = type_of((low << amount, high << amount))
        return self.builder.op("bits.shl", self.builder.cast(value, kind), self._amount(amount))

    def shr(self, value: Ref, amount: int) -> Ref:
        """``floor(value / 2^amount)``; a negative amount shifts left."""
        if amount <= 0:
            return self.shl(value, -amount)
        value = self.fit(value)
        return self.fit(self.builder.op("bits.shr", value, self._amount(amount)))

    def _amount(self, amount: int) -> Ref:
        return self.builder.const(IntType.holding(0, amount), amount)

    def bits(self, value: Ref, high: int, low: int) -> Ref:
        """Bits ``high`` down to ``low`` of the two's complement form, unsigned."""
        kind = value.type
        assert isinstance(kind, IntType)
        if kind.width_bits <= high:
            value = self.builder.cast(value, IntType(high + 1, kind.signed))
        return self.fit(self.builder.op("bits.extract", value, high=high, low=low))

    def bit(self, value: Ref, index: int) -> Ref:
        """One bit of the two's complement form, as a bool."""
        kind = value.type
        assert isinstance(kind, IntType)
        if kind.width_bits <= index:
            value = self.builder.cast(value, IntType(index + 1, kind.signed))
        return self.builder.op("bits.test", value, index=index)

    def select(self, condition: Ref, then: Ref, otherwise: Ref) -> Ref:
        """``condition ? then : otherwise``."""
        (a, b), (c, d) = self.range(then), self.range(otherwise)
        kind = type_of((min(a, c), max(b, d)))
        return self.builder.select(
            condition, self.builder.cast(then, kind), self.builder.cast(otherwise, kind),
        )

    def negate_if(self, condition: Ref, value: Ref) -> Ref:
        """``condition ? -value : value``."""
        return self.select(condition, self.sub(self.const(0), value), value)

    def less(self, a: Ref, b: Ref) -> Ref:
        """Whether a < b."""
        return self._compare("compare.lt", a, b)

    def equal(self, a: Ref, b: Ref) -> Ref:
        """Whether a = b."""
        return self._compare("compare.eq", a, b)

    def _compare(self, opcode: str, a: Ref, b: Ref) -> Ref:
        (p, q), (r, s) = self.range(a), self.range(b)
        kind = type_of((min(p, r), max(q, s)))
        return self.builder.op(opcode, self.builder.cast(a, kind), self.builder.cast(b, kind))

    def variable_shl(self, value: Ref, amount: Ref) -> Ref:
        """``value * 2^amount`` for a non-negative variable amount."""
        low, high = self.range(value)
        most = self.range(amount)[1]
        kind = type_of((min(low, low << most), high << most))
        return self.builder.op("bits.shl", self.builder.cast(value, kind), self.fit(amount))

    def variable_shr(self, value: Ref, amount: Ref) -> Ref:
        """``floor(value / 2^amount)`` for a non-negative variable amount."""
        return self.fit(self.builder.op("bits.shr", self.fit(value), self.fit(amount)))

    def lookup(self, index: Ref, contents: Sequence[int]) -> Ref:
        """``contents[index]``: a table of constants. Indices past the end give its last word."""
        span = (min(contents), max(contents))
        known = self.builder.value(index)
        if known is not None:
            return self.const(contents[min(known, len(contents) - 1)])
        if span[0] == span[1]:
            return self.const(span[0])
        kind = type_of(span)
        low, _ = self.range(index)
        assert low >= 0, "a table is read by unsigned positions"
        store = self.builder.store
        tensor = TensorType(kind, (len(contents),))
        table = store.constant(tensor, np.array(contents, dtype=np.int64 if kind.signed else np.uint64))
        return store.op("tensor.index", table, self.fit(index))

    def mul_shr(self, a: Ref, b: Ref, drop: int) -> Ref:
        """``floor(a * b / 2^drop)``, exactly: the product may be wider than 64 bits, the result may not.

        ``b`` is at most as wide as a multiplier; ``a`` is cut into pieces of that width. Carries run only
        through the pieces whose products lose bits.
        """
        carried: Ref | None = None
        terms: list[Ref] = []
        pieces = self.pieces(a)
        for index, piece in enumerate(pieces):
            term, weight = self.mul(piece, b), index * TILE_BITS
            if weight >= drop:
                terms.append(self.shl(term, weight - drop))
                continue
            if carried is not None:
                term = self.add(term, carried)
            carried = self.shr(term, min(TILE_BITS, drop - weight))
        if carried is not None:
            carried = self.shr(carried, max(0, drop - TILE_BITS * len(pieces)))
            terms.append(carried)
        return self.add(*terms)

    def pieces(self, a: Ref) -> list[Ref]:
        """``a`` in pieces of a multiplier's width, lowest first; only the last may be negative."""
        kind = self.fit(a).type
        assert isinstance(kind, IntType)
        width = kind.width_bits
        parts: list[Ref] = []
        low = 0
        while width - low > TILE_BITS:
            parts.append(self.bits(a, low + TILE_BITS - 1, low))
            low += TILE_BITS
        parts.append(self.shr(a, low))
        return parts
