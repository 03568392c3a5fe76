"""Case splits of a proof by its inputs: which bits of each are known.

A case is split into two that exclude each other and together are the whole of it: a bit is 0 or 1. So the
cases at the leaves cover all inputs exactly once, whatever is split and however deep. What is known is part
of the terms that stand for the inputs, not an assumption: everything that depends on it alone folds away
before solving.

The classes of a float are chosen for that. Zero and subnormal numbers, infinities and NaN are told from the
rest by an exponent of all zeros or all ones; one bit that is set and one that is clear rule both out. Then
implementation and theory see one and the same significand, and their multipliers become one.
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

    @property
    def anything(self) -> bool:
        """Whether nothing is known."""
        return not self.mask

    def holds(self, bits: int) -> bool:
        """Whether a pattern is in the case."""
        return bits & self.mask == self.value

    def pattern(self, terms: Terms, variable: Term) -> Term:
        """A term that takes every value of the case, and no other, as the variable takes all of its own.

        It is the variable itself wherever that is in the case.
        """
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

    def fixed(self, bits: int, value: int) -> Known:
        """The same with more bits known."""
        return Known(self.width, self.mask | bits, self.value | value)


Case = tuple[Known, ...]


def whole(kinds: Sequence[Type]) -> Case:
    """The one case of everything."""
    return tuple(Known(bit_width(kind)) for kind in kinds)


Choice = Callable[[FloatType, Known], tuple[Known, Known] | None]


def _exponent_bits(kind: FloatType) -> range:
    """The places of the exponent's bits, the highest first."""
    return range(kind.width_bits - 2, kind.fraction_bits - 1, -1)


def _by_bit(known: Known, bit: int) -> tuple[Known, Known]:
    return known.fixed(1 << bit, 0), known.fixed(1 << bit, 1 << bit)


def _classified(kind: FloatType, known: Known) -> tuple[Known, Known] | None:
    """The exponent from its highest bit down to one that differs: all zeros, all ones, or neither."""
    first = _exponent_bits(kind)[0]
    for bit in _exponent_bits(kind):
        if not known.mask >> bit & 1:
            return _by_bit(known, bit)
        if known.value >> bit & 1 != known.value >> first & 1:
            return None
    return None


def _led(kind: FloatType, known: Known) -> tuple[Known, Known] | None:
    """Of an exponent of zero, the fraction down to its leading one."""
    if any(not known.mask >> bit & 1 or known.value >> bit & 1 for bit in _exponent_bits(kind)):
        return None
    for bit in reversed(range(kind.fraction_bits)):
        if not known.mask >> bit & 1:
            return _by_bit(known, bit)
        if known.value >> bit & 1:
            return None
    return None


def _narrowed(kind: FloatType, known: Known) -> tuple[Known, Known] | None:
    """An exponent told by its bits, the highest first."""
    for bit in _exponent_bits(kind):
        if not known.mask >> bit & 1:
            return _by_bit(known, bit)
    return None


def class_count(kind: Type) -> int:
    """How many classes an input of a type has."""
    return 2 * kind.exponent_bits if isinstance(kind, FloatType) else 1


def classes(kinds: Sequence[Type], case: Case) -> tuple[Case, Case] | None:
    """A split towards exponents of zeros, of ones and others, of one of the first inputs, of these types."""
    return _split(kinds, case, _classified)


def leading_ones(kinds: Sequence[Type], case: Case) -> tuple[Case, Case] | None:
    """A split of an exponent of zero towards zero and subnormal numbers by their leading ones."""
    return _split(kinds, case, _led)


def exponents(kinds: Sequence[Type], case: Case) -> tuple[Case, Case] | None:
    """A further split, by the highest exponent bit that is still free; None where all are known."""
    return _split(kinds, case, _narrowed)


def _split(kinds: Sequence[Type], case: Case, choose: Choice) -> tuple[Case, Case] | None:
    """The split of the input of which least is known."""
    best: tuple[int, int, tuple[Known, Known]] | None = None
    for place, (kind, known) in enumerate(zip(kinds, case)):
        halves = choose(kind, known) if isinstance(kind, FloatType) else None
        if halves is not None and (best is None or known.mask.bit_count() < best[0]):
            best = (known.mask.bit_count(), place, halves)
    if best is None:
        return None
    _, place, halves = best
    first, second = ((*case[:place], half, *case[place + 1 :]) for half in halves)
    return first, second
