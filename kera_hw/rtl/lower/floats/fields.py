"""Fields of a float format, and short names for the integer operations that float units are made of.

A float scalar travels through a flat region as its bit pattern, an unsigned integer of the format's width.
Everything here is generic in exponent and fraction bits.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder, width_of
from kera_hw.types import BOOL, FloatType, IntType, Type


def uint(width: int) -> IntType:
    """The unsigned integer type of ``width`` bits."""
    return IntType(width, False)


@dataclass(frozen=True, slots=True)
class Format:
    """Constants of a binary interchange format: 1 sign bit, exponent bits, fraction bits."""

    kind: FloatType

    def __post_init__(self) -> None:
        assert self.kind.exponent_bits >= 2 and self.kind.fraction_bits >= 1 and self.width <= 64, (
            f"float units are made for 2 exponent bits and more, a fraction, and words of at most 64 bits: "
            f"{self.kind} has {self.kind.exponent_bits} + {self.kind.fraction_bits}"
        )

    @property
    def exponent_bits(self) -> int:
        return self.kind.exponent_bits

    @property
    def fraction_bits(self) -> int:
        return self.kind.fraction_bits

    @property
    def width(self) -> int:
        return self.kind.width_bits

    @property
    def word(self) -> IntType:
        """The type that carries a value's bits."""
        return uint(self.kind.width_bits)

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def top(self) -> int:
        """The exponent field of infinities and NaN."""
        return (1 << self.exponent_bits) - 1

    @property
    def infinity(self) -> int:
        """Bits of +infinity: also the magnitude from which values are not finite."""
        return self.top << self.fraction_bits

    @property
    def nan(self) -> int:
        """Bits of the canonical NaN."""
        return self.kind.canonical_nan

    @property
    def is_deep(self) -> bool:
        """Whether the least subnormals lie so low that a root of one is subnormal too."""
        return self.bias <= self.fraction_bits

    @property
    def span(self) -> IntType:
        """A signed type for exponents before they are cut to the field: any sum or difference of two
        numbers' exponents and the bias, less the places that a significand or its quotient may move."""
        most = 3 * (self.bias + 1) + self.fraction_bits + 4
        return IntType(max(self.exponent_bits + 2, most.bit_length() + 1), True)


class Wires:
    """Integer and bit operations on a builder, under names short enough to read a circuit by.

    Conditions are bools; vectors are integers whose width is meant exactly. They may be wider than a word:
    mapping cuts those that are, for which a wide product or sum is one operation here.
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


class Fields:
    """A float's parts: each is wired up when first asked for, so a unit pays only for what it reads."""

    def __init__(self, wires: Wires, form: Format, word: Ref) -> None:
        assert word.type == form.word, f"{form.kind} is carried as {form.word}, not {word.type}"
        self.wires = wires
        self.form = form
        self.word = word

    @property
    def sign(self) -> Ref:
        """Whether the sign bit is set."""
        return self.wires.bit(self.word, self.form.width - 1)

    @property
    def exponent(self) -> Ref:
        """The biased exponent field."""
        return self.wires.bits(self.word, self.form.width - 2, self.form.fraction_bits)

    @property
    def fraction(self) -> Ref:
        """The stored fraction field."""
        return self.wires.low_bits(self.word, self.form.fraction_bits)

    @property
    def magnitude(self) -> Ref:
        """All bits but the sign: they order as the absolute values do, infinity and NaN above."""
        return self.wires.low_bits(self.word, self.form.width - 1)

    @property
    def is_small(self) -> Ref:
        """Whether the exponent field is 0: a subnormal, or zero."""
        return self.wires.none(self.exponent)

    @property
    def is_top(self) -> Ref:
        """Whether the exponent field is all ones: infinite or NaN."""
        return self.wires.all(self.exponent)

    @property
    def is_zero(self) -> Ref:
        return self.wires.both(self.is_small, self.wires.none(self.fraction))

    @property
    def is_nan(self) -> Ref:
        return self.wires.both(self.is_top, self.wires.any(self.fraction))

    @property
    def is_infinite(self) -> Ref:
        return self.wires.both(self.is_top, self.wires.none(self.fraction))

    @property
    def scale(self) -> Ref:
        """The exponent field, but 1 for subnormals: the value is ``significand * 2^(scale - bias - F)``."""
        wires = self.wires
        lowest = wires.either(wires.bit(self.exponent, 0), self.is_small)
        return wires.cat(wires.bits(self.exponent, self.form.exponent_bits - 1, 1), lowest)

    @property
    def significand(self) -> Ref:
        """The fraction below its hidden bit: F + 1 bits."""
        return self.wires.cat(self.wires.invert(self.is_small), self.fraction)


def unpack(builder: Builder, kind: FloatType, word: Ref) -> Fields:
    """The fields of a float carried as its bits."""
    return Fields(Wires(builder), Format(kind), word)
