"""Reference simulation of cell netlists: what each cell computes, item by item or on whole batches.

Values are non-negative integers. In a batch they are NumPy arrays, uint64 up to 64 bits and Python integers
(dtype object) above; cells that depend on state are computed one item at a time on plain integers.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from kera_hw.schedule.fpga.netlist import (
    Add,
    BitExpr,
    Bits,
    Cell,
    Chain,
    Fold,
    Input,
    Lut,
    Moves,
    Mul,
    Mux,
    Netlist,
    RegisterPin,
    Rom,
    StateNext,
    StateOut,
    StateReg,
    WriteControl,
)

# An int, or an array of uint64 or of Python integers: NumPy's operators work alike on all three.
Value = Any


def simulate_netlist(
    netlist: Netlist, inputs: Mapping[str, Sequence[int]], items: int = 1,
) -> dict[str, list[int]]:
    """Outputs for a sequence of items, from reset: ``inputs`` maps each input bus to one integer per item.

    ``items`` counts them where there is no input bus.

    Raises ValueError when a bus is missing or the sequences differ in length.
    """
    missing = [bus for bus, _ in netlist.inputs if bus not in inputs]
    if missing:
        raise ValueError(f"no values for input {missing[0]}")
    counts = {len(inputs[bus]) for bus, _ in netlist.inputs}
    if len(counts) > 1:
        raise ValueError("input sequences differ in length")
    count = counts.pop() if counts else items
    stateful = _stateful(netlist)
    batch: dict[int, Value] = {}
    for index, cell in enumerate(netlist.cells):
        if index in stateful:
            continue
        if isinstance(cell, WriteControl):
            batch[index] = _array([int(isinstance(cell, Moves))] * count, 1)
        elif isinstance(cell, Input):
            mask = (1 << cell.width) - 1
            batch[index] = _array([value >> cell.low & mask for value in inputs[cell.bus]], cell.width)
        else:
            batch[index] = evaluate_cell(cell, [_gather(bits, batch, count) for bits in cell.operands()])
    if not stateful:
        return {
            output.bus: [int(v) for v in np.broadcast_to(_gather(output.bits, batch, count), count)]
            for output in netlist.outputs
        }
    return _sequence(netlist, stateful, batch, count)


def _stateful(netlist: Netlist) -> set[int]:
    """Cells that depend on a state register's value."""
    found: set[int] = set()
    for index, cell in enumerate(netlist.cells):
        read = (s.cell for bits in cell.operands() for s in bits)
        if isinstance(cell, StateOut | StateNext) or any(driver in found for driver in read):
            found.add(index)
    return found


def _sequence(
    netlist: Netlist, stateful: set[int], batch: Mapping[int, Value], count: int,
) -> dict[str, list[int]]:
    registers = [state.initial & (1 << state.width) - 1 for state in netlist.states]
    columns = {index: [int(v) for v in np.broadcast_to(values, count)] for index, values in batch.items()}
    order = sorted(stateful)
    out: dict[str, list[int]] = {output.bus: [] for output in netlist.outputs}
    for item in range(count):
        now: dict[int, Value] = {index: column[item] for index, column in columns.items()}
        for index in order:
            cell = netlist.cells[index]
            if isinstance(cell, StateOut):
                now[index] = registers[cell.state]
            elif not isinstance(cell, StateNext):
                now[index] = evaluate_cell(cell, [_gather(bits, now, None) for bits in cell.operands()])
        registers = [_following(state, value, now) for state, value in zip(netlist.states, registers)]
        for index in order:
            cell = netlist.cells[index]
            if isinstance(cell, StateNext):
                now[index] = registers[cell.state]
        for output in netlist.outputs:
            out[output.bus].append(_gather(output.bits, now, None))
    return out


def _following(state: StateReg, present: int, values: Mapping[int, Value]) -> int:
    """The value of a state register after an item."""
    total = 0
    for group in state.groups():
        mask = (1 << group.width) - 1 << group.low
        value = present
        if group.reset is not None and values[group.reset]:
            value = state.initial
        elif group.enable is None or values[group.enable]:
            value = _gather(state.next, values, None)
        total |= value & mask
    return total


def _array(values: Sequence[int], width: int) -> Value:
    if width <= 64:
        return np.array(values, dtype=np.uint64)
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _gather(bits: Bits, values: Mapping[int, Value], count: int | None) -> Value:
    """A vector put together from its segments; ``count`` items, or one plain integer for None."""
    width = sum(segment.width for segment in bits)
    total: Value = 0 if count is None else _array([0] * count, width)
    position = 0
    for segment in bits:
        mask = (1 << segment.width) - 1
        if segment.cell is None:
            part: Value = segment.low & mask
        else:
            part = (values[segment.cell] >> segment.low) & mask
        if count is not None and not isinstance(part, int):
            part = part.astype(object if width > 64 else np.uint64)
        total = total | (part << position)
        position += segment.width
    return total


def _widen(value: Value) -> Value:
    """The same values as Python integers, which no operation can overflow."""
    return value if isinstance(value, int) else value.astype(object)


def _narrow(value: Value, width: int) -> Value:
    """Values below 2^width in the representation of that width."""
    if isinstance(value, int):
        return value
    return value.astype(np.uint64 if width <= 64 else object)


