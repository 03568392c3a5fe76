"""Case splits of a proof by its inputs: which bits of each are known, and which field of it is not zero.

A case is split into two that exclude each other and together are the whole of it: a bit is 0 or 1, a field
is 0 or not. So the cases at the leaves cover all inputs exactly once, whatever is split and however deep.
What is known is part of the terms that stand for the inputs, not an assumption: everything that depends on
it alone folds away before solving.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kera_hw.rtl.formal.terms import Term, Terms
from kera_hw.types import FloatType, Type, bit_width


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one input: the bits of ``mask`` are those of ``value``, and a field may be nonzero.

    ``nonzero`` is the lowest bit and the width of such a field, none of whose bits are in ``mask``.
    """

    width: int
    mask: int = 0
    value: int = 0
    nonzero: tuple[int, int] | None = None

    @property
    def anything(self) -> bool:
        """Whether nothing is known."""
        return not self.mask and self.nonzero is None

    def holds(self, bits: int) -> bool:
        """Whether a pattern is in the case."""
        field = 1 if self.nonzero is None else bits >> self.nonzero[0] & ((1 << self.nonzero[1]) - 1)
        return bits & self.mask == self.value and field != 0

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
        return self._with_nonzero(terms, terms.concat(parts))

    def _with_nonzero(self, terms: Terms, word: Term) -> Term:
        """The lowest bit of the field set where all others are clear."""
        if self.nonzero is None:
            return word
        low, width = self.nonzero
        others = terms.extract(word, low + 1, width - 1)
        empty = terms.eq(others, terms.const(0, width - 1))
        lowest = terms.bit_or(terms.extract(word, low, 1), empty)
        below = [terms.extract(word, 0, low)] if low else []
        return terms.concat([*below, lowest, terms.extract(word, low + 1, word.width - low - 1)])

    def fixed(self, bits: int, value: int) -> Known:
        """The same with more bits known."""
        return Known(self.width, self.mask | bits, self.value | value, self.nonzero)


Case = tuple[Known, ...]


def whole(kinds: Sequence[Type]) -> Case:
    """The one case of everything."""
    return tuple(Known(bit_width(kind)) for kind in kinds)


Choice = Callable[[FloatType, Known], tuple[Known, Known] | None]


def _exponent_mask(kind: FloatType) -> int:
    return ((1 << kind.exponent_bits) - 1) << kind.fraction_bits


def _by_bit(known: Known, bit: int) -> tuple[Known, Known]:
    return known.fixed(1 << bit, 0), known.fixed(1 << bit, 1 << bit)


def _classified(kind: FloatType, known: Known) -> tuple[Known, Known] | None:
    """Exponent zero or not."""
    field = _exponent_mask(kind)
    if known.nonzero is not None or known.mask & field:
        return None
    return known.fixed(field, 0), replace(known, nonzero=(kind.fraction_bits, kind.exponent_bits))


def _led(kind: FloatType, known: Known) -> tuple[Known, Known] | None:
    """Of an exponent of zero, the fraction down to its leading one."""
    field = _exponent_mask(kind)
    if known.mask & field != field or known.value & field:
        return None
    for bit in reversed(range(kind.fraction_bits)):
        if not known.mask >> bit & 1:
            return _by_bit(known, bit)
        if known.value >> bit & 1:
            return None
    return None


def _narrowed(kind: FloatType, known: Known) -> tuple[Known, Known] | None:
    """An exponent told by its bits, the highest first; one of zeros has nothing more to tell."""
    if known.nonzero is None and known.mask & _exponent_mask(kind) == _exponent_mask(kind):
        return None
    for bit in reversed(range(kind.fraction_bits, kind.width_bits - 1)):
        if not known.mask >> bit & 1:
            return _settled(kind, known, bit)
    return None


def _settled(kind: FloatType, known: Known, bit: int) -> tuple[Known, Known]:
    """A split by an exponent bit: where it is set the exponent is not zero, else the bits below are not."""
    if known.nonzero is None:
        return _by_bit(known, bit)
    zero, one = _by_bit(replace(known, nonzero=None), bit)
    rest = bit - kind.fraction_bits
    if rest == 1:  # the lowest bit is left, which must be set
        return zero.fixed(1 << kind.fraction_bits, 1 << kind.fraction_bits), one
    return replace(zero, nonzero=(kind.fraction_bits, rest)), one


def classes(kinds: Sequence[Type], case: Case, inputs: int | None = None) -> tuple[Case, Case] | None:
    """A split into exponents that are zero and that are not, of the first ``inputs`` inputs or of all."""
    return _split(kinds[:inputs], case, _classified)


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
