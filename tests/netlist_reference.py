"""What a netlist computes, cell by cell on Python integers: slow, simple, apart from the compiler's own."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from kera_hw.schedule.fpga.bits import Bits, bits_width
from kera_hw.schedule.fpga.cells import (
    Add,
    Call,
    Cell,
    Chain,
    Input,
    Lut,
    Moves,
    Mul,
    Mux,
    RegisterPin,
    Rom,
    StateNext,
    StateOut,
    Unit,
    WriteControl,
)
from kera_hw.schedule.fpga.expressions import BitExpr
from kera_hw.schedule.fpga.netlist import Netlist, StateReg
from kera_hw.schedule.fpga.units import IterativeUnit, Memory, Port, WritePort


def evaluate(netlist: Netlist, items: Sequence[Mapping[str, int]]) -> list[dict[str, int]]:
    """Results by output bus of a sequence of items (by input bus), from the initial state on."""
    state = [reg.initial & ((1 << reg.width) - 1) for reg in netlist.states]
    memories: dict[str, list[int]] = {}
    results: list[dict[str, int]] = []
    for item in items:
        values: list[int] = []
        for index, cell in enumerate(netlist.cells):
            for bits in cell.operands():
                assert all(s.cell is None or s.cell < index for s in bits), "cells are not in order"
            if isinstance(cell, Call) and isinstance(cell.unit, Port):
                arguments = [_read(bits, values) for bits in cell.arguments]
                values.append(_accessed(cell.unit, arguments, memories))
            else:
                values.append(_cell(cell, values, item, state))
        state = [_following(reg, now, values) for reg, now in zip(netlist.states, state)]
        for index, cell in enumerate(netlist.cells):
            if isinstance(cell, StateNext):
                values[index] = state[cell.state]
        results.append({out.bus: _read(out.bits, values) for out in netlist.outputs})
    return results


def _following(reg: StateReg, now: int, values: Sequence[int]) -> int:
    """The state after an item, bit by bit: each by the one control that names it, if any does."""
    following, total = _read(reg.next, values), 0
    for bit in range(reg.width):
        source = following
        for control in reg.controls:
            if control.low <= bit < control.low + control.width:
                if control.enable is not None and not values[control.enable]:
                    source = now
                if control.reset is not None and values[control.reset]:
                    source = reg.initial
        total |= (source >> bit & 1) << bit
    return total


def _read(bits: Bits, values: Sequence[int]) -> int:
    total, position = 0, 0
    for segment in bits:
        source = segment.low if segment.cell is None else values[segment.cell] >> segment.low
        total |= (source & ((1 << segment.width) - 1)) << position
        position += segment.width
    return total


def _bitwise(expr: BitExpr, operands: Sequence[Bits], width: int, values: Sequence[int]) -> int:
    inputs = [(_read(bits, values), bits_width(bits)) for bits in operands]
    result = 0
    for position in range(width):
        chosen = [value & 1 if size == 1 else value >> position & 1 for value, size in inputs]
        result |= _bit(expr, chosen) << position
    return result


def _bit(expr: BitExpr, values: Sequence[int]) -> int:
    """The value (0 or 1) of a bitwise expression on single bits."""
    kind = expr[0]
    if kind == "in":
        return values[cast(int, expr[1])]
    if kind == "const":
        return cast(int, expr[1])
    parts = [_bit(cast(BitExpr, item), values) for item in expr[1:]]
    return {
        "not": lambda: 1 - parts[0], "mux": lambda: parts[1] if parts[0] else parts[2],
        "and": lambda: min(parts), "or": lambda: max(parts), "xor": lambda: sum(parts) & 1,
    }[cast(str, kind)]()


def _signed(bits: Bits, signed: bool, values: Sequence[int]) -> int:
    value, width = _read(bits, values), bits_width(bits)
    return value - (1 << width) if signed and value >> (width - 1) else value


def _chain(cell: Chain, values: Sequence[int]) -> int:
    pins = [_read(bits, values) for bits in (cell.a, *cell.inputs)]
    carry, total, position = _read(cell.carry_in, values), 0, 0
    for count, table in cell.tables:
        for _ in range(count):
            a, b, c, d = (pin >> position & 1 for pin in pins)
            passes = table >> (8 * d + 4 * c + 2 * b + a) & 1
            total |= (passes ^ carry) << position
            carry = carry if passes else table >> (2 * b + a) & 1
            position += 1
    return total | carry << position if cell.carry_out else total


def _cell(cell: Cell, values: Sequence[int], item: Mapping[str, int], state: Sequence[int]) -> int:
    mask = (1 << cell.width) - 1
    if isinstance(cell, Input):
        return item[cell.bus] >> cell.low & mask
    if isinstance(cell, StateOut):
        return state[cell.state]
    if isinstance(cell, StateNext):
        return 0  # not before the item has written it
    if isinstance(cell, WriteControl):
        return int(isinstance(cell, Moves))
    if isinstance(cell, RegisterPin):
        return _read(cell.bits, values)
    if isinstance(cell, Lut):
        return _bitwise(cell.expr, cell.inputs, cell.width, values)
    if isinstance(cell, Chain):
        return _chain(cell, values)
    if isinstance(cell, Add):
        term = _bitwise(cell.expr, cell.inputs, cell.width - cell.carry_out, values)
        return _read(cell.a, values) + term + _read(cell.carry_in, values) & mask
    if isinstance(cell, Mul):
        return _signed(cell.a, cell.a_signed, values) * _signed(cell.b, cell.b_signed, values) & mask
    if isinstance(cell, Mux):
        select = min(_read(cell.select, values), len(cell.choices) - 1)
        return _read(cell.choices[select], values)
    if isinstance(cell, Rom):
        address = _read(cell.address, values)
        return cell.contents[address] & mask if address < len(cell.contents) else 0
    if isinstance(cell, Call):
        return _called(cell.unit, [_read(bits, values) for bits in cell.arguments])
    raise TypeError(f"no meaning for a {type(cell).__name__} cell")


def _accessed(port: Port, arguments: Sequence[int], memories: dict[str, list[int]]) -> int:
    """An access to a memory, all before it having acted."""
    storage = port.storage
    present = memories.setdefault(storage.name, list(storage.initial or [0] * storage.entries))
    assert len(present) == storage.entries and arguments[0] < storage.entries, "an address beyond the memory"
    if isinstance(port, WritePort):
        address, word, condition = arguments
        assert word >> storage.word_bits == 0
        present[address] = word if condition else present[address]
        return 0
    return present[arguments[0]]


def _called(unit: Unit, arguments: Sequence[int]) -> int:
    if isinstance(unit, Memory):
        (address,) = arguments
        return unit.contents[address] & (1 << unit.word_bits) - 1 if address < len(unit.contents) else 0
    assert isinstance(unit, IterativeUnit)
    present = {register.bus: value for register, value in zip(unit.registers, arguments)}
    for _ in range(unit.count):
        (found,) = evaluate(unit.step, [present])
        for register in unit.registers:
            enabled = register.enable is None or found[register.enable] == register.enabled_by
            if register.follow is not None and enabled:
                present[register.bus] = found[register.follow]
    total, position, widths = 0, 0, dict(unit.step.inputs)
    for register in unit.registers:
        total |= present[register.bus] << position
        position += widths[register.bus]
    return total