def evaluate_cell(cell: Cell, operands: Sequence[Value]) -> Value:
    """One cell's output from its operands in ``cell.operands()`` order (not for leaves)."""
    mask = (1 << cell.width) - 1
    if isinstance(cell, Lut):
        wide = [_spread(v, bits, cell.width) for v, bits in zip(operands, cell.inputs)]
        return _like(_bitwise(cell.expr, wide, mask), operands, cell.width)
    if isinstance(cell, Chain):
        return _chain(cell, operands)
    if isinstance(cell, Add):
        return _add(cell, operands)
    if isinstance(cell, Mul):
        a = _signed(_widen(operands[0]), cell.a) if cell.a_signed else _widen(operands[0])
        b = _signed(_widen(operands[1]), cell.b) if cell.b_signed else _widen(operands[1])
        return _narrow(a * b & mask, cell.width)
    if isinstance(cell, Mux):
        return _choose(operands[0], operands[1:])
    if isinstance(cell, Rom):
        if isinstance(operands[0], int):
            return cell.contents[operands[0]] & mask if operands[0] < len(cell.contents) else 0
        table = _array([*(value & mask for value in cell.contents), 0], cell.width)
        return table[np.minimum(operands[0], len(cell.contents)).astype(np.intp)]
    if isinstance(cell, Fold):
        return _fold(cell, operands)
    if isinstance(cell, RegisterPin):
        return operands[0]
    raise TypeError(f"{type(cell).__name__} is a leaf")


def _fold(cell: Fold, operands: Sequence[Value]) -> Value:
    """All steps of a folded loop, and its registers joined."""
    arrays = [v for v in operands if not isinstance(v, int)]
    count = len(arrays[0]) if arrays else 1
    widths = dict(cell.step.inputs)
    names = [register.bus for register in cell.registers]
    present = {
        bus: [int(v) for v in np.broadcast_to(np.asarray(value, dtype=object), count)]
        for bus, value in zip(names, operands)
    }
    for _ in range(cell.count):
        found = simulate_netlist(cell.step, present)
        following: dict[str, list[int]] = {}
        for register in cell.registers:
            old = present[register.bus]
            new = old if register.follow is None else found[register.follow]
            if register.enable is not None:
                enables = [e == register.enabled_by for e in found[register.enable]]
                new = [n if e else o for n, o, e in zip(new, old, enables)]
            following[register.bus] = new
        present = following
    joined = [0] * count
    position = 0
    for bus in names:
        joined = [total | value << position for total, value in zip(joined, present[bus])]
        position += widths[bus]
    return _array(joined, cell.width) if arrays else joined[0]


def _like(value: Value, operands: Sequence[Value], width: int) -> Value:
    """``value`` as an array when the operands are arrays (an expression may be constant)."""
    arrays = [v for v in operands if not isinstance(v, int)]
    if isinstance(value, int) and arrays:
        return _array([value] * len(arrays[0]), width)
    return value


def _spread(value: Value, bits: Bits, width: int) -> Value:
    """A single bit repeated to the width; other vectors as they are."""
    if sum(segment.width for segment in bits) == 1 and width > 1:
        return _widen(value) * ((1 << width) - 1) if width > 64 else value * ((1 << width) - 1)
    return value


def _bitwise(expr: BitExpr, operands: Sequence[Value], mask: int) -> Value:
    head, *rest = expr
    if head == "in":
        return operands[cast("int", rest[0])]
    if head == "const":
        return mask if rest[0] else 0
    values = [_bitwise(cast("BitExpr", part), operands, mask) for part in rest]
    if head == "not":
        return values[0] ^ mask
    if head == "mux":
        return values[0] & values[1] | (values[0] ^ mask) & values[2]
    result = values[0]
    for value in values[1:]:
        if head == "and":
            result = result & value
        elif head == "or":
            result = result | value
        elif head == "xor":
            result = result ^ value
        else:
            raise ValueError(f"unknown bit expression {head!r}")
    return result


def _add(cell: Add, operands: Sequence[Value]) -> Value:
    summed = cell.width - 1 if cell.carry_out else cell.width
    wide = [_spread(v, bits, summed) for v, bits in zip(operands[1:-1], cell.inputs)]
    second = _like(_bitwise(cell.expr, wide, (1 << summed) - 1), operands, summed)
    if cell.width < 64:  # no intermediate sum can overflow 64 bits
        return (operands[0] + second + operands[-1]) & (1 << cell.width) - 1
    total = _widen(operands[0]) + _widen(second) + _widen(operands[-1])
    return _narrow(total & (1 << cell.width) - 1, cell.width)


def _chain(cell: Chain, operands: Sequence[Value]) -> Value:
    """All bits at once: with x = p | g and y = ~p & g, x + y has the chain's carries and sums."""
    summed = cell.width - 1 if cell.carry_out else cell.width
    *pins, carry = (_widen(value) for value in operands)
    wide = [_spread(value, bits, summed) for value, bits in zip(pins, (cell.a, *cell.inputs))]
    propagate: Value = 0
    generate: Value = 0
    position = 0
    for count, table in cell.tables:
        run = (1 << count) - 1 << position
        position += count
        for row in range(16):
            term: Value = run
            for k, value in enumerate(wide):
                term = term & (value if row >> k & 1 else value ^ run)
            propagate = propagate | (term if table >> row & 1 else 0)
            generate = generate | (term if table >> (row & 3) & 1 else 0)
    total = (propagate | generate) + (generate & ~propagate) + carry
    return _narrow(_like(total & (1 << cell.width) - 1, operands, cell.width), cell.width)


def _signed(value: Value, bits: Bits) -> Value:
    width = sum(segment.width for segment in bits)
    return value - ((value >> width - 1 & 1) << width) if width else value


def _choose(select: Value, choices: Sequence[Value]) -> Value:
    if isinstance(select, int):
        return choices[min(select, len(choices) - 1)]
    index = np.minimum(select, len(choices) - 1).astype(np.intp)
    rows = np.stack([np.broadcast_to(choice, index.shape) for choice in choices])
    return rows[index, np.arange(len(index))]
