"""Products that take turns: sums of products a term a cycle, in a multiplier and an accumulator behind it.

With ``turns`` > 1 the products of a design are bound to multipliers, so many to each, in the order in which
they become computable: terms of one sum follow each other in one multiplier, whose results its accumulator
adds up as they appear. So neither products nor partial sums are ever chosen among or kept; what a multiplier
does choose among is its factors. A sum is cut where a multiplier is full, or where its terms would come so
much later than the multiplier's others that no interval holds them all. Terms of one sum are added in any
order: what they add to is an integer.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kera_hw.rtl.techmap.items import Product, Turn
from kera_hw.rtl.techmap.linear import Target, signed_digits
from kera_hw.rtl.techmap.net import Net
from kera_hw.rtl.techmap.options import Capabilities
from kera_hw.rtl.techmap.product import SMALL_BITS
from kera_hw.rtl.techmap.words import Word, constant, range_width, trimmed
from kera_hw.schedule.fpga.bits import Bits, const_bits, slice_bits
from kera_hw.schedule.fpga.units import Operator
from kera_hw.schedule.fpga.units.operator import accumulator, shared_product

_ROUND_CYCLES = 3
"""Stages between one round of sums and the next, besides a multiplier's own, for want of a schedule."""
_LEAST_DIGITS = 2
_NEAR_MULTIPLIERS = 32
"""Multipliers that can stand near what they share: of more the operands take a stage on their way."""

Factors = tuple[Word, Word]


@dataclass
class _Multiplier:
    """One of them: how many products it has, the round of the first, the widest sum behind it."""

    taken: int
    round: int
    sum_bits: int = 0


