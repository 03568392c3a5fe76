"""Plain Amaranth for each kind of cell: operators that its simulator runs and every synthesis tool knows."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import reduce
from typing import Any, cast

from amaranth.hdl import Cat, Const, MemoryData, MemoryInstance, Module, Mux, ResetSignal, Signal, Value

from kera_hw.rtl.emit.cells import chain_runs
from kera_hw.schedule.fpga.bits import Bits, Segment, bits_width, const_bits
from kera_hw.schedule.fpga.cells import (
    Add,
    Cell,
    Chain,
    Input,
    Lut,
    Moves,
    Mul,
    RegisterPin,
    Restart,
    Rom,
    StateNext,
    StateOut,
    Unit,
)
from kera_hw.schedule.fpga.cells import Mux as MuxCell
from kera_hw.schedule.fpga.expressions import BitExpr
from kera_hw.schedule.fpga.units import Memory

Reader = Callable[[Segment], list[Value]]  # pieces of one segment, least significant first

_OPERATORS: dict[str, Callable[[Value, Value], Value]] = {
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
}


@dataclass(frozen=True, slots=True)
class Around:
    """What a cell may ask of the pipeline around it: the input buses, and that its stage's item goes on."""

    buses: Mapping[str, Signal]
    moves: Callable[[], Value]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a cell is built: the module, the signal it drives, how its operands read, what enables registers.

    ``fresh`` makes a further name unique in the module; ``enable`` is None when every cycle counts. There is
    nothing ``around`` in the step of a unit.
    """

    module: Module
    target: Signal
    read: Reader
    fresh: Callable[[str], str]
    enable: Signal | None
    around: Around | None = None

    @property
    def pipeline(self) -> Around:
        """What is around, for cells that are never part of a step."""
        assert self.around is not None
        return self.around

    def drive(self, value: Value) -> None:
        """Makes ``value`` the cell's output, extended or cut to its width."""
        self.module.d.comb += self.target.eq(value)

    def signal(self, suffix: str, width: int) -> Signal:
        """A further signal of this cell, with the cell's source place."""
        signal = Signal(width, name=self.fresh(self.target.name + suffix), reset_less=True)
        signal.src_loc = self.target.src_loc
        return signal

    def moves(self) -> AbstractContextManager[None]:
        """The condition under which the cell's registers take their next values."""
        return nullcontext() if self.enable is None else self.module.If(self.enable)

    def register(self, suffix: str, value: Value, width: int) -> Signal:
        """A register in the cell."""
        register = self.signal(suffix, width)
        with self.moves():
            self.module.d.sync += register.eq(value)
        return register

    def vector(self, bits: Bits) -> Value:
        """The value that ``bits`` describe."""
        return vector(bits, self.read)


def vector(bits: Bits, read: Reader) -> Value:
    """The concatenation that ``bits`` describe; one signal or constant stands alone."""
    parts: list[Value] = []
    for segment in bits:
        if segment.cell is None:
            parts.append(Const(segment.low, segment.width))
        else:
            parts += read(segment)
    return parts[0] if len(parts) == 1 else Cat(*parts)


CellBuilder = Callable[[Any, Place], None]
"""Drives ``place.target`` with what a cell of one class computes."""


@dataclass(frozen=True, slots=True)
class Start:
    """How a call begins: its ``arguments``, and what is high when an item is in its stage.

    ``valid`` is None for units that are not timed by items.
    """

    arguments: tuple[Value, ...]
    valid: Value | None


UnitBuilder = Callable[[Any, Start, Place], None]
"""Drives ``place.target`` with the result of a unit of one class."""


@dataclass(frozen=True, slots=True)
class Builders:
    """The rules of one style, by class of cells and of units."""

    cells: Mapping[type[Cell], CellBuilder]
    units: Mapping[type[Unit], UnitBuilder]

    def cell(self, cell: Cell, place: Place) -> None:
        """Drives the target; state registers, which are their own signals, are the pipeline's business."""
        self.cells[type(cell)](cell, place)


def build_lut(cell: Lut, place: Place) -> None:
    """The expression."""
    place.drive(expression(cell.expr, cell.inputs, cell.width, place))


def build_add(cell: Add, place: Place) -> None:
    """``a + f(...) + carry_in``: Amaranth's sums lose nothing, so the carry-out is the next bit by itself."""
    width = cell.sum_width
    term = expression(cell.expr, cell.inputs, width, place)
    if cell.expr != ("in", 0):
        named = place.signal("_b", width)
        place.module.d.comb += named.eq(term)
        term = named
    total = place.vector(cell.a) + term
    if cell.carry_in and cell.carry_in != const_bits(0, 1):
        total = total + place.vector(cell.carry_in)
    place.drive(total)


def build_chain(cell: Chain, place: Place) -> None:
    runs = chain_runs(cell)
    width = sum(run.width for run in runs)
    propagates, generates = place.signal("_p", width), place.signal("_g", width)
    passed = [expression(run.propagates, run.operands, run.width, place) for run in runs]
    made = [expression(run.generates, run.operands, run.width, place) for run in runs]
    place.module.d.comb += [propagates.eq(Cat(*passed)), generates.eq(Cat(*made))]
    total = (propagates | generates) + (~propagates & generates)
    if cell.carry_in and cell.carry_in != const_bits(0, 1):
        total = total + place.vector(cell.carry_in)
    place.drive(total)


