"""Iterative units in Amaranth: a module of registers, one step's cells between them, and when they load."""
from __future__ import annotations

from dataclasses import replace

from amaranth.hdl import Cat, Elaboratable, Module, Signal, Value

from kera_hw.rtl.emit.amaranth_cells import Builders, Place, Start
from kera_hw.rtl.emit.naming import Names
from kera_hw.schedule.fpga.bits import Segment
from kera_hw.schedule.fpga.cells import Input
from kera_hw.schedule.fpga.units.iterative import IterativeUnit, Register


class IterativeCircuit(Elaboratable):
    """A unit: while ``start`` is high it takes ``loads``; ``out`` joins its registers.

    ``advance`` is None where it cannot stall.
    """

    def __init__(self, unit: IterativeUnit, builders: Builders, advance: Signal | None) -> None:
        self._unit, self._builders, self._advance = unit, builders, advance
        widths = unit.register_widths()
        self.start = Signal()
        self.loads = [Signal(width, name=f"in_{r.bus}") for r, width in zip(unit.registers, widths)]
        self.out = Signal(unit.width)

    def elaborate(self, platform: object) -> Module:
        """Called by Amaranth."""
        m = Module()
        unit = self._unit
        registers = {
            r.bus: Signal(width, name=r.bus, reset_less=True)
            for r, width in zip(unit.registers, unit.register_widths())
        }
        cells = unit.step.cells
        wires = [Signal(cell.width, name=f"step{index}") for index, cell in enumerate(cells)]

        def read(segment: Segment) -> list[Value]:
            assert segment.cell is not None
            source, low = cells[segment.cell], segment.low
            if isinstance(source, Input):
                low += source.low
                return [registers[source.bus][low : low + segment.width]]
            return [wires[segment.cell][low : low + segment.width]]

        inputs = [name for r in unit.registers for name in (r.bus, f"in_{r.bus}")]
        names = Names(("clk", "rst", "advance", "start", "out", *inputs, *(wire.name for wire in wires)))
        place = Place(m, self.out, read, names.fresh, self._advance)
        for cell, wire in zip(cells, wires):
            if not isinstance(cell, Input):
                self._builders.cell(cell, replace(place, target=wire))
        outputs = {output.bus: place.vector(output.bits) for output in unit.step.outputs}
        for register, load in zip(unit.registers, self.loads):
            self._clock(place, register, registers[register.bus], load, outputs)
        place.drive(Cat(*registers.values()))
        return m

    def _clock(
        self, place: Place, register: Register, signal: Signal, load: Signal, outputs: dict[str, Value]
    ) -> None:
        """Loads the register, or lets it follow, when the pipeline moves."""
        m = place.module
        with place.moves():
            with m.If(self.start):
                m.d.sync += signal.eq(load)
            if register.follow is None:
                return
            if register.enable is None:
                with m.Else():
                    m.d.sync += signal.eq(outputs[register.follow])
            else:
                enable = outputs[register.enable]
                with m.Elif(enable if register.enabled_by else ~enable):
                    m.d.sync += signal.eq(outputs[register.follow])


def build_iterative(unit: IterativeUnit, start: Start, place: Place, builders: Builders) -> None:
    """The unit as a submodule."""
    assert start.valid is not None
    circuit = IterativeCircuit(unit, builders, place.enable)
    place.module.submodules[place.fresh(f"{place.target.name}_unit")] = circuit
    loads = (load.eq(value) for load, value in zip(circuit.loads, start.arguments))
    place.module.d.comb += [circuit.start.eq(start.valid), *loads]
    place.drive(circuit.out)
