"""The datapath as an Amaranth design: the same signals as the Verilog text has, from the same layout.

With plain operators it has no part that Amaranth does not know, so that Amaranth's own simulator runs it. All
registers are in the domain ``sync``; those of the pipeline start as zero and no reset touches them, state
registers start with and return to their initial values.
"""
from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import cast

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, ResetSignal, Signal, Value

from kera_hw.graph.node import Origin
from kera_hw.rtl.emit.amaranth_cells import Around, Place, Start, vector
from kera_hw.rtl.emit.amaranth_operators import Turns
from kera_hw.rtl.emit.amaranth_storages import StorageBuilder
from kera_hw.rtl.emit.amaranth_styles import AMARANTH_STYLES
from kera_hw.rtl.emit.delays import build_delay
from kera_hw.rtl.emit.handshake import Connections
from kera_hw.rtl.emit.layout import Control, Layout, Piece, Run, valid_name
from kera_hw.rtl.emit.styles import Style
from kera_hw.rtl.emit.text import source_of
from kera_hw.schedule.fpga.bits import Bits, Segment, slice_bits
from kera_hw.schedule.fpga.cells import Call, StateNext, StateOut
from kera_hw.schedule.fpga.netlist import Netlist, StateControl, StateReg
from kera_hw.schedule.fpga.units import Port
from kera_hw.schedule.plan import Plan


def place_of(origin: Origin) -> tuple[str, str]:
    """Source places as Amaranth keeps one, in two parts that it joins by a colon."""
    path, _, lines = source_of(origin).rpartition(":")
    return path, lines


@dataclass(frozen=True, slots=True)
class AmaranthDatapath:
    """What the datapath is made from; ``build`` gives the design, connected. Its layout names all signals."""

    netlist: Netlist
    plan: Plan
    control: Control
    style: Style

    def layout(self) -> Layout:
        """The names, of which each design takes its own copy."""
        return Layout(self.netlist, self.plan, self.control)

    def build(self, wires: Connections) -> Elaboratable:
        """The design in the domain ``sync``, on the given buses."""
        return _Datapath(self, wires)


