"""Case splits of a proof by bits of its inputs: which bits of each input are known, and to be what.

A case is split by one bit of one input into the case where that bit is 0 and the case where it is 1, so the
cases at the leaves cover all inputs exactly once, whatever is split and however deep. A known bit is a
constant in the terms, not an assumption, so everything that depends on it alone folds away before solving.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kera_hw.rtl.formal.terms import Term, Terms
from kera_hw.types import FloatType, Type, bit_width


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one input: the bits of ``mask`` are those of ``value``."""

    width: int
    mask: int = 0
    value: int = 0

    def pattern(self, terms: Terms, variable: Term) -> Term:
        """The variable with its known bits made constants."""
        parts: list[Term] = []
        low = 0
        while low < self.width:
            known = self.mask >> low & 1
            high = low + 1
            while high < self.width and (self.mask >> high & 1) == known:
                high += 1
            size = high - low
            constant = terms.const(self.value >> low, size)
            parts.append(constant if known else terms.extract(variable, low, size))
            low = high
        return terms.concat(parts)

    def fixed(self, bit: int, value: int) -> Known:
        """The same with one bit more."""
        return Known(self.width, self.mask | 1 << bit, self.value | value << bit)


Case = tuple[Known, ...]


def whole(kinds: Sequence[Type]) -> Case:
    """The one case of everything."""
    return tuple(Known(bit_width(kind)) for kind in kinds)


def _outlined(kind: FloatType, known: Known) -> int | None:
    """The highest free bit of a magnitude, until it is told which special or ordinary class it is of.

    An exponent is followed until a bit of it differs from the first: then it is neither 0 nor all ones. One
    of zeros is followed down the fraction to the leading one, one of all ones needs no more.
    """
    top = kind.width_bits - 2
    for bit in range(top, -1, -1):
        if not known.mask >> bit & 1:
            return bit
        first, here = known.value >> top & 1, known.value >> bit & 1
        if here != first or (first and bit == kind.fraction_bits):
            return None
    return None


def _exponent_bit(kind: FloatType, known: Known) -> int | None:
    """The highest free exponent bit."""
    for bit in range(kind.width_bits - 2, kind.fraction_bits - 1, -1):
        if not known.mask >> bit & 1:
            return bit
    return None


def outlines(kinds: Sequence[Type], case: Case) -> tuple[Case, Case] | None:
    """A split towards zeros, subnormal numbers by leading zeros, ranges of exponents, infinities and NaN."""
    return _split(kinds, case, _outlined)


def exponents(kinds: Sequence[Type], case: Case) -> tuple[Case, Case] | None:
    """A further split, by the highest exponent bit that is still free; None where all are known."""
    return _split(kinds, case, _exponent_bit)


def _split(
    kinds: Sequence[Type], case: Case, choose: Callable[[FloatType, Known], int | None]
) -> tuple[Case, Case] | None:
    best: tuple[int, int] | None = None  # (bit, input): the highest bit decides, then the first input
    for place, (kind, known) in enumerate(zip(kinds, case)):
        bit = choose(kind, known) if isinstance(kind, FloatType) else None
        if bit is not None and (best is None or bit > best[0]):
            best = (bit, place)
    if best is None:
        return None
    bit, place = best
    halves = [(*case[:place], case[place].fixed(bit, value), *case[place + 1 :]) for value in (0, 1)]
    return halves[0], halves[1]
