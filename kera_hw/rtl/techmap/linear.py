"""Sums of constant multiples: linear combinations, realised together as adders that share sub-sums.

Every output of a group is a sum of signed digits ``±2^s · variable``. Pairs of digits that occur often are
taken out as new variables, the widest saving first; what remains of each output is joined narrowest and
earliest pair first.

Pairs of digits: Hartley, "Subexpression sharing in filters using canonic signed digit multipliers", 1996.
"""
from __future__ import annotations

import heapq
import random
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from kera_hw.graph.node import Origin, join_origins
from kera_hw.rtl.techmap import words
from kera_hw.rtl.techmap.items import Gate
from kera_hw.rtl.techmap.net import Net, known
from kera_hw.rtl.techmap.words import Word, range_width, trimmed
from kera_hw.schedule.fpga.bits import Bits, concat, const_bits, slice_bits

Digit = tuple[int, int, int]
"""Variable, shift, sign (+1 or -1)."""
Span = tuple[int, int]
Pattern = tuple[int, int, int, int]
"""First variable, second variable, shift of the second against the first, product of their signs."""
Sum = tuple[tuple[int, int], ...]
"""Variable and coefficient of every term."""


_NOISE = 0.05
"""How much a random restart may misjudge what a shared pair saves."""
_RECODED_DIGITS = 6
_LONGEST_SEARCHED = 250
"""Digits of one sum beyond which no shared pairs are looked for."""


def signed_digits(value: int) -> list[tuple[int, int]]:
    """Canonical signed digits of an integer: (shift, sign), no two adjacent."""
    digits: list[tuple[int, int]] = []
    shift = 0
    while value:
        if value & 1:
            sign = 2 - (value & 3)
            digits.append((shift, sign))
            value -= sign
        value >>= 1
        shift += 1
    return digits


