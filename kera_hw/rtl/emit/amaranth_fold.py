"""A folded loop in Amaranth: its registers, one step's cells between them, and when they load."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from amaranth.hdl import Cat, Signal, Value

from kera_hw.rtl.emit.amaranth_cells import Place
from kera_hw.schedule.fpga.netlist import Cell, Fold, FoldRegister, Input, Segment


def build_fold(cell: Fold, place: Place, start: Value, builder: Callable[[Cell, Place], None]) -> None:
    """Drives ``place.target`` with all registers joined; they load while ``start`` is high."""
    widths = dict(cell.step.inputs)
    registers = {r.bus: place.signal(f"_{r.bus}", widths[r.bus]) for r in cell.registers}
    wires: list[Signal] = []

    def read(segment: Segment) -> list[Value]:
        assert segment.cell is not None
        source, low = cell.step.cells[segment.cell], segment.low
        if isinstance(source, Input):
            low += source.low
            return [registers[source.bus][low : low + segment.width]]
        return [wires[segment.cell][low : low + segment.width]]

    for index, inner in enumerate(cell.step.cells):
        wires.append(place.signal(f"_step{index}", inner.width))
        if not isinstance(inner, Input):
            builder(inner, replace(place, target=wires[-1], read=read))
    step = replace(place, read=read)
    outputs = {output.bus: output.bits for output in cell.step.outputs}
    for register, initial in zip(cell.registers, cell.initial):
        follow = None if register.follow is None else step.vector(outputs[register.follow])
        enable = None if register.enable is None else step.vector(outputs[register.enable])
        _clock(register, registers[register.bus], place.vector(initial), follow, enable, start, place)
    place.drive(Cat(*(registers[register.bus] for register in cell.registers)))


def _clock(
    register: FoldRegister, signal: Signal, initial: Value, follow: Value | None, enable: Value | None,
    start: Value, place: Place,
) -> None:
    """Loads the register, or lets it follow, when the pipeline moves."""
    m = place.module
    with place.moves():
        with m.If(start):
            m.d.sync += signal.eq(initial)
        if follow is None:
            return
        if enable is None:
            with m.Else():
                m.d.sync += signal.eq(follow)
        else:
            with m.Elif(enable if register.enabled_by else ~enable):
                m.d.sync += signal.eq(follow)
