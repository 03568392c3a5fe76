"""What a shared operator chooses among: for each operand bit the signals of all phases, and what that takes.

The calls of an operator stand within one initiation interval, so one item at a time has it, and one of its
calls at each *phase*, the stages since the first call. What two calls read from one signal (the same register
of a value that is held, an operator's own output) needs no choice, nor does a phase without a call, which
takes whatever its neighbour does. Binding that lets operands meet in few signals is what multiplexers cost;
cf. Huang, Chen, Lin and Hsu, "Data path allocation based on bipartite weighted matching", DAC 1990.
"""
from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from kera_hw.schedule.fpga.bits import Bits, Segment
from kera_hw.schedule.fpga.cells import Call
from kera_hw.schedule.fpga.device import Device
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.units import Operator
from kera_hw.schedule.plan import Lifetime

Kind = Literal["table", "signals", "mixed"]
"""Of a column: constants alone, signals alone, or both."""
_KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Choosing:
    """One operand. Bit i is that of ``same[i]`` (a call, in every phase) or ``column[i]`` of those chosen.

    ``chosen``: of each different column the operand bit that shows it, by kind; ``columns``: its signals.
    """

    width: int
    same: tuple[int | None, ...]
    column: tuple[int | None, ...]
    chosen: tuple[tuple[Kind, int], ...]
    columns: tuple[tuple[Hashable, ...], ...]

    def of_kind(self, kind: Kind) -> tuple[tuple[Hashable, ...], ...]:
        """The signals of the columns of a kind, which are chosen together."""
        return tuple(column for (other, _), column in zip(self.chosen, self.columns) if other == kind)

    def luts(self, device: Device) -> int:
        """What all its columns take."""
        return sum(_tree_luts(column, device) for column in self.columns)


@dataclass(frozen=True, slots=True)
class Turn:
    """An operator with several calls, in order of their stages.

    ``of_phase``: the call that each phase serves, its neighbour's where it serves none.
    """

    unit: Operator
    calls: tuple[int, ...]
    first: int
    of_phase: tuple[int, ...]
    operands: tuple[Choosing, ...]
    copy: int = 0
    """Which of the registers that tell its phase it goes by."""

    @property
    def phase_bits(self) -> int:
        return (len(self.of_phase) - 1).bit_length()

    def phases_with(self, bit: int) -> list[int]:
        """The phases that have a bit set."""
        return [phase for phase in range(1, len(self.of_phase)) if phase >> bit & 1]

    @property
    def counted(self) -> tuple[int, int]:
        """What its phase is counted by: the first stage, and the number of phases."""
        return self.first, len(self.of_phase)

    @property
    def told_by(self) -> tuple[int, int, int]:
        """The register that tells its phase."""
        return *self.counted, self.copy


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a schedule has put things, indexed by cell or state."""

    stage: Sequence[int]
    available: Sequence[int]
    lifetimes: Sequence[Lifetime]


def turns(netlist: Netlist, placed: Placed) -> tuple[Turn, ...]:
    """All operators that calls share."""
    shared = [(unit, calls) for unit, calls in netlist.calls() if isinstance(unit, Operator) and calls[1:]]
    if not shared:
        return ()
    shown = _Shown(netlist, placed)
    found: list[Turn] = []
    for unit, calls in shared:
        ordered = tuple(sorted(calls, key=lambda call: placed.stage[call]))
        first = placed.stage[ordered[0]]
        at = {placed.stage[call] - first: call for call in ordered}
        span = max(at) + 1
        size = 1 << (span - 1).bit_length()
        of_phase = tuple(_neighbour(at, phase, size) for phase in range(span))
        operands = tuple(
            _choosing(netlist, shown, placed, of_phase, k)
            for k in range(len(netlist.arguments(ordered[0])))
        )
        found.append(Turn(unit, ordered, first, of_phase, operands))
    return _copied(found)


def _copied(found: Sequence[Turn]) -> tuple[Turn, ...]:
    """Each with a register for its phase that chooses few bits, which can stand beside their multiplexers.

    Operators that choose the same at the same time share multiplexers, which the first of them brings.
    """
    known: set[Hashable] = set()
    bits: dict[tuple[int, int], int] = {}
    copies: dict[tuple[int, int], int] = {}
    told: list[Turn] = []
    for turn in found:
        before = bits.get(turn.counted, 0)
        brought = {(turn.counted, k, operand.of_kind(k)) for operand in turn.operands for k in _KINDS} - known
        known |= brought
        bits[turn.counted] = before + sum(len(columns) for _, _, columns in brought)
        if bits[turn.counted] > before:
            copies[turn.counted] = before // MOST_CHOSEN_BITS
        told.append(replace(turn, copy=copies.get(turn.counted, 0)))
    return tuple(told)


MOST_CHOSEN_BITS = 8
"""Bits of operands from which on the next operator has a register of its own for its phase: multiplexers are
near their multipliers, and these far apart."""


def phase_luts(found: Sequence[Turn]) -> int:
    """LUTs that tell the phases, each counted once for all operators that go by it."""
    total = 0
    for _, span in {turn.counted for turn in found}:
        for bit in range((span - 1).bit_length()):
            inputs = sum(1 for phase in range(1, span) if phase >> bit & 1)
            total += max(0, -(-(inputs - 1) // 3))
    return total


def phase_ffs(found: Sequence[Turn]) -> int:
    """Flip-flops of the phases."""
    return sum((span - 1).bit_length() for _, span, _ in {turn.told_by for turn in found})


def held_ffs(found: Sequence[Turn]) -> int:
    """Flip-flops that hold operands before far cells; operators that choose the same share them."""
    groups = {
        (turn.counted, operand.columns, operand.same)
        for turn in found if turn.unit.held for operand in turn.operands
    }
    return sum(len(columns) + len(set(same) - {None}) for _, columns, same in groups)


def choice_luts(found: Sequence[Turn], device: Device) -> int:
    """LUTs of all operands' multiplexers; operators that choose the same at the same time share one."""
    groups = {
        (turn.counted, kind, operand.of_kind(kind))
        for turn in found for operand in turn.operands for kind in _KINDS
    }
    return sum(_tree_luts(column, device) for _, _, columns in groups for column in columns)


