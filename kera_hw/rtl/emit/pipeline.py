"""The datapath module: one section a stage, each with its cells and the registers that end it.

Every register bit here is one of the plan's: for each run of bits, one register in each stage it is kept for.
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
from kera_hw.rtl.emit.naming import escaped, unique_stems
from kera_hw.rtl.emit.text import constant, declared_range, joined, part, vector
from kera_hw.schedule.netlist import Bits, Cell, Fold, Input, Netlist, Segment, StateOut
from kera_hw.schedule.plan import Plan

CellWriter = Callable[[Cell, Site], list[str]]


@dataclass(frozen=True, slots=True)
class Control:
    """The control inputs of the datapath: whether it has ``advance`` and ``rst``, and valid bits by stage.

    ``stateful``: there are state registers, so that an item matters beyond itself.
    """

    advance: bool
    reset: bool
    valid_stages: tuple[int, ...]
    stateful: bool = True


@dataclass(frozen=True, slots=True)
class _Run:
    """Bits [low, low + width) of a cell, as one signal."""

    low: int
    width: int
    name: str


@dataclass(frozen=True, slots=True)
class Datapath:
    """Text of the module, the origin of each named signal, and how many register bits were written.

    ``states`` are the signals of the netlist's state registers, in order.
    """

    text: str
    origins: dict[str, Origin]
    register_bits: int
    states: tuple[str, ...] = ()


def control_of(netlist: Netlist, plan: Plan, interface: str) -> Control:
    """Which control inputs the datapath of this plan has."""
    loads = {stage for cell, stage in zip(netlist.cells, plan.stage) if isinstance(cell, Fold)}
    stages = tuple(sorted({*plan.state_write, *loads}))
    stateful = bool(netlist.states)
    return Control(interface != "none", interface != "none" and stateful, stages, stateful)


def write_datapath(
    netlist: Netlist, plan: Plan, name: str, control: Control, writer: CellWriter = write_cell,
) -> Datapath:
    """The datapath as a Verilog module ``name``; ``writer`` gives the text of one cell."""
    return _Writer(netlist, plan, control, writer).write(name)


def _valid(stage: int) -> str:
    return f"valid_stage{stage}"


class _Writer:
    def __init__(self, netlist: Netlist, plan: Plan, control: Control, writer: CellWriter) -> None:
        self._netlist, self._plan, self._control, self._cell_writer = netlist, plan, control, writer
        buses = [*(bus for bus, _ in netlist.inputs), *(out.bus for out in netlist.outputs)]
        self._taken = {"clk", "rst", "advance", *buses, *map(_valid, control.valid_stages)}
        self._stems = unique_stems(netlist, frozenset(self._taken))
        self._origins: dict[str, Origin] = {}
        self._register_bits = 0
        self._wires = [
            self._fresh(f"{stem}_s{stage}") for stem, stage in zip(self._stems, plan.available)
        ]
        # A state register is read where it stands; it has no wire of its own.
        self._states = [self._wires[state.out] for state in netlist.states]
        self._kept = self._registers()

    def _fresh(self, name: str) -> str:
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def _registers(self) -> dict[tuple[int, int], list[_Run]]:
        """For each (cell, stage): the registers that show its bits there; neighbouring runs share one."""
        spans: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for life in sorted(self._plan.lifetimes, key=lambda item: (item.cell, item.low)):
            for rank in range(1, life.ranks + 1):
                runs = spans.setdefault((life.cell, life.available + rank), [])
                if runs and sum(runs[-1]) == life.low:
                    runs[-1] = (runs[-1][0], runs[-1][1] + life.width)
                else:
                    runs.append((life.low, life.width))
        return {
            (cell, stage): [self._run(cell, stage, low, width) for low, width in runs]
            for (cell, stage), runs in spans.items()
        }

    def _run(self, cell: int, stage: int, low: int, width: int) -> _Run:
        self._register_bits += width
        name = f"{self._stems[cell]}_s{stage}"
        if width != self._netlist.cells[cell].width:
            name += f"_{low + width - 1}_{low}"
        name = self._fresh(name)
        self._note(name, cell)
        return _Run(low, width, name)

    def _note(self, name: str, cell: int) -> None:
        origin = self._netlist.cells[cell].origin
        if origin is not None:
            self._origins[name] = origin

    def _read(self, segment: Segment, stage: int) -> list[str]:
        """The signals that show a segment in a stage, least significant first."""
        cell = segment.cell
        assert cell is not None
        if stage == self._plan.available[cell]:
            return [part(self._wires[cell], segment.low, segment.width, self._netlist.cells[cell].width)]
        pieces: list[str] = []
        low, end = segment.low, segment.low + segment.width
        for run in self._kept.get((cell, stage), ()):
            if run.low <= low < run.low + run.width:
                width = min(end, run.low + run.width) - low
                pieces.append(part(run.name, low - run.low, width, run.width))
                low += width
                if low == end:
                    return pieces
        raise ValueError(f"the plan keeps no bit {low} of cell {cell} for stage {stage}")

    def _vector(self, bits: Bits, stage: int) -> str:
        return vector(bits, lambda segment: self._read(segment, stage))

    def write(self, name: str) -> Datapath:
        body = [*self._state_declarations()]
        by_stage: dict[int, list[int]] = {}
        for index, stage in enumerate(self._plan.stage):
            by_stage.setdefault(stage, []).append(index)
        entering: dict[int, list[tuple[int, _Run]]] = {}
        for (cell, stage), runs in self._kept.items():
            entering.setdefault(stage, []).extend((cell, run) for run in runs)
        for stage in range(self._plan.latency_cycles):
            body += ["", f"// Stage {stage}"]
            for index in by_stage.get(stage, []):
                body += self._cell(index, stage)
            body += self._rank(stage + 1, entering.get(stage + 1, []))
            body += self._state_updates(stage)
        last = self._plan.latency_cycles
        body += ["", "// Results"]
        for out in self._netlist.outputs:
            body.append(f"assign {escaped(out.bus)} = {self._vector(out.bits, last)};")
        lines = [*self._header(name), *("  " + line if line else "" for line in body), "endmodule"]
        return Datapath("\n".join(lines) + "\n", self._origins, self._register_bits, tuple(self._states))

    def _header(self, name: str) -> list[str]:
        inputs = [("clk", 1)]
        if self._control.reset:
            inputs.append(("rst", 1))
        if self._control.advance:
            inputs.append(("advance", 1))
        inputs += [(_valid(stage), 1) for stage in self._control.valid_stages]
        inputs += list(self._netlist.inputs)
        ports = [f"  input  wire {declared_range(width)}{escaped(bus)}" for bus, width in inputs]
        for out in self._netlist.outputs:
            width = sum(segment.width for segment in out.bits)
            ports.append(f"  output wire {declared_range(width)}{escaped(out.bus)}")
        return [f"module {escaped(name)} (", ",\n".join(ports), ");"]

    def _cell(self, index: int, stage: int) -> list[str]:
        cell, wire = self._netlist.cells[index], self._wires[index]
        self._note(wire, index)
        declare = f"{self._attribute(cell.origin)}wire {declared_range(cell.width)}{wire}"
        if isinstance(cell, Input):
            whole = dict(self._netlist.inputs)[cell.bus]
            return [f"{declare} = {part(escaped(cell.bus), cell.low, cell.width, whole)};"]
        if isinstance(cell, StateOut):
            return []
        enable = "advance" if self._control.advance else ""
        site = Site(wire, lambda segment: self._read(segment, stage), self._fresh, enable)
        if isinstance(cell, Fold):
            lines = write_fold(cell, site, _valid(stage), self._cell_writer)
        else:
            lines = self._cell_writer(cell, site)
        if len(lines) == 1 and lines[0].startswith(f"assign {wire} = "):
            return [declare + lines[0].removeprefix(f"assign {wire}")]
        return [declare + ";", *lines]

    @staticmethod
    def _attribute(origin: Origin | None) -> str:
        if origin is None:
            return ""
        path = origin.path.replace("\\", "/").replace('"', "'")
        return f'(* src = "{path}:{origin.line}" *) '

    def _rank(self, stage: int, runs: list[tuple[int, _Run]]) -> list[str]:
        """Declarations and clocking of the registers that end stage ``stage - 1``."""
        if not runs:
            return []
        lines = [
            f"{self._attribute(self._netlist.cells[cell].origin)}reg {declared_range(run.width)}{run.name};"
            for cell, run in runs
        ]
        lines.append(f"always @(posedge clk) {'if (advance) ' if self._control.advance else ''}begin")
        for cell, run in runs:
            source = joined(self._read(Segment(cell, run.low, run.width), stage - 1))
            lines.append(f"  {run.name} <= {source};")
        return [*lines, "end"]

    def _state_declarations(self) -> list[str]:
        lines: list[str] = []
        for state, name in zip(self._netlist.states, self._states):
            self._note(name, state.out)
            attribute = self._attribute(self._netlist.cells[state.out].origin)
            initial = constant(state.initial & ((1 << state.width) - 1), state.width)
            lines.append(f"{attribute}reg {declared_range(state.width)}{name};")
            lines.append(f"initial {name} = {initial};")
        return lines

    def _state_updates(self, stage: int) -> list[str]:
        lines: list[str] = []
        for state, name, write in zip(self._netlist.states, self._states, self._plan.state_write):
            if write != stage:
                continue
            enable = _valid(stage) + (" && advance" if self._control.advance else "")
            initial = constant(state.initial & ((1 << state.width) - 1), state.width)
            lines.append("always @(posedge clk)")
            if self._control.reset:
                lines.append(f"  if (rst) {name} <= {initial};")
            word = "else if" if self._control.reset else "if"
            lines.append(f"  {word} ({enable}) {name} <= {self._vector(state.next, stage)};")
        return lines
