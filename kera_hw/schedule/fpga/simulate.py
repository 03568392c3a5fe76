"""Reference simulation of cell netlists, item by item or on whole batches, by what each cell computes.

Cells that depend on state are computed one item at a time on plain integers, the others on batches. Accesses
to memories act in the order of their cells.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from kera_hw.schedule.fpga.cells import Call, Input, StateNext, StateOut, WriteControl
from kera_hw.schedule.fpga.netlist import Netlist, StateReg
from kera_hw.schedule.fpga.values import Value, array, gather, unpacked


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
            batch[index] = array([cell.for_items] * count, 1)
        elif isinstance(cell, Input):
            mask = (1 << cell.width) - 1
            batch[index] = array([value >> cell.low & mask for value in inputs[cell.bus]], cell.width)
        else:
            batch[index] = cell.evaluate([gather(bits, batch, count) for bits in cell.operands()])
    if not stateful:
        return {out.bus: unpacked(gather(out.bits, batch, count), count) for out in netlist.outputs}
    return _sequence(netlist, stateful, batch, count)


def _stateful(netlist: Netlist) -> set[int]:
    """Cells that depend on a state register's value."""
    found: set[int] = set()
    for index, cell in enumerate(netlist.cells):
        read = (s.cell for bits in cell.operands() for s in bits)
        kept = isinstance(cell, Call) and cell.unit.keeps_items
        if kept or isinstance(cell, StateOut | StateNext) or any(driver in found for driver in read):
            found.add(index)
    return found


def _sequence(
    netlist: Netlist, stateful: set[int], batch: Mapping[int, Value], count: int,
) -> dict[str, list[int]]:
    registers = [state.initial & (1 << state.width) - 1 for state in netlist.states]
    kept: dict[str, object] = {}
    columns = {index: unpacked(values, count) for index, values in batch.items()}
    order = sorted(stateful)
    out: dict[str, list[int]] = {output.bus: [] for output in netlist.outputs}
    for item in range(count):
        now: dict[int, Value] = {index: column[item] for index, column in columns.items()}
        for index in order:
            cell = netlist.cells[index]
            if isinstance(cell, StateOut):
                now[index] = registers[cell.state]
            elif isinstance(cell, Call) and cell.unit.keeps_items:
                now[index] = cell.unit.act([gather(bits, now, None) for bits in cell.operands()], kept)
            elif not isinstance(cell, StateNext):
                now[index] = cell.evaluate([gather(bits, now, None) for bits in cell.operands()])
        registers = [_following(state, value, now) for state, value in zip(netlist.states, registers)]
        for index in order:
            cell = netlist.cells[index]
            if isinstance(cell, StateNext):
                now[index] = registers[cell.state]
        for output in netlist.outputs:
            out[output.bus].append(gather(output.bits, now, None))
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
            value = gather(state.next, values, None)
        total |= value & mask
    return total