def valid_stages(found: Sequence[Turn]) -> set[int]:
    """The stages whose items tell the phases: those before each phase but the first."""
    return {stage for turn in found for stage in range(turn.first, turn.first + len(turn.of_phase) - 1)}


def _neighbour(at: Mapping[int, int], phase: int, size: int) -> int:
    """The call of the nearest phase, counted in the multiplexer's tree."""
    step = 1
    while step <= size:
        near = [other for other in range(phase // step * step, phase // step * step + step) if other in at]
        if near:
            return at[min(near, key=lambda other: abs(other - phase))]
        step *= 2
    raise AssertionError("an operator has calls")


class _Shown:
    """The signals that show bits: names that are equal where the signals are."""

    def __init__(self, netlist: Netlist, placed: Placed) -> None:
        self._netlist, self._placed = netlist, placed
        self._lives: dict[int, list[Lifetime]] = {}
        for life in placed.lifetimes:
            self._lives.setdefault(life.cell, []).append(life)

    def bits(self, bits: Bits, stage: int) -> Iterator[Hashable]:
        for segment in bits:
            for k in range(segment.width):
                yield self._bit(segment, k, stage)

    def _bit(self, segment: Segment, k: int, stage: int) -> Hashable:
        if segment.cell is None:
            return segment.low >> k & 1
        cell, bit = self._netlist.cells[segment.cell], segment.low + k
        life = next(x for x in self._lives[segment.cell] if x.low <= bit < x.low + x.width)
        waits = stage - life.unregistered_until
        number = max(0, -(-waits // life.stages_each))
        if not number and isinstance(cell, Call) and isinstance(cell.unit, Operator):
            return cell.unit.name, bit
        return segment.cell, number, bit


def _choosing(
    netlist: Netlist, shown: _Shown, placed: Placed, of_phase: Sequence[int], operand: int
) -> Choosing:
    vectors: dict[int, list[Hashable]] = {}
    for call in dict.fromkeys(of_phase):
        bits = netlist.arguments(call)[operand]
        if bits:
            vectors[call] = list(shown.bits(bits, placed.stage[call]))
    if not vectors:
        return Choosing(0, (), (), (), ())
    asked = [call for call in of_phase if call in vectors]
    rows = [vectors[call] if call in vectors else vectors[asked[0]] for call in of_phase]
    width = len(rows[0])
    same: list[int | None] = []
    column: list[int | None] = []
    known: dict[tuple[Hashable, ...], int] = {}
    chosen: list[tuple[Kind, int]] = []
    for bit in range(width):
        signals = tuple(row[bit] for row in rows)
        if len(set(signals)) == 1:
            same.append(asked[0])
            column.append(None)
            continue
        same.append(None)
        if signals not in known:
            known[signals] = len(chosen)
            constant = [isinstance(signal, int) for signal in signals]
            kind: Kind = "table" if all(constant) else "mixed" if any(constant) else "signals"
            chosen.append((kind, bit))
        column.append(known[signals])
    return Choosing(width, tuple(same), tuple(column), tuple(chosen), tuple(known))


def _tree_luts(signals: Sequence[Hashable], device: Device) -> int:
    """LUTs that choose among the signals; the halves of a tree are joined by the family's multiplexers."""
    names = {signal for signal in signals if not isinstance(signal, int)}
    if len(set(signals)) == 1:
        return 1
    if len(names) + (len(signals) - 1).bit_length() <= device.lut_inputs:
        return 1
    half = 1 << (len(signals) - 1).bit_length() - 1
    joined = int(device.family == "ice40")
    return _tree_luts(signals[:half], device) + _tree_luts(signals[half:], device) + joined
