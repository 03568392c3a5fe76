"""Cut points found by simulation and proved: a circuit's words replaced, inputs first, by the reference's.

Equal bits show equal values on a set of items. Where a cell's bits look like bits of the reference, the
solver is asked whether they are, over operands that were replaced before, so that each question is local. A
refutation becomes one more item to tell bits apart by. What is not proved stays as it is.

Kuehlmann and Krohm, "Equivalence checking using cuts and heaps", DAC 1997.
"""
from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from time import monotonic

from kera_hw.rtl.formal.parity import Parities
from kera_hw.rtl.formal.solver import Questions, holds_locally
from kera_hw.rtl.formal.terms import Term, Terms, in_order
from kera_hw.rtl.formal.values import OPERATORS

ITEMS = 64
_REFINE_AFTER = 8  # refutations until bits are told apart anew


class Simulation:
    """The values of terms on a growing list of items, one integer an item."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._items: list[Mapping[str, int]] = []
        self._random: dict[str, list[int]] = {}
        self.values: dict[Term, list[int]] = {}

    def of(self, term: Term) -> list[int]:
        """The term's values, its operands' worked out before."""
        if term not in self.values:
            for item in in_order([term]):
                if item not in self.values:
                    self.values[item] = [self._value(item, k) for k in range(ITEMS + len(self._items))]
        return self.values[term]

    def extend(self, items: Sequence[Mapping[str, int]]) -> None:
        """Items more; a variable that one of them lacks is 0 there."""
        first = ITEMS + len(self._items)
        self._items += items
        for term, values in self.values.items():  # operands stand before what is made of them
            values += [self._value(term, k) for k in range(first, first + len(items))]

    def _value(self, term: Term, k: int) -> int:
        if term.op == "const":
            return int(term.params[0])
        if term.op == "var":
            return self._variable(term, k)
        operands = [self.values[arg][k] for arg in term.args]
        widths = [arg.width for arg in term.args]
        return OPERATORS[term.op](operands, widths, term.params, term.width) & ((1 << term.width) - 1)

    def _variable(self, term: Term, k: int) -> int:
        name = str(term.params[0])
        if k >= ITEMS:
            return self._items[k - ITEMS].get(name, 0)
        column = self._random.get(name)
        if column is None:
            column = self._random[name] = [self._draw(term.width, row) for row in range(ITEMS)]
        return column[k]

    def _draw(self, width: int, row: int) -> int:
        """Uniform for half of the items; else sparse, near the ends, or close to what others hold there."""
        mask, uniform = (1 << width) - 1, self._rng.getrandbits(width)
        match row % 8:
            case 0:
                return (mask - (uniform & 3)) & mask if uniform & 4 else uniform & 3 & mask
            case 1:
                return 1 << uniform % width
            case 2 | 3:  # one pattern for all variables of a width, but for a few low bits
                shared = random.Random(f"{row}.{width}").getrandbits(width)
                return (shared ^ (uniform & uniform >> 1 & 0xF)) & mask
            case _:
                return uniform


class Sweeper:
    """Replaces words by bits of the reference; made for one unrolling, in the order of its cells."""

    def __init__(
        self, terms: Terms, reference: Iterable[Term], limit_s: float, query_s: float, seed: int
    ) -> None:
        self.terms, self.end, self.query_s = terms, monotonic() + limit_s, query_s
        self.simulation, self.questions, self.parities = Simulation(seed), Questions(), Parities()
        self._reference = [term for term in in_order(reference) if term.op != "const"]
        self._known = frozenset(self._reference)
        self._waiting: list[Mapping[str, int]] = []
        self._places: dict[int, tuple[Term, int]] = {}
        self.asked = self.replaced = 0
        self._index()

    def _index(self) -> None:
        """The first place of every distinct reference bit, by its values as one integer."""
        self._places = {}
        for term in self._reference:
            for bit, key in enumerate(_columns(self.simulation.of(term), term.width)):
                self._places.setdefault(key, (term, bit))

    def __call__(self, word: Term) -> Term:
        """The word with every bit that is provably one of the reference's, or constant, replaced by it."""
        if word.op == "const" or monotonic() > self.end:
            return word
        if len(self._waiting) >= _REFINE_AFTER:
            self.simulation.extend(self._waiting)
            self._waiting = []
            self._index()
        candidates = [self._candidate(key) for key in _columns(self.simulation.of(word), word.width)]
        if all(item is None for item in candidates):
            return word
        bits = [self.terms.extract(word, k, 1) for k in range(word.width)]
        proposed = self.terms.concat([bit if item is None else item for bit, item in zip(bits, candidates)])
        if proposed is word or self._proved(word, proposed):
            return proposed
        if word.width == 1:
            return word
        pairs = zip(bits, candidates)
        kept = [item if item is not None and self._proved(bit, item) else bit for bit, item in pairs]
        return self.terms.concat(kept)

    def _candidate(self, key: int) -> Term | None:
        everywhere = (1 << (ITEMS + self._shown())) - 1
        if key in (0, everywhere):
            return self.terms.const(key & 1, 1)
        found = self._places.get(key)
        if found is not None:
            return self.terms.extract(found[0], found[1], 1)
        found = self._places.get(key ^ everywhere)
        return None if found is None else self.terms.bit_not(self.terms.extract(found[0], found[1], 1))

    def _shown(self) -> int:
        """Items beyond the first ones."""
        return len(next(iter(self.simulation.values.values()))) - ITEMS if self.simulation.values else 0

    def _proved(self, a: Term, b: Term) -> bool:
        claim = self.terms.eq(a, b)
        if claim.value is not None:
            return bool(claim.value)
        left = self.end - monotonic()
        if left <= 0:
            return False
        self.asked += 1
        if self.parities.equal(a, b):
            self.replaced += 1
            return True
        if holds_locally(claim, self._frontier(a), min(left, self.query_s)):
            self.replaced += 1
            return True
        answer = self.questions.holds(claim, min(left, self.query_s))
        if answer.status == "refuted":
            self._waiting.append(answer.model)
        self.replaced += answer.status == "proved"
        return answer.status == "proved"


    def _frontier(self, word: Term) -> list[Term]:
        """The first terms of the reference on every way down from a word."""
        seen = {word}
        pending, found = [word], list[Term]()
        while pending:
            for arg in pending.pop().args:
                if arg in seen or arg.op == "const":
                    continue
                seen.add(arg)
                (found if arg in self._known else pending).append(arg)
        return found


def _columns(values: Sequence[int], width: int) -> list[int]:
    """For every bit its values on all items as one integer."""
    columns = [0] * width
    for row, value in enumerate(values):
        while value:
            low = value & -value
            columns[low.bit_length() - 1] |= 1 << row
            value ^= low
    return columns
