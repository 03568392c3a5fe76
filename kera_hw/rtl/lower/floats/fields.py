"""Fields of a float format.

A float scalar travels through a flat region as its bit pattern, an unsigned integer of the format's width.
Everything here is generic in exponent and fraction bits.
"""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.graph.node import Ref
from kera_hw.rtl.lower.builder import Builder
from kera_hw.rtl.lower.floats.wires import Wires, uint
from kera_hw.types import FloatType, IntType


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
