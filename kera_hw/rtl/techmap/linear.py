"""Sums of constant multiples: linear forms, realised together as adders that share sub-sums.

Every output of a group is a sum of signed digits ``±2^s · atom``. Pairs of digits that occur often are
taken out as new atoms, the widest saving first; what remains of each output is joined narrowest and
earliest pair first.
"""
from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from kera_hw.rtl.techmap import words
from kera_hw.rtl.techmap.net import Net
from kera_hw.rtl.techmap.words import Word, range_width, trimmed
from kera_hw.schedule.netlist import const_bits

Digit = tuple[int, int, int]
"""Atom, shift, sign (+1 or -1)."""
Pattern = tuple[int, int, int, int]
"""First atom, second atom, shift of the second against the first, product of their signs."""


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


@dataclass
class Target:
    """One output: coefficient of every atom, a constant, and how many low bits of the sum are wanted."""

    terms: dict[int, int]
    constant: int
    width: int


@dataclass
class _Plan:
    """Digits of every output, and the atoms made on the way: pairs of earlier ones."""

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


def _count(row: Sequence[Digit]) -> Counter[Pattern]:
    """Occurrences of each pattern in a row; those of one atom with itself don't overlap."""
    found: Counter[Pattern] = Counter()
    used: dict[Pattern, set[Digit]] = {}
    for i, a in enumerate(row):
        for b in row[i + 1 :]:
            key = _pattern(a, b)
            if key[0] == key[1]:
                taken = used.setdefault(key, set())
                if a in taken or b in taken:
                    continue
                taken.update((a, b))
            found[key] += 1
    return found


def _extract(rows: list[list[Digit]], ranges: list[tuple[int, int]], chooser: random.Random | None) -> _Plan:
    """Take out the pattern that saves most until none occurs twice."""
    plan = _Plan([list(row) for row in rows], list(ranges))
    counts = [_count(row) for row in plan.rows]
    total: Counter[Pattern] = Counter()
    for count in counts:
        total.update(count)
    width_of: dict[Pattern, int] = {}
    while True:
        best: Pattern | None = None
        best_score = 0.0
        for key, count in total.items():
            if count < 2:
                continue
            width = width_of.get(key)
            if width is None:
                width = _adder_bits(plan.ranges[key[0]], plan.ranges[key[1]], key[2], key[3])
                width_of[key] = width
            score = (count - 1) * (_overlap(plan.ranges, key) + 0.01 * width)
            if chooser is not None:
                score *= 1 + 0.25 * chooser.random()
            if score > best_score or (score == best_score and best is not None and key < best):
                best, best_score = key, score
        if best is None:
            return plan
        atom = len(plan.ranges)
        plan.ranges.append(_pair_range(plan.ranges, best))
        plan.made.append(best)
        plan.cost += width_of[best]
        for i, row in enumerate(plan.rows):
            if counts[i].get(best, 0):
                total.subtract(counts[i])
                plan.rows[i] = _replace(row, best, atom)
                counts[i] = _count(plan.rows[i])
                total.update(counts[i])
        total += Counter()


def _overlap(ranges: list[tuple[int, int]], key: Pattern) -> int:
    """Bits in which the two operands overlap: what sharing really saves."""
    a, b = range_width(ranges[key[0]])[0], range_width(ranges[key[1]])[0]
    low, high = max(0, key[2]), min(a, b + key[2])
    return max(1, high - low + 1)


def _pair_range(ranges: list[tuple[int, int]], key: Pattern) -> tuple[int, int]:
    return _span(ranges[key[0]], ranges[key[1]], key[2], key[3])


def _replace(row: list[Digit], key: Pattern, atom: int) -> list[Digit]:
    """The row with occurrences of the pattern replaced by the new atom."""
    left = list(row)
    present = set(row)
    out: list[Digit] = []
    for a in left:
        if a not in present or a[0] != key[0]:
            continue
        b = (key[1], a[1] + key[2], a[2] * key[3])
        if b in present and b != a:
            present.discard(a)
            present.discard(b)
            out.append((atom, min(a[1], a[1] + key[2]), a[2]))
    return [digit for digit in row if digit in present] + out


def _tree_cost(plan: _Plan) -> int:
    """Adder bits of the shared pairs and of joining what is left, narrowest first."""
    total = plan.cost
    for row in plan.rows:
        spans = [(*range_width(plan.ranges[atom]), shift) for atom, shift, _ in row]
        sizes = sorted((width, shift) for width, _, shift in spans)
        while len(sizes) > 1:
            (wa, sa), (wb, sb) = sizes[0], sizes[1]
            low, top = min(sa, sb), max(sa + wa, sb + wb) + 1
            total += top - max(sa, sb)
            sizes = sorted([(top - low, low), *sizes[2:]])
    return total


