"""The datapath as Verilog text: one section a stage, each with its cells and the registers that end it.

Constants are written where they are read. The control signals come from outside (see ``handshake``):
``advance`` moves the whole pipeline on, ``valid_stage<t>`` says that stage t holds an item, where that
decides about a state register or starts an iterative unit.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

from kera_hw.graph.node import Origin
from kera_hw.rtl.emit.cells import Around, Site, Start, write_mux
from kera_hw.rtl.emit.delays import delay_instance
from kera_hw.rtl.emit.layout import CallPlace, Control, Layout, Run, StoragePlace, valid_name
from kera_hw.rtl.emit.naming import escaped, inner_name, module_name
from kera_hw.rtl.emit.storages import StorageSignals, storage_instance
from kera_hw.rtl.emit.styles import TEXT_STYLES, Style
from kera_hw.rtl.emit.text import constant, declared_range, joined, part, source_of, vector
from kera_hw.rtl.emit.turns import OperandBits, There, operand_of, operand_parts
from kera_hw.schedule.fpga.bits import Bits, Segment, bits_width, cell_bits, slice_bits
from kera_hw.schedule.fpga.cells import Call, Mux, Unit
from kera_hw.schedule.fpga.netlist import Netlist, StateControl, StateReg
from kera_hw.schedule.fpga.units import ReadPort, WritePort
from kera_hw.schedule.plan import Plan
from kera_hw.schedule.turns import Turn


@dataclass(frozen=True, slots=True)
class Datapath:
    """Text of the module, and its signals."""

    text: str
    layout: Layout


def write_datapath(
    netlist: Netlist, plan: Plan, name: str, control: Control, style: Style,
    outside: frozenset[str] = frozenset(),
) -> Datapath:
    """The datapath as a Verilog module ``name``, and those of its units, in cells of a ``style``.

    Of memories ``outside`` the signals are ports: they stand elsewhere, and others may use them too.
    """
    return _Writer(netlist, plan, control, style, outside).write(name)

_KEPT = "(* keep *) "
"""Before a process whose registers synthesis must not make one with others that hold the same."""


class _Writer:
    def __init__(
        self, netlist: Netlist, plan: Plan, control: Control, style: Style, outside: frozenset[str],
    ) -> None:
        self._netlist, self._plan, self._control = netlist, plan, control
        self._style: Style = style
        self._writers = TEXT_STYLES[style]
        self._layout = Layout(netlist, plan, control)
        self._ports = StorageSignals(netlist, plan, self._vector, self._moves)
        self._outside = outside
        self._places = {place.storage.name: place for place in self._layout.storages}
        self._buses = dict(netlist.inputs)
        self._definitions: list[tuple[Unit, str]] = []  # with their modules
        self._phases: dict[tuple[int, int, int], str] = {}
        self._chosen: dict[tuple[tuple[int, int], str, tuple[There, ...]], str] = {}
        self._shown: dict[str, str] = {}  # of a unit with several calls: the signal with its result

    def _read(self, segment: Segment, stage: int) -> list[str]:
        """The signals that show a segment in a stage, least significant first."""
        return [part(p.name, p.low, p.width, p.whole) for p in self._layout.pieces(segment, stage)]

    def _vector(self, bits: Bits, stage: int) -> str:
        return vector(bits, lambda segment: self._read(segment, stage))

    def write(self, name: str) -> Datapath:
        layout = self._layout
        body = [*self._state_declarations()]
        for place in layout.storages:
            if place.storage.name not in self._outside:
                body += self._ports.declarations(place)
        working, entering = layout.cells_by_stage(), layout.runs_by_stage()
        for stage in range(self._plan.latency_cycles):
            body += ["", f"// Stage {stage}"]
            for index in working.get(stage, []):
                body += self._cell(index, stage)
            body += self._stage_end(stage + 1, entering.get(stage + 1, []))
            body += self._state_updates(stage)
        for place in layout.storages:
            body += self._storage(place)
        for number in range(len(layout.delays)):
            body += self._delay(number)
        last = self._plan.latency_cycles
        body += ["", "// Results"]
        for out in self._netlist.outputs:
            body.append(f"assign {escaped(out.bus)} = {self._vector(out.bits, last)};")
        lines = [*self._header(name), *("  " + line if line else "" for line in body), "endmodule"]
        for unit, module in self._definitions:
            write = self._writers.modules[type(unit)].write
            lines += ["", *write(unit, escaped(module), self._control.advance, self._writers)]
        return Datapath("\n".join(lines) + "\n", layout)

    def _header(self, name: str) -> list[str]:
        inputs = [("clk", 1)]
        if self._control.reset:
            inputs.append(("rst", 1))
        if self._control.advance:
            inputs.append(("advance", 1))
        inputs += [(valid_name(stage), 1) for stage in self._control.valid_stages]
        if self._control.clear_cycles:
            inputs += [("clear", 1), ("clear_address", self._control.clear_bits)]
        inputs += list(self._netlist.inputs)
        ports = [f"  input  wire {declared_range(width)}{escaped(bus)}" for bus, width in inputs]
        for out in self._netlist.outputs:
            width = sum(segment.width for segment in out.bits)
            ports.append(f"  output wire {declared_range(width)}{escaped(out.bus)}")
        for place in self._layout.storages:
            if place.storage.name in self._outside:
                for suffix, (width, _) in self._ports.assignments(place).items():
                    ports.append(f"  output wire {declared_range(width)}{place.stem}{suffix}")
                width = place.storage.word_bits * max(1, len(place.reads))
                ports.append(f"  input  wire {declared_range(width)}{place.stem}_q")
        return [f"module {escaped(name)} (", ",\n".join(ports), ");"]

    def _storage(self, place: StoragePlace) -> list[str]:
        """The signals of a memory's ports, and the memory where it stands here."""
        lines = ["", f"// Memory {place.storage.name}"]
        outside = place.storage.name in self._outside
        for suffix, (width, text) in self._ports.assignments(place).items():
            declared = "assign " if outside else f"wire {declared_range(width)}"
            lines.append(f"{declared}{place.stem}{suffix} = {text};")
        if outside:
            return lines
        return [*lines, *storage_instance(place, self._control, self._style, self._layout.fresh(place.stem))]

    def _delay(self, number: int) -> list[str]:
        """A delay line, from the signals of all its stages."""
        line, runs = self._plan.delay_lines[number], self._layout.delays[number]
        taken = [
            text for held in line.parts
            for text in self._read(Segment(held.cell, held.low, held.width), held.load)
        ]
        name, enable = self._layout.fresh(f"delay_{number}"), "advance" if self._control.advance else ""
        shown = joined([run.name for run in runs])
        lines = delay_instance(line, name, enable, joined(taken), shown)
        return ["", f"// {line.width} bits for {line.stages} cycles", *lines]

    def _cell(self, index: int, stage: int) -> list[str]:
        cell, wire = self._netlist.cells[index], self._layout.wires[index]
        if isinstance(cell, Call) and isinstance(cell.unit, WritePort):
            return []
        declare = f"{self._attribute(cell.origin)}wire {declared_range(cell.width)}{wire}"
        if isinstance(cell, Call):
            lines = self._call(cell, index, stage)
        else:
            lines = self._writers.cell(cell, self._site(wire, stage))
        if not lines:  # a state register, which is its own wire
            return []
        if len(lines) == 1 and lines[0].startswith(f"assign {wire} = "):
            return [declare + lines[0].removeprefix(f"assign {wire}")]
        return [declare + ";", *lines]

    def _site(self, wire: str, stage: int) -> Site:
        enable = "advance" if self._control.advance else ""
        reset = "rst" if self._control.reset else constant(0, 1)
        around = Around(self._buses, self._moves(stage), reset, self._module_of)
        return Site(wire, lambda segment: self._read(segment, stage), self._layout.fresh, enable, around)

    def _module_of(self, unit: Unit) -> str:
        """The module of a unit's definition, which units of the same make share."""
        definition = unit.definition()
        for known, name in self._definitions:
            if known == definition:
                return escaped(name)
        number = 1 + sum(type(known) is type(unit) for known, _ in self._definitions)
        part = self._writers.modules[type(unit)].part + (str(number) if number > 1 else "")
        name = inner_name(module_name(self._netlist.name), part)
        self._definitions.append((definition, name))
        return escaped(name)

    def _call(self, cell: Call, index: int, stage: int) -> list[str]:
        """A unit at its only call; of several calls each shows the result, and the last has the unit."""
        unit, wire, place = cell.unit, self._layout.wires[index], self._layout.call(index)
        if isinstance(unit, ReadPort):
            return [f"assign {wire} = {self._ports.shown(self._places[unit.storage.name], index)};"]
        writer = self._writers.units[type(unit)]
        if not place.shared:
            start = Start(cell.arguments, valid_name(stage) if unit.timed_by_items else "")
            return writer(unit, start, self._site(wire, stage))
        lines: list[str] = []
        if index == place.calls[0]:
            self._shown[unit.name] = self._layout.fresh(f"{wire}_shared")
            lines.append(f"wire {declared_range(unit.width)}{self._shown[unit.name]};")
        lines.append(f"assign {wire} = {self._shown[unit.name]};")
        if index != place.calls[-1]:
            return lines
        turn = self._layout.turns.get(unit.name)
        return [*lines, *(self._shared(unit, place) if turn is None else self._in_turn(turn))]

    def _shared(self, unit: Unit, place: CallPlace) -> list[str]:
        """A unit whose calls take turns: the operands are those of the call whose stage holds an item."""
        shown, lines = self._shown[unit.name], list[str]()
        stages = [self._plan.stage[call] for call in place.calls]
        names, arguments = list[str](), list[Bits]()
        for position, bits in enumerate(self._netlist.arguments(place.calls[-1])):
            width = bits_width(bits)
            names.append(self._layout.fresh(f"{shown}_in{position}"))
            arguments.append(cell_bits(position, width))
            chosen = self._vector(bits, stages[-1])
            for call, stage in zip(place.calls[-2::-1], stages[-2::-1]):
                vector_there = self._vector(self._netlist.arguments(call)[position], stage)
                chosen = f"{valid_name(stage)} ? {vector_there} : {chosen}"
            lines.append(f"wire {declared_range(width)}{names[position]} = {chosen};")
        widths = [bits_width(bits) for bits in arguments]

        def read(segment: Segment) -> list[str]:
            position = segment.cell
            assert position is not None
            return [part(names[position], segment.low, segment.width, widths[position])]

        valid = f"({' || '.join(map(valid_name, stages))})" if unit.timed_by_items else ""
        site = replace(self._site(shown, stages[-1]), read=read)
        return [*lines, *self._writers.units[type(unit)](unit, Start(tuple(arguments), valid), site)]

    def _in_turn(self, turn: Turn) -> list[str]:
        """An operator whose calls take turns: the operands are those of the phase."""
        shown, lines = self._shown[turn.unit.name], list[str]()
        names: list[tuple[str, int]] = []

        def named(name: str, width: int) -> int:
            names.append((name, width))
            return len(names) - 1

        def read(segment: Segment) -> list[str]:
            assert segment.cell is not None
            name, width = names[segment.cell]
            return [part(name, segment.low, segment.width, width)]

        phase = cell_bits(named(self._phase(turn, lines), turn.phase_bits), turn.phase_bits)
        last = self._plan.stage[turn.calls[-1]]
        arguments: list[Bits] = []
        for position, operand in enumerate(turn.operands):
            made: list[tuple[OperandBits, int]] = []
            for piece in operand_parts(self._netlist, self._plan, turn, position):
                key = (turn.counted, piece.kind, piece.vectors)
                if key in self._chosen:  # another operator chooses the same at the same time
                    made.append((piece, named(self._chosen[key], piece.width)))
                    continue
                known: dict[There, int] = {}
                stem = f"{shown}_in{position}"
                for there in () if piece.kind == "table" else piece.vectors:
                    if there not in known:
                        name = self._layout.fresh(f"{stem}_s{there.stage}")
                        text = self._vector(there.bits, there.stage)
                        lines.append(f"wire {declared_range(piece.width)}{name} = {text};")
                        known[there] = named(name, piece.width)
                if piece.kind == "same":
                    made.append((piece, known[piece.vectors[0]]))
                    continue
                name = self._chosen[key] = self._layout.fresh(f"{stem}_{piece.kind}")
                choices = [cell_bits(known[there], piece.width) for there in piece.vectors if known]
                site = replace(self._site(name, last), read=read)
                cell = piece.cell(phase, choices)
                lines.append(f"wire {declared_range(piece.width)}{name};")
                if piece.kind == "mixed" and isinstance(cell, Mux):
                    lines += write_mux(cell, site)
                else:
                    lines += self._writers.cell(cell, site)
                made.append((piece, named(name, piece.width)))
            arguments.append(operand_of(operand.width, made))
        site = replace(self._site(shown, last), read=read)
        start = Start(tuple(arguments), "")
        return [*lines, *self._writers.units[type(turn.unit)](turn.unit, start, site)]

    def _phase(self, turn: Turn, lines: list[str]) -> str:
        """The register that tells a turn's phase; synthesis would make one of all copies, if it might."""
        name = self._phases.get(turn.told_by)
        if name is None:
            name = self._phases[turn.told_by] = self._layout.fresh(f"phase_s{turn.first}")
            lines.append(f"reg {declared_range(turn.phase_bits)}{name};")
            bits = [
                " | ".join(valid_name(turn.first + k - 1) for k in turn.phases_with(bit))
                for bit in reversed(range(turn.phase_bits))
            ]
            # An item that is offered during a reset is not taken, and counts for nothing.
            others = (other for other in self._layout.turns.values() if other.counted == turn.counted)
            kept = _KEPT if any(other.copy for other in others) else ""
            enabled = "if (advance) " if self._control.advance else ""
            lines += [
                f"{kept}always @(posedge clk)", f"  if (rst) {name} <= {constant(0, turn.phase_bits)};",
                f"  else {enabled}{name} <= {{{', '.join(bits)}}};",
            ]
        return name

    @staticmethod
    def _attribute(origin: Origin | None) -> str:
        if origin is None:
            return ""
        return f'(* src = "{source_of(origin)}" *) '

    def _stage_end(self, stage: int, runs: list[Run]) -> list[str]:
        """Declarations and clocking of the registers that end stage ``stage - 1``."""
        if not runs:
            return []
        origins = [self._netlist.cells[run.cell].origin for run in runs]
        lines = [
            f"{self._attribute(origin)}{'reg' if run.line is None else 'wire'} "
            f"{declared_range(run.width)}{run.name};"
            for run, origin in zip(runs, origins)
        ]
        runs = [run for run in runs if run.line is None]
        moving, held = [r for r in runs if r.stages == 1], [r for r in runs if r.stages > 1]
        enables = ("advance" if self._control.advance else "", self._moves(stage - 1) if held else "")
        for group, enable in zip((moving, held), enables):
            if not group:
                continue
            lines.append(f"always @(posedge clk) {f'if ({enable}) ' if enable else ''}begin")
            for run in group:
                source = joined(self._read(Segment(run.cell, run.low, run.width), stage - 1))
                lines.append(f"  {run.name} <= {source};")
            lines.append("end")
        return lines

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