class Sharing:
    """Which products are in which multiplier, and the operators that come of it."""

    def __init__(self, net: Net, able: Capabilities) -> None:
        self._net = net
        self._turns = able.turns
        self._dsp = able.dsp
        self._multipliers: list[_Multiplier] = []
        self._calls = 0
        self.round = 0
        """How many rounds of sums lie before those that are being made."""

    @property
    def works(self) -> bool:
        """Whether products take turns at all."""
        return self._turns > 1 and self._dsp is not None and self._dsp.latency_cycles > 0

    @property
    def side_bits(self) -> int:
        assert self._dsp is not None
        return min(self._dsp.a_bits, self._dsp.b_bits)

    def operators(self) -> tuple[Operator, ...]:
        """Each multiplier and behind it its accumulator, by the numbers of items."""
        assert self._dsp is not None
        found: list[Operator] = []
        held = len(self._multipliers) > _NEAR_MULTIPLIERS
        for k, multiplier in enumerate(self._multipliers):
            found.append(
                shared_product(
                    f"product{k + 1}", multiplier.taken, self.side_bits, self._dsp.latency_cycles, held
                )
            )
            found.append(accumulator(f"accumulator{k + 1}", multiplier.taken, max(1, multiplier.sum_bits)))
        return tuple(found)

    def drawn(
        self, variables: Sequence[Word], targets: Sequence[Target]
    ) -> tuple[list[Word], list[Target]]:
        """Variables and targets with sums of products made already, as further variables."""
        if not self.works:
            return list(variables), list(targets)
        values, changed = list(variables), list[Target]()
        uses = Counter(index for target in targets for index in target.terms)
        for index, times in uses.items():
            if times > 1:  # made once for all
                values[index] = self.product(values[index])
        for target in targets:
            rest: dict[int, int] = {}
            chains: dict[int, list[Factors]] = {}  # by the coefficient of their sum
            for index, value in target.terms.items():
                term = self._term(values[index], value, target.width)
                if term is None:
                    rest[index] = value
                else:
                    chains.setdefault(term[0], []).append(term[1])
            for coefficient, terms in chains.items():
                for word in self._chain(terms, target.width):
                    rest[len(values)] = coefficient
                    values.append(word)
            changed.append(replace(target, terms=rest))
        return values, changed

    def product(self, word: Word) -> Word:
        """A product by itself, made in turn if it is one."""
        factors = self._factors(word, word.width + 1)
        return word if factors is None or not self.works else self._chain([factors], word.width)[0]

    def _term(self, word: Word, value: int, width: int) -> tuple[int, Factors] | None:
        """The coefficient and the factors of a term that is worth a turn."""
        factors = self._factors(word, width)
        if factors is not None:
            return value, factors
        shift = (value & -value).bit_length() - 1
        if self._fits(constant(value)):
            shift = 0
        factor = constant(value >> shift)
        few = len(signed_digits(value)) < _LEAST_DIGITS or word.width <= SMALL_BITS
        if few or not self._fits(word) or not self._fits(factor):
            return None
        return 1 << shift, (word, factor)

    def _factors(self, word: Word, width: int) -> Factors | None:
        """Of a word that is a product in one multiplier, whole or of the ``width`` bits that matter."""
        if len(word.bits) != 1:
            return None
        (segment,) = word.bits
        if segment.cell is None:
            return None
        item = self._net.items[segment.cell]
        if not isinstance(item, Product) or segment.low or segment.width != item.width:
            return None
        a, b = Word(item.ins[0], item.a_signed), Word(item.ins[1], item.b_signed)
        corners = [x * y for x in a.range for y in b.range]
        whole = range_width((min(corners), max(corners)))[0] <= item.width or width <= item.width
        return (a, b) if whole and self._fits(a) and self._fits(b) else None

    def _fits(self, word: Word) -> bool:
        return word.width + (not word.signed) <= self.side_bits

    def _chain(self, terms: Sequence[Factors], width: int) -> list[Word]:
        """Words whose sum is that of the products, modulo 2^width; each is one chain."""
        found: list[Word] = []
        left = list(terms)
        while left:
            number = self._open(len(left))
            multiplier = self._multipliers[number]
            part = left[: self._turns - multiplier.taken]
            left = left[len(part) :]
            multiplier.taken += len(part)
            found.append(self._accumulated(number, part, width))
        return found

    def _open(self, count: int) -> int:
        """The multiplier for the next terms: the last that has room and is not long past, else a new one."""
        assert self._dsp is not None
        partly: int | None = None
        for number, known in enumerate(self._multipliers):
            later = (self.round - known.round) * (_ROUND_CYCLES + self._dsp.latency_cycles)
            if known.taken < self._turns and max(later, known.taken) + count <= self._turns:
                return number
            if partly is None and max(later, known.taken) < self._turns:
                partly = number
        if partly is None:
            self._multipliers.append(_Multiplier(0, self.round))
            return len(self._multipliers) - 1
        return partly

    def _accumulated(self, number: int, terms: Sequence[Factors], width: int) -> Word:
        spans, products = list[tuple[int, int]](), list[Word]()
        for a, b in terms:
            ins = (a.extend(self.side_bits), b.extend(self.side_bits))
            bits = self._turn(2 * self.side_bits, ins, 2 * number)
            corners = [x * y for x in a.range for y in b.range]
            spans.append((min(corners), max(corners)))
            size, signed = range_width(spans[-1])
            products.append(trimmed(slice_bits(bits, 0, size), signed))
        if len(terms) == 1:
            return _cut(products[0], width)
        full, signed = range_width((sum(low for low, _ in spans), sum(high for _, high in spans)))
        size = min(full, width)
        multiplier = self._multipliers[number]
        multiplier.sum_bits = max(multiplier.sum_bits, size)
        before: Bits = ()
        known = const_bits(0, 1)
        for word in products:
            ins = (word.extend(size), before, known)
            before, known = self._turn(size, ins, 2 * number + 1), const_bits(1, 1)
        return trimmed(before, signed and size == full)


    def _turn(self, width: int, ins: tuple[Bits, ...], number: int) -> Bits:
        self._calls += 1
        return self._net.bits(Turn(width, ins, number, self._calls))


def _cut(word: Word, width: int) -> Word:
    """The word modulo 2^width."""
    return word if word.width <= width else trimmed(slice_bits(word.bits, 0, width), False)