@lru_cache(maxsize=4096)
def other_digits(value: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Ways to write an integer with as few signed digits as the canonical one has, itself among them."""
    canonical = tuple(signed_digits(value))
    if len(canonical) > _RECODED_DIGITS:
        return (canonical,)
    return _fewest(value, len(canonical)) or (canonical,)


@lru_cache(maxsize=65536)
def _fewest(value: int, count: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    if value == 0:
        return ((),)
    if count == 0:
        return ()
    if value % 2 == 0:
        return tuple(tuple((s + 1, g) for s, g in rest) for rest in _fewest(value // 2, count))
    found: list[tuple[tuple[int, int], ...]] = []
    for sign in (1, -1):
        rests = _fewest((value - sign) // 2, count - 1)
        found.extend(((0, sign), *((s + 1, g) for s, g in rest)) for rest in rests)
    return tuple(found)


def _recoded(sums: Sequence[Sum], chooser: random.Random) -> list[list[Digit]]:
    """The digits of every sum, half of the coefficients written another way."""
    rows: list[list[Digit]] = []
    for terms in sums:
        row: list[Digit] = []
        for variable, value in terms:
            digits = signed_digits(value) if chooser.random() < 0.5 else chooser.choice(other_digits(value))
            row.extend((variable, s, g) for s, g in digits)
        rows.append(row)
    return rows


@dataclass
class Target:
    """One output: coefficient of every variable, a constant, and how many low bits of the sum are wanted.

    ``origin``: what it is for; None for what the net says.
    """

    terms: dict[int, int]
    constant: int
    width: int
    origin: Origin | None = None


@dataclass(frozen=True)
class _Plan:
    """Digits of every output, and the variables made on the way: pairs of earlier ones. Shared: it stays."""

    rows: list[list[Digit]]
    ranges: list[tuple[int, int]]
    made: list[tuple[int, int, int, int]] = field(default_factory=list[tuple[int, int, int, int]])
    cost: int = 0


def _span(a: tuple[int, int], b: tuple[int, int], shift: int, sign: int) -> tuple[int, int]:
    """Range of a ± b·2^shift (either operand shifted when negative)."""
    left, right = max(0, -shift), max(0, shift)
    corners = [(x << left) + sign * (y << right) for x in a for y in b]
    return (min(corners), max(corners))


def _adder_bits(a: tuple[int, int], b: tuple[int, int], shift: int, sign: int) -> int:
    """Adder bits for a ± b·2^shift: the result's width less the low bits that pass through."""
    width = range_width(_span(a, b, shift, sign))[0]
    passing = shift if shift > 0 else (-shift if sign > 0 else 0)
    return max(1, width - passing)


def _pattern(a: Digit, b: Digit) -> Pattern:
    if (b[0], b[1]) < (a[0], a[1]):
        a, b = b, a
    return (a[0], b[0], b[1] - a[1], a[2] * b[2])


class _Extraction:
    """Takes out the pattern that saves most until none occurs twice; counts follow the rows."""

    def __init__(
        self, rows: list[list[Digit]], ranges: Sequence[Span], chooser: random.Random | None
    ) -> None:
        self.ranges = list(ranges)
        self.chooser = chooser
        self.noise = _NOISE if chooser is None or chooser.random() < 0.5 else 2 * _NOISE
        self.rows: list[dict[Digit, None]] = [{} for _ in rows]
        self.counts: dict[Pattern, int] = {}
        self.heap: list[tuple[float, Pattern]] = []
        self.worth: dict[Pattern, float] = {}
        for row, digits in zip(self.rows, rows):
            for digit in digits:
                self._insert(row, digit)

    def _insert(self, row: dict[Digit, None], digit: Digit) -> None:
        for other in row:
            key = _pattern(digit, other)
            count = self.counts.get(key, 0) + 1
            self.counts[key] = count
            if count > 1:
                heapq.heappush(self.heap, (-(count - 1) * self._worth(key), key))
        row[digit] = None

    def _remove(self, row: dict[Digit, None], digit: Digit) -> None:
        del row[digit]
        for other in row:
            self.counts[_pattern(digit, other)] -= 1

    def _worth(self, key: Pattern) -> float:
        """What one shared use saves: bits in which the operands overlap, with a little for the width."""
        found = self.worth.get(key)
        if found is None:
            a, b = self.ranges[key[0]], self.ranges[key[1]]
            width_a, width_b = range_width(a)[0], range_width(b)[0]
            overlap = min(width_a, width_b + key[2]) - max(0, key[2]) + 1
            found = max(1, overlap) + 0.01 * _adder_bits(a, b, key[2], key[3])
            if self.chooser is not None:
                found *= 1 + self.noise * self.chooser.random()
            self.worth[key] = found
        return found

    def _best(self) -> Pattern | None:
        """The frequent pattern with the highest score; scores in the heap may be out of date."""
        while self.heap:
            score, key = self.heap[0]
            count = self.counts[key]
            current = -(count - 1) * self._worth(key) if count > 1 else 0.0
            if current == score:
                return key
            if current < 0:
                heapq.heapreplace(self.heap, (current, key))
            else:
                heapq.heappop(self.heap)
        return None

    def run(self) -> _Plan:
        made: list[Pattern] = []
        cost = 0
        while (key := self._best()) is not None:
            places = [(row, *pair) for row in self.rows for pair in _occurrences(row, key)]
            # A row that is just the pair's negative is an adder of its own either way, and sooner so.
            places = [place for place in places if len(place[0]) > 2 or place[1][2] > 0]
            if len(places) < 2:  # occurrences that overlap
                self.counts[key] = -1_000_000
                continue
            variable = len(self.ranges)
            first, second = self.ranges[key[0]], self.ranges[key[1]]
            self.ranges.append(_span(first, second, key[2], key[3]))
            made.append(key)
            cost += _cells(_adder_bits(first, second, key[2], key[3]))
            for row, a, b in places:
                self._remove(row, a)
                self._remove(row, b)
                self._insert(row, (variable, min(a[1], b[1]), a[2]))
        return _Plan([list(row) for row in self.rows], self.ranges, made, cost)


def _occurrences(row: dict[Digit, None], key: Pattern) -> list[tuple[Digit, Digit]]:
    """Pairs of digits of the row that match the pattern, none used twice."""
    used: set[Digit] = set()
    found: list[tuple[Digit, Digit]] = []
    for a in row:
        if a[0] != key[0] or a in used:
            continue
        b = (key[1], a[1] + key[2], a[2] * key[3])
        if b != a and b in row and b not in used:
            used.update((a, b))
            found.append((a, b))
    return found


def _cells(bits: int) -> int:
    """Adder bits as carry cells hold them: in twos."""
    return bits + bits % 2


def _tree_cost(plan: _Plan) -> int:
    """Adder bits of the shared pairs and of joining what is left, narrowest first."""
    total = plan.cost
    for row in plan.rows:
        terms = sorted((range_width(plan.ranges[variable])[0], shift, sign) for variable, shift, sign in row)
        while len(terms) > 1:
            (wa, sa, ga), (wb, sb, gb) = terms[0], terms[1]
            low, top = min(sa, sb), max(sa + wa, sb + wb) + 1
            # Low bits pass where one operand has none; not those of a subtrahend.
            passing = max(sa, sb) if ga == gb else (sb if gb < 0 else sa)
            total += _cells(top - max(passing, low))
            terms = sorted([(top - low, low, max(ga, gb)), *terms[2:]])
    return total


def estimate(ranges: list[tuple[int, int]], targets: Sequence[Target]) -> int:
    """Adder bits that the targets would take."""
    return _tree_cost(_plan(targets, ranges, 0))


def _plan(targets: Sequence[Target], ranges: list[Span], tries: int) -> _Plan:
    return _planned(tuple([tuple(target.terms.items()) for target in targets]), tuple(ranges), tries)


@lru_cache(maxsize=4096)
def _planned(sums: tuple[Sum, ...], ranges: tuple[Span, ...], tries: int) -> _Plan:
    """What the net says nothing of: a design is mapped many times, and its sums are the same each time."""
    rows = [[(variable, s, g) for variable, c in terms for s, g in signed_digits(c)] for terms in sums]
    size = sum(len(row) for row in rows)
    if max((len(row) for row in rows), default=0) > _LONGEST_SEARCHED:
        return _Plan(rows, list(ranges))
    best = _Extraction(rows, ranges, None).run()
    best_cost = _tree_cost(best)
    attempts = 0 if not best.made else min(tries, 8000 // (size + 1), 1_500_000 // (size * size))
    for seed in range(attempts):
        chooser = random.Random(seed)
        mixed = _recoded(sums, chooser) if seed % 2 else rows
        plan = _Extraction(mixed, ranges, chooser).run()
        cost = _tree_cost(plan)
        if cost < best_cost:
            best, best_cost = plan, cost
    return best


def realise(net: Net, variables: Sequence[Word], targets: Sequence[Target], tries: int = 48) -> list[Word]:
    """Words of all targets; their low ``width`` bits are right (all of them when the sum fits)."""
    ranges = [variable.range for variable in variables]
    plan = _plan(targets, ranges, tries)
    need, origins = _needed(plan, targets), _origins(plan, targets)
    made, outer = list(variables), net.origin
    for k, key in enumerate(plan.made):
        net.origin = origins[len(variables) + k] or outer
        first, second, shift, sign = key
        a = words.shifted(made[first], max(0, -shift))
        b = words.shifted(made[second], max(0, shift))
        made.append(_join(net, a, b, sign, need[len(variables) + k], plan.ranges[len(variables) + k]))
    results: list[Word] = []
    for row, target in zip(plan.rows, targets):
        net.origin = target.origin or outer
        results.append(_sum(net, [(made[a], s, g) for a, s, g in row], target))
    net.origin = outer
    return results


def _origins(plan: _Plan, targets: Sequence[Target]) -> list[Origin | None]:
    """Of every variable: what the targets that it goes into are for."""
    found: list[Origin | None] = [None] * len(plan.ranges)
    for row, target in zip(plan.rows, targets):
        for variable, _, _ in row:
            found[variable] = join_origins((found[variable], target.origin))
    base = len(plan.ranges) - len(plan.made)
    for k in range(len(plan.made) - 1, -1, -1):
        for variable in plan.made[k][:2]:
            found[variable] = join_origins((found[variable], found[base + k]))
    return found


def _needed(plan: _Plan, targets: Sequence[Target]) -> list[int]:
    """Low bits wanted of every variable."""
    need = [0] * len(plan.ranges)
    for row, target in zip(plan.rows, targets):
        for variable, shift, _ in row:
            need[variable] = max(need[variable], target.width - shift)
    base = len(plan.ranges) - len(plan.made)
    for k in range(len(plan.made) - 1, -1, -1):
        first, second, shift, _ = plan.made[k]
        wanted = need[base + k]
        need[first] = max(need[first], wanted - max(0, -shift))
        need[second] = max(need[second], wanted - max(0, shift))
    return need


def _join(net: Net, a: Word, b: Word, sign: int, wanted: int, span: tuple[int, int]) -> Word:
    full, signed = range_width(span)
    width = max(1, min(wanted, full))
    method = net.add if sign > 0 else net.subtract
    return trimmed(method(a.extend(width), b.extend(width), width), signed and width == full)


@dataclass
class _Term:
    word: Word
    sign: int
    span: tuple[int, int]
    level: int
    late: bool  # waits for a carry-cell operand: joined with something already summed


def _sum(net: Net, parts: list[tuple[Word, int, int]], target: Target) -> Word:
    """Join terms pairwise: earliest first, then narrowest; the constant takes part as one more term."""
    terms: list[_Term] = []
    for word, shift, sign in parts:
        word = words.shifted(word, shift)
        if word.width:
            low, high = word.range
            span = (low, high) if sign > 0 else (-high, -low)
            terms.append(_Term(word, sign, span, net.level(word.bits), _absorbable(net, word)))
    constant = _wrapped(target.constant, target.width)
    if constant:
        terms.append(_Term(words.constant(constant), 1, (constant, constant), 0, False))
    if not terms:
        return words.constant(0)
    if len(terms) > 2:
        terms = _laid_together(net, terms)
    carries = [term for term in terms if _carry_bit(term) is not None] if len(terms) > 2 else []
    if len(carries) == len(terms):
        carries = carries[2:]  # an adder needs two operands before a bit can enter as its carry
    terms = [term for term in terms if not any(term is carry for carry in carries)]
    queue = _Queue(terms)
    while len(queue) > 1 or carries:
        if len(queue) == 1:
            queue.add(carries.pop())
        a, b = queue.take_pair(target.width)
        queue.add(_add_terms(net, a, b, target.width, carries))
    last = queue.first
    if last.sign > 0:
        return last.word
    full, signed = range_width(last.span)
    width = min(full, target.width)
    bits = net.subtract(const_bits(0, width), last.word.extend(width), width)
    return trimmed(bits, signed and width == full)


def _laid_together(net: Net, terms: list[_Term]) -> list[_Term]:
    """Terms that share no bit as one: the upper one begins where the lower one ends, so nothing is added."""
    free = [term for term in terms if term.sign > 0 and not term.word.signed and not term.late]
    rest = [term for term in terms if not any(term is item for item in free)]
    joined: list[_Term] = []
    for term in sorted(free, key=lambda t: (_low_zeros(t.word), t.word.width)):
        fits = [j for j in joined if j.word.width <= _low_zeros(term.word) and _carry_bit(j) is None]
        if not fits or _carry_bit(term) is not None:
            joined.append(term)
            continue
        below = max(fits, key=lambda j: j.word.width)
        skip = below.word.width
        bits = concat((below.word.bits, slice_bits(term.word.bits, skip, term.word.width - skip)))
        span = (below.span[0] + term.span[0], below.span[1] + term.span[1])
        joined.remove(below)
        joined.append(_Term(Word(bits, False), 1, span, net.level(bits), False))
    return rest + joined


def _wrapped(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) & 1 else value


def _absorbable(net: Net, word: Word) -> bool:
    """Whether the word is one gate of up to three operands, which an adder's cell may swallow."""
    if len(word.bits) != 1 or word.bits[0].cell is None:
        return False
    item = net.items[word.bits[0].cell]
    return isinstance(item, Gate) and len(item.ins) <= 3


_LATE_LEVELS = 3
"""Levels that letting two gates meet costs: only one of them can go into the adder's cells."""


def _pair_cost(a: _Term, b: _Term, width: int) -> tuple[int, int]:
    """Rough time at which both are there, and the adder's width."""
    span = (a.span[0] + b.span[0], a.span[1] + b.span[1])
    size = min(range_width(span)[0], width)
    return max(a.level, b.level) // 14 + _LATE_LEVELS * (a.late and b.late), size


class _Queue:
    """Terms that wait to be added: earliest first, then narrowest, then in order of arrival."""

    def __init__(self, terms: Sequence[_Term]) -> None:
        self._terms: list[tuple[int, int, int, _Term]] = []
        self._arrived = self._positive = 0
        for term in terms:
            self.add(term)

    def __len__(self) -> int:
        return len(self._terms)

    @property
    def first(self) -> _Term:
        return self._terms[0][3]

    def add(self, term: _Term) -> None:
        insort(self._terms, (term.level // 14, term.word.width, self._arrived, term))
        self._arrived += 1
        self._positive += term.sign > 0

    def take_pair(self, width: int) -> tuple[_Term, _Term]:
        """The two of the next few that are cheapest to add."""
        best: tuple[int, int] | None = None
        best_cost: tuple[int, int, int] | None = None
        ordered = [entry[3] for entry in self._terms[:12]]
        for i, a in enumerate(ordered):
            for j in range(i + 1, len(ordered)):
                b = ordered[j]
                both_negative = int(self._positive > 0 and a.sign < 0 and b.sign < 0)
                level, size = _pair_cost(a, b, width)
                cost = (level, both_negative, size)
                if best_cost is None or cost < best_cost:
                    best, best_cost = (i, j), cost
        assert best is not None
        pair = ordered[best[0]], ordered[best[1]]
        for k in reversed(best):
            del self._terms[k]
        self._positive -= sum(term.sign > 0 for term in pair)
        return pair


def _carry_bit(term: _Term) -> tuple[Bits, int] | None:
    """A term that is one bit at some weight: it can enter an adder as its carry."""
    word = term.word
    if term.sign < 0 or word.signed:
        return None
    shift = word.width - 1
    if shift and known(slice_bits(word.bits, 0, shift)) != 0:
        return None
    return slice_bits(word.bits, shift, 1), shift


_ALL_ZEROS = 1 << 30


def _low_zeros(word: Word) -> int:
    if not word.bits:
        return _ALL_ZEROS
    first = word.bits[0]
    if first.cell is not None:
        return 0
    return (first.low & -first.low).bit_length() - 1 if first.low else first.width


def _take_carry(carries: list[_Term], a: _Term, b: _Term) -> tuple[_Term, Bits, int] | None:
    """A waiting one-bit term that fits into the sum of two terms: below its weight one of them is zero."""
    room = max(_low_zeros(a.word), _low_zeros(b.word))
    for term in carries:
        found = _carry_bit(term)
        if found is not None and found[1] <= room:
            carries.remove(term)
            return term, *found
    return None


def _add_terms(net: Net, a: _Term, b: _Term, limit: int, carries: list[_Term]) -> _Term:
    if a.sign < 0 and b.sign > 0:
        a, b = b, a
    carry = _take_carry(carries, a, b) if a.sign > 0 and b.sign > 0 else None
    span = (a.span[0] + b.span[0], a.span[1] + b.span[1])
    if carry is not None:
        span = (span[0] + carry[0].span[0], span[1] + carry[0].span[1])
    if a.sign < 0:  # both: keep the sum positive and subtract it later
        full, signed = range_width((-span[1], -span[0]))
    else:
        full, signed = range_width(span)
    width = max(1, min(full, limit))
    if a.sign == b.sign and _absorbable(net, a.word):
        a, b = b, a
    left, right = a.word.extend(width), b.word.extend(width)
    if a.sign != b.sign:
        bits = net.subtract(left, right, width)
    elif carry is None or carry[2] >= width:
        bits = net.add(left, right, width)
    else:
        bits = _add_at(net, left, right, width, carry[1], carry[2])
    word = trimmed(bits, signed and width == full)
    return _Term(word, -1 if a.sign < 0 and b.sign < 0 else 1, span, net.level(word.bits), False)


def _add_at(net: Net, a: Bits, b: Bits, width: int, carry: Bits, shift: int) -> Bits:
    """``a + b + carry * 2^shift``, one of the operands being zero below the shift."""
    low = net.add(slice_bits(a, 0, shift), slice_bits(b, 0, shift), shift) if shift else ()
    rest = width - shift
    return concat((low, net.add(slice_bits(a, shift, rest), slice_bits(b, shift, rest), rest, carry)))