def build_mul(cell: Mul, place: Place) -> None:
    """A product of two operands with their signs, then the cell's own pipeline registers."""
    a, b = place.vector(cell.a), place.vector(cell.b)
    product = (a.as_signed() if cell.a_signed else a) * (b.as_signed() if cell.b_signed else b)
    if not cell.latency_cycles:
        place.drive(product)
        return
    value = place.signal("_p0", cell.width)
    place.module.d.comb += value.eq(product)
    place.drive(registered(value, "_p", range(1, cell.latency_cycles + 1), cell.width, place))


def registered(value: Value, suffix: str, numbers: range, width: int, place: Place) -> Value:
    """``value`` through registers of a cell, one behind the other."""
    for number in numbers:
        value = place.register(f"{suffix}{number}", value, width)
    return value


def _build_rom(cell: Rom, place: Place) -> None:
    """A memory without writes, read in the same cycle."""
    memory = read_only(cell.contents, bits_width(cell.address), cell.width, place, {})
    address = place.vector(cell.address)
    memory.read_port(domain="comb", addr=address, data=place.target, en=Const(1, 1), transparent_for=())


def build_memory(unit: Memory, start: Start, place: Place) -> None:
    """A memory without writes, read into a register, which synthesis puts into block RAM."""
    (address,) = start.arguments
    memory = read_only(unit.contents, len(address), unit.word_bits, place, {"ram_style": "block"})
    data = place.signal("_q1", unit.word_bits)
    enable = Const(1, 1) if place.enable is None else place.enable
    memory.read_port(domain="sync", addr=address, data=data, en=enable, transparent_for=())
    place.drive(registered(data, "_q", range(2, unit.latency_cycles + 1), unit.word_bits, place))


def read_only(
    contents: Sequence[int], address_bits: int, width: int, place: Place, attributes: dict[str, str]
) -> MemoryInstance:
    """A memory with that content in the cell's module."""
    depth, mask = 1 << address_bits, (1 << width) - 1
    content = MemoryData(shape=width, depth=depth, init=[value & mask for value in contents[:depth]])
    memory = MemoryInstance(data=content, attrs=attributes, src_loc=place.target.src_loc)
    place.module.submodules[place.fresh(place.target.name + "_memory")] = memory
    return memory


def build_mux(cell: MuxCell, place: Place) -> None:
    """A tree of two-way choices."""
    bits = bits_width(cell.select)
    place.drive(_choose([place.vector(c) for c in cell.choices], place.vector(cell.select), bits))


def _choose(choices: Sequence[Value], select: Value, bits: int) -> Value:
    """A balanced tree of two-way choices, the highest select bit at its root."""
    if len(choices) == 1 or bits == 0:
        return choices[0]
    half = 1 << (bits - 1)
    low = _choose(choices[:half], select, bits - 1)
    # Past the end is the last choice.
    high = _choose(choices[half:], select, bits - 1) if len(choices) > half else choices[-1]
    return Mux(select[bits - 1], high, low)


def expression(expr: BitExpr, operands: Sequence[Bits], width: int, place: Place) -> Value:
    """A bitwise expression over ``operands``, ``width`` bits wide."""
    kind = expr[0]
    if kind == "in":
        bits = operands[cast(int, expr[1])]
        value = place.vector(bits)
        return value.replicate(width) if bits_width(bits) == 1 and width > 1 else value
    if kind == "const":
        return Const(((1 << width) - 1) if expr[1] else 0, width)
    parts = [expression(cast(BitExpr, item), operands, width, place) for item in expr[1:]]
    if kind == "not":
        return ~parts[0]
    if kind == "mux":
        return _multiplexer(expr, operands, parts, place)
    return reduce(_OPERATORS[cast(str, kind)], parts)


def _multiplexer(expr: BitExpr, operands: Sequence[Bits], parts: Sequence[Value], place: Place) -> Value:
    condition, then, otherwise = cast(BitExpr, expr[1]), parts[1], parts[2]
    if condition[0] == "in" and bits_width(operands[cast(int, condition[1])]) == 1:
        return Mux(place.vector(operands[cast(int, condition[1])]), then, otherwise)
    return (parts[0] & then) | (~parts[0] & otherwise)


def _build_input(cell: Input, place: Place) -> None:
    place.drive(place.pipeline.buses[cell.bus][cell.low : cell.low + cell.width])


def _build_state(cell: StateOut | StateNext, place: Place) -> None:
    pass


def _build_moves(cell: Moves, place: Place) -> None:
    place.drive(place.pipeline.moves())


def _build_restart(cell: Restart, place: Place) -> None:
    place.drive(ResetSignal(allow_reset_less=True))


def _build_pin(cell: RegisterPin, place: Place) -> None:
    place.drive(place.vector(cell.bits))


PLAIN_CELLS: Mapping[type[Cell], CellBuilder] = {
    Input: _build_input, Lut: build_lut, Add: build_add, Chain: build_chain, Mul: build_mul,
    MuxCell: build_mux, Rom: _build_rom, StateOut: _build_state, StateNext: _build_state,
    Moves: _build_moves, Restart: _build_restart, RegisterPin: _build_pin,
}
