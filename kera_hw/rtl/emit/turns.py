"""What stands before a shared operator, for every emitter: its operands put together from what it chooses."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kera_hw.schedule.fpga.bits import Bits, bits_width, cell_bits, concat, slice_bits
from kera_hw.schedule.fpga.cells import Mux, Rom
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.plan import Plan
from kera_hw.schedule.turns import Kind, Turn


@dataclass(frozen=True, slots=True)
class There:
    """A vector as it is shown in a stage."""

    bits: Bits
    stage: int


@dataclass(frozen=True, slots=True)
class OperandBits:
    """Some bits of an operand that are made alike: one vector for all phases, or one for each of them.

    ``positions``: which bits of the operand show each bit of it.
    """

    kind: Kind | Literal["same"]
    positions: tuple[tuple[int, ...], ...]
    vectors: tuple[There, ...]

    @property
    def width(self) -> int:
        return len(self.positions)

    def cell(self, phase: Bits, choices: Sequence[Bits]) -> Mux | Rom:
        """What chooses, from the phase and a vector for each."""
        if self.kind == "table":
            contents = tuple(_constant(there.bits) for there in self.vectors)
            return Rom(width=self.width, address=phase, contents=contents)
        return Mux(width=self.width, select=phase, choices=tuple(choices))


def operand_parts(netlist: Netlist, plan: Plan, turn: Turn, operand: int) -> list[OperandBits]:
    """The parts of an operand; none where no call gives it."""
    choosing = turn.operands[operand]
    found: list[OperandBits] = []
    for call in dict.fromkeys(choosing.same):
        if call is not None:
            bits = [k for k, other in enumerate(choosing.same) if other == call]
            whole = There(_picked(netlist, call, operand, bits), plan.stage[call])
            found.append(OperandBits("same", tuple((k,) for k in bits), (whole,)))
    given = next((call for call in turn.of_phase if netlist.arguments(call)[operand]), None)
    kinds: list[Kind] = list(dict.fromkeys(kind for kind, _ in choosing.chosen))
    for kind in kinds:
        columns = [k for k, (other, _) in enumerate(choosing.chosen) if other == kind]
        bits = [choosing.chosen[k][1] for k in columns]
        vectors: list[There] = []
        for call in turn.of_phase:
            chosen = call if netlist.arguments(call)[operand] else given
            assert chosen is not None
            vectors.append(There(_picked(netlist, chosen, operand, bits), plan.stage[chosen]))
        shown = tuple(tuple(i for i, c in enumerate(choosing.column) if c == k) for k in columns)
        found.append(OperandBits(kind, shown, tuple(vectors)))
    return found


def operand_of(width: int, parts: Sequence[tuple[OperandBits, int]]) -> Bits:
    """The operand from its parts, each with the number by which its vector is read."""
    bits: dict[int, Bits] = {}
    for part, number in parts:
        for k, positions in enumerate(part.positions):
            bits.update(dict.fromkeys(positions, cell_bits(number, 1, k)))
    return concat(bits[k] for k in range(width))


def _picked(netlist: Netlist, call: int, operand: int, bits: Sequence[int]) -> Bits:
    whole = netlist.arguments(call)[operand]
    return concat(slice_bits(whole, bit, 1) for bit in bits)


def _constant(bits: Bits) -> int:
    (segment,) = bits
    assert segment.cell is None
    return segment.low & (1 << bits_width(bits)) - 1