class _Datapath(Elaboratable):
    def __init__(self, source: AmaranthDatapath, wires: Connections) -> None:
        self._netlist, self._plan, self._control = source.netlist, source.plan, source.control
        self._layout = source.layout()
        self._style: Style = source.style
        self._builders = AMARANTH_STYLES[source.style]
        self._wires = wires
        self._inputs = {bus: signal for (bus, _), signal in zip(self._netlist.inputs, wires.inputs)}
        self._signals: dict[str, Signal] = {}
        self._turns = Turns(
            self._netlist, self._plan, self._builders, self._vector,
            lambda stage: wires.control[valid_name(stage)],
        )
        self._shown: dict[str, Signal] = {}  # of a unit with several calls: what it shows

    def elaborate(self, platform: object) -> Module:
        """Called by Amaranth."""
        m = Module()
        self._declare()
        working, entering = self._layout.cells_by_stage(), self._layout.runs_by_stage()
        for stage in range(self._plan.latency_cycles):
            for index in working.get(stage, []):
                self._cell(m, index, stage)
            self._stage_end(m, stage, entering.get(stage + 1, []))
            self._state_updates(m, stage)
        self._storages(m)
        self._delays(m)
        last = self._plan.latency_cycles
        for out, signal in zip(self._netlist.outputs, self._wires.outputs):
            m.d.comb += signal.eq(self._vector(out.bits, last))
        return m

    def _declare(self) -> None:
        layout, cells = self._layout, self._netlist.cells
        for cell, name in zip(cells, layout.wires):
            if isinstance(cell, StateOut):
                state = self._netlist.states[cell.state]
                initial = state.initial & ((1 << state.width) - 1)
                self._signal(name, state.width, cell.origin, initial, _resets_itself(state))
            elif not isinstance(cell, StateNext) and cell.width:
                self._signal(name, cell.width, cell.origin)
        for run in layout.runs():
            self._signal(run.name, run.width, cells[run.cell].origin, 0)

    def _signal(
        self, name: str, width: int, origin: Origin | None, initial: int = 0, reset_less: bool = True
    ) -> Signal:
        """A signal with its source place; ``initial`` is that of a register."""
        signal = Signal(width, name=name, init=initial, reset_less=reset_less)
        if origin is not None:
            signal.src_loc = cast("tuple[str, int]", place_of(origin))  # which Amaranth prints, no more
        self._signals[name] = signal
        return signal

    def _read(self, segment: Segment, stage: int) -> list[Value]:
        """The signals that show a segment in a stage, least significant first."""
        return [self._part(piece) for piece in self._layout.pieces(segment, stage)]

    def _part(self, piece: Piece) -> Value:
        signal = self._signals[piece.name]
        return signal if piece.width == piece.whole else signal[piece.low : piece.low + piece.width]

    def _vector(self, bits: Bits, stage: int) -> Value:
        return vector(bits, lambda segment: self._read(segment, stage))

    def _moves(self, m: Module) -> AbstractContextManager[None]:
        """The condition under which the pipeline's registers take their next values."""
        return m.If(self._wires.control["advance"]) if self._control.advance else nullcontext()

    def _cell(self, m: Module, index: int, stage: int) -> None:
        cell = self._netlist.cells[index]
        if isinstance(cell, Call) and isinstance(cell.unit, Port):
            return
        target = self._signals[self._layout.wires[index]]
        if isinstance(cell, Call):
            self._call(m, cell, index, stage)
        else:
            self._builders.cell(cell, self._place(m, target, stage))

    def _storages(self, m: Module) -> None:
        """The memories; calls show what their ports give them."""
        builder = StorageBuilder(
            self._netlist, self._plan, self._control, self._wires.control, self._vector, self._goes_on
        )
        for place in self._layout.storages:
            for call, word in builder.build(m, place, self._style):
                m.d.comb += self._signals[self._layout.wires[call]].eq(word)

    def _delays(self, m: Module) -> None:
        """The delay lines, from the signals of all stages."""
        enable = self._wires.control["advance"] if self._control.advance else Const(1)
        for number, (line, runs) in enumerate(zip(self._plan.delay_lines, self._layout.delays)):
            taken = [
                value for held in line.parts
                for value in self._read(Segment(held.cell, held.low, held.width), held.load)
            ]
            name = self._layout.fresh(f"delay_{number}")
            shown, low = Signal(line.width, name=f"{name}_shown"), 0
            build_delay(m, line, name, self._style, enable, Cat(*taken), shown)
            for run in runs:
                m.d.comb += self._signals[run.name].eq(shown[low : low + run.width])
                low += run.width

    def _place(self, m: Module, target: Signal, stage: int) -> Place:
        return Place(
            m, target, lambda segment: self._read(segment, stage), self._layout.fresh,
            self._wires.control.get("advance") if self._control.advance else None,
            Around(self._inputs, lambda: self._goes_on(stage)),
        )

    def _call(self, m: Module, cell: Call, index: int, stage: int) -> None:
        """A unit at its only call; of several calls each shows the result, and the last has the unit."""
        unit, call = cell.unit, self._layout.call(index)
        target = self._signals[self._layout.wires[index]]
        if call.shared:
            if index == call.calls[0]:
                self._shown[unit.name] = Signal(unit.width, name=self._layout.fresh(f"{target.name}_shared"))
            m.d.comb += target.eq(self._shown[unit.name])
            target = self._shown[unit.name]
        if index != call.calls[-1]:
            return
        turn = self._layout.turns.get(unit.name)
        if turn is not None:
            place = self._place(m, target, stage)
            start = Start(self._turns.operands(turn, place), None)
            self._builders.units[type(unit)](unit, start, place)
            return
        turns = [(self._plan.stage[user], self._netlist.arguments(user)) for user in call.calls]
        valids = self._wires.control
        *others, (last, final) = turns
        arguments = [self._vector(bits, last) for bits in final]
        for there, vectors in reversed(others):
            valid, values = valids[valid_name(there)], [self._vector(bits, there) for bits in vectors]
            arguments = [Mux(valid, value, other) for value, other in zip(values, arguments)]
        timed = [valids[valid_name(there)] for there, _ in turns] if unit.timed_by_items else []
        start = Start(tuple(arguments), Cat(*timed).any() if timed else None)
        self._builders.units[type(unit)](unit, start, self._place(m, target, stage))

    def _stage_end(self, m: Module, stage: int, runs: list[Run]) -> None:
        """The registers that end a stage."""
        if not runs:
            return
        for held in (False, True):
            group = [run for run in runs if (run.stages > 1) == held and run.line is None]
            if group:
                with m.If(self._goes_on(stage)) if held else self._moves(m):
                    for run in group:
                        source = Cat(*self._read(Segment(run.cell, run.low, run.width), stage))
                        m.d.sync += self._signals[run.name].eq(source)

    def _state_updates(self, m: Module, stage: int) -> None:
        layout = self._layout
        for state, name, write in zip(self._netlist.states, layout.states, self._plan.state_write):
            if write == stage:
                for group in state.groups():
                    self._state_update(m, state, group, name, stage)

    def _goes_on(self, stage: int) -> Value:
        """That a stage holds an item which goes on."""
        held = self._wires.control[valid_name(stage)]
        return held & self._wires.control["advance"] if self._control.advance else held

    def _state_update(
        self, m: Module, state: StateReg, group: StateControl, name: str, stage: int
    ) -> None:
        """Clocking of some flip-flops of a state register."""
        target = self._signals[name][group.low : group.low + group.width]
        follow = self._vector(slice_bits(state.next, group.low, group.width), stage)
        enable = self._goes_on(stage) if group.enable is None else self._pin(group.enable)
        if not _resets_itself(state):
            with m.If(enable):
                m.d.sync += target.eq(follow)
            return
        reset = ResetSignal(allow_reset_less=True) if group.reset is None else self._pin(group.reset)
        with m.If(reset):
            m.d.sync += target.eq(state.initial >> group.low & (1 << group.width) - 1)
        with m.Elif(enable):
            m.d.sync += target.eq(follow)

    def _pin(self, cell: int) -> Signal:
        return self._signals[self._layout.wires[cell]]


def _resets_itself(state: StateReg) -> bool:
    """Whether some flip-flops' reset holds the design's own already, which then need not be added to it."""
    return any(control.reset is not None for control in state.controls)
