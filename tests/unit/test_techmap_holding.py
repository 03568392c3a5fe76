"""Conditions found in random logic say when it is the goal, and what it is else: against every assignment."""
from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from kera_hw.rtl.techmap import truth
from kera_hw.rtl.techmap.holding import ALWAYS, NEVER, Piece, Search
from kera_hw.rtl.techmap.items import Choice, Gate, Parameter
from kera_hw.rtl.techmap.net import Net
from kera_hw.schedule.fpga.bits import Bits, bits_width, concat, const_bits, slice_bits

WIDTH = 5
WORDS = 12


def evaluated(net: Net, given: Mapping[int | None, int]) -> list[int]:
    """The value of every item, from those of the inputs."""
    values: list[int] = []

    def read(bits: Bits) -> int:
        total = position = 0
        for s in bits:
            source = s.low if s.cell is None else values[s.cell] >> s.low
            total |= (source & (1 << s.width) - 1) << position
            position += s.width
        return total

    for index, item in enumerate(net.items):
        if isinstance(item, Parameter):
            values.append(given[index])
        elif isinstance(item, Choice):
            values.append(read(item.choices[min(read(item.select), len(item.choices) - 1)]))
        else:
            assert isinstance(item, Gate)
            words = [(read(bits), bits_width(bits) == 1) for bits in item.ins]
            rows = [
                sum((word >> (0 if single else i) & 1) << k for k, (word, single) in enumerate(words))
                for i in range(item.width)
            ]
            values.append(sum((item.table >> row & 1) << i for i, row in enumerate(rows)))
    return values


def shown(bits: Bits, values: list[int]) -> int:
    total = position = 0
    for s in bits:
        source = s.low if s.cell is None else values[s.cell] >> s.low
        total |= (source & (1 << s.width) - 1) << position
        position += s.width
    return total


class Logic:
    """Random selections, gates and multiplexers over a word ``q``, other words, and conditions."""

    def __init__(self, seed: int) -> None:
        self.rng, self.net = random.Random(seed), Net()
        words = [self.net.bits(Parameter(WIDTH, (), f"w{k}", 0)) for k in range(3)]
        flags = [self.net.bits(Parameter(1, (), f"c{k}", 0)) for k in range(4)]
        self.inputs = {bits[0].cell: bits_width(bits) for bits in (*words, *flags)}
        self.goal = words[0]
        self.words, self.flags = [*words, const_bits(0, WIDTH), const_bits(-1, WIDTH)], flags
        while len(self.words) < WORDS:
            self.words.append(self._word())

    def _pick(self) -> Bits:
        """A word, or one of two in the low and another in the high bits."""
        first = self.rng.choice(self.words[-6:])
        second = self.rng.choice([self.goal, self.rng.choice(self.words)])
        cut = self.rng.choice([0, 0, 0, 2])
        return concat([slice_bits(second, 0, cut), slice_bits(first, cut, WIDTH - cut)]) if cut else second

    def _word(self) -> Bits:
        kind = self.rng.random()
        if kind < 0.6:
            return self.net.choose(self.rng.choice(self.flags), self._pick(), self._pick())
        if kind < 0.75:
            choices = [self._pick() for _ in range(self.rng.randint(3, 4))]
            return self.net.mux(concat(self.rng.sample(self.flags, 2)), choices, WIDTH)
        operands = [self._pick(), self.rng.choice(self.flags), self.rng.choice([self._pick(), self.flags[0]])]
        return self.net.logic(self.rng.getrandbits(8), operands, WIDTH)