def _same_scale(targets: Sequence[Target], ranges: list[tuple[int, int]], tries: int) -> _Plan:
    rows = [
        [(atom, s, g) for atom, c in sorted(target.terms.items()) for s, g in signed_digits(c)]
        for target in targets
    ]
    size = sum(len(row) for row in rows)
    best = _extract(rows, ranges, None)
    best_cost = _tree_cost(best)
    attempts = 0 if size <= 3 else min(tries, 6000 // (size + 1))
    for seed in range(attempts):
        plan = _extract(rows, ranges, random.Random(seed))
        cost = _tree_cost(plan)
        if cost < best_cost:
            best, best_cost = plan, cost
    return best


def realise(net: Net, atoms: Sequence[Word], targets: Sequence[Target], tries: int = 12) -> list[Word]:
    """Words of all targets; their low ``width`` bits are right (all of them when the sum fits)."""
    ranges = [atom.range for atom in atoms]
    plan = _same_scale(targets, ranges, tries)
    need = _needed(plan, targets)
    made = list(atoms)
    for k, key in enumerate(plan.made):
        first, second, shift, sign = key
        a = words.shifted(made[first], max(0, -shift))
        b = words.shifted(made[second], max(0, shift))
        made.append(_join(net, a, b, sign, need[len(atoms) + k], plan.ranges[len(atoms) + k]))
    return [_sum(net, [(made[a], s, g) for a, s, g in row], target) for row, target in zip(plan.rows, targets)]


def _needed(plan: _Plan, targets: Sequence[Target]) -> list[int]:
    """Low bits wanted of every atom."""
    need = [0] * len(plan.ranges)
    for row, target in zip(plan.rows, targets):
        for atom, shift, _ in row:
            need[atom] = max(need[atom], target.width - shift)
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
    while len(terms) > 1:
        a, b = _cheapest_pair(terms, target.width)
        terms.remove(a)
        terms.remove(b)
        terms.append(_add_terms(net, a, b, target.width))
    last = terms[0]
    if last.sign > 0:
        return last.word
    full, signed = range_width(last.span)
    width = min(full, target.width)
    bits = net.subtract(const_bits(0, width), last.word.extend(width), width)
    return trimmed(bits, signed and width == full)


def _wrapped(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) & 1 else value


def _absorbable(net: Net, word: Word) -> bool:
    """Whether the word is one gate of up to three operands, which an adder's cell may swallow."""
    if len(word.bits) != 1 or word.bits[0].cell is None:
        return False
    item = net.items[word.bits[0].cell]
    return item.kind == "lut" and len(item.ins) <= 3


def _pair_cost(a: _Term, b: _Term, width: int) -> tuple[int, int, int]:
    span = (a.span[0] + b.span[0], a.span[1] + b.span[1])
    size = min(range_width(span)[0], width)
    return (max(a.level, b.level) // 14, int(a.late and b.late), size)


def _cheapest_pair(terms: list[_Term], width: int) -> tuple[_Term, _Term]:
    best: tuple[_Term, _Term] | None = None
    best_cost: tuple[int, int, int, int] | None = None
    ordered = sorted(terms, key=lambda t: (t.level // 14, t.word.width))[:12]
    positive = any(t.sign > 0 for t in terms)
    for i, a in enumerate(ordered):
        for b in ordered[i + 1 :]:
            both_negative = int(positive and a.sign < 0 and b.sign < 0)
            level, late, size = _pair_cost(a, b, width)
            cost = (level, both_negative, late, size)
            if best_cost is None or cost < best_cost:
                best, best_cost = (a, b), cost
    assert best is not None
    return best


def _add_terms(net: Net, a: _Term, b: _Term, limit: int) -> _Term:
    if a.sign < 0 and b.sign > 0:
        a, b = b, a
    span = (a.span[0] + b.span[0], a.span[1] + b.span[1])
    if a.sign < 0:  # both: keep the sum positive and subtract it later
        full, signed = range_width((-span[1], -span[0]))
        sign, method = -1, net.add
    else:
        full, signed = range_width(span)
        sign, method = 1, net.add if b.sign > 0 else net.subtract
    width = max(1, min(full, limit))
    if method == net.add and _absorbable(net, a.word):
        a, b = b, a
    bits = method(a.word.extend(width), b.word.extend(width), width)
    word = trimmed(bits, signed and width == full)
    return _Term(word, sign, span, net.level(word.bits), False)
