"""The cell netlist: mapping gives it, the scheduler places it in cycles, the emitter writes it down.

Values are bit vectors. A cell has one output vector and reads ``Bits`` (see ``bits``); what each class of
cells is, its module in ``cells`` says. Everything here is immutable and target-independent data.

A netlist is one region: its cells share a pace, which the plan gives. What has a pace of its own, or serves
several cells, is a unit (see ``cells.call``), which may hold a netlist again: so regions nest.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kera_hw.schedule.fpga.bits import Bits, cell_bits
from kera_hw.schedule.fpga.cells import Call, Cell, Unit, WriteControl


@dataclass(frozen=True, slots=True)
class StateControl:
    """How bits [low, low + width) of a state change; ``reset`` and ``enable`` are ``RegisterPin`` cells.

    They return to their initial values when ``reset`` is high, else take the next value when ``enable`` is.
    An enable is low where ``Moves`` is, and so is a reset unless ``Restart`` is high. Without an enable they
    change with every item, without a reset the design's own resets them.
    """

    low: int
    width: int
    enable: int | None = None
    reset: int | None = None


@dataclass(frozen=True, slots=True)
class StateReg:
    """A state register: initial value, the cell that reads it, the vector it takes for the next item.

    ``controls``, lowest first, name bits that do not simply change with every item. ``held``: the least and
    the greatest integer that it ever holds, where the cells rely on that; it may then be narrower than its
    type.
    """

    name: str
    width: int
    initial: int
    out: int
    next: Bits
    controls: tuple[StateControl, ...] = ()
    held: tuple[int, int] | None = None

    def groups(self) -> Iterator[StateControl]:
        """All bits, those between the controls as well."""
        low = 0
        for control in (*self.controls, StateControl(self.width, 0)):
            if low < control.low:
                yield StateControl(low, control.low - low)
            if control.width:
                yield control
            low = control.low + control.width

    def pins(self) -> Iterator[int]:
        """The cells that control its flip-flops, each once."""
        named = (pin for control in self.controls for pin in (control.enable, control.reset))
        return iter(dict.fromkeys(pin for pin in named if pin is not None))

    def operands(self) -> tuple[Bits, ...]:
        """All that is read in the stage that writes the register."""
        return (self.next, *(cell_bits(pin, 1) for pin in self.pins()))


@dataclass(frozen=True, slots=True)
class Output:
    """One output bus in packing order (`out_data`, or `out_0`, ...)."""

    bus: str
    bits: Bits


@dataclass(frozen=True, slots=True)
class Netlist:
    """Cells in topological order (state reads are sources). ``cells[i]`` has id i."""

    name: str
    inputs: tuple[tuple[str, int], ...]  # bus name, width in bits
    cells: tuple[Cell, ...]
    outputs: tuple[Output, ...]
    states: tuple[StateReg, ...] = ()
    device: str = "generic"
    notes: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        return f"<Netlist {self.name}: {len(self.cells)} cells for {self.device}>"

    def calls(self) -> list[tuple[Unit, tuple[int, ...]]]:
        """Every unit with the cells that it works for, both in order."""
        found: dict[str, tuple[Unit, list[int]]] = {}
        for index, cell in enumerate(self.cells):
            if isinstance(cell, Call):
                unit, users = found.setdefault(cell.unit.name, (cell.unit, []))
                assert unit is cell.unit or unit == cell.unit, f"two units are called {unit.name}"
                users.append(index)
        return [(unit, tuple(users)) for unit, users in found.values()]

    def arguments(self, call: int) -> tuple[Bits, ...]:
        """The operands of a cell that is a call."""
        cell = self.cells[call]
        assert isinstance(cell, Call)
        return cell.arguments

    def units(self) -> list[Unit]:
        """The units, in order of their first calls."""
        return [unit for unit, _ in self.calls()]


def control_readers(cells: Sequence[Cell]) -> dict[int, frozenset[int]]:
    """Every cell that what the control says reaches, by whatever logic, with the cells that say it.

    All of them work in one stage, that which the control speaks of: a register between them would tell a
    later stage what holds for an earlier one, once more for every cycle in which the pipeline stands.
    """
    found: dict[int, frozenset[int]] = {}
    if not any(isinstance(cell, WriteControl) for cell in cells):
        return found
    for index, cell in enumerate(cells):
        sources = {s.cell for bits in cell.operands() for s in bits if s.cell is not None}
        if isinstance(cell, WriteControl):
            found[index] = frozenset((index,))
        elif reached := [found[source] for source in sources if source in found]:
            found[index] = frozenset().union(*reached)
    return found


def least_initiation_interval(netlist: Netlist) -> int:
    """The smallest initiation interval that units leave room for: each works for all its calls in turn."""
    return max((unit.initiation_interval * len(users) for unit, users in netlist.calls()), default=1)
