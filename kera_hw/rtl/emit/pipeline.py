"""The datapath as Verilog text: one section a stage, each with its cells and the registers that end it.

Constants are written where they are read. The control signals come from outside (see ``handshake``):
``advance`` moves the whole pipeline on, ``valid_stage<t>`` says that stage t holds an item, where that
decides about a state register or starts a folded loop.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kera_hw.graph.node import Origin
from kera_hw.rtl.emit.cells import Site, write_cell
from kera_hw.rtl.emit.fold import write_fold
from kera_hw.rtl.emit.layout import Control, Layout, Run, valid_name
from kera_hw.rtl.emit.naming import escaped
from kera_hw.rtl.emit.text import constant, declared_range, joined, part, source_of, vector
from kera_hw.schedule.fpga.netlist import (
    Bits,
    Cell,
    Fold,
    Input,
    Moves,
    Netlist,
    RegisterPin,
    Restart,
    Segment,
    StateControl,
    StateNext,
    StateOut,
    StateReg,
    slice_bits,
)
from kera_hw.schedule.plan import Plan

CellWriter = Callable[[Cell, Site], list[str]]


@dataclass(frozen=True, slots=True)
class Datapath:
    """Text of the module, and its signals."""

    text: str
    layout: Layout


def write_datapath(
    netlist: Netlist, plan: Plan, name: str, control: Control, writer: CellWriter = write_cell,
) -> Datapath:
    """The datapath as a Verilog module ``name``; ``writer`` gives the text of one cell."""
    return _Writer(netlist, plan, control, writer).write(name)


class _Writer:
    def __init__(self, netlist: Netlist, plan: Plan, control: Control, writer: CellWriter) -> None:
        self._netlist, self._plan, self._control, self._cell_writer = netlist, plan, control, writer
        self._layout = Layout(netlist, plan, control)

    def _read(self, segment: Segment, stage: int) -> list[str]:
        """The signals that show a segment in a stage, least significant first."""
        return [part(p.name, p.low, p.width, p.whole) for p in self._layout.pieces(segment, stage)]

    def _vector(self, bits: Bits, stage: int) -> str:
        return vector(bits, lambda segment: self._read(segment, stage))

    def write(self, name: str) -> Datapath:
        layout = self._layout
        body = [*self._state_declarations()]
        working, entering = layout.cells_by_stage(), layout.runs_by_stage()
        for stage in range(self._plan.latency_cycles):
            body += ["", f"// Stage {stage}"]
            for index in working.get(stage, []):
                body += self._cell(index, stage)
            body += self._rank(stage + 1, entering.get(stage + 1, []))
            body += self._state_updates(stage)
        last = self._plan.latency_cycles
        body += ["", "// Results"]
        for out in self._netlist.outputs:
            body.append(f"assign {escaped(out.bus)} = {self._vector(out.bits, last)};")
        lines = [*self._header(name), *("  " + line if line else "" for line in body), "endmodule"]
        return Datapath("\n".join(lines) + "\n", layout)

    def _header(self, name: str) -> list[str]:
        inputs = [("clk", 1)]
        if self._control.reset:
            inputs.append(("rst", 1))
        if self._control.advance:
            inputs.append(("advance", 1))
        inputs += [(valid_name(stage), 1) for stage in self._control.valid_stages]
        inputs += list(self._netlist.inputs)
        ports = [f"  input  wire {declared_range(width)}{escaped(bus)}" for bus, width in inputs]
        for out in self._netlist.outputs:
            width = sum(segment.width for segment in out.bits)
            ports.append(f"  output wire {declared_range(width)}{escaped(out.bus)}")
        return [f"module {escaped(name)} (", ",\n".join(ports), ");"]

    def _cell(self, index: int, stage: int) -> list[str]:
        cell, wire = self._netlist.cells[index], self._layout.wires[index]
        declare = f"{self._attribute(cell.origin)}wire {declared_range(cell.width)}{wire}"
        if isinstance(cell, Input):
            whole = dict(self._netlist.inputs)[cell.bus]
            return [f"{declare} = {part(escaped(cell.bus), cell.low, cell.width, whole)};"]
        if isinstance(cell, StateOut | StateNext):
            return []
        if isinstance(cell, Moves):
            return [f"{declare} = {self._moves(stage)};"]
        if isinstance(cell, Restart):
            return [f"{declare} = {'rst' if self._control.reset else constant(0, 1)};"]
        if isinstance(cell, RegisterPin):
            return [f"{declare} = {self._vector(cell.bits, stage)};"]
        enable = "advance" if self._control.advance else ""
        site = Site(wire, lambda segment: self._read(segment, stage), self._layout.fresh, enable)
        if isinstance(cell, Fold):
            lines = write_fold(cell, site, valid_name(stage), self._cell_writer)
        else:
            lines = self._cell_writer(cell, site)
        if len(lines) == 1 and lines[0].startswith(f"assign {wire} = "):
            return [declare + lines[0].removeprefix(f"assign {wire}")]
        return [declare + ";", *lines]

    @staticmethod
    def _attribute(origin: Origin | None) -> str:
        if origin is None:
            return ""
        return f'(* src = "{source_of(origin)}" *) '

    def _rank(self, stage: int, runs: list[Run]) -> list[str]:
        """Declarations and clocking of the registers that end stage ``stage - 1``."""
        if not runs:
            return []
        origins = [self._netlist.cells[run.cell].origin for run in runs]
        lines = [
            f"{self._attribute(origin)}reg {declared_range(run.width)}{run.name};"
            for run, origin in zip(runs, origins)
        ]
        lines.append(f"always @(posedge clk) {'if (advance) ' if self._control.advance else ''}begin")
        for run in runs:
            source = joined(self._read(Segment(run.cell, run.low, run.width), stage - 1))
            lines.append(f"  {run.name} <= {source};")
        return [*lines, "end"]

    def _state_declarations(self) -> list[str]:
        lines: list[str] = []
        for state, name in zip(self._netlist.states, self._layout.states):
            attribute = self._attribute(self._netlist.cells[state.out].origin)
            initial = constant(state.initial & ((1 << state.width) - 1), state.width)
            lines.append(f"{attribute}reg {declared_range(state.width)}{name};")
            lines.append(f"initial {name} = {initial};")
        return lines

    def _state_updates(self, stage: int) -> list[str]:
        lines: list[str] = []
        for state, name, write in zip(self._netlist.states, self._layout.states, self._plan.state_write):
            if write != stage:
                continue
            for group in state.groups():
                lines += self._state_update(state, group, name, stage)
        return lines

    def _moves(self, stage: int) -> str:
        """That a stage holds an item which goes on."""
        return valid_name(stage) + (" && advance" if self._control.advance else "")

    def _state_update(self, state: StateReg, group: StateControl, name: str, stage: int) -> list[str]:
        """Clocking of some flip-flops of a state register."""
        target = part(name, group.low, group.width, state.width)
        enable = self._moves(stage) if group.enable is None else self._layout.wires[group.enable]
        follow = self._vector(slice_bits(state.next, group.low, group.width), stage)
        clocked = f"if ({enable}) {target} <= {follow};"
        if group.reset is None and not self._control.reset:
            return [f"always @(posedge clk) {clocked}"]
        reset = "rst" if group.reset is None else self._layout.wires[group.reset]
        initial = constant(state.initial >> group.low & ((1 << group.width) - 1), group.width)
        return ["always @(posedge clk)", f"  if ({reset}) {target} <= {initial};", f"  else {clocked}"]
