"""Operators in Amaranth: the cell, registers before and behind it, what chooses its operands by the phase."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from amaranth.hdl import Cat, Signal, Value

from kera_hw.rtl.emit.amaranth_cells import Builders, Place, Start, build_mux, registered
from kera_hw.rtl.emit.turns import OperandBits, There, operand_of, operand_parts
from kera_hw.schedule.fpga.bits import Bits, Segment, bits_width, cell_bits
from kera_hw.schedule.fpga.cells import Mux
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.units import Operator
from kera_hw.schedule.plan import Plan
from kera_hw.schedule.turns import Turn


def build_operator(unit: Operator, start: Start, place: Place, builders: Builders) -> None:
    """An operator on a call's values."""
    values = start.arguments
    if unit.held:
        values = tuple(place.register(f"_held{k}", value, len(value)) for k, value in enumerate(values))
    arguments = [cell_bits(k, len(value)) for k, value in enumerate(values)]

    def read(segment: Segment) -> list[Value]:
        assert segment.cell is not None
        return [values[segment.cell][segment.low : segment.low + segment.width]]

    place = replace(place, read=read)
    cell = unit.on(arguments)
    if not unit.registers:
        builders.cell(cell, place)
        return
    inner = place.signal("_d", cell.width)
    builders.cell(cell, replace(place, target=inner))
    place.drive(registered(inner, "_q", range(1, unit.registers + 1), cell.width, place))


class Turns:
    """Operands of shared operators; ``vector`` shows bits in a stage, ``holds`` whether that has an item."""

    def __init__(
        self, netlist: Netlist, plan: Plan, builders: Builders, vector: Callable[[Bits, int], Value],
        holds: Callable[[int], Value],
    ) -> None:
        self._netlist, self._plan, self._builders = netlist, plan, builders
        self._vector, self._holds = vector, holds
        self._phases: dict[tuple[int, int, int], Signal] = {}
        self._chosen: dict[tuple[tuple[int, int], str, tuple[There, ...]], Signal] = {}

    def operands(self, turn: Turn, place: Place) -> tuple[Value, ...]:
        """The operands of the phase."""
        phase = self._phase(turn, place)
        return tuple(
            self._operand(turn, position, phase, place) for position in range(len(turn.operands))
        )

    def _phase(self, turn: Turn, place: Place) -> Signal:
        """The register that tells a turn's phase."""
        known = self._phases.get(turn.told_by)
        if known is None:
            known = Signal(turn.phase_bits, name=place.fresh(f"phase_s{turn.first}"))
            self._phases[turn.told_by] = known
            bits = [
                Cat(*(self._holds(turn.first + k - 1) for k in turn.phases_with(bit))).any()
                for bit in range(turn.phase_bits)
            ]
            with place.moves():
                place.module.d.sync += known.eq(Cat(*bits))
        return known

    def _operand(self, turn: Turn, position: int, phase: Signal, place: Place) -> Value:
        values: list[Value] = [phase]

        def read(segment: Segment) -> list[Value]:
            assert segment.cell is not None
            return [values[segment.cell][segment.low : segment.low + segment.width]]

        made: list[tuple[OperandBits, int]] = []
        for piece in operand_parts(self._netlist, self._plan, turn, position):
            key = (turn.counted, piece.kind, piece.vectors)
            if key in self._chosen:  # another operator chooses the same at the same time
                made.append((piece, len(values)))
                values.append(self._chosen[key])
                continue
            known: dict[There, int] = {}
            for there in () if piece.kind == "table" else piece.vectors:
                if there not in known:
                    known[there] = len(values)
                    values.append(self._vector(there.bits, there.stage))
            if piece.kind == "same":
                made.append((piece, known[piece.vectors[0]]))
                continue
            target = place.signal(f"_in{position}_{piece.kind}", piece.width)
            self._chosen[key] = target
            choices = [cell_bits(known[there], piece.width) for there in piece.vectors if known]
            cell = piece.cell(cell_bits(0, turn.phase_bits), choices)
            inner = replace(place, target=target, read=read)
            if piece.kind == "mixed" and isinstance(cell, Mux):
                build_mux(cell, inner)
            else:
                self._builders.cell(cell, inner)
            made.append((piece, len(values)))
            values.append(target)
        bits = operand_of(turn.operands[position].width, made)
        whole = Cat(*(part for segment in bits for part in read(segment)))
        assert len(whole) == bits_width(bits)
        return whole
