"""The netlist proper: live cells with their chosen covers, long carry chains cut into pieces."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any

from kera_hw.graph.node import Origin, join_origins
from kera_hw.rtl.techmap import items, truth
from kera_hw.rtl.techmap.cover import Cover
from kera_hw.rtl.techmap.items import Gate, Item, Product, Reading, Sum, Writing
from kera_hw.rtl.techmap.net import Net
from kera_hw.rtl.techmap.options import Capabilities
from kera_hw.schedule.fpga import cells as out
from kera_hw.schedule.fpga.bits import Bits, bits_width, cell_bits, concat, const_bits, slice_bits
from kera_hw.schedule.fpga.units import IterativeUnit, Memory, Operator, ReadPort, Storage, WritePort
from kera_hw.schedule.fpga.units.operator import operand_widths


class Finisher:
    """Writes items as cells. ``place`` gives the final vector of a vector of items."""

    def __init__(
        self, net: Net, chosen: Cover, able: Capabilities, storages: Sequence[Storage] = (),
        operators: Sequence[Operator] = (),
    ) -> None:
        self.storages, self.operators = storages, operators
        self._writes: list[int] = []
        self.net = net
        self.cover = chosen
        self.able = able
        self._loads: Counter[tuple[int, int]] = Counter()
        self.cells: list[out.Cell] = []
        self._placed: dict[int, Bits] = {}
        self._units = 0

    def place(self, bits: Bits) -> Bits:
        """The vector in terms of the cells written; writes what it needs."""
        self._require(bits)
        return concat(
            (s,) if s.cell is None else slice_bits(self._placed[s.cell], s.low, s.width) for s in bits
        )

    def require_all(self, vectors: Iterable[Bits]) -> None:
        """Write everything ``vectors`` need, in order of the items, and writes of memories with the first."""
        needed: set[int] = set()
        pending = [s.cell for bits in vectors for s in bits if s.cell is not None]
        pending += [index for index in self._writes if index not in self._placed]
        while pending:
            index = pending.pop()
            if index in needed:
                continue
            needed.add(index)
            pending.extend(s.cell for bits in self._inputs(index) for s in bits if s.cell is not None)
        for index in needed:
            self._count_loads(index)
        for index in self._ordered(needed):
            self._write(index)

    def writes(self, index: int) -> None:
        """Have an item written that nothing reads."""
        self._writes.append(index)

    def _ordered(self, needed: set[int]) -> Iterable[int]:
        """Items in their order, accesses to one memory in theirs."""
        accesses = [k for k in needed if isinstance(self.net.items[k], Reading | Writing)]
        if not accesses:
            return sorted(needed)
        behind: dict[int, list[int]] = {}  # an access and those that come after it

        def place(index: int) -> tuple[int, tuple[int, int], int]:
            item = self.net.items[index]
            assert isinstance(item, Reading | Writing)
            return item.memory, item.order, index

        accesses.sort(key=place)
        for one, other in pairwise(accesses):
            if place(one)[0] == place(other)[0]:
                behind.setdefault(one, []).append(other)
        for index in needed:
            for source in {s.cell for bits in self._inputs(index) for s in bits}:
                if source in needed:
                    assert source is not None
                    behind.setdefault(source, []).append(index)
        waits = Counter(after for others in behind.values() for after in others)
        ready = [index for index in needed if not waits[index]]
        heapify(ready)
        order: list[int] = []
        while ready:
            order.append(heappop(ready))
            for after in behind.get(order[-1], ()):
                waits[after] -= 1
                if not waits[after]:
                    heappush(ready, after)
        assert len(order) == len(needed), "accesses to a memory wait for each other"
        return order

    def _count_loads(self, index: int) -> None:
        """Count the loads of every bit that an item reads: a broadcast bit feeds them all."""
        width = self.net.items[index].width
        for bits in self._inputs(index):
            times = width if len(bits) == 1 and bits[0].width == 1 else 1
            for s in bits:
                if s.cell is not None:
                    for k in range(s.low, s.low + s.width):
                        self._loads[s.cell, k] += times

    def _fanout(self, index: int) -> int:
        """The most loads that share a bit with this item."""
        return max(
            (self._loads[s.cell, k] for bits in self._inputs(index) for s in bits if s.cell is not None
             for k in range(s.low, s.low + s.width)),
            default=1,
        )

    def _require(self, bits: Bits) -> None:
        missing = [s.cell for s in bits if s.cell is not None and s.cell not in self._placed]
        if missing:
            self.require_all([bits])

    def _inputs(self, index: int) -> tuple[Bits, ...]:
        """Vectors the item reads once covered."""
        item = self.net.items[index]
        if isinstance(item, Gate):
            return self.cover.cuts[index].leaves
        if isinstance(item, Sum):
            chained = self.cover.chains.get(index)
            if chained is not None:
                return (*chained.pins, item.carry)
            fused = self.cover.adds[index]
            return (fused.a, *fused.leaves, item.carry)
        return item.ins

    def pin(self, bit: Bits, registers: int, name: str, reset: bool) -> int:
        """A cell that controls registers with one bit."""
        placed = self.place(bit)
        origin = join_origins(self._origin(s.cell) for s in bit if s.cell is not None)
        return self._add_cell(
            out.RegisterPin(width=1, origin=origin, bits=placed, registers=registers, name=name, reset=reset)
        )

    def _add_cell(self, cell: out.Cell) -> int:
        self.cells.append(cell)
        return len(self.cells) - 1

    def _write(self, index: int) -> None:
        if index in self._placed:
            return
        item = self.net.items[index]
        if isinstance(item, Sum):
            self._placed[index] = self._write_add(index, item)
            return
        wires = self._wires(index, item)
        if wires is not None:
            self._placed[index] = wires
            return
        cell = self._cell(index, item)
        self._placed[index] = cell_bits(self._add_cell(cell), cell.width)

    def _wires(self, index: int, item: Item) -> Bits | None:
        """A gate that covering found to be constant or one of its operands."""
        if not isinstance(item, Gate):
            return None
        cut = self.cover.cuts[index]
        if not cut.leaves:
            return const_bits(-(cut.table & 1), item.width)
        if len(cut.leaves) == 1 and cut.table == 0b10:
            bits = self.place(cut.leaves[0])
            return bits * item.width if bits_width(bits) == 1 else bits
        return None

    def _cell(self, index: int, item: Item) -> out.Cell:
        origin = self._origin(index)
        ins = tuple(self.place(bits) for bits in self._inputs(index))
        made = CELLS[type(item)](self, index, item, ins)
        return replace(made, origin=origin, name=None if origin is None or made.leaf else origin.name)

    def unit_name(self, kind: str) -> str:
        """A name for a further unit."""
        self._units += 1
        return f"{kind}{self._units}"

    def _origin(self, index: int) -> Origin | None:
        """What an item is for, and the gates that covering put into its cell."""
        items, origins = self.net.items, self.net.origins
        if not isinstance(items[index], Gate | Sum):
            return origins[index]
        ends = {s.cell for bits in self._inputs(index) for s in bits}
        inside = {index: None}
        pending = [index]
        while pending:
            for s in (s for bits in items[pending.pop()].ins for s in bits):
                cell = s.cell
                if cell is None or cell in ends or cell in inside or not isinstance(items[cell], Gate):
                    continue
                inside[cell] = None
                pending.append(cell)
        return join_origins(origins[cell] for cell in inside)

    def _piece(self, index: int, width: int) -> int:
        """Sum bits of each piece of a chain: all of them where the clock allows, else even shares."""
        after_dsp = any(
            isinstance(self.net.items[s.cell], Product)
            for bits in self._inputs(index) for s in bits if s.cell is not None
        )
        limit = self.able.chain_bits(self._fanout(index), after_dsp)
        if width <= limit:
            return width
        pieces = -(-width // max(2, limit - 1))  # each but the last holds its carry too
        share = -(-width // pieces)
        return min(share + share % 2, max(2, limit - 1))

    def _write_add(self, index: int, item: Sum) -> Bits:
        a, *operands, carry = (self.place(bits) for bits in self._inputs(index))
        width, origin = item.width, self._origin(index)
        size = self._piece(index, width)
        parts: list[Bits] = []
        for low in range(0, width, size):
            count = min(size, width - low)
            last = low + count == width
            whole = out.Add(
                width=count + (not last), origin=origin, name=origin.name if origin is not None else None,
                a=slice_bits(a, low, count),
                inputs=tuple(b if bits_width(b) == 1 else slice_bits(b, low, count) for b in operands),
                carry_in=carry, carry_out=not last,
            )
            number = self._add_cell(self._with_logic(index, whole, low, count))
            parts.append(cell_bits(number, count))
            carry = () if last else cell_bits(number, 1, count)
        return concat(parts)

    def _with_logic(self, index: int, cell: out.Add, low: int, count: int) -> out.Add:
        """Bits [low, low + count) of an adder with the logic that covering put into its cells."""
        chained = self.cover.chains.get(index)
        if chained is None:
            return replace(cell, expr=truth.expression(self.cover.adds[index].table, len(cell.inputs)))
        return out.Chain(
            width=cell.width, origin=cell.origin, name=cell.name, a=cell.a, inputs=cell.inputs,
            carry_in=cell.carry_in, carry_out=cell.carry_out, tables=chained.tables_of(low, count),
        )


def _lut(finisher: Finisher, index: int, item: items.Gate, ins: tuple[Bits, ...]) -> out.Cell:
    cut = finisher.cover.cuts[index]
    return out.Lut(width=item.width, inputs=ins, expr=truth.expression(cut.table, len(cut.leaves)))


def _product(finisher: Finisher, index: int, item: items.Product, ins: tuple[Bits, ...]) -> out.Cell:
    return out.Mul(
        width=item.width, a=ins[0], b=ins[1], a_signed=item.a_signed, b_signed=item.b_signed,
        latency_cycles=item.latency_cycles,
    )


def _choice(finisher: Finisher, index: int, item: items.Choice, ins: tuple[Bits, ...]) -> out.Cell:
    return out.Mux(width=item.width, select=ins[0], choices=ins[1:])


def _table(finisher: Finisher, index: int, item: items.Table, ins: tuple[Bits, ...]) -> out.Cell:
    return out.Rom(width=item.width, address=ins[0], contents=item.contents)


def _stored(finisher: Finisher, index: int, item: items.Stored, ins: tuple[Bits, ...]) -> out.Cell:
    memory = Memory(
        name=finisher.unit_name("memory"), word_bits=item.width, contents=item.contents,
        read_latency_cycles=item.latency_cycles,
    )
    return out.Call(width=item.width, unit=memory, arguments=ins)


def _reading(finisher: Finisher, index: int, item: items.Reading, ins: tuple[Bits, ...]) -> out.Cell:
    storage = finisher.storages[item.memory]
    port = ReadPort(name=f"{storage.name}.read{item.port}", storage=storage)
    return out.Call(width=item.width, unit=port, arguments=ins)


def _writing(finisher: Finisher, index: int, item: items.Writing, ins: tuple[Bits, ...]) -> out.Cell:
    storage = finisher.storages[item.memory]
    return out.Call(width=0, unit=WritePort(name=f"{storage.name}.write", storage=storage), arguments=ins)


def _turn(finisher: Finisher, index: int, item: items.Turn, ins: tuple[Bits, ...]) -> out.Cell:
    """The call, its operands as wide as the operator's: what is above its own width does not matter."""
    unit = finisher.operators[item.number]
    wide = tuple(
        concat((bits, const_bits(0, width - bits_width(bits)))) if bits else bits
        for bits, width in zip(ins, operand_widths(unit))
    )
    return out.Call(width=unit.width, unit=unit, arguments=wide)