@pytest.mark.parametrize("seed", range(150))
def test_pieces_are_the_goal_just_where_they_say(seed: int) -> None:
    logic = Logic(seed)
    net, rng = logic.net, logic.rng
    found: list[tuple[Bits, Bits, list[Piece]]] = []
    for goal in (logic.goal, const_bits(0, 1), const_bits(1, 1)):
        search = Search(net, goal)
        found += [(word, goal, search.pieces(word)) for word in logic.words[-3:]]
    for _ in range(40):
        values = evaluated(net, {cell: rng.getrandbits(width) for cell, width in logic.inputs.items()})
        for word, goal, pieces in found:
            assert sum(piece.width for piece in pieces) == WIDTH
            low = 0
            for piece in pieces:
                have = shown(slice_bits(word, low, piece.width), values)
                wanted = slice_bits(goal, low, piece.width) if bits_width(goal) > 1 else goal * piece.width
                source = wanted if shown(piece.when, values) else piece.rest
                assert have == shown(source, values)
                low += piece.width


def test_random_logic_holds_conditions() -> None:
    """The comparison above is of something: most words have runs that are the goal under a condition."""
    searched = [Search(logic.net, logic.goal).pieces(logic.words[-1]) for logic in map(Logic, range(50))]
    assert sum(any(piece.when not in (ALWAYS, NEVER) for piece in pieces) for pieces in searched) > 25


class Words:
    """Three words and three conditions; a condition is told by its column of values."""

    def __init__(self) -> None:
        self.net = Net()
        self.q, self.x, self.y = (self.net.bits(Parameter(8, (), name, 0)) for name in "qxy")
        self.flags = [self.net.bits(Parameter(1, (), name, 0)) for name in "abc"]

    def column(self, bit: Bits) -> int:
        """The values of a condition over those of a, b and c."""
        column = 0
        for row in range(8):
            given = {bits[0].cell: row >> k & 1 for k, bits in enumerate(self.flags)}
            given |= {bits[0].cell: 0 for bits in (self.q, self.x, self.y)}
            column |= shown(bit, evaluated(self.net, given)) << row
        return column

    def conditions(self, bits: Bits, goal: Bits) -> list[int]:
        return [self.column(piece.when) for piece in Search(self.net, goal).pieces(bits)]


A, B, C = (truth.variable(k, 3) for k in range(3))
FULL = truth.mask(3)


def test_what_is_selected_under_conditions_is_found() -> None:
    w = Words()
    net, q, x, y, (a, b, c) = w.net, w.q, w.x, w.y, w.flags
    nested = net.choose(a, net.choose(b, x, q), q)
    assert w.conditions(nested, q) == [FULL ^ A & B]
    assert [piece.rest for piece in Search(net, q).pieces(nested)] == [x]
    later = net.choose(c, y, net.choose(a, x, q))
    assert w.conditions(later, q) == [FULL ^ (A | C)]
    assert w.conditions(q, q) == [FULL]
    assert w.conditions(net.choose(a, x, y), q) == [0]
    assert w.conditions(net.mux(concat([a, b]), [q, x, y, q], 8), q) == [FULL ^ A ^ B]
    halves = concat([slice_bits(net.choose(a, x, q), 0, 4), slice_bits(net.choose(c, x, q), 4, 4)])
    assert w.conditions(halves, q) == [FULL ^ A, FULL ^ C]


def test_constants_are_found_where_gates_absorbed_them() -> None:
    w = Words()
    net, x, (a, b, _) = w.net, w.x, w.flags
    zero, ones = const_bits(0, 8), const_bits(-1, 8)
    assert w.conditions(net.choose(a, zero, x), const_bits(0, 1)) == [A]
    assert w.conditions(net.choose(a, zero, net.choose(b, zero, x)), const_bits(0, 1)) == [A | B]
    assert w.conditions(net.choose(a, ones, x), const_bits(1, 1)) == [A]
    assert w.conditions(net.choose(a, ones, x), const_bits(0, 1)) == [0]
    assert w.conditions(net.choose(a, const_bits(15, 8), x), const_bits(0, 1)) == [0, A]


def test_a_gate_that_changes_what_it_passes_on_is_no_selection() -> None:
    w = Words()
    assert w.conditions(w.net.logic(truth.XOR, (w.q, w.flags[0]), 8), w.q) == [0]
    assert w.conditions(w.net.both(w.q, w.x), w.q) == [0]
