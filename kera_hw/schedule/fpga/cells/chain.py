"""Carry chains of table cells: sums whose operands' logic lies wholly in their carry cells."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kera_hw.schedule.fpga.cells.add import Add
from kera_hw.schedule.fpga.values import Value, like, narrow, spread, widen


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain(Add):
    """A carry chain of table cells, for devices that have such (``Device.carry_operands`` of 4).

    Bit i sees p = table[d c b a] and g = table[0 0 b a] of its own table, with (a, b, c, d) = ``a`` and three
    ``inputs``, all as wide as the sum. It gives p ^ carry and passes on carry where p is set, else g.
    ``tables``: runs of (bits, 16-bit table). ``expr`` has no meaning here.
    """

    tables: tuple[tuple[int, int], ...]

    def runs(self) -> Iterator[tuple[int, int, int]]:
        """(lowest bit, bits, table) of each run, the lowest first."""
        low = 0
        for count, table in self.tables:
            yield low, count, table
            low += count

    def evaluate(self, operands: Sequence[Value]) -> Value:
        """All bits at once: with x = p | g and y = ~p & g, x + y has the chain's carries and sums."""
        summed = self.sum_width
        *pins, carry = (widen(value) for value in operands)
        wide = [spread(value, bits, summed) for value, bits in zip(pins, (self.a, *self.inputs))]
        propagate: Value = 0
        generate: Value = 0
        for low, count, table in self.runs():
            run = (1 << count) - 1 << low
            for row in range(16):
                term: Value = run
                for k, value in enumerate(wide):
                    term = term & (value if row >> k & 1 else value ^ run)
                propagate = propagate | (term if table >> row & 1 else 0)
                generate = generate | (term if table >> (row & 3) & 1 else 0)
        total = (propagate | generate) + (generate & ~propagate) + carry
        return narrow(like(total & (1 << self.width) - 1, operands, self.width), self.width)