def _iteration(finisher: Finisher, index: int, item: items.Iteration, ins: tuple[Bits, ...]) -> out.Cell:
    unit = IterativeUnit(
        name=finisher.unit_name("iterative"), registers=item.registers, step=item.step, count=item.count
    )
    return out.Call(width=item.width, unit=unit, arguments=ins)


CELLS: Mapping[type[Item], Callable[[Finisher, int, Any, tuple[Bits, ...]], out.Cell]] = {
    items.Gate: _lut,
    items.Product: _product,
    items.Choice: _choice,
    items.Table: _table,
    items.Stored: _stored,
    items.Iteration: _iteration,
    items.Turn: _turn,
    items.Reading: _reading,
    items.Writing: _writing,
    items.Parameter: lambda _, __, item, ___: out.Input(width=item.width, bus=item.bus, low=item.low),
    items.Present: lambda _, __, item, ___: out.StateOut(width=item.width, state=item.state),
    items.Left: lambda _, __, item, ___: out.StateNext(width=item.width, state=item.state),
    items.Moves: lambda _, __, item, ___: out.Moves(width=item.width, state=item.state),
    items.Restart: lambda _, __, item, ___: out.Restart(width=item.width, state=item.state),
}
"""The cell of every item that is not a sum, which may be several."""
