"""Plain Amaranth for each kind of cell: operators that its simulator runs and every synthesis tool knows."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import reduce
from typing import cast

from amaranth.hdl import Cat, Const, MemoryData, MemoryInstance, Module, Mux, Signal, Value

from kera_hw.rtl.emit.cells import chain_runs
from kera_hw.schedule.fpga.netlist import (
    Add,
    BitExpr,
    Bits,
    Cell,
    Chain,
    Lut,
    Mul,
    Rom,
    Segment,
    bits_width,
    const_bits,
)
from kera_hw.schedule.fpga.netlist import Mux as MuxCell

Reader = Callable[[Segment], list[Value]]  # pieces of one segment, least significant first

_OPERATORS: dict[str, Callable[[Value, Value], Value]] = {
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a cell is built: the module, the signal it drives, how its operands read, what enables registers.

    ``fresh`` makes a further name unique in the module; ``enable`` is None when every cycle counts.
    """

    module: Module
    target: Signal
    read: Reader
    fresh: Callable[[str], str]
    enable: Signal | None

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


def build_cell(cell: Cell, place: Place) -> None:
    """Drives ``place.target``; inputs and state reads are the pipeline's own business."""
    if isinstance(cell, Lut):
        place.drive(expression(cell.expr, cell.inputs, cell.width, place))
    elif isinstance(cell, Chain):
        _build_chain(cell, place)
    elif isinstance(cell, Add):
        build_add(cell, place)
    elif isinstance(cell, Mul):
        build_mul(cell, place)
    elif isinstance(cell, MuxCell):
        bits = bits_width(cell.select)
        place.drive(_choose([place.vector(c) for c in cell.choices], place.vector(cell.select), bits))
    elif isinstance(cell, Rom):
        build_rom(cell, place)
    else:
        raise TypeError(f"no Amaranth for a {type(cell).__name__} cell")


def build_add(cell: Add, place: Place) -> None:
    """``a + f(...) + carry_in``: Amaranth's sums lose nothing, so the carry-out is the next bit by itself."""
    width = cell.width - 1 if cell.carry_out else cell.width
    term = expression(cell.expr, cell.inputs, width, place)
    if cell.expr != ("in", 0):
        named = place.signal("_b", width)
        place.module.d.comb += named.eq(term)
        term = named
    total = place.vector(cell.a) + term
    if cell.carry_in and cell.carry_in != const_bits(0, 1):
        total = total + place.vector(cell.carry_in)
    place.drive(total)


def _build_chain(cell: Chain, place: Place) -> None:
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
    """A product of two operands with their signs, then the cell's own register ranks."""
    a, b = place.vector(cell.a), place.vector(cell.b)
    product = (a.as_signed() if cell.a_signed else a) * (b.as_signed() if cell.b_signed else b)
    if not cell.latency_cycles:
        place.drive(product)
        return
    value = place.signal("_p0", cell.width)
    place.module.d.comb += value.eq(product)
    place.drive(ranks(value, "_p", 1, cell.latency_cycles, cell.width, place))


def ranks(value: Value, suffix: str, first: int, last: int, width: int, place: Place) -> Value:
    """Registers number ``first`` to ``last`` of a cell, one behind the other."""
    for rank in range(first, last + 1):
        value = place.register(f"{suffix}{rank}", value, width)
    return value


def build_rom(cell: Rom, place: Place) -> None:
    """A memory without writes; with ranks, read into a register, which synthesis puts into block RAM."""
    depth, mask = 1 << bits_width(cell.address), (1 << cell.width) - 1
    rows = [value & mask for value in cell.contents[:depth]]
    name = place.fresh(place.target.name + "_memory")
    clocked = cell.latency_cycles > 0
    content = MemoryData(shape=cell.width, depth=depth, init=rows)
    attributes = {"ram_style": "block"} if clocked else {}
    memory = MemoryInstance(data=content, attrs=attributes, src_loc=place.target.src_loc)
    data = place.signal("_q1", cell.width) if clocked else place.target
    enable = Const(1, 1) if place.enable is None else place.enable
    address = place.vector(cell.address)
    if clocked:
        memory.read_port(domain="sync", addr=address, data=data, en=enable, transparent_for=())
        place.drive(ranks(data, "_q", 2, cell.latency_cycles, cell.width, place))
    else:
        memory.read_port(domain="comb", addr=address, data=data, en=Const(1, 1), transparent_for=())
    place.module.submodules[name] = memory


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
